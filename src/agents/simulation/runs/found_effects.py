"""The experiments that lie beside a run: what ``tiermem effect --out`` wrote."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...memory.words import counted, number, signed
from ..reports import html as page
from ..statistics import in_words, interval_of

AS_IT_WAS, CHANGED, PLACEBO = ARMS = "as-it-was", "changed", "placebo"
"""The folders of an experiment's runs; there is a placebo where a language model decides."""
_MOST_METRICS = 4
_MOST_FOLDERS = 2_000
_MOST_BYTES = 32 << 20
_NUMBER = (int, float)


class FoundEffect(NamedTuple):
    """An experiment with a run, as its folder tells it."""

    name: str
    """The folder, as a path from the folder in which the run is."""
    folder: Path
    at: int | None
    """The last tick before the change; None where each memory has its own."""
    until: int
    changed: Sequence[str]
    """What was changed, in words."""
    statistics: Sequence[Mapping[str, Any]]
    """Rows with what they are about, ``n``, ``mean``, ``low`` and ``high``."""
    reached: Sequence[tuple[str, int]]
    """The agents that the change reached, and when."""
    arms: tuple[Path, Path] | None
    """The runs without and with the change, if both are there."""


def effects_of(run: Path) -> list[FoundEffect]:
    """The experiments with a run that are in its folder or beside it, by their names.

    They are looked for in the run's folder and in the folder around it, and in folders ``effects``
    there and one farther out. A folder that is not an experiment, or is of another
    run, is left out.
    """
    place = run.resolve()
    around = place.parent
    homes = (place, place / "effects", around, around / "effects", around.parent / "effects")
    effects: dict[Path, FoundEffect] = {}
    for folder in (each for home in homes for each in _folders(home)):
        if folder not in effects and (kept := _read(folder, place)) is not None:
            effects[folder] = kept
    return sorted(effects.values(), key=lambda each: each.name)


def _folders(home: Path) -> Iterator[Path]:
    try:
        with os.scandir(home) as entries:
            for _, entry in zip(range(_MOST_FOLDERS), entries, strict=False):
                if (home / entry.name / "effect.json").is_file():
                    yield home / entry.name
    except OSError:
        return


def _json(path: Path) -> Any:
    """What a JSON file says; None if it says nothing that can be read."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        return json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return None


def _read(folder: Path, run: Path) -> FoundEffect | None:
    effect = _json(folder / "effect.json")
    if not isinstance(effect, dict) or not _is_about(effect, folder, run):
        return None
    arms = folder / AS_IT_WAS, folder / CHANGED
    has_arms = all((arm / "run.json").is_file() for arm in arms)
    try:
        rows = effect["statistics"] if "statistics" in effect else list(_ranked(effect))
        return FoundEffect(
            name=os.path.relpath(folder, run.parent),
            folder=folder,
            at=None if effect.get("at") is None else int(effect["at"]),
            until=int(effect["until"]),
            changed=[str(words) for words in effect.get("changed", ())],
            statistics=[_row(row) for row in rows],
            reached=[(str(each["agent"]), int(each["tick"])) for each in effect.get("reached", ())],
            arms=arms if has_arms else None,
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def _is_about(effect: Mapping[str, Any], folder: Path, run: Path) -> bool:
    """Whether an experiment was made with a run: a branch knows its parent, else the name says."""
    about = _json(folder / AS_IT_WAS / "run.json")
    parent = (about.get("parent") if isinstance(about, dict) else None) or {}
    named = parent.get("run") if isinstance(parent, dict) else None
    if isinstance(named, str) and Path(named).exists():
        return Path(named).resolve() == run
    return Path(str(named or effect.get("run", ""))).name == run.name


def _ranked(ranking: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of a ranking: what is different without each memory."""
    for tested in ranking["tested"]:
        words = f"{ranking['metric']} without {tested['agent']}: {tested['text']!r:.80}"
        numbers = {"mean": tested["difference"], "low": tested["low"], "high": tested["high"]}
        yield {"metric": words, "n": tested.get("n", 1), **numbers}


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {name: row[name] for name in ("n", "mean", "low", "high")}
    placebos = {name: row.get(name) for name in ("placebo_least", "placebo_most")}
    if not all(each is None or isinstance(each, _NUMBER) for each in (numbers | placebos).values()):
        raise TypeError("a number of an experiment is none")
    verdict = row.get("verdict")
    return {
        "metric": str(row["metric"]),
        **numbers,
        **({} if verdict is None else {"verdict": str(verdict), **placebos}),
    }


def placebos_in_words(row: Mapping[str, Any]) -> str:
    """By how much the placebos of a row differ, ``−3 to +8``; empty without a placebo."""
    least, most = row.get("placebo_least"), row.get("placebo_most")
    if least is None or most is None:
        return ""
    return signed(least) if least == most else f"{signed(least)} to {signed(most)}"


def effects_section(run: Path) -> str:
    """The experiments of a run's report, each with a link to its own; empty without any."""
    rows = [_line(kept, run) for kept in effects_of(run)]
    if not rows:
        return ""
    heads = ["Experiment", "What was changed", "Pairs", "What it did"]
    return "<h2>Effects</h2>" + page.table(heads, rows, 0)


def _line(kept: FoundEffect, run: Path) -> list[str]:
    rows = sorted(kept.statistics, key=lambda row: row["mean"] == 0)  # what changed comes first
    lines = [_figure(row) for row in rows[:_MOST_METRICS]]
    if len(rows) > _MOST_METRICS:
        lines.append(f"and {counted(len(rows) - _MOST_METRICS, 'more row')}")
    report = Path(os.path.relpath(kept.folder, run.resolve())) / "report.html"
    return [
        page.link(report.as_posix(), kept.folder.name),
        "<br>".join(map(page.escape, kept.changed)) or "one memory at a time",
        number(rows[0]["n"]) if rows else "0",
        "<br>".join(lines) or "nothing was tested",
    ]


def _figure(row: Mapping[str, Any]) -> str:
    told = [in_words(interval_of(row)), page.escape(row.get("verdict", ""))]
    said = f"{page.escape(row['metric'])}: {number(row['mean'])}"
    return f"{said} ({'; '.join(filter(None, told))})" if any(told) else said
