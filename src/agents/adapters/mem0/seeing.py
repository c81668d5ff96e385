"""Conditions on all that a bank keeps of a payload: flat metadata, and what is kept beside it."""

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ...errors import InvalidInput
from ...memory.records import VALUE, Metadata
from ...memory.requests import Condition, parse_condition
from .filters import Join
from .payloads import EXPIRES, kept_name, whole


class Traits(NamedTuple):
    """What memories may have."""

    has_dates: bool
    """Whether one may have a last day."""
    has_values: bool
    """Whether something may be kept beside the metadata of one."""

    @classmethod
    def of(cls, metadata: Iterable[Metadata | None]) -> "Traits":
        """The traits of memories with this metadata."""
        values = False
        for own in metadata:
            if own is not None:
                beside = own.get(VALUE)
                values = values or beside is not None
                if EXPIRES in own or (isinstance(beside, str) and EXPIRES in beside):
                    return cls(True, True)  # the rest may have anything
        return cls(False, values)


COLD: Final = Traits(True, True)
"""What cold memories may have: they would have to be read to know more."""


class Seen(NamedTuple):
    """A condition on metadata and on what is kept beside it. What is expired does not meet it."""

    condition: Condition | None
    today: str | None
    names: tuple[str, ...]
    """The names that it asks for, as JSON has them."""

    def matches(self, metadata: Metadata, /) -> bool:
        """Whether the condition holds."""
        own, beside = metadata, metadata.get(VALUE)
        if isinstance(beside, str) and any(name in beside for name in self.names):
            everything = whole(metadata).items()
            own = {name: each for name, each in everything if not isinstance(each, dict | list)}
        if self.today is not None:
            last = own.get(EXPIRES)
            if isinstance(last, str) and last < self.today:
                return False
        return self.condition is None or self.condition.matches(own)


def seen(
    ids: dict[str, str], wanted: Join, today: str | None, traits: Iterable[Traits]
) -> tuple[Condition | None, Join | None]:
    """The bank's condition, and what is left to be tested: None if nothing is."""
    condition, left = _condition(ids, wanted)
    found = list(traits)
    if not any(each.has_dates for each in found):
        today = None
    has_values = condition is not None and any(each.has_values for each in found)
    if today is None and not has_values:
        return condition, left
    names = [EXPIRES, *map(kept_name, {*ids, *wanted.names()})]
    quoted = tuple([json.dumps(name, ensure_ascii=False) for name in names])
    return Seen(condition, today, quoted), left


def _condition(ids: dict[str, str], wanted: Join) -> tuple[Condition | None, Join | None]:
    own: dict[str, Any] = {f"metadata.{kept_name(name)}": ids[name] for name in ids}
    native = wanted.translated()
    if native is not None:
        try:
            return parse_condition(
                {"$and": [own, native]} if own and native else own or native
            ), None
        except InvalidInput:  # it is longer or deeper than the bank's conditions may be
            pass
    return parse_condition(own), wanted
