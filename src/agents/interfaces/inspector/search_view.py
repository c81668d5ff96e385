"""The answer about words: the agents and the memories that have them."""

from collections.abc import Sequence
from typing import Any

from ...memory.records import memory_id
from ...simulation.runs.decisions import FORGOTTEN
from .inspected import Inspected
from .parameters import NotThere, Parameters, WrongParameter

__all__ = ["search"]

_MOST_FOUND = 1000
_MOST_WORDS = 200
_TRIGRAM = 3
"""Letters that the index of words needs."""
Row = dict[str, Any]


def search(run: Inspected, given: Parameters) -> Row:
    """The agents and the memories that hold all words, whatever became of them; newest last.

    One word may be the id of a memory.
    """
    words = list(dict.fromkeys(given.text("q").split()))
    offset, limit = given.whole("offset", 0), given.whole("limit", 50, 500)
    if len(words) > _MOST_WORDS:
        raise WrongParameter(f"q has over {_MOST_WORDS} words", hint="search for fewer")
    run.need(run.last_tick())
    if not words:
        return {"total": 0, "more": False, "rows": []}
    agents = [
        name for name in run.agents if all(each.casefold() in name.casefold() for each in words)
    ][:_MOST_FOUND]
    named = _of_id(run, words)
    ids = [*named, *(each for (each,) in run.reader.slices.ask(*_matching(words)))]
    ids = list(dict.fromkeys(ids))
    more = len(ids) > _MOST_FOUND
    places = range(len(agents) + len(ids))[offset : offset + limit]
    rows = [
        _agent(agents[at]) if at < len(agents) else _memory(run, ids[at - len(agents)])
        for at in places
    ]
    return {"total": len(agents) + min(len(ids), _MOST_FOUND), "more": more, "rows": rows}


def _agent(name: str) -> Row:
    return {"what": "agent", "agent": name, "tick": None, "memory_id": None, "text": name}


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


def _matching(words: Sequence[str]) -> tuple[str, tuple[object, ...]]:
    """The query for the memories that hold all words, and its values.

    The index finds words of three letters and more; shorter ones are looked for in the texts.
    """
    long = ['"' + word.replace('"', '""') + '"' for word in words if len(word) >= _TRIGRAM]
    short = [word for word in words if len(word) < _TRIGRAM]
    tables, tests = "memories", ["memories.text IS NOT NULL"]
    values: list[object] = []
    if long:
        tables = "words CROSS JOIN memories ON memories.id = words.rowid"
        tests.append("words MATCH ?")
        values.append(" AND ".join(long))
    tests += ["instr(lower(memories.text), lower(?))"] * len(short)
    order = "words.rowid" if long else "memories.id"
    return (
        f"SELECT {order} FROM {tables} WHERE {' AND '.join(tests)} "  # noqa: S608
        f"ORDER BY {order} LIMIT ?",
        (*values, *short, _MOST_FOUND + 1),
    )
