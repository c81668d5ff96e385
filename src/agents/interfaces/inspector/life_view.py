"""The answer about one memory: its life."""

from collections.abc import Sequence
from textwrap import shorten
from typing import Any, NamedTuple

from ...memory.events import (
    USES,
    Added,
    Event,
    LifetimeSet,
    Moved,
    Purged,
    Retained,
    TierChanged,
    VersionReplaced,
)
from ...memory.records import NEVER, Memory, Metadata, memory_id
from ...memory.sources import source_of
from ...memory.tiers import (
    RETENTION_NAMES,
    TEMPERATURE_NAMES,
    TIER_NAMES,
    Retention,
    Temperature,
    Tier,
)
from ...rules.tiers import end_after
from ...simulation.runs.record import FORGOTTEN, births
from ...simulation.runs.why import RESULTS, done_to, parts_in
from ...simulation.tick.decision_log import LoggedDecision
from ...storage.journal.journal import parsed
from ...telling.groups import is_board
from .agent_view import born_in, memory_row, no_decisions, texts_of
from .inspected import Inspected
from .parameters import NotThere, Parameters
from .slices import Item

_MOST_DECISIONS = 1000
"""Decisions that are told of a memory on a board: all members may find it in every tick."""
_REMARK = "it is a remark that the agent heard"
_MOST_LETTERS = 200
"""Letters of an observation that are told with what came of it."""


def memory(run: Inspected, given: Parameters) -> dict[str, Any]:
    """A memory's life: what happened to it, and every decision that it took part in."""
    identifier = given.text("id")
    run.need_whole()
    agent, number = run.owner(identifier)
    (answer,) = lives(run, agent, [number])
    if answer is None:
        raise NotThere(f"{run.name} has no memory {identifier!r:.80}", hint="it was never stored")
    return answer


def lives(run: Inspected, agent: str, numbers: Sequence[int]) -> list[dict[str, Any] | None]:
    """The lives of some memories of an agent; None for a memory that never was."""
    by_number = {number: _Life(run, agent, number) for number in numbers}
    last = run.need_whole()
    with run.past.after(agent, last) as bank:
        state = bank.engine.state
        now = [state.memory(agent, number) for number in numbers]
    for item in run.slices.items(run.slices.place(agent)):
        kept = None if item.kept is None else LoggedDecision(*item.kept)
        if kept is not None:
            asked = [number for each in kept.asked for number in each[3]]
            for number in dict.fromkeys([*kept.sequences, *asked]):
                if number in by_number:
                    by_number[number].decided(item, kept, agent)
        for event in parsed([row for row in item.events if row[0] not in USES]):
            for number in concerned(event):
                if number in by_number:
                    by_number[number].happened(item, event)
    if is_board(agent):
        for number, life in by_number.items():
            _found_on_board(run, agent, number, life)
    damage = (
        "" if run.slices.progress().damaged is None else f"the journal is damaged after tick {last}"
    )
    why_none = no_decisions(run)
    return [
        life.answer(memory, damage, why_none)
        for life, memory in zip(by_number.values(), now, strict=True)
    ]


def _found_on_board(run: Inspected, board: str, number: int, life: "_Life") -> None:
    """Tell a life the decisions of the agents who found the memory on its board."""
    slices = run.slices
    rows = slices.about_board(slices.place(board), number)
    for tick, place in rows[:_MOST_DECISIONS]:
        item = slices.item(place, tick)
        if item is not None and item.kept is not None:
            life.decided(item, LoggedDecision(*item.kept), slices.agents()[place])
    if len(rows) > _MOST_DECISIONS:
        life.remark = f"the first {_MOST_DECISIONS:,} of {len(rows):,} decisions are shown"


def concerned(event: Event) -> Sequence[int]:
    """The memories that an event is about."""
    if isinstance(event, VersionReplaced):
        return event.sequence, event.former
    if isinstance(event, Added | TierChanged):
        return (event.sequence,)
    return event.sequences if isinstance(event, Moved | Retained | LifetimeSet | Purged) else ()


class _State(NamedTuple):
    """Where a memory stands; None for what this journal does not tell."""

    tier: Tier | None = None
    temperature: Temperature | None = None
    retention: Retention | None = None
    expires: int | None = None

    def after(self, event: Event, tick: int) -> "_State":
        """Where it stands after an event about it in a tick."""
        if isinstance(event, Added):
            tier = Tier(event.tier)
            heat, expires = Temperature.WARM, None
            if event.start is not None:
                heat, expires = Temperature(event.start.temperature), event.start.expires_tick
            return _State(tier, Temperature.HOT if tier is Tier.PINNED else heat, _ACTIVE, expires)
        if isinstance(event, TierChanged):
            if event.tier == Tier.PINNED:
                return _State(Tier.PINNED, Temperature.HOT, _ACTIVE, self.expires)
            heat_now = Temperature.WARM if self.tier is Tier.PINNED else self.temperature
            return self._replace(tier=Tier(event.tier), temperature=heat_now)
        if isinstance(event, Moved):
            return self._replace(temperature=Temperature(event.temperature))
        if isinstance(event, Retained):
            retention, expires = Retention(event.retention), self.expires
            if expires is not None and end_after(retention, expires, tick) == NEVER:
                expires = None
            return self._replace(retention=retention, expires=expires)
        return self._replace(expires=event.expires_tick) if isinstance(event, LifetimeSet) else self

    def named(self) -> dict[str, Any]:
        """As the page reads it."""
        return {
            "tier": None if self.tier is None else TIER_NAMES[self.tier],
            "temperature": None
            if self.temperature is None
            else TEMPERATURE_NAMES[self.temperature],
            "retention": None if self.retention is None else RETENTION_NAMES[self.retention],
            "expires": self.expires,
        }


_ACTIVE = Retention.ACTIVE


class _Life:
    """The life of one memory, as it is read."""

    def __init__(self, run: Inspected, agent: str, number: int) -> None:
        self._run = run
        self._prefix = run.prefix(agent)
        self._agent = agent
        self._number = number
        self._born: Added | None = None
        self._state = _State()
        self._events: list[dict[str, Any]] = []
        self._decisions: list[dict[str, Any]] = []
        self.remark = ""
        """What the answer does not show."""

    def happened(self, item: Item, event: Event) -> None:
        """Note what an event of an item did to the memory."""
        tick, by, birth = item.tick, None, ""
        if isinstance(event, Added):
            self._born, by = event, _teller(event)
            birth = _birth(self._run, item, event)
        if isinstance(event, TierChanged) and event.cause == "demote":
            newcomer = _newcomer(item, event, self._state.tier)
            by = None if newcomer is None else memory_id(self._prefix, newcomer)
        if isinstance(event, VersionReplaced):
            if event.former == self._number:
                by = memory_id(self._prefix, event.sequence)
                self._note(tick, "succeeded", "another memory took its place", by)
                return
            by = memory_id(self._prefix, event.former)
        self._state = self._state.after(event, tick)
        for what, text in done_to(event, self._agent, self._number):
            self._note(tick, what, f"{text}; {birth}" if birth else text, by)

    def _note(self, tick: int, what: str, text: str, by: str | None) -> None:
        row = {"tick": tick, "what": what, "text": text, "by": by}
        self._events.append({**row, **self._state.named()})

    def decided(self, item: Item, logged: LoggedDecision, agent: str) -> None:
        """Note a decision of an agent for which the memory was given or found."""
        did = [{"name": name or "no action", "result": RESULTS[c]} for name, _, c, _ in logged.did]
        new = born_in(item)
        done = [each for each in births(logged, new).done if each is not None]
        outcome = texts_of(self._run, agent, done, new)
        rest = {"tick": item.tick, "agent": agent, "did": did, "outcome": outcome}
        for part, at, score, _ in parts_in(logged, agent, self._agent, self._number):
            self._decisions.append({**rest, "part": part, "place": at + 1, "score": score})

    def answer(self, now: Memory | None, note: str, no_decisions: str) -> dict[str, Any] | None:
        """The answer; ``now`` is the memory as it is, if it still is."""
        if self._born is None and now is None:
            return None
        row: dict[str, Any] = {"id": memory_id(self._prefix, self._number), "text": FORGOTTEN}
        if now is not None:
            row = {**memory_row(now), "retention": RETENTION_NAMES[now.retention]}
        source = (
            source_of((self._born and self._born.metadata) or {}) if now is None else now.source
        )
        if not self._born:
            note = "its birth is not in this journal, which began at a checkpoint"
        return {
            "memory": {"agent": self._agent, "created": None, "kind": "", "metadata": {}, **row},
            "source": None if source is None else source._asdict(),
            "events": self._events,
            "decisions": self._decisions,
            "no_decisions": no_decisions,
            "note": "; ".join(filter(None, (note, self.remark))),
        }


def _teller(event: Added) -> str | None:
    """Whom a new memory came from, if its metadata says so."""
    metadata: Metadata = event.metadata or {}
    source = source_of(metadata)
    if source is not None:
        return source.teller
    found = metadata.get("speaker") or metadata.get("source")
    return found if isinstance(found, str) else None


def _birth(run: Inspected, item: Item, event: Added) -> str:
    """What a new memory was to the decision of its tick: observed, heard, or made by an action.

    Empty where the decision log does not tell.
    """
    if item.kept is None:
        return ""
    kept, new = LoggedDecision(*item.kept), born_in(item)
    born = births(kept, new)
    if event.sequence in born.perceived:
        is_observed = kept.has_text and event.sequence == born.perceived[0]
        return "it is what the agent observed" if is_observed else _REMARK
    for (name, *_), number in zip(kept.did, born.done, strict=True):
        if number == event.sequence:
            seen = texts_of(run, event.agent_id, born.perceived[: kept.has_text], new)
            observed = [
                f", when it had observed: {shorten(each, _MOST_LETTERS, placeholder='…')}"
                for each in seen
            ]
            return "".join([f"by its action {name}", *observed])
    return ""


def _newcomer(item: Item, event: TierChanged, left: Tier | None) -> int | None:
    """The memory that needed the room of a demoted one, which ``left`` a tier.

    It entered that tier in the same commit. None if several did, or several made room: nobody can
    tell then which of them it was.
    """
    if left is None:
        return None
    entered = [row for row in item.events if row[0] in ("add", "tier")]
    came = [row[2] for row in entered if row[3] == left]
    went = [row for row in entered if row[0] == "tier" and row[3:5] == [event.tier, "demote"]]
    return came[0] if len(came) == len(went) == 1 else None
