"""The answers about all agents of a run: a tick, a number over all ticks, words, and beliefs."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from typing import Any, NamedTuple

import numpy as np
import orjson

from ...memory.events import Added, Event, VersionReplaced, decode
from ...memory.records import memory_id
from ...simulation.analysis.beliefs import shares
from ...simulation.analysis.columns import Columns, Numbers
from ...simulation.analysis.spread import first_holders, same_beliefs, spreads, tells, tree
from ...simulation.runs.record import FORGOTTEN
from ...simulation.runs.why import done_to
from ...simulation.tick.decision_log import unpack
from ...storage.interrupts import first
from ...storage.journal.journal import Journal
from ...storage.journal.ticks import TickRow
from ...telling.groups import is_board
from .deeds import QUERY, Occurrence, deeds_of, ids_with
from .inspected import COUNTED, MOST_ROWS, Inspected
from .life_view import concerned
from .parameters import NotThere, Parameters, WrongParameter

_MOST_COLUMNS = 600
_MOST_ROWS = 1000
_MANY_COMMITS = 200
_MANY_BYTES = 1 << 19
"""A tick with more commits, or more bytes of events, is listed beside the requests."""
_MOST_FOUND = 1000
_MOST_WORDS = 200
_OF = ("", "agents", "memories", "decisions")
Row = dict[str, Any]
_MOST_EDGES = 500
_MOST_TOLD = 200
_MOST_BELIEFS = 50
_MOST_HOLDERS = 200
_MOST_AGENTS = 200


# A tick


def happened(run: Inspected, given: Parameters) -> dict[str, Any]:
    """What happened in a tick: to memories, and what agents did."""
    tick = run.tick(given)
    only = run.agent(given) if given.has("agent") else None
    offset = given.whole("offset", 0)
    with run.journal() as journal:
        row = _row(journal, tick)
        commits = _commits_of(journal, tick)
        state = journal.hash_of(commits[-1]) if commits else None
        is_long = _is_long(journal, commits)
    record = {} if row is None else orjson.loads(row.record)
    numbers = {key: own for key, own in record.items() if isinstance(own, int | float)}
    numbers.pop("tick", None)

    def part() -> dict[str, Any]:
        if is_long:
            generation, purged, *_ = run.version(tick)
            key = tick, only, state, generation, purged
            rows = run.long_list.rows(key, lambda: _rows(run, tick, only))
        else:
            rows = _rows(run, tick, only)
        return {"total": len(rows), "events": _shown(run, rows[offset : offset + MOST_ROWS])}

    what = "tick", only, state, offset
    found = run.later(what, tick, part) if is_long else part()
    return {"tick": tick, "counts": numbers, "metrics": record.get("metrics", {}), **found}


class _Row(NamedTuple):
    """What an agent did, or what became of a memory; a tick may have many."""

    agent: str
    what: str
    text: str | None
    """None for the text of the memory."""
    number: int | None = None
    """The memory's."""
    detail: str = ""


def _rows(run: Inspected, tick: int, only: str | None) -> list[_Row]:
    """All that happened in a tick, to one agent or to all."""
    with run.journal() as journal:
        row = _row(journal, tick)
        return [*_decided(run, journal, row, only), *_changed(journal, tick, only)]


def _shown(run: Inspected, rows: Sequence[_Row]) -> list[dict[str, Any]]:
    """Rows as the page reads them, with the texts of memories as far as these are read."""
    slices = run.reader.slices
    places = [(slices.places.get(row.agent, -1), row.number or 0) for row in rows]
    lacking = [place for place, row in zip(places, rows, strict=True) if row.text is None]
    texts = slices.texts(lacking) if lacking else {}
    return [
        {
            "agent": row.agent,
            "what": row.what,
            "text": (texts.get(place) or FORGOTTEN) if row.text is None else row.text,
            "memory_id": None
            if row.number is None
            else memory_id(run.prefix(row.agent), row.number),
            "detail": row.detail,
        }
        for place, row in zip(places, rows, strict=True)
    ]


def _commits_of(journal: Journal, tick: int) -> range:
    """The numbers of the commits of a tick; none for what was before the journal."""
    if tick < journal.base_tick or (tick == journal.base_tick and journal.base):
        return range(0)
    after = journal.commit_of(tick - 1) if tick else 0
    return range(after + 1, journal.commit_of(tick) + 1)


def _is_long(journal: Journal, commits: range) -> bool:
    """Whether to list the events of some commits takes longer than a request may."""
    if len(commits) > _MANY_COMMITS:
        return True
    size = 0
    for commit in islice(journal.commits(commits.start - 1), len(commits)) if commits else ():
        size += len(commit.events)
        if size > _MANY_BYTES:
            return True
    return False


def _row(journal: Journal, tick: int) -> TickRow | None:
    row = first(journal.tick_rows(tick - 1))
    return row if row is not None and row.tick == tick else None


def _decided(
    run: Inspected, journal: Journal, row: TickRow | None, only: str | None
) -> Iterator[_Row]:
    """What the agents of a run asked and did in a tick."""
    if row is None or not run.is_run or row.tick in run.reader.lost:
        return
    found = first(journal.decisions(row.tick - 1))
    if found is None or found[0] != row.tick:
        return
    agents = run.deciders(row)
    for agent, own in zip(agents, unpack(found[1], row.retrieved, agents), strict=False):
        if only not in (None, agent):
            continue
        yield from (_Row(agent, *each) for each in deeds_of(own) if each[0] != QUERY)


def _changed(journal: Journal, tick: int, only: str | None) -> Iterator[_Row]:
    """What became of memories in a tick."""
    commits = _commits_of(journal, tick)
    # The next commit, which islice does not ask for, may be damaged.
    for commit in islice(journal.commits(commits.start - 1), len(commits)) if commits else ():
        for event in decode(commit.events):
            if only is None or getattr(event, "agent_id", None) == only:
                yield from _told(event)


def _told(event: Event) -> Iterator[_Row]:
    for number in concerned(event)[:1] if isinstance(event, VersionReplaced) else concerned(event):
        agent = str(event[1])
        for what, detail in done_to(event, agent, number):
            text: str | None = None
            if isinstance(event, Added):
                text = FORGOTTEN if event.content is None else event.content
            yield _Row(agent, what, text, number, detail)


# A number of each agent


def heat(run: Inspected, given: Parameters, most: int = _MOST_ROWS) -> dict[str, Any]:
    """A number of each agent, tick by tick; for many ticks, a column stands for several."""
    name = given.text("of")
    if name not in run.about()["per_agent"]:
        raise NotThere(f"no number of an agent is called {name!r:.60}", hint="see api/about")
    agents, places = run.agents, run.reader.slices.places
    offset, limit = given.whole("offset", 0), given.whole("limit", 200, most)
    rows = run.reader.slices.ask(
        "SELECT tick, data FROM numbers WHERE name = ? ORDER BY tick", (name,)
    )
    shown = agents[offset : offset + limit]
    ticks, table = [tick for tick, _ in rows], np.full((len(rows), len(shown)), np.nan)
    columns = np.array([places.get(agent, -1) for agent in shown], np.int64)
    least, most_place = columns.min(initial=0), columns.max(initial=0)
    for place, (_, data) in enumerate(rows):
        own = np.frombuffer(data, np.float64)
        if least >= 0 and len(own) > most_place:
            table[place] = own.take(columns)
            continue
        known = (columns >= 0) & (columns < len(own))  # others came later
        table[place, known] = own[columns[known]]
    width = -(-len(rows) // _MOST_COLUMNS) or 1
    if width > 1:
        starts = np.arange(0, len(rows), width)
        ends = np.minimum(starts + width, len(rows)) - 1
        ticks = [ticks[end] for end in ends]
        table = np.add.reduceat(table, starts) if name in COUNTED else table[ends]
    values = [[None if cell != cell else cell for cell in own] for own in table.T.tolist()]
    return {
        "of": name,
        "agents": shown,
        "total": len(agents),
        "ticks": ticks,
        "width": width,
        "values": values,
    }


# Words


def search(run: Inspected, given: Parameters) -> Row:
    """What holds all words: agents, then memories, then what agents asked and did.

    Memories are there whatever became of them; one word may be the id of a memory. What happened
    first comes first.
    """
    words = list(dict.fromkeys(given.text("q").split()))
    of = given.one_of("of", _OF, "")
    if len(words) > _MOST_WORDS:
        raise WrongParameter(f"q has over {_MOST_WORDS} words", hint="search for fewer")
    last = run.need_whole()
    if not words:
        return {"total": 0, "more": False, "rows": []}
    found = run.later(("search", *words), last, lambda: _found(run, words))
    parts = [own for name, own in found.items() if of in ("", name)]
    rows = [row for own in parts for row in own[:_MOST_FOUND]]
    return {"total": len(rows), "more": any(len(own) > _MOST_FOUND for own in parts), "rows": rows}


def _found(run: Inspected, words: Sequence[str]) -> dict[str, list[Row]]:
    """The agents and boards, the memories and the deeds that hold all words."""
    reader, most = run.reader, _MOST_FOUND + 1
    lower = [each.casefold() for each in words]
    owners = (*run.agents, *run.boards)
    names = [name for name in owners if all(each in name.casefold() for each in lower)]
    ids = [*_of_id(run, words), *ids_with(reader.slices, "memories", "words", words, most)]
    return {
        "agents": [_owner_row(name) for name in names[:most]],
        "memories": _memory_rows(run, list(dict.fromkeys(ids))),
        "decisions": deed_rows(run, reader.deeds.with_words(words, most)),
    }


def _owner_row(name: str) -> Row:
    what = "board" if is_board(name) else "agent"
    return {"what": what, "agent": name, "tick": None, "memory_id": None, "text": name}


def _memory_rows(run: Inspected, numbers: Sequence[int]) -> list[Row]:
    """Some rows of the table of memories."""
    slices, rows = run.reader.slices, dict[int, Row]()
    for number, place, sequence, tick, kind, text in slices.ask(
        "SELECT id, agent, sequence, tick, kind, text FROM memories "
        "WHERE id IN (SELECT value FROM json_each(?))",
        (orjson.dumps(numbers).decode(),),
    ):
        agent = slices.agents[place]
        rows[number] = {
            "what": kind,
            "agent": agent,
            "tick": tick,
            "memory_id": memory_id(run.prefix(agent), sequence),
            "text": FORGOTTEN if text is None else text,
        }
    return [rows[number] for number in numbers]


def deed_rows(run: Inspected, deeds: Sequence[Occurrence]) -> list[Row]:
    """What agents asked and did."""
    reader = run.reader
    texts = reader.deeds.texts({deed.text for deed in deeds})
    return [
        {
            "what": deed.what,
            "agent": reader.slices.agents[deed.agent],
            "tick": deed.tick,
            "memory_id": None,
            "text": texts[deed.text],
        }
        for deed in deeds
    ]


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


# Who told whom, which beliefs spread, how much agents share: the studies of tiermem.analysis


def population(run: Inspected, given: Parameters) -> dict[str, Any]:
    """The agents of a run after a tick."""
    tick = run.tick(given)
    offset, limit = given.whole("offset", 0), given.whole("limit", 60, _MOST_AGENTS)
    run.need(tick)
    return run.later(
        ("population", offset, limit), tick, lambda: _population(run, tick, offset, limit)
    )


def _population(run: Inspected, tick: int, offset: int, limit: int) -> dict[str, Any]:
    reader = run.reader
    columns = reader.beliefs.up_to(tick, reader.slices)
    group = same_beliefs(columns)
    agents = run.agents
    shown = agents[offset : offset + limit]
    edges = tells(columns)
    return {
        "tick": tick,
        "edges": edges.slice(0, _MOST_EDGES).to_pylist(),
        "edges_total": edges.num_rows,
        "told": _last_told(columns),
        "told_total": len(columns.told.row),
        "beliefs": _beliefs(columns, group),
        "agents": shown,
        "total": len(agents),
        "overlap": _overlap(columns, group, shown),
    }


def _last_told(columns: Columns) -> list[dict[str, Any]]:
    """The last that agents were told up to the tick, oldest first."""
    told = columns.told
    oldest = max(0, len(told.row) - _MOST_TOLD)
    return [
        {
            "teller": told.teller[place],
            "listener": columns.agents[told.agent[place]],
            "memory_id": columns.id_of(int(told.row[place])),
            "tick": int(told.tick[place]),
            "text": columns.text[int(told.row[place])] or FORGOTTEN,
        }
        for place in range(oldest, len(told.row))
    ]


def _beliefs(columns: Columns, group: Numbers) -> list[dict[str, Any]]:
    """What most agents had up to the tick, who has it after the tick, and who told them."""
    found: list[dict[str, Any]] = spreads(columns, group=group, most=_MOST_BELIEFS).to_pylist()
    origins = [columns.row_of(each["origin"]) for each in found]
    rows = [first_holders(columns, group, origin or 0) for origin in origins]
    listed = [own[:_MOST_HOLDERS] for own in rows]
    holders = tree(columns, np.concatenate([np.zeros(0, np.int64), *listed])).to_pylist()
    ends = list(accumulate(map(len, listed)))
    there = columns.is_there()
    for each, origin, own, end in zip(found, origins, listed, ends, strict=True):
        holding = columns.agent[(group == origin) & there]
        each["text"] = each["text"] or FORGOTTEN
        each["by"] = "source" if columns.hands[own].any() else "text"
        each["now"] = len(np.unique(holding))
        each["first"] = holders[end - len(own) : end]
    return found


def _overlap(columns: Columns, group: Numbers, agents: list[str]) -> list[list[float]]:
    """For each pair of agents the share of their beliefs that both have, from 0 to 1."""
    places = {name: place for place, name in enumerate(columns.agents)}
    known = [place for place, name in enumerate(agents) if name in places]
    found = np.zeros((len(agents), len(agents)))
    if known:
        chosen = [places[agents[place]] for place in known]
        found[np.ix_(known, known)] = shares(columns, chosen, group)
    return [[round(cell, 4) for cell in row] for row in found.tolist()]
