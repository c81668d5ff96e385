"""What a bank keeps from its beginning: its id, its seed, its settings and its embedder."""

import hmac
import uuid
from collections.abc import Sequence
from typing import Any

from ..config.settings import Settings
from ..errors import BankDamaged, EmbedderError, Untrusted
from .embedding.embedders import Embedder, NoEmbedder, OfflineEmbedder, as_embedder
from .journal.journal import Journal
from .mem0.models import Mem0Embedder
from .trust import is_listed, sealed

_MOST_DIMS = 65_536


def prepare(
    journal: Journal,
    settings: Settings,
    given: Embedder | None,
    refused: Untrusted | None = None,
) -> Embedder:
    """The embedder to use: ``given``, or the configured one, which raises ``refused`` when used.

    A new journal keeps its name and its dimensions; with an old journal they must be the same.
    """
    identity: dict[str, Any] | None = journal.get("bank")
    if identity is None and journal.head:
        raise BankDamaged(
            "the journal does not say which bank it is of", hint="restore it from a backup"
        )
    kept = identity["embedder"] if identity else None
    embedder = checked_embedder(settings, given, kept["dims"] if kept else None, refused)
    if kept is None:
        journal.set(
            bank=sealed(
                {
                    "id": _new_id(),
                    "seed": settings.seed,
                    "settings": settings.to_dict(redact=True),
                    "embedder": {"name": embedder.name, "dims": embedder.dims},
                }
            )
        )
    elif (embedder.name, embedder.dims) != (kept["name"], kept["dims"]):
        raise EmbedderError(
            f"this bank's vectors come from {kept['name']} ({kept['dims']} dimensions) and can't "
            f"be mixed with those of {embedder.name} ({embedder.dims})",
            hint="open it with the embedder it was made with, or give it the other one with: "
            "tiermem reembed BANK",
        )
    return embedder


def checked_embedder(
    settings: Settings,
    given: object,
    dims: int | None = None,
    refused: Untrusted | None = None,
) -> Embedder:
    """``given`` as an embedder, or the configured one; ``dims`` is what the bank knows of it."""
    embedder = _configured(settings, dims, refused) if given is None else as_embedder(given)
    if not isinstance(embedder.dims, int) or not 1 <= embedder.dims <= _MOST_DIMS:
        raise EmbedderError(
            f"the embedder {embedder.name} has {embedder.dims!r} dimensions",
            hint=f"a whole number from 1 to {_MOST_DIMS:,} is needed",
        )
    return embedder


def with_embedder(
    identity: dict[str, Any], embedder: Embedder, settings: Settings
) -> dict[str, Any]:
    """The identity of a bank whose vectors come from another embedder from now on."""
    section = settings.to_dict(redact=True)["embedder"]
    changed = {
        **identity,
        "settings": {**identity["settings"], "embedder": section},
        "embedder": {"name": embedder.name, "dims": embedder.dims},
    }
    return sealed(changed) if is_trusted(identity) else changed


def is_trusted(identity: dict[str, Any]) -> bool:
    """Whether this user made the bank of this identity, or trusts it.

    The seal covers the settings and not the memories: what the settings may do is theirs to say.
    """
    right = sealed(identity)["seal"]
    found = identity.get("seal")
    return (isinstance(found, str) and _same(found, right)) or is_listed(right)


def with_new_id(identity: dict[str, Any]) -> dict[str, Any]:
    """The identity of a copy, which must not write to the store of the first bank."""
    copy = {**identity, "id": _new_id()}
    return sealed(copy) if is_trusted(identity) else copy


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _new_id() -> str:
    """A random id, which tells the stores of banks apart. No result or hash depends on it."""
    return str(uuid.uuid4())


class _RefusedEmbedder(Mem0Embedder):
    """The embedder of an untrusted bank: it has a name, and embeds nothing."""

    def __init__(self, settings: Settings, dims: int | None, refused: Untrusted) -> None:
        super().__init__(settings.embedder, dims)
        self._refused = refused

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        raise self._refused


def _configured(settings: Settings, dims: int | None, refused: Untrusted | None) -> Embedder:
    if settings.embedder.provider == "offline":
        return OfflineEmbedder()
    if settings.embedder.provider == "none":
        return NoEmbedder()
    if refused is not None:
        return _RefusedEmbedder(settings, dims, refused)
    return Mem0Embedder(settings.embedder, dims)
