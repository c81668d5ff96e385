"""Why an agent did what it did: its decisions, from a run's journal and cassette."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import repeat
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from ...bank.memory_bank import MemoryBank
from ...errors import RunError, TierMemError
from ...memory.events import Added
from ...memory.records import Explanation, Memory, id_prefix, memory_id
from ...memory.tiers import TIER_NAMES, Temperature, Tier
from ...telling.groups import group_of
from ..policies.cassette import Cassette, Exchange
from ..tick.decision_log import REFUSAL, UNANSWERED, LoggedDecision
from ..worlds.outside import is_outside
from .folder import as_run_error
from .record import FORGOTTEN, RunRecord, births, text_of

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
    told: tuple[str, ...] = ()
    """The memories that others told it in the tick, which are new to it."""
    insights: tuple[str, ...] = ()
    """What it concluded when it reflected."""

    def reasons(self) -> Counter[str]:
        """How many memories were not given, by reason."""
        return Counter(row.reason.partition(" by ")[0] for row in self.not_given)


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
    kept: LoggedDecision,
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
    born = births(kept, new)

    def text(number: int) -> str:
        if number in new:
            return text_of(new[number])
        memory = bank.engine.state.memory(agent, number)  # what was repeated
        return FORGOTTEN if memory is None else memory.content

    first = list(map(text, born.perceived))
    observed = first.pop(0) if kept.has_text and first else ""
    if is_outside(bank.settings):  # its agents observe as often as they like, and hear nothing
        observed, first = "\n".join([observed, *first]), []
    deeds = []
    before, after = errors
    for (name, arguments, result, _), number, why in zip(
        kept.did, born.done, reasons(kept, after), strict=True
    ):
        own = (None, why) if number is None else (memory_id(prefix, number), text(number))
        if result == UNANSWERED:
            arguments = {key: each for key, each in arguments.items() if key != "reason"}
        deeds.append(TakenAction(name or "no action", arguments, RESULTS[result], *own))
    query = observed if kept.query is None else kept.query
    given, not_given, asked, note = _seen_before(bank, agent, query, kept, explain)
    return Decision(
        agent=agent,
        tick=bank.tick,
        observed=observed,
        heard=tuple(first),
        errors=before,
        facts=kept.facts,
        query=query,
        given=given,
        not_given=not_given,
        asked=asked,
        did=tuple(deeds),
        saved=tuple(map(text, born.rest)) if bank.settings.flush.enabled else (),
        exchanges=exchanges,
        note=note,
        told=tuple(map(text, born.told)),
        insights=tuple(map(text, born.insights)),
    )


def reasons(kept: LoggedDecision, errors: Sequence[str]) -> list[str]:
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
        found, kept = next(record.decisions(tick - 1), (0, []))
    except RunError as error:
        raise RunError(f"{error.why} in {folder}") from None
    if found != tick:
        begins = record.begins_after
        why = "its journal has none of that tick"
        if tick <= begins:
            why = f"it was restored from a checkpoint after tick {begins}, which has no history"
        raise RunError(
            f"the decisions of tick {tick} were not kept in {folder}: {why}",
            hint="run the scenario again to have them; tiermem show has the memories after a tick",
        )
    if agents.index(agent) >= len(kept):
        raise RunError(
            f"{agent} came to {folder} after tick {tick}", hint="name a later tick with --tick"
        )
    return kept[agents.index(agent)]


def _seen_before(
    bank: MemoryBank,
    agent: str,
    query: str,
    kept: LoggedDecision,
    explain: Callable[[str], list[Explanation]],
) -> tuple[tuple[GivenMemory, ...], tuple[Explanation, ...], tuple[Question, ...], str]:
    """The memories that the agent was given, those that it was not given, questions, a note."""
    boosts = bank.settings.memory.tier_boosts
    seed = bank.settings.seed
    prefix = id_prefix(seed, agent)

    def given(
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
        own: tuple[GivenMemory, ...], boards: Sequence[tuple[int, str, int, float]]
    ) -> tuple[GivenMemory, ...]:
        """What a question found, in its order."""
        found = list(own)
        for place, board, number, score in boards:
            found.insert(place, given(number, score, None, f"board of {group_of(board)}", board))
        return tuple(found)

    parts = map(part_of, kept.tiers, kept.temperatures)
    shown = tuple(map(given, kept.sequences, kept.scores, kept.tiers, parts))
    unknown = repeat(None)  # the log of a question has neither tiers nor parts
    asked = tuple(
        Question(
            text,
            limit,
            cold,
            with_boards(tuple(map(given, found, scores, unknown, unknown)), boards or ()),
            why,
            boards is not None,
        )
        for (text, limit, cold, found, scores, why), boards in zip(
            kept.asked, kept.boards, strict=True
        )
    )
    if is_outside(bank.settings) and kept.query is None:
        return shown, (), asked, "it was given nothing in this tick: the program did not ask"
    try:
        rows = explain(query)
    except TierMemError as error:  # the embedder may be a server that does not answer
        return shown, (), asked, f"why other memories were not given can't be told: {error.why}"
    again = [(row.memory.sequence, row.score) for row in rows if row.rank]
    note = ""
    if again != list(zip(kept.sequences, kept.scores, strict=True)):
        note = "memories were forgotten or settings changed since: today, the search gives others"
    return shown, tuple(row for row in rows if row.rank is None), asked, note


def as_json(found: Decision) -> dict[str, Any]:
    """A decision as JSON values."""
    return {
        **found._asdict(),
        "given": [each._asdict() for each in found.given],
        "not_given": [
            {
                "id": row.memory.id,
                "text": row.memory.content,
                "score": row.score,
                "boost": row.boost,
                "tier": TIER_NAMES[row.memory.tier],
                "reason": row.reason,
            }
            for row in found.not_given
        ],
        "asked": [
            {**each._asdict(), "found": [one._asdict() for one in each.found]}
            for each in found.asked
        ],
        "did": [each._asdict() for each in found.did],
        "exchanges": [json.loads(json.dumps(each._asdict())) for each in found.exchanges],
    }
