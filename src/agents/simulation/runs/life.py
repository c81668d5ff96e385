"""The life of one memory in a run: born, moved, given, gone."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...errors import MemoryNotFound
from ...memory.events import (
    BY_RULE,
    Added,
    Event,
    LifetimeSet,
    Moved,
    Purged,
    Retained,
    TierChanged,
    VersionReplaced,
)
from ...memory.records import id_prefix, sequence_of
from ...memory.sources import source_of
from ...memory.tiers import TEMPERATURE_NAMES, TIER_NAMES, Retention, Temperature, Tier
from ...telling.groups import board_of, group_of, is_board
from ..tick.decision_log import LoggedDecision
from .folder import as_run_error
from .record import FORGOTTEN, RunRecord
from .why import part_of

_CAUSES = {
    "set": "by a call or an action",
    "demote": "to make room in its tier",
    "promote": "because it was used",
    "spill": "because hot was full",
    "compact": "by a rule of temperature.rules",
    "decay": "because it was not used",
    "expire": "because its lifetime was over",
    "prune": "because there were too many cold memories",
    "restore": "because it was restored",
    "supersede": "because another memory superseded it",
}
_RETAINED = {
    Retention.ACTIVE: "active again",
    Retention.ARCHIVED: "archived",
    Retention.DELETED: "deleted",
}


class Moment(NamedTuple):
    """Something that happened to a memory."""

    tick: int
    what: str
    """born, successor, tier, temperature, archived, deleted, active again, given, found or gone."""
    detail: str
    score: float | None = None
    """How well it matched the query that it was given for."""


class Life(NamedTuple):
    """A memory's agent and text, and everything that happened to it, in order."""

    memory_id: str
    agent: str
    """Its agent; of a post on the board of a group, the board."""
    text: str
    moments: tuple[Moment, ...]
    note: str = ""
    """What is not known of it."""


class Part(NamedTuple):
    """What a memory was to a decision."""

    part: str
    """pinned, hot or chosen; found, if a question found it."""
    place: int
    """Its place among what was given or found, from 0."""
    score: float
    query: str | None = None
    """The question that found it."""


def parts_in(logged: LoggedDecision, agent: str, owner: str, number: int) -> Iterator[Part]:
    """What a memory was to a decision of an agent; ``owner`` is that agent, or a board."""
    if owner == agent:
        if number in logged.sequences:
            at = logged.sequences.index(number)
            part = part_of(logged.tiers[at], logged.temperatures[at])
            yield Part(part, at, logged.scores[at])
        for query, _, _, found, scores, _ in logged.asked:
            if number in found:
                at = found.index(number)
                yield Part("found", at, scores[at], query)
    elif is_board(owner):
        for (query, *_), boards in zip(logged.asked, logged.boards, strict=True):
            for at, board, sequence, score in boards or ():
                if (board, sequence) == (owner, number):
                    yield Part("found", at, score, query)


def life(folder: Path, identifier: str) -> Life:
    """The life of a memory of a run; :class:`MemoryNotFound` for the id of no memory of it."""
    missing = MemoryNotFound(
        f"{folder} has no memory {identifier!r:.80}",
        hint="tiermem show and tiermem why give ids; the ids of another run are others",
    )
    with (
        as_run_error(f"the life of a memory of {folder} can't be read"),
        RunRecord.read(folder) as run,
        run.bank() as bank,
    ):
        boards = map(board_of, bank.groups())
        owners = {
            name: number
            for name in (*run.agents, *boards)
            if (number := sequence_of(id_prefix(run.settings.seed, name), identifier)) is not None
        }
        if not owners:
            raise missing
        ((owner, number),) = owners.items()
        memory = bank.engine.state.memory(owner, number)
        moments, text = [], "" if memory is None else memory.content
        for tick, events in run.events():
            for event in events:
                if isinstance(event, Added) and event[1:3] == (owner, number):
                    text = FORGOTTEN if event.content is None else event.content
                moments += [Moment(tick, *each) for each in done_to(event, owner, number)]
        begins = run.begins_after
        if memory is not None and memory.created_tick <= begins and not _is_born(moments):
            moments.insert(0, Moment(memory.created_tick, "born", f"as {memory.kind}"))
        if not moments:
            raise missing
        kept_since = None
        for tick, logged in run.decisions():
            kept_since = tick if kept_since is None else kept_since
            for agent, own in zip(run.agents, logged, strict=False):
                parts = parts_in(own, agent, owner, number)
                moments += [_moment(tick, agent, own, part) for part in parts]
        note = _note(moments, kept_since, begins)
    # What an agent is given in a tick comes before what the tick changes.
    moments.sort(key=lambda each: (each.tick, each.what not in ("given", "found")))
    group = group_of(owner)
    whose = owner if group is None else f"board of {group}"
    return Life(identifier, whose, text, tuple(moments), note)


def _moment(tick: int, agent: str, logged: LoggedDecision, part: Part) -> Moment:
    if part.query is not None:
        return Moment(tick, "found", f"by a question of {agent}: {part.query}", part.score)
    did = ", ".join(str(name) for name, *_ in logged.did) or "nothing"
    place = f"place {part.place + 1} of {len(logged.sequences)}"
    return Moment(tick, "given", f"{part.part}, {place}; {agent} did: {did}", part.score)


def _is_born(moments: list[Moment]) -> bool:
    return any(moment.what == "born" for moment in moments)


def _note(moments: list[Moment], kept_since: int | None, begins: int) -> str:
    if kept_since is None:
        return "its run kept no decisions, so nobody can tell when the memory was given"
    if begins:
        return (
            f"the run was restored from a checkpoint after tick {begins}: what was before is lost"
        )
    if moments[0].tick + 1 < kept_since:
        return f"decisions are kept from tick {kept_since} on"
    return ""


def _cause(cause: str) -> str:
    rule = cause.removeprefix(BY_RULE)
    return _CAUSES[cause] if rule == cause else f"by the rule {rule!r}"


def done_to(event: Event, agent: str, number: int) -> Iterator[tuple[str, str]]:
    """What an event did to a memory: a word, and the detail."""
    if isinstance(event, Added | TierChanged | VersionReplaced):
        if event.agent_id != agent or event.sequence != number:
            return
        if isinstance(event, VersionReplaced):
            yield "successor", f"of the agent's memory number {event.former}"
            return
        tier = TIER_NAMES[Tier(event.tier)]
        if isinstance(event, Added):
            kind = "fact" if event.start is None else event.start.kind
            source = source_of(event.metadata or {})
            teller = "" if source is None else f", told by {source.teller}"
            yield "born", f"{tier}, as {kind}{teller}"
        else:
            yield "tier", f"{tier} now, {_CAUSES[event.cause]}"
    elif isinstance(event, Moved | Retained | LifetimeSet | Purged):
        if event.agent_id != agent or number not in event.sequences:
            return
        if isinstance(event, Moved):
            heat = TEMPERATURE_NAMES[Temperature(event.temperature)]
            yield "temperature", f"{heat} now, {_cause(event.cause)}"
        elif isinstance(event, Retained):
            yield _RETAINED[Retention(event.retention)], _CAUSES[event.cause]
        elif isinstance(event, LifetimeSet):
            yield "lifetime", f"until tick {event.expires_tick} now"
        else:
            yield "gone", "its text and its vector are purged"
