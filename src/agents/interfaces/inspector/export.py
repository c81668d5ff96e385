"""The page and its answers in one file, which needs neither a server nor a network."""

import base64
import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from ...errors import ConfigError, RunError
from ...storage.private_files import SHARED_MODE, replace_file
from .agent_view import agent_at, explain, memories
from .inspected import Inspected
from .life_view import lives
from .page_files import MAP, hash_of, page_file
from .parameters import CantTell, Parameters
from .site import Site
from .tick_view import happened, heat

__all__ = ["Nodes", "exported", "write_export"]

_MOST_DECISIONS = 3_500
"""Decisions in a file, of all agents; a longer run keeps every second tick, or fewer."""
_LONG = 1e6
"""Seconds: an export waits until the whole journal is read."""
_MOST_LIVES = 50_000
"""Memories in a file with their lives; of more, each agent's newest."""
_MOST_NOT_GIVEN = 40
_MOST_ROWS = 1_000_000
_STYLE = re.compile(r'<link rel="stylesheet" href="\./(?P<name>[^"]+)">')
_ENTRY = re.compile(r'<script type="module" src="\./(?P<name>[^"]+)"></script>')
Progress = Callable[[int, int], None]


class Nodes:
    """Values in which equal parts are kept once: each value is a number of a node."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self._places: dict[Any, int] = {}

    def put(self, value: Any) -> int:
        """The number of a value's node."""
        key: Any
        if isinstance(value, dict):
            node: Any = {str(name): self.put(own) for name, own in value.items()}
            key = (dict, *node.items())
        elif isinstance(value, list | tuple):
            node = [self.put(own) for own in value]
            key = (list, *node)
        else:
            node = value
            key = (type(value), value)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.nodes)
            self.nodes.append(node)
        return place


def write_export(
    site: Site, path: Path, *, force: bool = False, progress: Progress | None = None
) -> None:
    """Write the file; :class:`ConfigError` if it exists and ``force`` does not replace it."""
    if path.exists() and not force:
        raise ConfigError(f"{path} exists already", hint="replace it with --force")
    data = exported(site, progress)
    try:
        replace_file(path, data, SHARED_MODE)
    except OSError as error:
        raise RunError(
            f"{path} can't be written: {error.strerror or error}", hint="name another file"
        ) from error


def exported(site: Site, progress: Progress | None = None) -> bytes:
    """The page with its answers, as one HTML file."""
    nodes = Nodes()
    answers: dict[str, int] = {}
    ticks = [_ticks(run) for run in site.runs]
    total = sum(len(own) * (len(run.agents) + 1) for own, run in zip(ticks, site.runs, strict=True))
    for run in site.runs:
        run.past.is_patient = True
        run.need(run.last_tick(), _LONG)
    for done, (key, answer) in enumerate(_answers(site, ticks), start=1):
        answers[key] = nodes.put(answer)
        if progress is not None and done <= total:
            progress(done, total)
    data = orjson.dumps({"nodes": nodes.nodes, "answers": answers}, default=str)
    packed = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
    return _document(packed).encode()


def _ticks(run: Inspected) -> list[int]:
    """The ticks that a file keeps: all, or evenly spaced ones with the first and the last."""
    first, last = run.first_tick(), run.last_tick()
    most = max(2, _MOST_DECISIONS // max(1, len(run.agents)))
    step = -(-(last - first + 1) // most)
    return sorted({*range(first, last + 1, step), last})


def _answers(site: Site, ticks: list[list[int]]) -> Iterator[tuple[str, Any]]:
    about = site.about(Parameters({}))
    for run, own in zip(about["runs"], ticks, strict=True):
        run["ticks"], run["is_finished"] = own, True
    yield "about?", {**about, "allow_branch": False}
    if site.sweep is not None:
        yield "sweep?", site.points(Parameters({}))
    for number, (run, own) in enumerate(zip(site.runs, ticks, strict=True)):
        yield from _of_run(site, run, number, own)
    if len(site.runs) > 1:
        for tick in sorted({*ticks[0]} & {*ticks[1]}):
            for agent in site.runs[0].agents:
                yield _asked(site, "compare", agent=agent, tick=tick)


def _of_run(site: Site, run: Inspected, number: int, ticks: list[int]) -> Iterator[tuple[str, Any]]:
    yield _asked(site, "series", run=number)
    for name in run.about()["per_agent"]:
        key, given = _key("heat", of=name, run=number)
        yield key, heat(run, _all(given), _MOST_ROWS)
    for agent in run.agents:
        for tick in ticks:
            yield from _of_agent(run, number, agent, tick)
    for tick in ticks:
        key, given = _key("tick", run=number, tick=tick)
        yield key, happened(run, _all(given))
        yield _asked(site, "population", run=number, tick=tick)
    slices = run.reader.slices
    most = _MOST_LIVES // max(1, len(run.agents))
    newest = "SELECT sequence FROM memories WHERE agent = ? ORDER BY sequence DESC LIMIT ?"
    for agent in run.agents:
        numbers = slices.ask(newest, (slices.places.get(agent, -1), most))
        for answer in lives(run, agent, [each for (each,) in numbers]):
            if answer is not None:
                yield _key("memory", id=answer["memory"]["id"], run=number)[0], answer


def _of_agent(run: Inspected, number: int, agent: str, tick: int) -> Iterator[tuple[str, Any]]:
    """The answers about one agent at a tick."""
    key, given = _key("agent", agent=agent, run=number, tick=tick)
    yield key, agent_at(run, Parameters(given))
    key, given = _key("memories", agent=agent, run=number, tick=tick)
    yield key, memories(run, _all(given), _MOST_ROWS)
    key, given = _key("explain", agent=agent, run=number, tick=tick)
    try:
        found = explain(run, _all({**given, "when": "deciding"}), _MOST_ROWS)
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


def _all(given: dict[str, str]) -> Parameters:
    return Parameters({**given, "limit": str(_MOST_ROWS)})


def _asked(site: Site, name: str, **given: object) -> tuple[str, Any]:
    key, texts = _key(name, **given)
    return key, site.answer(name, texts)


def _key(name: str, **given: object) -> tuple[str, dict[str, str]]:
    """The key of an answer, and the parameters that ask for it."""
    texts = {each: str(given[each]) for each in sorted(given)}
    pairs = [f"{each}={quote(own, safe=_UNESCAPED)}" for each, own in texts.items()]
    return f"{name}?{'&'.join(pairs)}", texts


_UNESCAPED = "!'()*~-._"
"""What encodeURIComponent leaves as it is, besides letters and digits."""


# The document


def _document(packed: str) -> str:
    """The page's HTML with its modules, its style sheets and the data in it."""
    page = _text("index.html")
    page = _STYLE.sub(lambda found: f"<style>\n{_text(found['name'])}</style>", page)
    found, entry = MAP.search(page), _ENTRY.search(page)
    if found is None or entry is None:
        raise RunError("the page has no import map or no entry", hint="install TierMem again")
    modules = {
        name: _as_data(_text(place.removeprefix("./")))
        for name, place in json.loads(found["map"])["imports"].items()
    }
    imports = json.dumps({"imports": {**modules, "#entry": _as_data(_text(entry["name"]))}})
    start = 'import "#entry";'
    policy = (
        f"default-src 'none'; script-src {hash_of(imports)} {hash_of(start)} data:; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    page = page.replace(entry[0], f'<script type="module">{start}</script>')
    data = f'<script type="text/plain" id="inspector-data">{packed}</script>\n'
    page = page.replace(found[0], f'{data}<script type="importmap">{imports}</script>')
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{meta}', 1)


def _text(name: str) -> str:
    found = page_file(name)
    if found is None:
        raise RunError(f"the page lacks {name}", hint="install TierMem again")
    return found.data.decode()


def _as_data(module: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(module.encode()).decode()}"
