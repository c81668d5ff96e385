"""Small values that an agent holds beside its memories: its trust, how often it was told."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, final

NO_VALUES: Mapping[str, Any] = {}


@final
class Holdings:
    """JSON values by topic and name, with the sum of a hash over each."""

    __slots__ = ("total", "values")

    def __init__(self, values: Iterable[tuple[str, str, Any]] = ()) -> None:
        self.values: dict[str, dict[str, Any]] = {}
        self.total = 0
        for topic, name, value in values:
            self.hold(topic, name, value)

    def __bool__(self) -> bool:
        return bool(self.values)

    def of(self, topic: str) -> Mapping[str, Any]:
        """The values of a topic, by name."""
        return self.values.get(topic, NO_VALUES)

    def hold(self, topic: str, name: str, value: Any) -> None:
        """Hold another value under a name; None removes the name."""
        own = self.values.setdefault(topic, {})
        if name in own:
            self.total -= _digest(topic, name, own.pop(name))
        if value is not None:
            own[name] = value
            self.total += _digest(topic, name, value)
        if not own:
            del self.values[topic]

    def rows(self) -> list[tuple[str, str, Any]]:
        """Topic, name and value of all that is held, in the order of topics and names."""
        return [
            (topic, name, value)
            for topic, own in sorted(self.values.items())
            for name, value in sorted(own.items())
        ]


def _digest(topic: str, name: str, value: Any) -> int:
    text = json.dumps([topic, name, value], ensure_ascii=False)
    return int.from_bytes(sha256(text.encode()).digest(), "big")
