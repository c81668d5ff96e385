"""The page and its answers in one file, which needs neither a server nor a network."""

import base64
import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from ...errors import ConfigError, NotInstalled, RunError
from ...memory.records import Memory
from ...storage.files import SHARED_MODE, replace_file
from ...storage.interrupts import gc_paused
from ...telling.groups import is_board
from .agent_view import active, agent_at, explain, memory_row
from .comparing import beside, branch_name
from .inspected import Inspected
from .inspection import Inspection
from .life_view import lives
from .page_files import document
from .parameters import CantTell, Parameters
from .run_view import deed_rows, happened, heat

_MOST_DECISIONS = 3_500
"""Decisions in a file, of all agents; a longer run keeps every second tick, or fewer."""
_MOST_LIVES = 50_000
"""Memories in a file with their lives; of more, each agent's newest."""
_MOST_NOT_GIVEN = 40
_MOST_ROWS = 1_000_000
Progress = Callable[[int, int], None]


class Node(int):
    """The number of a node, for a value that was put before."""


class Nodes:
    """Values in which equal parts are kept once: each value is a number of a node."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self._places: dict[Any, int] = {}
        """By the numbers of the parts of a list or an object."""
        self._leaves: dict[type, dict[Any, int]] = {}
        """By type: 1 and True are equal, and two nodes."""
        self._memories: dict[tuple[Any, ...], Node] = {}

    def put(self, value: Any) -> int:
        """The number of a value's node."""
        kind = type(value)
        if kind is Node:
            return int(value)
        if kind is dict:
            parts = self._parts(value.values())
            key = (*map(str, value), *parts)
        elif kind is list or kind is tuple:
            parts = self._parts(value)
            key = (None, *parts)
        else:
            return self._parts((value,))[0]
        place = self._places.get(key)
        if place is not None:
            return place
        node = dict(zip(map(str, value), parts, strict=True)) if kind is dict else parts
        return self._new(self._places, key, node)

    def _parts(self, values: Iterable[Any]) -> list[int]:
        """The nodes of some values. Most are numbers and texts: no call is made for them."""
        parts, leaves = [], self._leaves
        for value in values:
            kind = type(value)
            if kind in _NO_LEAVES:
                parts.append(self.put(value))
                continue
            own = leaves.get(kind)
            if own is None:
                own = leaves[kind] = {}
            place = own.get(value)
            parts.append(self._new(own, value, value) if place is None else place)
        return parts

    def _new(self, places: dict[Any, int], key: Any, node: Any) -> int:
        place = places[key] = len(self.nodes)
        self.nodes.append(node)
        return place

    def memory(self, memory: Memory) -> Node:
        """The node of a memory's row. Most memories of a tick are as they were in the last one."""
        key = (*memory[:_METADATA], *memory[_METADATA + 1 :], *memory.metadata.items())
        place = self._memories.get(key)
        if place is None:
            place = self._memories[key] = Node(self.put(memory_row(memory)))
        return place


_NO_LEAVES = frozenset([dict, list, tuple, Node])
_METADATA = Memory._fields.index("metadata")
"""The field that is not a value of a dictionary's key."""


def write_export(
    inspection: Inspection, path: Path, *, force: bool = False, progress: Progress | None = None
) -> None:
    """Write the file; :class:`ConfigError` if it exists and ``force`` does not replace it."""
    if path.exists() and not force:
        raise ConfigError(f"{path} exists already", hint="replace it with --force")
    data = exported(inspection, progress)
    try:
        replace_file(path, data, SHARED_MODE)
    except OSError as error:
        raise RunError(
            f"{path} can't be written: {error.strerror or error}", hint="name another file"
        ) from error


def exported(inspection: Inspection, progress: Progress | None = None) -> bytes:
    """The page with its answers, as one HTML file."""
    nodes = Nodes()
    answers: dict[str, int] = {}
    for run in inspection.runs:
        run.hold()
    ticks = [_ticks(run) for run in inspection.runs]
    total = sum(
        len(own) * len(_owners(run)) for own, run in zip(ticks, inspection.runs, strict=True)
    )
    done = 0
    for key, answer in chain(
        _answers(inspection, ticks, nodes), _compared(inspection, ticks, answers)
    ):
        answers[key] = nodes.put(answer)
        if progress is not None and key.startswith("memories?"):
            done += 1
            progress(done, total)
    data = orjson.dumps({"nodes": nodes.nodes, "answers": answers}, default=str)
    packed = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
    return document(packed).encode()


def _owners(run: Inspected) -> list[str]:
    """Whose memories a file has."""
    return [*run.agents, *run.boards]


def _ticks(run: Inspected) -> list[int]:
    """The ticks that a file keeps: all, or evenly spaced ones with the first and the last."""
    first, last = run.first_tick(), run.last_tick()
    most = max(2, _MOST_DECISIONS // max(1, len(_owners(run))))
    step = -(-(last - first + 1) // most)
    return sorted({*range(first, last + 1, step), last})


def _answers(
    inspection: Inspection, ticks: list[list[int]], nodes: Nodes
) -> Iterator[tuple[str, Any]]:
    about = inspection.about(Parameters({}))
    for run, own, opened in zip(about["runs"], ticks, inspection.runs, strict=True):
        run["ticks"], run["is_finished"] = own, True
        run["path"] = str(opened.folder)
        run["branches"] = str(beside(opened) / branch_name(opened, ""))
    yield "about?", {**about, "allow_branch": False, "allow_ask": False}
    if inspection.sweep is not None:
        yield "sweep?", inspection.points(Parameters({}))
    for number, (run, own) in enumerate(zip(inspection.runs, ticks, strict=True)):
        yield from _of_run(inspection, run, number, own, nodes)


def _compared(
    inspection: Inspection, ticks: list[list[int]], answers: Mapping[str, int]
) -> Iterator[tuple[str, Any]]:
    """Two runs side by side, from the ``answers`` about each of them."""
    if len(inspection.runs) < 2:
        return
    for agent in inspection.runs[0].agents:
        for tick in sorted({*ticks[0]} & {*ticks[1]}):
            keys = [_key("agent", agent=agent, run=number, tick=tick)[0] for number in (0, 1)]
            sides = [Node(answers[key]) if key in answers else None for key in keys]
            key, given = _key("compare", agent=agent, tick=tick)
            yield key, inspection.compare(Parameters(given), sides)


def _of_run(
    inspection: Inspection, run: Inspected, number: int, ticks: list[int], nodes: Nodes
) -> Iterator[tuple[str, Any]]:
    yield _asked(inspection, "series", run=number)
    yield _asked(inspection, "effects", run=number)
    if run.about()["has_calls"]:
        with suppress(CantTell):  # none up to the last tick of the file
            yield _asked(inspection, "costs", run=number)
    deeds = deed_rows(run, run.slices.deeds_in(ticks))
    yield _key("deeds", run=number)[0], {"rows": deeds}
    names = run.about()["per_agent"]
    for name in names:
        key, given = _key("heat", of=name, run=number)
        yield key, heat(run, Parameters({**given, "limit": str(_MOST_ROWS)}), _MOST_ROWS)
    for agent in _owners(run):
        with gc_paused():
            for tick in ticks:
                if not is_board(agent):
                    yield from _of_agent(run, number, agent, tick)
                yield _memories(run, number, agent, tick, nodes)
    for tick in ticks:
        key, given = _key("tick", run=number, tick=tick)
        yield key, happened(run, Parameters(given))
        for name in names:
            yield _asked(inspection, "numbers", of=name, run=number, tick=tick)
        with suppress(NotInstalled):  # the page says that the file lacks it
            yield _asked(inspection, "population", run=number, tick=tick)
    most = _MOST_LIVES // max(1, len(_owners(run)))
    newest = "SELECT sequence FROM memories WHERE agent = ? ORDER BY sequence DESC LIMIT ?"
    for agent in _owners(run):
        numbers = run.slices.ask(newest, (run.slices.place(agent), most))
        for answer in lives(run, agent, [each for (each,) in numbers]):
            if answer is not None:
                yield _key("memory", id=answer["memory"]["id"], run=number)[0], answer


def _of_agent(run: Inspected, number: int, agent: str, tick: int) -> Iterator[tuple[str, Any]]:
    """The answers about one agent at a tick."""
    key, given = _key("agent", agent=agent, run=number, tick=tick)
    yield key, agent_at(run, Parameters(given))
    key, given = _key("explain", agent=agent, run=number, tick=tick)
    try:
        found = explain(run, Parameters({**given, "when": "deciding"}))
    except CantTell:
        return
    rows, left = [], _MOST_NOT_GIVEN
    reasons: dict[str, int] = {}
    for row in found["rows"]:
        if row["rank"] is None:
            reason = row["reason"].partition(" by ")[0]
            reasons[reason] = reasons.get(reason, 0) + 1
            left -= 1
        if row["rank"] is not None or left >= 0:
            rows.append(row)
    yield key, {**found, "rows": rows, "reasons": reasons}


def _memories(run: Inspected, number: int, agent: str, tick: int, nodes: Nodes) -> tuple[str, Any]:
    with run.past.after(agent, tick) as bank:
        found = [nodes.memory(each) for each in active(bank, agent)]
    key, _ = _key("memories", agent=agent, run=number, tick=tick)
    return key, {"total": len(found), "rows": found}


def _asked(inspection: Inspection, name: str, **given: object) -> tuple[str, Any]:
    key, texts = _key(name, **given)
    return key, inspection.answer(name, texts)


def _key(name: str, **given: object) -> tuple[str, dict[str, str]]:
    """The key of an answer, and the parameters that ask for it."""
    texts = {each: str(given[each]) for each in sorted(given)}
    pairs = [f"{each}={quote(own, safe=_UNESCAPED)}" for each, own in texts.items()]
    return f"{name}?{'&'.join(pairs)}", texts


_UNESCAPED = "!'()*~-._"
"""What encodeURIComponent leaves as it is, besides letters and digits."""
