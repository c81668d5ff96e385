"""The answer about words: the agents, the memories and the decisions that have them."""

from collections.abc import Callable, Sequence
from typing import Any

from ...memory.records import memory_id
from ...simulation.runs.record import FORGOTTEN
from ...telling.groups import is_board
from .deeds import Deed, ids_with
from .inspected import Inspected
from .parameters import NotThere, Parameters, WrongParameter

_MOST_FOUND = 1000
_MOST_WORDS = 200
_OF = ("", "agents", "memories", "decisions")
Row = dict[str, Any]


def search(run: Inspected, given: Parameters) -> Row:
    """What holds all words: agents, then memories, then what agents asked and did.

    Memories are there whatever became of them; one word may be the id of a memory. What happened
    first comes first.
    """
    words = list(dict.fromkeys(given.text("q").split()))
    of = given.one_of("of", _OF, "")
    offset, limit = given.whole("offset", 0), given.whole("limit", 50, 500)
    if len(words) > _MOST_WORDS:
        raise WrongParameter(f"q has over {_MOST_WORDS} words", hint="search for fewer")
    last = run.need_whole()
    if not words:
        return {"total": 0, "more": False, "rows": []}
    found = run.later(("search", *words), last, lambda: _found(run, words))
    parts = {name: own for name, own in found.items() if of in ("", name)}
    listed = [(name, each) for name, own in parts.items() for each in own[:_MOST_FOUND]]
    return {
        "total": len(listed),
        "more": any(len(own) > _MOST_FOUND for own in parts.values()),
        "rows": [_ROWS[name](run, each) for name, each in listed[offset : offset + limit]],
    }


def _found(run: Inspected, words: Sequence[str]) -> dict[str, list[Any]]:
    """The names of agents and boards, the rows of memories and the deeds that hold all words."""
    reader, most = run.reader, _MOST_FOUND + 1
    lower = [each.casefold() for each in words]
    owners = (*run.agents, *run.boards)
    names = [name for name in owners if all(each in name.casefold() for each in lower)]
    ids = [*_of_id(run, words), *ids_with(reader.slices, "memories", "words", words, most)]
    return {
        "agents": names[:most],
        "memories": list(dict.fromkeys(ids)),
        "decisions": reader.deeds.with_words(words, most),
    }


def _agent(run: Inspected, name: str) -> Row:
    what = "board" if is_board(name) else "agent"
    return {"what": what, "agent": name, "tick": None, "memory_id": None, "text": name}


def _memory(run: Inspected, number: int) -> Row:
    """A row of the table of memories."""
    slices = run.reader.slices
    ((place, sequence, tick, kind, text),) = slices.ask(
        "SELECT agent, sequence, tick, kind, text FROM memories WHERE id = ?", (number,)
    )
    agent = slices.agents[place]
    return {
        "what": kind,
        "agent": agent,
        "tick": tick,
        "memory_id": memory_id(run.prefix(agent), sequence),
        "text": FORGOTTEN if text is None else text,
    }


def deed_row(run: Inspected, deed: Deed) -> Row:
    """What an agent asked or did."""
    return {
        "what": deed.what,
        "agent": run.reader.slices.agents[deed.agent],
        "tick": deed.tick,
        "memory_id": None,
        "text": run.reader.deeds.text(deed.text),
    }


_ROWS: dict[str, Callable[[Inspected, Any], Row]] = {
    "agents": _agent,
    "memories": _memory,
    "decisions": deed_row,
}


def _of_id(run: Inspected, words: Sequence[str]) -> list[int]:
    """The memory whose id is the only word, if there is one: its row in the table of memories."""
    if len(words) != 1:
        return []
    try:
        agent, sequence = run.owner(words[0])
    except NotThere:
        return []
    slices = run.reader.slices
    place = slices.places.get(agent, -1)
    found = slices.ask(
        "SELECT id FROM memories WHERE agent = ? AND sequence = ?", (place, sequence)
    )
    return [each for (each,) in found]
