"""The differences between two banks or two runs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from ...bank.memory_bank import MemoryBank
from ...config.settings import Settings
from ...engine.read import active, hidden
from ...errors import RunError
from ...memory.records import Memory
from ...memory.tiers import Retention
from ...memory.words import cut
from ...notes.markdown import split_lines
from ...telling import groups
from .record import RunRecord

_TRAITS = ("temperature", "kind", "tags", "expires_tick", "metadata")
_USE = ("access_count", "last_access_tick", "relevance")
_FIELDS = ("content", "tier", "created_tick", "tier_tick", *_TRAITS, "retention")
_CHANGED = ("tier", *_TRAITS)
_TEXTS = ("memory", "content", "note")


class Difference(NamedTuple):
    """One field that differs between two banks."""

    agent: str | None
    memory: str | None
    """The memory's id, or the line of a note."""
    field: str
    first: object
    second: object

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.agent, self.memory) if part)
        text = f"{self.field} is {shown(self.first)} and {shown(self.second)}"
        return f"{where}: {text}" if where else text


class Changed(NamedTuple):
    """A memory that both runs have, but not the same."""

    first: Memory
    second: Memory
    """Its id may be another: the second run can have given that id to another text."""
    fields: list[tuple[str, object, object]]
    """Each field that differs, with its value in both."""


class RunDiff(NamedTuple):
    """The differences between two runs."""

    parted: int | None
    """The first tick after which the runs differ; None if they never do."""
    last: int
    """The last tick that both runs have, after which memories and metrics are compared."""
    only_first: list[Memory]
    only_second: list[Memory]
    changed: list[Changed]
    metrics: list[tuple[str, float | None, float | None]]
    settings: list[tuple[str, object, object]]
    """The settings that differ, by key."""
    series: tuple[list[dict[str, Any]], list[dict[str, Any]]]
    """The records of both runs."""


def differences(first: MemoryBank, second: MemoryBank) -> Iterator[Difference]:
    """The differences between two banks: texts first, for the rest may follow from them.

    Use comes last, and is named where nothing else of a memory differs. Otherwise the differences
    come agent by agent: memories, oldest first, then notes; then the boards of groups.
    """
    yield from sorted(_by_agent(first, second), key=_place)


def _place(found: Difference) -> int:
    return 0 if found.field in _TEXTS else 2 if found.field in _USE else 1


def _by_agent(first: MemoryBank, second: MemoryBank) -> Iterator[Difference]:
    for agent in _owners(first, second):
        ours, theirs = _kept(first, agent), _kept(second, agent)
        for sequence in sorted({*ours, *theirs}):
            one, other = ours.get(sequence), theirs.get(sequence)
            if one and other:
                found = list(_fields(one, other, _FIELDS)) or list(_fields(one, other, _USE))[:1]
                for field, left, right in found:
                    yield Difference(agent, one.id, field, left, right)
            elif one:
                yield Difference(agent, one.id, "memory", one.content, None)
            elif other:
                yield Difference(agent, other.id, "memory", None, other.content)
        yield from _notes(first, second, agent)
        if groups.group_of(agent):
            both = [groups.members(bank.engine, agent) for bank in (first, second)]
            if both[0] != both[1]:
                yield Difference(agent, None, "members", *both)


def _owners(first: MemoryBank, second: MemoryBank) -> list[str]:
    """Who has memories in one of two banks: the agents, then the boards of groups."""
    boards = map(groups.board_of, sorted({*first.groups(), *second.groups()}))
    return [*sorted({*first.agents(), *second.agents()}), *boards]


def _fields(
    one: Memory, other: Memory, names: Sequence[str]
) -> Iterator[tuple[str, object, object]]:
    """The fields that differ, with both values."""
    for name in names:
        left, right = getattr(one, name), getattr(other, name)
        if left != right:
            yield name, left, right


def _kept(bank: MemoryBank, agent: str) -> dict[int, Memory]:
    """The memories of an agent by their number, also archived ones; those deleted are gone."""
    archived = hidden(bank.engine, agent, Retention.ARCHIVED)
    return {each.sequence: each for each in (*_active(bank, agent), *archived)}


def _active(bank: MemoryBank, agent: str) -> list[Memory]:
    return active(bank.engine, agent, None, None)


def _notes(first: MemoryBank, second: MemoryBank, agent: str) -> Iterator[Difference]:
    """The first differing line of each of an agent's notes."""
    ours, theirs = (bank.engine.state.block(agent).notes for bank in (first, second))
    for path in sorted({*ours, *theirs}):
        texts = [notes[path].text if path in notes else None for notes in (ours, theirs)]
        if texts[0] == texts[1]:
            continue
        lines = [[] if text is None else split_lines(text) for text in texts]
        pairs = enumerate(zip_longest(*lines), start=1)
        differing = ((n, pair) for n, pair in pairs if pair[0] != pair[1])
        number, (one, other) = next(differing, (1, texts))  # one note is empty, one is missing
        yield Difference(agent, f"{path}#L{number}", "note", one, other)


def compare_runs(first: Path, second: Path) -> RunDiff:
    """Compare two runs tick by tick, and their memories after the last common tick."""
    with RunRecord.read(first) as ours, RunRecord.read(second) as theirs:
        records = _records(ours), _records(theirs)
        by_tick = [{record["tick"]: record for record in each} for each in records]
        common = sorted(by_tick[0].keys() & by_tick[1].keys())
        if not common:
            raise RunError(
                f"{first} and {second} have no tick in common",
                hint="let the shorter one go on, or compare others",
            )
        parted = next((t for t in common if not _same(by_tick[0][t], by_tick[1][t])), None)
        with ours.bank(common[-1]) as one, theirs.bank(common[-1]) as other:
            only_first, only_second, changed = _memories(one, other)
        settings = _settings(ours.settings, theirs.settings)
    ends = [each[common[-1]]["metrics"] for each in by_tick]
    names = dict.fromkeys([*ends[0], *ends[1]])
    metrics = [(name, ends[0].get(name), ends[1].get(name)) for name in names]
    return RunDiff(parted, common[-1], only_first, only_second, changed, metrics, settings, records)


def _settings(first: Settings, second: Settings) -> list[tuple[str, object, object]]:
    one, other = (flat(each.to_dict(redact=True)) for each in (first, second))
    return [
        (key, one.get(key), other.get(key))
        for key in dict.fromkeys([*one, *other])
        if one.get(key) != other.get(key)
    ]


def flat(settings: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Settings by their whole names, such as ``memory.max_pinned``."""
    result: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            result |= flat(value, f"{path}{key}.")
        else:
            result[f"{path}{key}"] = value
    return result


def _records(run: RunRecord) -> list[dict[str, Any]]:
    return [record for record, _ in run.records()]


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (one["state_hash"], one["metrics"]) == (other["state_hash"], other["metrics"])


def _memories(
    first: MemoryBank, second: MemoryBank
) -> tuple[list[Memory], list[Memory], list[Changed]]:
    only_first: list[Memory] = []
    only_second: list[Memory] = []
    changed: list[Changed] = []
    for agent in _owners(first, second):
        # Memories with the same text and tick count as the same; their sequence may differ.
        ours, theirs = _by_text(_active(first, agent)), _by_text(_active(second, agent))
        only_first += [memory for key, memory in ours.items() if key not in theirs]
        only_second += [memory for key, memory in theirs.items() if key not in ours]
        changed += [
            Changed(memory, theirs[key], fields)
            for key, memory in ours.items()
            if key in theirs and (fields := list(_fields(memory, theirs[key], _CHANGED)))
        ]
    return only_first, only_second, changed


def only_in(first: list[Memory], second: list[Memory]) -> tuple[list[Memory], list[Memory]]:
    """The memories that only the first list has, and those that only the second has."""
    ours, theirs = _by_text(first), _by_text(second)
    return (
        [memory for key, memory in ours.items() if key not in theirs],
        [memory for key, memory in theirs.items() if key not in ours],
    )


def _by_text(memories: list[Memory]) -> dict[tuple[str, int, int], Memory]:
    seen: dict[tuple[str, int], int] = {}
    result = {}
    for memory in memories:
        key = (memory.content, memory.created_tick)
        seen[key] = seen.get(key, 0) + 1  # a text that comes twice in a tick is two memories
        result[(*key, seen[key])] = memory
    return result


def shown(value: object) -> str:
    """A value of a field, in words."""
    if value is None:
        return "missing"
    if isinstance(value, Mapping):
        value = dict(value)
    name = getattr(value, "name", None)
    text = name.lower() if isinstance(name, str) else json.dumps(value, ensure_ascii=False)
    return cut(text, 120)
