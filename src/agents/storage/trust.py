"""Who made a bank and who trusts it, and what the settings that it remembers may do.

A seal is a text that only this user can make: an HMAC with a key in the user's state folder. A
bank, a checkpoint or a run that carries the right seal of its own settings was made by this user.
The seals of what else the user trusts are in a list beside the key.

Settings that a bank remembers, or that are in a run's folder, may be somebody else's. A wish is
what such settings want to do beyond reading and searching offline; each function that looks for one
gives None if there is none. A :class:`Guard` refuses the wishes of an untrusted bank.

What a bank keeps from its beginning is its identity: its id, its seed, its settings and its
embedder, under the seal of who made it.
"""

import fcntl
import functools
import hashlib
import hmac
import json
import os
import secrets
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from shlex import quote
from typing import Any, NamedTuple

from ..config.settings import (
    EmbedderSettings,
    LlmSettings,
    Settings,
    StoreSettings,
    without_password,
)
from ..errors import BankDamaged, EmbedderError, TrustError, Untrusted
from .embedding import Embedder, NoEmbedder, OfflineEmbedder, as_embedder
from .files import FILE_MODE, make_folder, new_file, replace_file
from .journal.journal import Journal
from .mem0.models import Mem0Embedder
from .minilm import MiniLM, WordsAndSentences, check_installed

_KEY_BYTES = 32
_MOST_LISTED = 10_000
"""When more are trusted, the earliest are forgotten."""
_MOST_DIMS = 65_536


class Trusted(NamedTuple):
    """An entry of the list of what the user trusts."""

    path: str
    kind: str
    """bank, checkpoint or run."""
    seals: list[str]


def seal_of(*parts: str | bytes) -> str:
    """The user's seal over texts."""
    mac = hmac.new(_key(_state_folder()).value, digestmod=hashlib.sha256)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        mac.update(b"%d\0" % len(data) + data)
    return mac.hexdigest()


def sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with the user's seal over all of it, under the key ``seal``."""
    plain = {key: child for key, child in value.items() if key != "seal"}
    text = json.dumps(json.loads(json.dumps(plain)), sort_keys=True)
    return {**plain, "seal": seal_of("json", text)}


def place_seal(file: Path) -> str:
    """The user's seal over a file's place on this machine.

    A copy, and a file that was unpacked, has another number or another time of change. To rename
    the file's folder changes neither.
    """
    found = file.lstat()
    return seal_of("place", f"{found.st_ino} {found.st_ctime_ns}")


def file_seal(files: Iterable[tuple[str, Path]]) -> str:
    """The user's seal over the names and the contents of files."""
    parts: list[str | bytes] = ["files"]
    for name, path in files:
        if path.is_symlink():
            parts += [name, f"link {path.readlink()}"]
        elif path.is_file():
            with path.open("rb") as file:
                parts += [name, hashlib.file_digest(file, "sha256").digest()]
        else:
            parts += [name, "folder"]
    return seal_of(*parts)


def listed() -> list[Trusted]:
    """What the user trusts besides what the user made, the earliest first."""
    path = _state_folder() / "trusted.json"
    try:
        _check_private(path)
        entries = json.loads(path.read_text())["trusted"]
        return [Trusted(each["path"], each["kind"], list(each["seals"])) for each in entries]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise TrustError(f"{path} can't be read: {error}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise TrustError(
            f"{path} is damaged ({error!r:.100})",
            hint="delete it, and trust again what you trusted",
        ) from error


def is_listed(*seals: str) -> bool:
    """Whether one of the seals is of something that the user trusts."""
    if _key(_state_folder()).problem:  # then no seal outlives this process
        return False
    return any(seal in each.seals for each in listed() for seal in seals)


def update_list(change: Callable[[list[Trusted]], list[Trusted]]) -> None:
    """Replace the list of what the user trusts; other processes wait meanwhile."""
    folder = _state_folder()
    if why := _key(folder).problem:
        raise TrustError(why, hint=_HINT)
    try:
        with _alone(folder):
            rows = [each._asdict() for each in change(listed())[-_MOST_LISTED:]]
            replace_file(folder / "trusted.json", json.dumps({"trusted": rows}, indent=1) + "\n")
    except OSError as error:
        raise TrustError(f"what you trust can't be kept in {folder}: {error}") from error


def refusal(place: Path, wish: str, instead: str = "") -> Untrusted:
    """The error for something that an untrusted bank, checkpoint or run may not do."""
    hint = f"if you trust the people who had it in hand: tiermem store trust {quote(str(place))}"
    problem = _key(_state_folder()).problem
    lost = f"; TierMem could not see whether it is yours: {problem}" if problem else ""
    return Untrusted(
        f"{place} is not known as yours on this machine, and it wants to {wish}{lost}",
        hint=f"{hint}; {instead}" if instead else hint,
    )


_HINT = "set XDG_STATE_HOME to a folder that only your user can read and write"


class _Key(NamedTuple):
    value: bytes
    problem: str
    """Why the key is only this process's; empty if it is the user's."""


def _state_folder() -> Path:
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    if given.is_absolute():
        return given / "tiermem"
    home = os.path.expanduser("~")  # "~" itself where no home is known
    return Path(home if home != "~" else "/nonexistent") / ".local" / "state" / "tiermem"


@functools.cache
def _key(folder: Path) -> _Key:
    """The user's key, which is made if there is none; without a place for it, a passing one."""
    path = folder / "key"
    try:
        if not path.exists():
            make_folder(folder)
            with _alone(folder):
                if not path.exists():
                    replace_file(path, secrets.token_bytes(_KEY_BYTES))
        _check_private(path)
        value = path.read_bytes()
        problem = "" if len(value) == _KEY_BYTES else f"{path} holds no key; delete it"
    except (OSError, TrustError) as error:
        value, problem = b"", f"your key {path} can't be used: {error}"
    return _Key(value, "") if not problem else _Key(secrets.token_bytes(_KEY_BYTES), problem)


def _check_private(path: Path) -> None:
    mode = path.stat().st_mode & 0o777
    if mode & ~FILE_MODE:
        raise TrustError(
            f"{path} may be used by others (mode {mode:o})",
            hint=f"delete it, or if nobody else wrote to it: chmod 600 {quote(str(path))}",
        )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Inside, no other process changes the folder."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(folder / "lock", flags, FILE_MODE)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


# What settings want that only the user's own, or trusted ones, may have


_OFFLINE = ("offline", "minilm", "both", "none")
_PICKLED = ("qdrant", "faiss")
"""The local stores whose files are pickles: to open them can run code that is in them."""
_PLAIN_OPTIONS = {"collection_name", "path"}


def embedder_wish(embedder: EmbedderSettings) -> str | None:
    """What an embedder other than ours does with texts."""
    if embedder.provider in _OFFLINE:
        return None
    return f"give texts and your API key to {_named('the embedder', embedder)}"


def llm_wish(llm: LlmSettings) -> str | None:
    """What a language model does with conversations."""
    asked = (each for each in llm.every() if each.is_set and not _stays_here(each))
    named = dict.fromkeys(map(_named_model, asked))
    if not named:
        return None
    return f"give texts and your API key to {' and '.join(named)}"


def store_wish(store: StoreSettings, folder: Path) -> str | None:
    """What a store does, unless it is Chroma in the bank's folder."""
    path = PurePath(str(store.config.get("path", store.provider)))
    if store.provider == "chroma" and not store.config.keys() - _PLAIN_OPTIONS:
        inside = not path.is_absolute() and ".." not in path.parts
        if inside and not _has_link(folder, path):
            return None
        return f"write a store outside its folder, in {folder / path}"
    return f"write to {_named('the store', store)}"


def notes_wish(extra_paths: Sequence[str]) -> str | None:
    """What notes outside the bank's folder mean."""
    return f"read your files in {', '.join(map(repr, extra_paths))}" if extra_paths else None


def has_pickles(store: StoreSettings, folder: Path) -> bool:
    """Whether a store is local, in the bank's folder, and of pickles."""
    return store.provider in _PICKLED and lies_inside(store, folder)


def lies_inside(store: StoreSettings, folder: Path) -> bool:
    """Whether the files of a store, or a link to them, are in the bank's folder."""
    if store.config.keys() & {"host", "url", "api_key"}:
        return False
    path = folder / str(store.config.get("path", store.provider))
    written = Path(os.path.normpath(path))
    return written.is_relative_to(folder) or path.resolve().is_relative_to(folder.resolve())


def _named(kind: str, section: EmbedderSettings | StoreSettings) -> str:
    address = _address(section.config)
    return f"{kind} {section.provider}" + (f" at {address}" if address else "")


def _stays_here(llm: LlmSettings) -> bool:
    """Whether it is the model of an installed package, in this process: nobody gets a text."""
    return llm.provider == "local" and llm.path is None and not llm.config


def _named_model(llm: LlmSettings) -> str:
    places = {"base_url": llm.base_url, "path": llm.path, **llm.config}
    address = _address(places)
    name = "the LLM" if llm.provider is None else f"the LLM {llm.provider}"
    return name + (f" at {address}" if address else "")


def _address(config: Mapping[str, object]) -> str:
    """The options that say where a provider is."""
    found = [
        without_password(value)
        for key, value in config.items()
        if key.endswith(("url", "host", "path", "endpoint", "connection_string"))
        and isinstance(value, str)
    ]
    return ", ".join(found)[:200]


def _has_link(folder: Path, path: PurePath) -> bool:
    """Whether a link leads out of the folder, on the way to the store or in it."""
    steps = [folder / part for part in (path, *path.parents) if part.parts]
    return any(step.is_symlink() for step in (*steps, *(folder / path).rglob("*")))


# What a bank's remembered settings may do


_PLACE, _SEAL = "store.place", "store.seal"


class Guard:
    """Compares the settings of a bank with those that its user gives now.

    What the user names now is the user's own, and needs no trust. A section that is only in part
    the user's own is not.
    """

    def __init__(
        self, folder: Path, identity: dict[str, Any] | None, settings: Settings, own: Settings
    ) -> None:
        self._identity = identity
        self._folder = folder
        self._settings = settings
        self._own = own

    @property
    def is_trusted(self) -> bool:
        """Whether this user made the bank, makes it now, or trusts it."""
        return self._identity is None or is_trusted(self._identity)

    def embedder(self) -> Untrusted | None:
        """Why the remembered embedder may not be used."""
        now, own = self._settings.embedder, self._own.embedder
        is_own = (now.provider, now.config) == (own.provider, own.config)
        return self._refused(is_own, embedder_wish(now), "or name an embedder yourself")

    def llm(self) -> Untrusted | None:
        """Why the remembered LLM may not be asked."""
        is_own = self._settings.llm == self._own.llm
        return self._refused(is_own, llm_wish(self._settings.llm), "or name an LLM yourself")

    def files(self) -> Untrusted | None:
        """Why the remembered store, or notes elsewhere, may not be opened."""
        store, notes = self._settings.store, self._settings.notes.extra_paths
        # The files in the folder are a stranger's, whoever names the store.
        refused = None
        if has_pickles(store, self._folder):
            refused = _strange_pickles(self._folder, store)
        is_own = store == self._own.store and not lies_inside(store, self._folder)
        instead = "or name another store yourself"
        refused = refused or self._refused(is_own, store_wish(store, self._folder), instead)
        is_own = notes == self._own.notes.extra_paths
        instead = "or name notes.extra_paths yourself"
        return refused or self._refused(is_own, notes_wish(notes), instead)

    def check_files(self) -> None:
        """Refuse to open what :meth:`files` refuses; otherwise claim the store's place."""
        if refused := self.files():
            raise refused
        if has_pickles(self._settings.store, self._folder) and not _is_claimed(self._folder):
            claim_store(self._folder)

    def without_files(self) -> Settings:
        """The settings of a copy, which neither has a store nor reads notes elsewhere."""
        if self.files() is None:
            return self._settings
        notes = replace(self._settings.notes, extra_paths=self._own.notes.extra_paths)
        return replace(self._settings, store=self._own.store, notes=notes)

    def _refused(self, is_own: bool, wish: str | None, instead: str) -> Untrusted | None:
        if is_own or wish is None or self.is_trusted:
            return None
        return refusal(self._folder, wish, instead)


def claim_store(folder: Path) -> None:
    """Say that the files of a bank's store, which lie in this place, are the user's own."""
    place = folder / _PLACE
    place.unlink(missing_ok=True)
    os.close(new_file(place))
    replace_file(folder / _SEAL, place_seal(place))


def _is_claimed(folder: Path) -> bool:
    try:
        return (folder / _SEAL).read_text() == place_seal(folder / _PLACE)
    except (OSError, ValueError):
        return False


def _strange_pickles(folder: Path, store: StoreSettings) -> Untrusted | None:
    """Why pickles in the bank's folder may not be opened: its seal says nothing of these files."""
    files = folder / str(store.config.get("path", store.provider))
    if _is_claimed(folder) or not files.exists():
        return None
    return refusal(
        folder,
        f"open the files of its {store.provider} store, which can hold code",
        f"or delete {files}, and rebuild it with: tiermem store rebuild {quote(str(folder))}",
    )


# The identity of a bank


def prepare(
    journal: Journal,
    identity: dict[str, Any] | None,
    settings: Settings,
    given: Embedder | None,
    refused: Untrusted | None = None,
) -> tuple[dict[str, Any], Embedder]:
    """The bank's identity, which a new journal keeps from now on, and the embedder to use.

    That is ``given``, or the configured one, which raises ``refused`` when used. Its name and its
    dimensions must be those of the identity.
    """
    if identity is None and journal.head:
        raise BankDamaged(
            "the journal does not say which bank it is of", hint="restore it from a backup"
        )
    kept = {} if identity is None else identity["embedder"]
    embedder = checked_embedder(settings, given, kept.get("dims"), refused)
    if identity is None:
        identity = sealed(
            {
                "id": _new_id(),
                "seed": settings.seed,
                "settings": settings.to_dict(redact=True),
                "embedder": {"name": embedder.name, "dims": embedder.dims},
            }
        )
        journal.set(bank=identity)
    elif (embedder.name, embedder.dims) != (kept["name"], kept["dims"]):
        raise EmbedderError(
            f"this bank's vectors come from {kept['name']} ({kept['dims']} dimensions) and can't "
            f"be mixed with those of {embedder.name} ({embedder.dims})",
            hint="open it with the embedder it was made with, or give it the other one with: "
            "tiermem store reembed BANK",
        )
    return identity, embedder


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
    if settings.embedder.provider in ("minilm", "both"):
        if dims is None:  # nobody knows yet whether it works here
            check_installed()
        return MiniLM() if settings.embedder.provider == "minilm" else WordsAndSentences()
    if refused is not None:
        return _RefusedEmbedder(settings, dims, refused)
    return Mem0Embedder(settings.embedder, dims)
