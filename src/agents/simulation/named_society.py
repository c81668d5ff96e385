"""The society that a scenario names: a graph, a file, edges, a grid, a space, or places with hours.

What is drawn depends on the run's seed and on the entry alone. A graph that networkx draws may be
another one with another version of it, so a run keeps its edges in a file beside its code.
"""

import csv
import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from ..errors import ConfigError, InvalidInput
from ..packages import needed
from .society import METRICS, Place, Society
from .tick.streams import NamedStream

KEY = "simulation.society"
RECORD = "society-edges.csv"
"""The file with the edges of a drawn graph, in the folder of a run's code."""

_FORMS: Mapping[str, tuple[str, ...]] = {
    "graph": (),
    "file": ("directed",),
    "edges": ("directed",),
    "grid": ("radius", "neighbours", "torus"),
    "space": ("radius", "torus"),
    "places": ("day",),
}
"""The forms of a society by their first key, and what else each takes; a graph takes what its
generator does."""
_ALL = ("talk", "turns")
_OF_PLACE = ("place", "groups", "hours", "every")

Find = Callable[[str], Path]
"""Where a file of the scenario is."""


def society_of(
    entry: Mapping[str, Any], agents: Sequence[str], seed: int, find: Find, record: Path | None
) -> Society:
    """The society of an entry; ``record`` is the file with the edges of its graph, if there is one.

    What is wrong is a :class:`ConfigError` that names the key.
    """
    form = _form_of(entry)
    talk, turns = _share(entry, "talk", 0), _whole(entry, "turns", 6, 0, 1000)
    try:
        if form in ("graph", "file", "edges"):
            edges, directed = _edges(form, entry, agents, seed, find, record)
            made = Society.of_edges(agents, edges, directed=directed)
        elif form == "places":
            places = [_place(at, own, agents, seed) for at, own in enumerate(entry["places"])]
            day = _whole(entry, "day", 24, 1, 1_000_000)
            made = Society.of_places(agents, places, day=day)
        else:
            made = _in_space(form, entry, agents, seed)
    except InvalidInput as error:
        raise ConfigError(f"{KEY}: {error.why}", hint=error.hint) from error
    return made.talking(talk, turns)


def recorded(entry: Mapping[str, Any], society: Society, seed: int) -> bytes | None:
    """What a run keeps of a society that networkx drew; None for any other."""
    if "graph" not in entry:
        return None
    text = StringIO()
    text.write(_head(entry, society.agents, seed))
    csv.writer(text, lineterminator="\n").writerows(society.edges)
    return text.getvalue().encode()


def _form_of(entry: Mapping[str, Any]) -> str:
    forms = [name for name in _FORMS if name in entry]
    if len(forms) != 1:
        raise ConfigError(
            f"{KEY} has {' and '.join(forms) or 'nothing that says who can hear whom'}",
            hint=f"give it one of {', '.join(_FORMS)}",
        )
    (form,) = forms
    known = (form, *_FORMS[form], *_ALL)
    if form != "graph" and (unknown := [name for name in entry if name not in known]):
        raise ConfigError(
            f"{KEY}: a society of {form} has no {unknown[0]!r:.60}",
            hint=f"it takes {', '.join(known)}",
        )
    return form


# Graphs: drawn, from a file, or written out


def _edges(
    form: str,
    entry: Mapping[str, Any],
    agents: Sequence[str],
    seed: int,
    find: Find,
    record: Path | None,
) -> tuple[list[Sequence[str]], bool]:
    """The edges, and whether they go one way."""
    if form == "graph":
        kept = None if record is None else record.read_text(encoding="utf-8")
        if kept is not None and kept.startswith(_head(entry, agents, seed)):
            return list(csv.reader(StringIO(kept.partition("\n")[2]))), True
        society = Society.of_graph(agents, _drawn(entry, len(agents), seed))
        return list(society.edges), True
    directed = entry.get("directed", False)
    if not isinstance(directed, bool):
        raise _wrong("directed", directed, "true or false")
    if form == "edges":
        for at, edge in enumerate(entry["edges"]):
            if not isinstance(edge, list | tuple) or len(edge) != 2:
                raise _wrong(f"edges[{at}]", edge, "a pair of agents: [ann, bob]")
        return list(entry["edges"]), directed
    name = entry["file"]
    if not isinstance(name, str):
        raise _wrong("file", name, f"the name of a {', '.join(ENDINGS)} file")
    path = find(name)
    try:
        rows, own = _READERS[path.suffix](path)
    except (OSError, ValueError, KeyError, TypeError, SyntaxError) as error:
        raise ConfigError(
            f"{KEY}: {name} can't be read: {error!r:.200}",
            hint="docs/howto/telling.md says what is in such files",
        ) from error
    return _named(name, rows, agents), directed if own is None else own


def _head(entry: Mapping[str, Any], agents: Sequence[str], seed: int) -> str:
    """The first line of a record: of what it is one."""
    of = json.dumps([_plain(entry), list(agents), seed], sort_keys=True)
    return f"# {hashlib.sha256(of.encode()).hexdigest()}\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items() if key not in _ALL}
    return list(map(_plain, value)) if isinstance(value, list | tuple) else value


def _drawn(entry: Mapping[str, Any], count: int, seed: int) -> Any:
    """The graph of a generator of networkx, which gets the number of agents and a seed."""
    with needed("a society with a graph", "networkx"):
        import networkx as nx
    name = entry["graph"]
    made = getattr(nx, f"{name}_graph", None) or getattr(nx, str(name), None)
    if made is None or not str(getattr(made, "__module__", "")).startswith("networkx.generators"):
        raise ConfigError(
            f"{KEY}.graph: networkx has no generator {name!r:.60}",
            hint="name one such as watts_strogatz, barabasi_albert, erdos_renyi or complete",
        )
    given = {key: own for key, own in entry.items() if key not in ("graph", *_ALL)}
    takes = inspect.signature(made).parameters
    if "n" in takes and "n" not in given:
        given["n"] = count
    if "seed" in takes:
        given["seed"] = _generator(seed, "graph").getrandbits(32)
    try:
        return made(**given)
    except Exception as error:  # a generator of networkx may raise anything
        asked = [each for each in takes if each not in ("n", "seed", "create_using", "backend")]
        raise ConfigError(
            f"{KEY}.graph: {name} of networkx: {error}",
            hint=f"it takes {', '.join(each for each in asked if each != 'backend_kwargs')}",
        ) from error


def _named(file: str, rows: Iterable[Sequence[Any]], agents: Sequence[str]) -> list[Any]:
    """The edges of a file by the ids of agents; numbers from 0 stand for their places."""
    known, edges = set(agents), []
    for where, *pair in rows:
        names = []
        for each in map(str, pair):
            if each not in known and each.isdecimal() and int(each) < len(agents):
                each = agents[int(each)]
            if each not in known:
                raise ConfigError(
                    f"{KEY}: {file}, {where}: there is no agent {each!r:.60}",
                    hint="name agents of simulation.agents, or number them from 0",
                )
            names.append(each)
        edges.append(names)
    return edges


_Rows = tuple[Iterable[Sequence[Any]], bool | None]
"""Edges with where they stand; and whether they go one way, if the file says so."""


def _of_csv(path: Path) -> _Rows:
    reader = csv.reader(StringIO(path.read_text(encoding="utf-8-sig"), newline=""), strict=True)
    rows = [(f"line {reader.line_num}", row) for row in reader if row]
    for where, row in rows:
        if len(row) < 2:
            raise ValueError(f"{where} has one column, and an edge has two")
    return ((where, row[0].strip(), row[1].strip()) for where, row in rows[1:]), None


def _of_edgelist(path: Path) -> _Rows:
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.partition("#")[0].split()
        if len(words) == 1:
            raise ValueError(f"line {number} has one name, and an edge has two")
        if words:
            rows.append((f"line {number}", words[0], words[1]))
    return rows, None


def _of_parquet(path: Path) -> _Rows:
    with needed("a Parquet file", "pyarrow"):
        import pyarrow.parquet as pq
    table = pq.read_table(path)
    one, other = (table.column(place).to_pylist() for place in (0, 1))
    return ((f"row {at}", *pair) for at, pair in enumerate(zip(one, other, strict=True), 1)), None


def _of_graphml(path: Path) -> _Rows:
    with needed("a GraphML file", "networkx"):
        import networkx as nx
    graph = nx.read_graphml(path)
    return ((f"edge {at}", *pair) for at, pair in enumerate(graph.edges(), 1)), graph.is_directed()


def _of_json(path: Path) -> _Rows:
    graph = json.loads(path.read_text(encoding="utf-8"))
    edges = graph["edges"] if "edges" in graph else graph["links"]
    rows = [(f"edge {at}", own["source"], own["target"]) for at, own in enumerate(edges, 1)]
    return rows, bool(graph.get("directed", False))


_READERS: Mapping[str, Callable[[Path], _Rows]] = {
    ".csv": _of_csv,
    ".parquet": _of_parquet,
    ".edgelist": _of_edgelist,
    ".graphml": _of_graphml,
    ".json": _of_json,
}
ENDINGS = tuple(_READERS)


# Spaces and places


def _in_space(form: str, entry: Mapping[str, Any], agents: Sequence[str], seed: int) -> Society:
    """Agents at drawn places: on the cells of a grid, each on its own if there are enough."""
    size = entry[form]
    if (
        not isinstance(size, list | tuple)
        or len(size) != 2
        or not all(type(each) in (int, float) and each > 0 for each in size)
        or (form == "grid" and not all(type(each) is int for each in size))
    ):
        raise _wrong(form, size, "two numbers: width and height")
    torus = entry.get("torus", False)
    if not isinstance(torus, bool):
        raise _wrong("torus", torus, "true or false")
    radius = entry.get("radius", 1 if form == "grid" else None)
    if type(radius) not in (int, float) or radius < 0:
        raise _wrong("radius", radius, "a number that is not below 0")
    metric = "euclidean" if form == "space" else entry.get("neighbours", "moore")
    if metric not in (METRICS if form == "space" else METRICS[1:]):
        raise _wrong("neighbours", metric, "moore or von_neumann")
    draw = _generator(seed, form)
    if form == "space":
        points = [[draw.random() * size[0], draw.random() * size[1]] for _ in agents]
    else:
        cells: list[int] = []
        for _ in range(-(-len(agents) // (size[0] * size[1]))):  # full rounds over the grid
            cells += _shuffled(range(size[0] * size[1]), draw)
        points = [list(map(float, divmod(cell, size[1]))) for cell in cells[: len(agents)]]
    return Society.of_positions(agents, points, radius, metric=metric, torus=size if torus else ())


def _place(at: int, own: object, agents: Sequence[str], seed: int) -> Place:
    where = f"places[{at}]"
    if not isinstance(own, Mapping) or not isinstance(own.get("place"), str):
        raise _wrong(where, own, "a mapping with the name of a place: {place: work, groups: 4}")
    if unknown := [key for key in own if key not in _OF_PLACE]:
        raise _wrong(f"{where}.{unknown[0]}", own[unknown[0]], f"one of {', '.join(_OF_PLACE)}")
    hours = own.get("hours")
    if hours is not None and (
        not isinstance(hours, list | tuple)
        or len(hours) != 2
        or not all(type(each) is int and each >= 0 for each in hours)
    ):
        raise _wrong(f"{where}.hours", hours, "two hours: [9, 17]")
    return Place(
        own["place"],
        _groups(where, own, agents, seed),
        None if hours is None else (hours[0], hours[1]),
        _whole(own, "every", 1, 1, 1_000_000_000, f"{where}."),
    )


def _groups(
    where: str, own: Mapping[str, Any], agents: Sequence[str], seed: int
) -> dict[str, str] | None:
    """The group of each agent at a place: drawn, so many of them; or as they are named."""
    groups = own.get("groups")
    if groups is None:
        return None
    if type(groups) is int and 1 <= groups <= len(agents):
        drawn = _shuffled(agents, _generator(seed, f"place\0{own['place']}"))
        return {agent: str(number % groups + 1) for number, agent in enumerate(drawn)}
    if not isinstance(groups, Mapping):
        raise _wrong(
            f"{where}.groups", groups, f"a number up to {len(agents)}, or lists of agents by name"
        )
    found: dict[str, str] = {}
    for name, members in groups.items():
        for agent in members if isinstance(members, list | tuple) else [members]:
            if agent not in agents or agent in found:
                why = "an agent" if agent not in agents else "an agent of one group"
                raise _wrong(f"{where}.groups.{name}", agent, why)
            found[agent] = str(name)
    return found


def _whole(
    entry: Mapping[str, Any], name: str, default: int, least: int, most: int, where: str = ""
) -> int:
    value = entry.get(name, default)
    if type(value) is not int or not least <= value <= most:
        raise _wrong(f"{where}{name}", value, f"a whole number from {least} to {most}")
    return value


def _share(entry: Mapping[str, Any], name: str, default: float) -> float:
    value = entry.get(name, default)
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise _wrong(name, value, "a number from 0 to 1")
    return float(value)


def _wrong(key: str, value: object, wanted: str) -> ConfigError:
    return ConfigError(f"{KEY}.{key} is {value!r:.60}", hint=f"give {wanted}")


def _generator(seed: int, what: str) -> NamedStream:
    drawn = NamedStream(what)
    drawn.begin(hashlib.sha256(f"tiermem\0{seed}\0society".encode()))
    return drawn


def _shuffled(values: Sequence[Any], draw: NamedStream) -> list[Any]:
    """In a drawn order; Python's own shuffle may become another one."""
    drawn = [(draw.random(), number) for number in range(len(values))]
    return [values[number] for _, number in sorted(drawn)]
