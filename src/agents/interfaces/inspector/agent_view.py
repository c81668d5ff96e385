"""The answers about one agent at a tick: its decision, its memories, and why not others."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...bank.memory_bank import MemoryBank
from ...config.settings import Settings
from ...errors import BankDamaged, TierMemError
from ...memory.context import line, render
from ...memory.events import Added, Event
from ...memory.records import Explanation, Hit, Hits, Memory
from ...memory.tiers import (
    TEMPERATURE_NAMES,
    TIER_NAMES,
    Temperature,
    Tier,
)
from ...search.explain import OVER_BUDGET
from ...simulation.policies import interview
from ...simulation.policies.costs import line_of
from ...simulation.runs.interviews import survey
from ...simulation.runs.record import FORGOTTEN, births, new_memories, text_of
from ...simulation.runs.why import Decision, as_json, retold
from ...simulation.tick.decision_log import LoggedDecision
from ...storage.journal.journal import parsed
from ...telling.groups import group_of, is_board
from .inspected import Inspected
from .parameters import CantTell, Parameters
from .slices import Item

_NOT_A_DECISION = {
    "persona": "",
    "observed": "",
    "heard": [],
    "errors": [],
    "facts": {},
    "query": "",
    "given": [],
    "reasons": {},
    "asked": [],
    "did": [],
    "outcome": [],
    "told": [],
    "saved": [],
    "insights": [],
    "exchanges": [],
    "calls": [],
}


def agent_at(run: Inspected, given: Parameters) -> dict[str, Any]:
    """What decided the agent's actions in a tick, and what came of them."""
    agent, tick = run.agent(given), run.tick(given)
    run.need(tick)
    try:
        found, kept, bank_text, known, settings = _decision(run, agent, tick)
    except CantTell as error:
        context = ""
        if not is_board(agent):
            with run.past.after(agent, tick) as bank:
                context = bank.agent(agent).get_relevant_memories()
        told = {**_NOT_A_DECISION, "context": context, "note": error.why}
        return {"agent": agent, "tick": tick, **told}
    rows = as_json(found._replace(not_given=()))
    del rows["not_given"]
    _with_reasons(run, rows, kept, known, settings)
    return {
        **rows,
        "persona": run.persona(agent),
        "reasons": dict(found.reasons()),
        "outcome": [deed.text for deed in found.did if deed.text],
        "calls": [line_of(exchange, settings.llm) for exchange in found.exchanges],
        "context": bank_text,
    }


Recalled = dict[str, Memory]
"""By id, memories as they were when the agent decided."""


class _Seen(NamedTuple):
    """A decision, and what the views need besides."""

    decision: Decision
    kept: LoggedDecision
    context: str
    """The text that the agent read."""
    known: Recalled
    settings: Settings


def _decision(run: Inspected, agent: str, tick: int) -> _Seen:
    item, kept = _kept(run, agent, tick)
    with run.past.after(agent, tick - 1, deciding=True) as bank:
        explain = partial(run.past.explained, bank, agent)
        new, told = born_in(item), (run.errors(agent, tick - 1), run.errors(agent, tick))
        found = retold(bank, agent, kept, new, told, run.exchanges(agent, tick), explain)
        text = _context(bank, agent, kept) if found.note else _rendered(explain(found.query))
        return _Seen(found, kept, text, _recalled(bank, agent, kept), bank.settings)


def no_decisions(run: Inspected) -> str:
    """Why there are no decisions to show; empty if some were kept."""
    if run.is_run:
        return "" if run.slices.progress().has_decisions else "this run has kept no decisions"
    if run.name == "bank" and (run.folder / ".." / "run.json").exists():
        place = run.folder.parent if run.folder.name == "bank" else run.folder / ".."
        return f"this bank was opened without its run, which has the decisions: {place}"
    return "a bank without a run keeps no decisions"


def _kept(run: Inspected, agent: str, tick: int) -> tuple[Item, LoggedDecision]:
    """What the journal has of an agent's decision in a tick; an error says why it has nothing."""
    if is_board(agent):
        raise CantTell("a board decides nothing", hint="look at the members of its group")
    if not run.is_run:
        raise CantTell(no_decisions(run))
    if tick == run.first_tick():
        raise CantTell(f"nobody decides anything in tick {tick}, with which the run begins")
    if why := run.slices.lost().get(tick):
        raise CantTell(why, hint=BankDamaged.hint)
    item = run.slices.item(run.slices.place(agent), tick)
    if item is None or item.kept is None:
        raise CantTell(f"the decisions of tick {tick} were not kept")
    return item, LoggedDecision(*item.kept)


def _rendered(rows: Sequence[Explanation]) -> str:
    """The text of what a search gave: ``AgentMemory.get_relevant_memories``."""
    hits = Hits([Hit(*row[:4]) for row in rows if row.rank])
    hits.pinned_left_out = tuple(
        [row.memory for row in rows if row.reason == OVER_BUDGET and row.memory.tier is Tier.PINNED]
    )
    return render(hits)


def _context(bank: MemoryBank, agent: str, kept: LoggedDecision) -> str:
    """The memories that the agent was given, where the search gives others today."""
    state, hits = bank.engine.state, Hits()
    forgotten = 0
    for number, score in zip(kept.sequences, kept.scores, strict=True):
        memory = state.memory(agent, number)
        if memory is None:
            forgotten += 1
        else:
            hits.append(Hit(memory, score, 0.0, score))
    text = render(hits)
    if forgotten:
        text = "\n".join([*(line(hit.memory) for hit in hits), *[f"- {FORGOTTEN}"] * forgotten])
    return text


def events_of(item: Item) -> list[Event]:
    """The events of an item."""
    return parsed(item.events)


def born_in(item: Item) -> dict[int, Added]:
    """The agent's new memories of a tick by sequence number, without the chunks of notes."""
    return next(iter(new_memories(events_of(item)).values()), {})


def perceived(run: Inspected, agent: str, item: Item, kept: LoggedDecision) -> list[str]:
    """What the agent observed and heard in a tick, in this order."""
    new = born_in(item)
    return texts_of(run, agent, births(kept, new).perceived, new)


def texts_of(
    run: Inspected, agent: str, numbers: Iterable[int], new: Mapping[int, Added]
) -> list[str]:
    """The texts of new memories by their numbers, or of what was repeated."""
    slices = run.slices
    return [
        text_of(new[number])
        if number in new
        else slices.text(slices.place(agent), number) or FORGOTTEN
        for number in numbers
    ]


# Why a memory was given or found


def _recalled(bank: MemoryBank, agent: str, kept: LoggedDecision) -> Recalled:
    """The agent's memories that were given and found for a decision."""
    found = (number for each in kept.asked for number in each[3])
    return _known(bank, agent, [*kept.sequences, *found])


def _with_reasons(
    run: Inspected, rows: dict[str, Any], kept: LoggedDecision, known: Recalled, settings: Settings
) -> None:
    """Give each memory of a decision the reason for which the agent saw it.

    A bank of one agent lacks the boards that the agent may read, so these are read here.
    """
    for row in rows["given"]:
        part = row["part"] if settings.retrieval.pins_first else "chosen"
        row["reason"] = _reason_given(part, row, rows["query"]) + _reason_from(known.get(row["id"]))
    for asked, boards in zip(rows["asked"], kept.boards, strict=True):
        on_boards = _on_boards(run, boards or (), rows["tick"])
        for row in asked["found"]:
            memory = known.get(row["id"])
            if row["id"] in on_boards:
                memory = on_boards[row["id"]]
                row.update(_shown(memory), boost=settings.memory.tier_boosts[memory.tier])
            row["reason"] = _reason_found(row, memory) + _reason_from(memory)


def _known(bank: MemoryBank, owner: str, numbers: Iterable[int]) -> Recalled:
    resident = bank.engine.state
    memories = (resident.memory(owner, number) for number in dict.fromkeys(numbers))
    return {memory.id: memory for memory in memories if memory is not None}


def _on_boards(
    run: Inspected, boards: Iterable[tuple[int, str, int, float]], tick: int
) -> Recalled:
    """What a question found on boards: in a tick, all read them as they were before it."""
    numbers: dict[str, list[int]] = {}
    for _, board, number, _ in boards:
        numbers.setdefault(board, []).append(number)
    found: Recalled = {}
    for board, own in numbers.items():
        with run.past.after(board, tick - 1, deciding=True) as bank:
            found |= _known(bank, board, own)
    return found


def _shown(memory: Memory) -> dict[str, Any]:
    """What a row lacks of a memory on a board."""
    speaker = None if memory.speaker is None else str(memory.speaker)
    return {
        "text": memory.content,
        "tier": TIER_NAMES[memory.tier],
        "created_tick": memory.created_tick,
        "kind": memory.kind,
        "speaker": speaker,
    }


def _reason_given(part: str, row: dict[str, Any], query: str) -> str:
    if part == "pinned":
        return "It is pinned: pinned memories come first."
    if part == "hot":
        return "It is hot: hot memories come before the search."
    if not query.strip():
        return "The query was blank: memories come by tier, the newest first."
    return f"It ranked by {_score(row)} for the query."


def _reason_found(row: dict[str, Any], memory: Memory | None) -> str:
    group = None if memory is None else group_of(memory.agent_id)
    if group is not None:
        return f"It is on the board of {group}, and the question was about groups, too."
    if memory is not None and memory.temperature is Temperature.COLD:
        return "It was recalled from cold: the question was about cold memories, too."
    return f"It ranked by {_score(row)} for the question."


def _score(row: dict[str, Any]) -> str:
    return "the boost of its tier and its score" if row["boost"] else "its score alone"


def _reason_from(memory: Memory | None) -> str:
    """Who told it, if somebody did."""
    if memory is None:
        return ""
    if memory.source is not None:
        return f" {memory.source.teller} told it in tick {memory.source.tick}."
    if memory.speaker is None:
        return ""
    did = "said" if group_of(memory.agent_id) is None else "wrote"
    return f" {memory.speaker} {did} it."


# Memories


def memory_row(memory: Memory) -> dict[str, Any]:
    """A memory, as the page lists it."""
    return {
        "id": memory.id,
        "text": memory.content,
        "tier": TIER_NAMES[memory.tier],
        "temperature": TEMPERATURE_NAMES[memory.temperature],
        "kind": memory.kind,
        "created": memory.created_tick,
        "in_tier_since": memory.tier_tick,
        "uses": memory.access_count,
        "last_used": memory.last_access_tick,
        "relevance": memory.relevance,
        "expires": memory.expires_tick,
        "tags": list(memory.tags),
        "metadata": dict(memory.metadata),
    }


def active(bank: MemoryBank, owner: str) -> list[Memory]:
    """The active memories of an agent, or those on a board."""
    group = group_of(owner)
    return bank.agent(owner).all() if group is None else bank.group(group).all()


def memories(run: Inspected, given: Parameters) -> dict[str, Any]:
    """The agent's active memories after a tick; the page filters, sorts and cuts the list."""
    agent, tick = run.agent(given), run.tick(given)
    run.need(tick)
    with run.past.after(agent, tick) as bank:
        rows = list(map(memory_row, active(bank, agent)))
    return {"total": len(rows), "rows": rows}


def explain(run: Inspected, given: Parameters) -> dict[str, Any]:
    """What a search gives and why it does not give the rest: ``AgentMemory.explain``."""
    agent, tick = run.agent(given), run.tick(given)
    when = given.one_of("when", ("after", "deciding"), "after")
    if is_board(agent):
        raise CantTell("a board is not searched alone", hint="search for its words")
    run.need(tick)
    query, deciding = given.text("query", ""), when == "deciding"
    if deciding:
        item, kept = _kept(run, agent, tick)
        if not given.has("query"):
            observed = perceived(run, agent, item, kept)[:1] if kept.has_text else []
            query = "".join(observed) if kept.query is None else kept.query
    found = _explanations(run, agent, tick - deciding, query, deciding=deciding)
    rows = list(map(_explained, found))
    return {"query": query, "when": when, "tick": tick, "total": len(rows), "rows": rows}


def _explanations(
    run: Inspected, agent: str, tick: int, query: str, *, deciding: bool
) -> list[Explanation]:
    with run.past.after(agent, tick, deciding=deciding) as bank:
        try:
            return run.past.explained(bank, agent, query)
        except TierMemError as error:  # the embedder may be a server that does not answer
            raise CantTell(f"it can't be explained: {error.why}", hint=error.hint) from error


def _explained(row: Explanation) -> dict[str, Any]:
    return {
        "rank": row.rank,
        "id": row.memory.id,
        "text": row.memory.content,
        "score": row.score,
        "boost": row.boost,
        "total": row.boosted_score,
        "vector": row.vector,
        "keyword": row.keyword,
        "reason": row.reason,
        "tier": TIER_NAMES[row.memory.tier],
        "temperature": TEMPERATURE_NAMES[row.memory.temperature],
    }


# Interviews


def asked_of(run: Inspected, given: Parameters) -> dict[str, Any]:
    """An agent's answer to a question, as it was after a tick; or why there is none.

    Choices have commas between them, and a scale goes from 1 to 7.
    """
    if not run.is_run:
        raise CantTell("a bank alone has no agents to ask", hint="tiermem inspect a run")
    kind = given.one_of("kind", interview.KINDS, "text")
    options = [each.strip() for each in given.text("choice", "").split(",")]
    question = interview.asked(
        given.text("question"),
        choice=options if kind == "choice" else None,
        scale=(1, 7) if kind == "scale" else None,
        number=kind == "number",
    )
    told = survey(run.folder, [question], ticks=[given.whole("tick")], agents=[given.text("agent")])
    (row,) = told.rows
    return {"answer": row["answer"], "problem": row["problem"], "cost": told.cost}
