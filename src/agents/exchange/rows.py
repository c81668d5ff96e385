"""A memory as one row: the fields of :func:`memory_json`, and whose memory it is.

A row that comes in needs ``content``; the rest may be missing or null. Ids and ticks are the new
bank's: ``id``, ``access_count`` and ``last_access_tick`` are read over, and a lifetime, from
``created_tick`` to ``expires_tick``, begins anew.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from agents.bank import MemoryBank
from agents.errors import InvalidInput
from agents.memory.records import Memory, check_whole
from agents.memory.requests import NewMemory, check_new
from agents.memory.retention import Retention
from agents.memory.temperature import Temperature
from agents.memory.tiers import Tier
from agents.tools.shapes import MEMORY, memory_json

__all__ = ["FIELDS", "Imported", "Row", "check_rows", "exported", "is_chunk", "store_rows"]

FIELDS = ("agent_id", *MEMORY["properties"])

_CHUNK = 2000
"""Rows that are embedded at once: what it takes of memory is bounded, however many there are."""
_CAPPED = (Tier.PINNED, Tier.CRITICAL)


class Row(NamedTuple):
    """A row that comes in, and where it stood, for messages."""

    place: str
    values: Mapping[str, Any]


class Imported(NamedTuple):
    """What came of an import."""

    agents: Counter[str]
    """How many memories, by agent."""
    archived: int
    moved_down: int
    """How many the bank's caps moved to a lower tier, of these and of those that were there."""

    @property
    def total(self) -> int:
        """How many memories in all."""
        return self.agents.total()


class _New(NamedTuple):
    memory: NewMemory
    is_archived: bool


def exported(
    bank: MemoryBank, agents: Iterable[str], *, archived: bool
) -> Iterator[dict[str, Any]]:
    """The agents' memories as rows, oldest first; chunks of notes are left out."""
    for name in agents:
        agent = bank.agent(name)
        memories = agent.all()
        if archived:
            memories = sorted(
                memories + agent.hidden(Retention.ARCHIVED), key=lambda memory: memory.sequence
            )
        for memory in memories:
            if not is_chunk(bank, memory):
                yield {"agent_id": name, **memory_json(memory)}


def is_chunk(bank: MemoryBank, memory: Memory) -> bool:
    """Whether a memory is part of a note, whose file is what counts."""
    return memory.kind == "note" and bank.agent(memory.agent_id).notes.citation(memory) is not None


def check_rows(bank: MemoryBank, rows: Iterable[Row], agent_id: str | None = None) -> Imported:
    """What :func:`store_rows` would store; caps are not looked at, and no text is embedded."""
    agents: Counter[str] = Counter()
    archived = 0
    for new in _checked(bank, rows, agent_id):
        agents[new.memory[0]] += 1
        archived += new.is_archived
    return Imported(agents, archived, 0)


def store_rows(bank: MemoryBank, rows: Iterable[Row], agent_id: str | None = None) -> Imported:
    """Store rows in one commit, all or none; ``agent_id`` is for those that name no agent.

    The first row that is wrong is an :class:`InvalidInput` that says where it stands.
    """
    agents: Counter[str] = Counter()
    archived = 0
    with bank.transaction():
        capped = [m for name in bank.agents() for t in _CAPPED for m in bank.agent(name).all(t)]
        news = _checked(bank, rows, agent_id)
        while chunk := list(islice(news, _CHUNK)):
            agents.update(new.memory[0] for new in chunk)
            stored = bank.add_many(_startable(new) for new in chunk)
            for new, memory in zip(chunk, stored, strict=True):
                if new.is_archived:
                    archived += 1
                    _archive(bank, memory, new.memory[2])
                elif new.memory[2] in _CAPPED:
                    capped.append(memory._replace(tier=new.memory[2]))
        moved = sum(bank.agent(m.agent_id).get(m.id).tier is not m.tier for m in capped)
    return Imported(agents, archived, moved)


def _startable(new: _New) -> NewMemory:
    """How a memory is stored that is archived then: where it takes nobody's place."""
    if not new.is_archived:
        return new.memory
    agent, content, _, metadata, options = new.memory
    if options.temperature is Temperature.HOT:
        options = options._replace(temperature=Temperature.WARM)
    return agent, content, Tier.LOW, metadata, options


def _archive(bank: MemoryBank, memory: Memory, tier: Tier) -> None:
    agent = bank.agent(memory.agent_id)
    agent.archive(memory.id)
    agent.set_tier(memory.id, tier)


def _checked(bank: MemoryBank, rows: Iterable[Row], agent_id: str | None) -> Iterator[_New]:
    most = bank.settings.memory.max_content_bytes
    for row in rows:
        try:
            yield _new(row.values, agent_id, most)
        except InvalidInput as error:
            raise InvalidInput(f"{row.place}: {error}") from error


def _new(values: Mapping[str, Any], agent_id: str | None, most_bytes: int) -> _New:
    given = {name: value for name, value in values.items() if value is not None}
    _check_names(given)
    owner = given.get("agent_id", agent_id)
    if owner is None:
        raise InvalidInput("it does not say whose memory it is; give agent_id, or use --agent")
    if "content" not in given:
        raise InvalidInput("it has no content, which is the memory's text")
    options: dict[str, Any] = {"ttl": _lifetime(given)}
    options |= {name: given.get(name) for name in ("kind", "tags", "temperature")}
    item = (owner, given["content"], given.get("tier", "normal"), given.get("metadata"), options)
    memory = check_new(item, most_bytes)
    is_archived = _is_archived(given)
    if memory[2] is Tier.PINNED:
        _check_pinned(memory[4].temperature, is_archived)
    return _New(memory, is_archived)


def _check_names(given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in FIELDS:
            near = difflib.get_close_matches(str(name), FIELDS, 1)
            hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(FIELDS)}"
            raise InvalidInput(f"{name!r:.60} is no field of a memory; {hint}")


def _lifetime(given: Mapping[str, Any]) -> int | None:
    if "expires_tick" not in given:
        return None
    if "created_tick" not in given:
        raise InvalidInput("expires_tick needs created_tick: a lifetime is from one to the other")
    expires = check_whole("expires_tick", given["expires_tick"], least=1)
    created = check_whole("created_tick", given["created_tick"])
    if expires <= created:
        raise InvalidInput(f"expires_tick {expires} is not after created_tick {created}")
    return expires - created


def _is_archived(given: Mapping[str, Any]) -> bool:
    retention = given.get("retention", "active")
    if retention not in ("active", "archived"):
        raise InvalidInput(f"retention is active or archived, not {retention!r:.40}")
    return bool(retention == "archived")


def _check_pinned(temperature: Temperature | None, is_archived: bool) -> None:
    if is_archived or temperature not in (None, Temperature.HOT):
        raise InvalidInput("a pinned memory is active and hot; give it another tier, or neither")
