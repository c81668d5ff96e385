"""What a caller keeps beside a memory: metadata, which is flat JSON, and one nested JSON value."""

import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from ..errors import InvalidContent, InvalidInput, InvalidMetadata
from .records import VALUE, Scalar, shown
from .requests import check_text, plain_scalar
from .sources import SOURCE

_MOST_BYTES = 1 << 20
_DEEPEST = 64
_LONGEST_NUMBER = 1024  # bits; Python refuses to read numbers that are much longer
_sorted_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def value_text(value: object) -> str:
    """The JSON text of a value, with sorted keys, or :class:`InvalidInput`."""
    text = _sorted_json(_checked_value(value, "value", _DEEPEST))
    return _bounded(text)


def check_value_text(text: object) -> None:
    """Raise :class:`InvalidInput` unless ``text`` is what :func:`value_text` gives for a value."""
    if not isinstance(text, str):
        raise InvalidInput(f"a memory's value is kept as JSON text, not {type(text).__name__}")
    try:
        value = json.loads(_bounded(text))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"a memory's value is not JSON: {error!s:.80}") from None
    if value_text(value) != text:
        raise InvalidInput(
            "a memory's value is JSON text with sorted keys and no spaces",
            hint="give the value itself as `value`",
        )


def _bounded(text: str) -> str:
    size = len(text.encode())
    if size > _MOST_BYTES:
        raise InvalidInput(
            f"a memory's value of {size:,} bytes is over the limit of {_MOST_BYTES:,}",
            hint="keep it in a file, and the file's name in the memory",
        )
    return text


def _checked_value(value: object, place: str, depth: int) -> object:
    """The value, lists and scalars plain, or :class:`InvalidInput` that names the wrong place."""
    if value is None or type(value) is bool:
        return value
    if type(value) is int and value.bit_length() <= _LONGEST_NUMBER:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, str):
        return _text(value, place)
    if not depth:
        raise InvalidInput(f"a memory's value is nested more than {_DEEPEST} deep")
    if isinstance(value, list | tuple):
        return [_checked_value(each, f"{place}[{at}]", depth - 1) for at, each in enumerate(value)]
    if isinstance(value, dict):
        wrong = next((key for key in value if type(key) is not str), None)
        if wrong is not None:
            raise InvalidInput(f"{place:.80}: keys are text, not {type(wrong).__name__}")
        return {
            _text(key, place): _checked_value(each, f"{place}.{key:.40}", depth - 1)
            for key, each in value.items()
        }
    plain = plain_scalar(value)
    if plain is not value:
        return _checked_value(plain, place, depth)
    raise InvalidInput(
        f"{place:.80} is not JSON that can be kept: {shown(value)}",
        hint="use text, finite numbers, true, false, null, lists and mappings",
    )


def _text(text: str, place: str) -> str:
    try:
        return check_text(text, f"{place:.80}")
    except InvalidContent as error:
        raise InvalidInput(error.why, hint=error.hint) from None


# mem0 and TierMem use these keys themselves: metadata with them could change a memory's agent or
# tier.
RESERVED_METADATA_KEYS = frozenset(
    {
        "id", "memory", "data", "hash", "score", "metadata", "text_lemmatized",
        "created_at", "updated_at", "expiration_date", "attributed_to",
        "user_id", "agent_id", "run_id", "actor_id", "role",
        "tier", "tier_name", "created_tick", "tier_tick", "sequence", "tiermem_bank",
        "temperature", "retention", "kind", "tags",
        "expires_tick", "access_count", "last_access_tick", "relevance", SOURCE,
    }
)  # fmt: skip

_MAX_METADATA_BYTES = 16_384

_MOST_SHARED, _MOST_ENTRIES, _LONGEST_SHARED = 4096, 6, 100


_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class KeptMetadata(dict[str, Scalar]):
    """Checked metadata with its JSON text. It never changes: many memories may share one object."""

    __slots__ = ("json",)

    def __init__(self, values: Mapping[str, Scalar]) -> None:
        super().__init__(values)
        self.json = _json(values)


def check_metadata(metadata: object) -> KeptMetadata | None:
    """The metadata with sorted keys, None if it is empty, or :class:`InvalidMetadata`."""
    if metadata is None:
        return None
    if type(metadata) is not dict and not isinstance(metadata, Mapping):
        raise InvalidMetadata(f"metadata is a mapping, not {type(metadata).__name__}")
    if not metadata:
        return None
    return _checked(metadata, KeptMetadata)


@final
class SharedMetadata:
    """Gives memories with equal small metadata one shared object. A bank owns one.

    Thousands of memories may have the same few values: the values are checked and kept once.
    """

    __slots__ = ("_checked", "_kept")

    def __init__(self) -> None:
        remember = functools.lru_cache(maxsize=_MOST_SHARED, typed=True)
        kept = remember(lambda *flat: KeptMetadata(_unflat(flat)))
        self._kept = kept
        self._checked = remember(lambda *flat: _checked(_unflat(flat), self.keep))

    def check(self, metadata: object) -> KeptMetadata | None:
        """The result or the error of :func:`check_metadata`."""
        flat = _flat(metadata) if type(metadata) is dict and metadata else None
        return check_metadata(metadata) if flat is None else self._checked(*flat)

    def keep(self, metadata: Mapping[str, Scalar]) -> KeptMetadata:
        """Metadata that was checked before it was stored."""
        flat = _flat(metadata)
        return KeptMetadata(metadata) if flat is None else self._kept(*flat)


def _flat(metadata: Mapping[str, Scalar]) -> list[Scalar] | None:
    """Keys and values in one list if they are few and short; else None.

    A float gives None too: 0.0 and -0.0 are equal and would share one object.
    """
    if len(metadata) > _MOST_ENTRIES:
        return None
    flat: list[Scalar] = []
    for key, value in metadata.items():
        kind = type(value)
        if type(key) is not str or len(key) > _LONGEST_SHARED:
            return None
        if kind is str:
            if len(value) > _LONGEST_SHARED:  # type: ignore[arg-type]
                return None
        elif not (kind is bool or kind is int or value is None):
            return None
        flat += (key, value)
    return flat


def _unflat(flat: Sequence[Any]) -> dict[str, Scalar]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _checked(
    metadata: Mapping[str, Scalar], keep: Callable[[Mapping[str, Scalar]], KeptMetadata]
) -> KeptMetadata:
    plain = {key: _checked_entry(key, value) for key, value in metadata.items()}
    kept = keep({key: plain[key] for key in sorted(plain)})
    size = len(kept.json.encode())
    if VALUE in kept:
        check_value_text(kept[VALUE])
        size = len(_json({key: own for key, own in kept.items() if key != VALUE}).encode())
    if size > _MAX_METADATA_BYTES:
        raise InvalidMetadata(
            f"metadata of {size:,} bytes is over the limit of {_MAX_METADATA_BYTES:,}",
            hint="keep less of it, or keep it as the memory's value",
        )
    return kept


def _checked_entry(key: object, value: object) -> Scalar:
    """The value, plain if it was a scalar of NumPy, or :class:`InvalidMetadata`."""
    if not isinstance(key, str) or not key:
        raise InvalidMetadata(f"metadata keys are non-empty text, not {key!r}")
    if key in RESERVED_METADATA_KEYS:
        raise InvalidMetadata(
            f"metadata key {key!r} is reserved; it would change what the memory is",
            hint="rename it",
        )
    if key[0] in "$#" or key.startswith("chroma:"):
        raise InvalidMetadata(
            f"metadata key {key!r}: stores give $, # and chroma: a meaning", hint="rename it"
        )
    try:
        check_text(key, "metadata key")
        if isinstance(value, str):
            check_text(value, f"metadata value ({key})")
    except InvalidContent as error:
        raise InvalidMetadata(error.why, hint=error.hint) from None
    # Exact types: the journal returns no subclass of str or int.
    if value is None or type(value) is str or type(value) is bool:
        return value
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    plain = plain_scalar(value)
    if plain is not value:
        return _checked_entry(key, plain)
    raise InvalidMetadata(
        f"metadata {key}={shown(value)}: values are text, finite numbers (whole ones of 64 bits), "
        "true, false or null"
    )
