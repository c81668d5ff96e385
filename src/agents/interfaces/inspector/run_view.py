"""The answers about all agents of a run: a tick, a number over all ticks, words, and beliefs."""

from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from ...memory.events import Added, Event, VersionReplaced
from ...memory.records import memory_id
from ...packages import need, needed
from ...simulation.kept_ticks import KeptTicks
from ...simulation.policies.costs import Call, alike, spent, spent_by
from ...simulation.runs.record import FORGOTTEN
from ...simulation.runs.why import done_to
from ...simulation.tick.decision_log import LoggedDecision, unpack
from ...storage.journal.journal import Journal, decode
from ...storage.journal.tables import Commit
from ...telling.groups import is_board
from .inspected import COUNTED, Inspected
from .life_view import concerned
from .parameters import CantTell, NotThere, Parameters, WrongParameter
from .slices import QUERY, Occurrence, deeds_of

_MOST_COLUMNS = 600
_MOST_ROWS = 1000
_MOST_NUMBERS = 10_000
_MOST_FOUND = 1000
_MOST_WORDS = 200
_MOST_AGENTS = 200
_MOST_PROBLEMS = 20
_OF = ("", "agents", "memories", "decisions")
Row = dict[str, Any]


# A tick


def happened(run: Inspected, given: Parameters) -> dict[str, Any]:
    """What happened in a tick: to memories, and what agents did."""
    tick = run.tick(given)
    only = run.agent(given) if given.has("agent") else None
    with run.journal() as journal:
        kept = KeptTicks(journal).tick(tick)
        rows = [*_decided(run, journal, tick, only), *_changed(journal, tick, only)]
    record = {} if kept is None else orjson.loads(kept.record)
    numbers = {key: own for key, own in record.items() if isinstance(own, int | float)}
    numbers.pop("tick", None)
    return {
        "tick": tick,
        "counts": numbers,
        "metrics": record.get("metrics", {}),
        "total": len(rows),
        "events": _shown(run, rows),
    }


class _Row(NamedTuple):
    """What an agent did, or what became of a memory; a tick may have many."""

    agent: str
    what: str
    text: str | None
    """None for the text of the memory."""
    number: int | None = None
    """The memory's."""
    detail: str = ""


def _shown(run: Inspected, rows: Sequence[_Row]) -> list[dict[str, Any]]:
    """Rows as the page reads them, with the texts of memories as far as these are read."""
    slices = run.slices
    places = [(slices.place(row.agent), row.number or 0) for row in rows]
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


def commits_of(journal: Journal, tick: int) -> Iterator[Commit]:
    """The commits of a tick; none for what was before the journal."""
    if tick < journal.base_tick or (tick == journal.base_tick and journal.base):
        return iter(())
    after = journal.commit_of(tick - 1) if tick else 0
    # The next commit, which islice does not ask for, may be damaged.
    return islice(journal.commits(after), journal.commit_of(tick) - after)


def decisions_in(run: Inspected, journal: Journal, tick: int) -> dict[str, LoggedDecision]:
    """What the log has of each agent of the run in a tick; nothing where it can't be read."""
    ticks = KeptTicks(journal)
    kept = ticks.tick(tick)
    if kept is None or not run.is_run or tick in run.slices.lost():
        return {}
    log = ticks.log(tick)
    if log is None:
        return {}
    agents = run.deciders(kept)
    return dict(zip(agents, unpack(log, kept.retrieved, agents), strict=False))


def _decided(run: Inspected, journal: Journal, tick: int, only: str | None) -> Iterator[_Row]:
    """What the agents of a run asked and did in a tick."""
    for agent, own in decisions_in(run, journal, tick).items():
        if only in (None, agent):
            yield from (_Row(agent, *each) for each in deeds_of(own) if each[0] != QUERY)


def _changed(journal: Journal, tick: int, only: str | None) -> Iterator[_Row]:
    """What became of memories in a tick."""
    for commit in commits_of(journal, tick):
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
    name, agents = _number_of(run, given), run.agents
    offset, limit = given.whole("offset", 0), given.whole("limit", 200, most)
    rows = run.slices.ask("SELECT tick, data FROM numbers WHERE name = ? ORDER BY tick", (name,))
    shown = agents[offset : offset + limit]
    ticks, table = [tick for tick, _ in rows], np.full((len(rows), len(shown)), np.nan)
    places = _places(run, shown)
    for row, (_, data) in enumerate(rows):
        table[row] = _taken(data, places)
    width = -(-len(rows) // _MOST_COLUMNS) or 1
    if width > 1:
        starts = np.arange(0, len(rows), width)
        ends = np.minimum(starts + width, len(rows)) - 1
        ticks = [ticks[end] for end in ends]
        table = np.add.reduceat(table, starts) if name in COUNTED else table[ends]
    return {
        "of": name,
        "agents": shown,
        "total": len(agents),
        "ticks": ticks,
        "width": width,
        "values": [_known(own) for own in table.T],
    }


def numbers(run: Inspected, given: Parameters) -> dict[str, Any]:
    """A number of each agent after a tick, and the range that it has in all ticks."""
    name, tick = _number_of(run, given), run.tick(given)
    run.need(tick)
    last, agents = run.need_whole(), run.agents[:_MOST_NUMBERS]
    ((low, high),) = run.slices.ask(
        "SELECT min(low), max(high) FROM numbers WHERE name = ? AND tick <= ?", (name, last)
    )
    at = "=" if run.is_run else "<="  # a bank without a run skips ticks, and stays as it is
    rows = run.slices.ask(
        f"SELECT data FROM numbers WHERE name = ? AND tick {at} ? ORDER BY tick DESC LIMIT 1",  # noqa: S608
        (name, tick),
    )
    values: list[float | None] = [None] * len(agents)
    for (data,) in rows:
        values = _known(_taken(data, _places(run, agents)))
    return {"of": name, "tick": tick, "low": low, "high": high, "agents": agents, "values": values}


def _number_of(run: Inspected, given: Parameters) -> str:
    """The name of the number that is asked for."""
    name = given.text("of")
    if name not in run.about()["per_agent"]:
        raise NotThere(f"no number of an agent is called {name!r:.60}", hint="see api/about")
    return name


def _places(run: Inspected, agents: Sequence[str]) -> NDArray[np.int64]:
    return np.array(list(map(run.slices.place, agents)), np.int64)


def _taken(data: bytes, places: NDArray[np.int64]) -> NDArray[np.float64]:
    """The numbers of the agents at some places; nan for those that came later."""
    own = np.frombuffer(data, np.float64)
    if places.min(initial=0) >= 0 and len(own) > places.max(initial=0):
        return own.take(places)
    known = (places >= 0) & (places < len(own))
    found = np.full(len(places), np.nan)
    found[known] = own[places[known]]
    return found


def _known(values: NDArray[np.float64]) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


# What its language model cost


def costs(run: Inspected, given: Parameters) -> dict[str, Any]:
    """The tokens, seconds and cost of a language model, tick by tick, and by what they were for."""
    calls = run.calls()
    if not calls:
        raise CantTell("no language model was asked", hint="set simulation.policy to llm")
    ticks = [*range(run.first_tick(), run.last_tick() + 1)]
    by_tick = spent_by(calls, "tick")
    own = [by_tick.get(tick, spent(())) for tick in ticks]
    problems: dict[str, list[Call]] = {}
    for call in sorted(calls, key=attrgetter("tick", "agent", "attempt")):
        if call.problem is not None:
            problems.setdefault(alike(call.problem), []).append(call)
    most = sorted(problems.items(), key=lambda each: -len(each[1]))[:_MOST_PROBLEMS]
    return {
        "ticks": ticks,
        "tokens": {
            "read anew": [each.read - each.cached for each in own],
            "cached": [each.cached for each in own],
            "written": [each.written for each in own],
        },
        "calls": [each.calls for each in own],
        "seconds": [each.seconds for each in own],
        "cost": [each.cost for each in own],
        "all": spent(calls)._asdict(),
        "estimated": any(call.estimated for call in calls),
        "usable": sum(call.usable for call in calls),
        "by": {column: _dearest(calls, column) for column in ("kind", "model", "agent")},
        "agents": len({call.agent for call in calls}),
        "problems": [
            {"why": why, "times": len(each), "agent": each[0].agent, "tick": each[0].tick}
            for why, each in most
        ],
    }


def _dearest(calls: Sequence[Call], column: str) -> list[Row]:
    """What calls came to by a column; those with most tokens first."""
    rows = [{"name": name, **own._asdict()} for name, own in spent_by(calls, column).items()]
    return sorted(rows, key=lambda row: -(row["read"] + row["written"]))[:_MOST_AGENTS]


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
    run.need_whole()
    found = _found(run, words, of) if words else {}
    rows = [row for part in found.values() for row in part[:_MOST_FOUND]]
    more = any(len(part) > _MOST_FOUND for part in found.values())
    return {"total": len(rows), "more": more, "rows": rows}


def _found(run: Inspected, words: Sequence[str], of: str) -> dict[str, list[Row]]:
    """The agents and boards, the memories and the deeds that hold all words."""
    slices, most, found = run.slices, _MOST_FOUND + 1, dict[str, list[Row]]()
    if of in ("", "agents"):
        lower = [each.casefold() for each in words]
        owners = (*run.agents, *run.boards)
        names = [name for name in owners if all(each in name.casefold() for each in lower)]
        found["agents"] = [_owner_row(name) for name in names[:most]]
    if of in ("", "memories"):
        ids = [*_of_id(run, words), *slices.memories_with(words, most)]
        found["memories"] = _memory_rows(run, list(dict.fromkeys(ids)))
    if of in ("", "decisions"):
        found["decisions"] = deed_rows(run, slices.deeds_with(words, most))
    return found


def _owner_row(name: str) -> Row:
    what = "board" if is_board(name) else "agent"
    return {"what": what, "agent": name, "tick": None, "memory_id": None, "text": name}


def _memory_rows(run: Inspected, numbers: Sequence[int]) -> list[Row]:
    """Some rows of the table of memories."""
    slices, rows = run.slices, dict[int, Row]()
    for number, place, sequence, tick, kind, text in slices.ask(
        "SELECT id, agent, sequence, tick, kind, text FROM memories "
        "WHERE id IN (SELECT value FROM json_each(?))",
        (orjson.dumps(numbers).decode(),),
    ):
        agent = slices.agents()[place]
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
    agents = run.slices.agents()
    texts = run.slices.deed_texts({deed.text for deed in deeds})
    return [
        {
            "what": deed.what,
            "agent": agents[deed.agent],
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
    found = run.slices.ask(
        "SELECT id FROM memories WHERE agent = ? AND sequence = ?",
        (run.slices.place(agent), sequence),
    )
    return [each for (each,) in found]


# Who told whom, and which beliefs spread


def population(run: Inspected, given: Parameters) -> dict[str, Any]:
    """The agents of a run after a tick: the study, and whose names it has."""
    tick = run.tick(given)
    offset, limit = given.whole("offset", 0), given.whole("limit", 60, _MOST_AGENTS)
    run.need(tick)
    agents = run.agents
    shown = agents[offset : offset + limit]
    with needed("to study a population", "pyarrow", "scipy"):
        need("pyarrow", "scipy")
    found = run.reading.study(tick, shown)
    return {
        "tick": tick, "agents": shown, "total": len(agents), "society": run.society(tick), **found,
    }  # fmt: skip
