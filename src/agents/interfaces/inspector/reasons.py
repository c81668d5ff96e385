"""Why an agent was given a memory, or found it with a question: a sentence for people."""

from collections.abc import Iterable
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...config.settings import Settings
from ...memory.records import Memory
from ...memory.tiers import TIER_NAMES, Temperature
from ...simulation.tick.decision_log import LoggedDecision
from ...telling.groups import group_of
from .inspected import Inspected

Recalled = dict[str, Memory]
"""By id, memories as they were when the agent decided."""


def recalled(bank: MemoryBank, agent: str, kept: LoggedDecision) -> Recalled:
    """The agent's memories that were given and found for a decision."""
    found = (number for each in kept.asked for number in each[3])
    return _known(bank, agent, [*kept.sequences, *found])


def with_reasons(
    run: Inspected, rows: dict[str, Any], kept: LoggedDecision, known: Recalled, settings: Settings
) -> None:
    """Give each memory of a decision the reason for which the agent saw it.

    A bank of one agent lacks the boards that the agent may read, so these are read here.
    """
    for row in rows["given"]:
        part = row["part"] if settings.retrieval.pins_first else "chosen"
        row["reason"] = _given(part, row, rows["query"]) + _from(known.get(row["id"]))
    for asked, boards in zip(rows["asked"], kept.boards, strict=True):
        on_boards = _on_boards(run, boards or (), rows["tick"])
        for row in asked["found"]:
            memory = known.get(row["id"])
            if row["id"] in on_boards:
                memory = on_boards[row["id"]]
                row.update(_shown(memory), boost=settings.memory.tier_boosts[memory.tier])
            row["reason"] = _found(row, memory) + _from(memory)


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


def _given(part: str, row: dict[str, Any], query: str) -> str:
    if part == "pinned":
        return "It is pinned: pinned memories come first."
    if part == "hot":
        return "It is hot: hot memories come before the search."
    if not query.strip():
        return "The query was blank: memories come by tier, the newest first."
    return f"It ranked by {_score(row)} for the query."


def _found(row: dict[str, Any], memory: Memory | None) -> str:
    group = None if memory is None else group_of(memory.agent_id)
    if group is not None:
        return f"It is on the board of {group}, and the question was about groups, too."
    if memory is not None and memory.temperature is Temperature.COLD:
        return "It was recalled from cold: the question was about cold memories, too."
    return f"It ranked by {_score(row)} for the question."


def _score(row: dict[str, Any]) -> str:
    return "the boost of its tier and its score" if row["boost"] else "its score alone"


def _from(memory: Memory | None) -> str:
    """Who told it, if somebody did."""
    if memory is None:
        return ""
    if memory.source is not None:
        return f" {memory.source.teller} told it in tick {memory.source.tick}."
    if memory.speaker is None:
        return ""
    did = "said" if group_of(memory.agent_id) is None else "wrote"
    return f" {memory.speaker} {did} it."
