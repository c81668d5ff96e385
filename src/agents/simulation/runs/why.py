"""Why an agent did what it did, and the life of a memory, from a run's journal and cassette."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from ...bank.memory_bank import MemoryBank
from ...errors import MemoryNotFound, RunError, TierMemError
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
from ...memory.records import Explanation, Memory, id_prefix, memory_id, sequence_of
from ...memory.sources import source_of
from ...memory.tiers import TEMPERATURE_NAMES, TIER_NAMES, Retention, Temperature, Tier
from ...telling.groups import board_of, group_of, is_board
from ..policies.cassette import Cassette, Exchange
from ..tick.decision_log import REFUSAL, UNANSWERED, LoggedDecision
from ..worlds.outside import is_outside
from .folder import as_run_error
from .record import FORGOTTEN, RunRecord, births, text_of
from .views import decision_view

RESULTS = ("done", "failed", "no answer", "refused")
"""The words for what came of an action, by the number in the log."""


class GivenMemory(NamedTuple):
    """A memory that an agent was given, as it was then."""

    id: str
    text: str
    score: float
    boost: float
    part: str
    """Why it was given: pinned, hot or chosen."""
    tier: str
    created_tick: int | None
    """None if the memory was purged since."""
    kind: str
    """How it was written: an observation, an action, or a fact that was heard or stored."""
    speaker: str | None
    """Who said it, if its metadata names somebody."""


class Question(NamedTuple):
    """A question that a policy asked its agent's memory, and what it found."""

    query: str
    limit: int | None
    cold: bool
    found: tuple[GivenMemory, ...]
    note: str
    """Why it was not answered; empty if it was."""
    groups: bool = False
    """Whether it was about the boards of the agent's groups, too."""
    session: str | int | None = None
    """The session that it was about; None for all memories."""


class TakenAction(NamedTuple):
    """An action of an agent, and what came of it."""

    name: str
    arguments: Mapping[str, Any]
    """As the policy gave them, without a text that became a memory or a note, or is ``text``."""
    result: str
    """done, failed, no answer or refused."""
    memory_id: str | None
    """The memory that it became; None for a blank outcome, and for what was refused."""
    text: str
    """The memory's text; why, if the action was refused or the policy had no answer."""
    reason: str | None = None
    """Why the agent did it, if its policy says so."""


class Decision(NamedTuple):
    """What decided one agent's actions in one tick, and what came of them."""

    agent: str
    tick: int
    observed: str
    """Empty if the observation had no text."""
    heard: tuple[str, ...]
    errors: tuple[str, ...]
    """What was wrong with its actions in the tick before."""
    facts: Mapping[str, Any]
    query: str
    given: tuple[GivenMemory, ...]
    """What it was given, in that order."""
    not_given: tuple[Explanation, ...]
    """Its other memories, each with the reason; empty where ``note`` says so."""
    asked: tuple[Question, ...]
    """What its policy asked then, and what was found."""
    did: tuple[TakenAction, ...]
    saved: tuple[str, ...]
    """The memories that it saved before its context was compacted."""
    exchanges: tuple[Exchange, ...]
    """The prompts to a language model and its answers, from the cassette."""
    note: str = ""
    """What can't be told any more."""
    idle: str | None = None
    """Why it did nothing, if its policy says so."""
    told: tuple[str, ...] = ()
    """The memories that others told it in the tick, which are new to it."""
    insights: tuple[str, ...] = ()
    """What it concluded when it reflected."""

    def reasons(self) -> Counter[str]:
        """How many memories were not given, by reason."""
        return Counter(row.reason.partition(" by ")[0] for row in self.not_given)

    def __repr__(self) -> str:
        return decision_view(self).text()

    def _repr_html_(self) -> str:
        return decision_view(self).html()


def decision(folder: Path, agent: str, tick: int) -> Decision:
    """What decided an agent's actions in a tick of a run. It reads copies and changes nothing."""
    with RunRecord.read(folder) as record:
        with as_run_error(f"the decisions of {folder} can't be read"):
            kept = _kept(folder, record, tick, agent)
            new = record.new_memories(tick).get(agent, {})
            errors = [tuple(record.errors(each).get(agent, ())) for each in (tick - 1, tick)]
        exchanges = tuple(Cassette(folder / "cassette.jsonl", replay=True).of(tick, agent))
        with record.bank(tick - 1) as bank:
            bank.advance(tick)
            return retold(bank, agent, kept, new, (errors[0], errors[1]), exchanges)


def retold(
    bank: MemoryBank,
    agent: str,
    logged: LoggedDecision,
    new: Mapping[int, Added],
    errors: tuple[tuple[str, ...], tuple[str, ...]],
    exchanges: tuple[Exchange, ...],
    explain: Callable[[str], list[Explanation]] | None = None,
) -> Decision:
    """A decision, from what the log has of it and the bank as it was when the agent decided.

    ``new`` are the agent's new memories of the tick, ``errors`` what was wrong with its actions in
    the tick before, and in this one.
    ``explain`` is asked what the agent's query gives, instead of the bank.
    """
    explain = explain or partial(bank.agent(agent).explain, context=True)
    prefix = id_prefix(bank.settings.seed, agent)
    born = births(logged, new)

    def text(number: int) -> str:
        if number in new:
            return text_of(new[number])
        memory = bank.engine.state.memory(agent, number)  # what was repeated
        return FORGOTTEN if memory is None else memory.content

    first = list(map(text, born.perceived))
    observed = first.pop(0) if logged.has_text and first else ""
    if is_outside(bank.settings):  # its agents observe as often as they like, and hear nothing
        observed, first = "\n".join([observed, *first]), []
    deeds = []
    before, after = errors
    for place, ((name, arguments, result, _), number, why) in enumerate(
        zip(logged.did, born.done, refusals(logged, after), strict=True)
    ):
        became = None if number is None else memory_id(prefix, number)
        said = why if number is None else text(number)
        if result == UNANSWERED:
            arguments = {key: each for key, each in arguments.items() if key != "reason"}
        fields = name or "no action", arguments, RESULTS[result], became, said
        deeds.append(TakenAction(*fields, logged.reason(place)))
    query = observed if logged.query is None else logged.query
    shown, not_given, asked, note = _seen_before(bank, agent, query, logged, explain)
    return Decision(
        agent=agent,
        tick=bank.tick,
        observed=observed,
        heard=tuple(first),
        errors=before,
        facts=logged.facts,
        query=query,
        given=shown,
        not_given=not_given,
        asked=asked,
        did=tuple(deeds),
        saved=tuple(map(text, born.rest)) if bank.settings.flush.enabled else (),
        exchanges=exchanges,
        note=note,
        told=tuple(map(text, born.told)),
        insights=tuple(map(text, born.insights)),
        idle=logged.idle,
    )


def refusals(kept: LoggedDecision, errors: Sequence[str]) -> list[str]:
    """For each action why it was refused, or why there was no answer; empty if it was done.

    ``errors`` are those of the tick: what was wrong with actions comes before what was wrong with
    flushes and reflections.
    """
    refused = iter(errors)
    return [
        next(refused, "")
        if result == REFUSAL
        else str(arguments.get("reason", ""))
        if result == UNANSWERED
        else ""
        for _, arguments, result, _ in kept.did
    ]


def part_of(tier: int, temperature: int) -> str:
    """Why a memory in this state was given: pinned, hot or chosen."""
    if tier == Tier.PINNED:
        return "pinned"
    return "hot" if temperature == Temperature.HOT else "chosen"


def _kept(folder: Path, record: RunRecord, tick: int, agent: str) -> LoggedDecision:
    """What the log has of an agent in a tick; an error says why it has nothing."""
    agents, last = record.agents, record.last
    if agent not in agents:
        raise RunError(
            f"{folder} has no agent {agent!r:.60}",
            hint=f"list its agents with: tiermem show {quote(str(folder))}",
        )
    if not 1 <= tick <= last:
        raise RunError(
            f"{folder} has ticks 1 to {last}, and nobody decided anything in tick {tick}",
            hint=f"name a tick from 1 to {last}" if last else "let it run first",
        )
    try:
        kept_tick, decisions = next(record.decisions(tick - 1), (0, []))
    except RunError as error:
        raise RunError(f"{error.why} in {folder}") from None
    if kept_tick != tick:
        begins = record.begins_after
        why = "its journal has none of that tick"
        if tick <= begins:
            why = f"it was restored from a checkpoint after tick {begins}, which has no history"
        raise RunError(
            f"the decisions of tick {tick} were not kept in {folder}: {why}",
            hint="run the scenario again to have them; tiermem show has the memories after a tick",
        )
    if agents.index(agent) >= len(decisions):
        raise RunError(
            f"{agent} came to {folder} after tick {tick}", hint="name a later tick with --tick"
        )
    return decisions[agents.index(agent)]


def _seen_before(
    bank: MemoryBank,
    agent: str,
    query: str,
    logged: LoggedDecision,
    explain: Callable[[str], list[Explanation]],
) -> tuple[tuple[GivenMemory, ...], tuple[Explanation, ...], tuple[Question, ...], str]:
    """The memories that the agent was given, those that it was not given, questions, a note."""
    boosts = bank.settings.memory.tier_boosts
    seed = bank.settings.seed
    prefix = id_prefix(seed, agent)

    def shown(
        number: int, score: float, tier: int | None, part: str | None, owner: str = agent
    ) -> GivenMemory:
        """A memory as it was; where the log has no tier, the one that it had then."""
        memory: Memory | None = bank.engine.state.memory(owner, number)
        if tier is None:
            tier = Tier.NORMAL if memory is None else memory.tier
        return GivenMemory(
            memory_id(prefix if owner == agent else id_prefix(seed, owner), number),
            FORGOTTEN if memory is None else memory.content,
            score,
            boosts[tier],
            part or "found",
            TIER_NAMES[Tier(tier)],
            None if memory is None else memory.created_tick,
            "" if memory is None else memory.kind,
            None if memory is None or memory.speaker is None else str(memory.speaker),
        )

    def with_boards(
        of_agent: Iterable[GivenMemory], boards: Sequence[tuple[int, str, int, float]]
    ) -> tuple[GivenMemory, ...]:
        """What a question found, in its order."""
        memories = list(of_agent)
        for place, board, number, score in boards:
            memories.insert(place, shown(number, score, None, f"board of {group_of(board)}", board))
        return tuple(memories)

    parts = map(part_of, logged.tiers, logged.temperatures)
    given = tuple(map(shown, logged.sequences, logged.scores, logged.tiers, parts))
    unknown = repeat(None)  # the log of a question has neither tiers nor parts
    asked = tuple(
        Question(
            text,
            limit,
            cold,
            with_boards(map(shown, numbers, scores, unknown, unknown), boards or ()),
            why,
            boards is not None,
            session,
        )
        for (text, limit, cold, numbers, scores, why), boards, session in zip(
            logged.asked, logged.boards, logged.sessions, strict=True
        )
    )
    if is_outside(bank.settings) and logged.query is None:
        return given, (), asked, "it was given nothing in this tick: the program did not ask"
    try:
        rows = explain(query)
    except TierMemError as error:  # the embedder may be a server that does not answer
        return given, (), asked, f"why other memories were not given can't be told: {error.why}"
    again = [(row.memory.sequence, row.score) for row in rows if row.rank]
    note = ""
    if again != list(zip(logged.sequences, logged.scores, strict=True)):
        note = "memories were forgotten or settings changed since: today, the search gives others"
    return given, tuple(row for row in rows if row.rank is None), asked, note


def as_json(decided: Decision) -> dict[str, Any]:
    """A decision as JSON values."""
    return {
        **decided._asdict(),
        "given": [each._asdict() for each in decided.given],
        "not_given": [
            {
                "id": row.memory.id,
                "text": row.memory.content,
                "score": row.score,
                "boost": row.boost,
                "tier": TIER_NAMES[row.memory.tier],
                "reason": row.reason,
            }
            for row in decided.not_given
        ],
        "asked": [
            {**each._asdict(), "found": [one._asdict() for one in each.found]}
            for each in decided.asked
        ],
        "did": [each._asdict() for each in decided.did],
        "exchanges": [json.loads(json.dumps(each._asdict())) for each in decided.exchanges],
    }


# The life of one memory in a run: born, moved, given, gone

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
