"""The answers about ticks: what happened in one, and each agent's numbers over all of them."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import orjson

from ...memory.events import Added, Event, VersionReplaced, decode
from ...memory.records import memory_id
from ...simulation.runs.life import done_to
from ...simulation.runs.record import FORGOTTEN
from ...simulation.tick.decision_log import unpack
from ...storage.interrupts import first
from ...storage.journal.journal import Journal
from ...storage.journal.ticks import TickRow
from .deeds import QUERY, deeds_of
from .inspected import COUNTED, Inspected
from .life_view import concerned
from .parameters import NotThere, Parameters

_MOST_COLUMNS = 600
_MOST_ROWS = 1000
_MANY_COMMITS = 200
_MANY_BYTES = 1 << 19
"""A tick with more commits, or more bytes of events, is listed beside the requests."""


def happened(run: Inspected, given: Parameters) -> dict[str, Any]:
    """What happened in a tick: to memories, and what agents did."""
    tick = run.tick(given)
    only = run.agent(given) if given.has("agent") else None
    offset, limit = given.whole("offset", 0), given.whole("limit", 200, _MOST_ROWS)
    with run.journal() as journal:
        row = _row(journal, tick)
        commits = _commits_of(journal, tick)
        state = journal.hash_of(commits[-1]) if commits else None
        is_long = _is_long(journal, commits)
    record = {} if row is None else orjson.loads(row.record)
    numbers = {key: own for key, own in record.items() if isinstance(own, int | float)}
    numbers.pop("tick", None)

    def page() -> dict[str, Any]:
        if is_long:
            generation, purged, *_ = run.version(tick)
            key = tick, only, state, generation, purged
            rows = run.long_list.rows(key, lambda: _rows(run, tick, only))
        else:
            rows = _rows(run, tick, only)
        return {
            "total": len(rows),
            "events": [_shown(run, each) for each in rows[offset : offset + limit]],
            "more": len(rows) > offset + limit,
        }

    what = "tick", only, state, offset, limit
    found = run.later(what, tick, page) if is_long else page()
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


def _shown(run: Inspected, row: _Row) -> dict[str, Any]:
    text, memory = row.text, None
    if row.number is not None:
        memory = memory_id(run.prefix(row.agent), row.number)
        if text is None:  # the text of the memory, if it is read already
            place = run.reader.slices.places.get(row.agent, -1)
            text = run.reader.slices.text(place, row.number) or FORGOTTEN
    return {
        "agent": row.agent,
        "what": row.what,
        "text": text,
        "memory_id": memory,
        "detail": row.detail,
    }


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
