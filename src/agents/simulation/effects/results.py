"""The files of an experiment: tables, a plot and a report."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import RunError
from ...memory.words import number, signed
from ...storage.files import replace_file
from ..reports import html as page
from ..reports import plots
from ..runs.outputs import table
from ..statistics import in_words, interval_of
from .experiment import Effect
from .which import Ranked

_MOST_CHARTS = 12
_MOST_REACHED = 100


def write(found: Effect, folder: Path) -> None:
    """Write what an experiment found into its folder."""
    _write(
        folder,
        {
            "effect.json": json.dumps(found.to_dict(), indent=2) + "\n",
            "pairs.parquet": table(found.pairs),
            "statistics.parquet": table(found.statistics),
            "spread.parquet": table([step._asdict() for step in found.steps]),
            "effect.svg": plots.alone(effect_plot(found)),
            "report.html": page.document(
                f"Effect in {Path(found.run).name}",
                [page.headline("TierMem effect", Path(found.run).name), effect_section(found)],
            ),
        },
    )


def write_ranking(ranked: Ranked, folder: Path, run: str, until: int) -> None:
    """Write which memories mattered into the experiment's folder."""
    told = {"run": run, "until": until, **ranked.to_dict()}
    kept = [
        {"place": place, **each.candidate._asdict(), **dict(list(each._asdict().items())[1:])}
        for place, each in enumerate(ranked.tested, start=1)
    ]
    name = Path(run).name
    _write(
        folder,
        {
            "effect.json": json.dumps(told, indent=2) + "\n",
            "ranking.parquet": table(kept),
            "report.html": page.document(
                f"Memories of {name}",
                [page.headline("TierMem effect", name), ranking_section(ranked)],
            ),
        },
    )


def _write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    try:
        for name, data in files.items():
            replace_file(folder / name, data)
    except OSError as error:
        raise RunError(
            f"what came out can't be written to {folder}: {error}",
            hint="make room and let your user write there",
        ) from error


def effect_plot(found: Effect) -> str:
    """Each metric as it was and changed, over the ticks of the run itself."""
    was = {name: values[0] for name, values in found.series.items()}
    now = {name: values[1] for name, values in found.series.items()}
    return plots.side_by_side(
        was,
        now,
        left_x=found.ticks,
        right_x=found.ticks,
        names=("as it was", "changed"),
        diverged=found.parted.tick if found.parted else None,
    )


def effect_section(found: Effect) -> str:
    """What a change did, as a section of a report."""
    body = [
        "<h2>What was changed</h2>",
        "".join(f"<p>{page.escape(words)}.</p>" for words in found.words),
        "<h2>What it did</h2>",
        _differences(found),
        "".join(f'<p class="note">{page.escape(note)}.</p>' for note in found.notes),
        _charts(found),
        "<h2>How it went around</h2>",
        _parted(found),
        _reached(found),
    ]
    if found.missing:
        lines = "".join(f"<p>{page.escape(line)}</p>" for line in found.missing)
        body.append(page.details(f"{len(found.missing)} without the change", lines))
    return "".join(body)


def _differences(found: Effect) -> str:
    rows = [
        [
            page.escape(row["metric"]),
            number(row["n"]),
            signed(row["mean"]),
            interval(row),
            number(row["p_holm"]),
        ]
        for row in found.statistics
    ]
    return page.table(["Metric", "Pairs", "Difference", "95 % interval", "p, by Holm"], rows, 4)


def interval(row: Mapping[str, Any]) -> str:
    """The ends of a difference's interval, in words, or what the values say without one."""
    return in_words(interval_of(row), signed) or "–"


def _charts(found: Effect) -> str:
    figures = []
    for name, (was, now) in list(found.series.items())[:_MOST_CHARTS]:
        lines = {"as it was": was, "changed": now}
        figures.append(page.figure(name, plots.curves(lines, found.ticks), "In the run itself."))
    touched = dict.fromkeys(found.ticks, 0)
    for each in found.reached:
        for tick in touched:
            touched[tick] += tick >= each.tick
    if found.reached:
        curve = plots.curves({"agents": list(touched.values())}, found.ticks)
        figures.append(page.figure("Agents that it reached", curve, "In the run itself."))
    if any(row["low"] is not None for row in found.statistics):
        points = {row["metric"]: [interval_of(row)] for row in found.statistics}
        drawn = plots.intervals(points, ["difference"], connected=False)
        figures.append(page.figure("Mean difference", drawn, "With its 95 % interval."))
    return page.charts(figures)


def _parted(found: Effect) -> str:
    first = found.parted
    if first is None:
        return "<p>No decision was another.</p>"
    lines = [
        f"<p>The first decision that was another: <b>{page.escape(first.agent)}</b> in tick "
        f"{number(first.tick)}.</p>",
        _listed("As it was", first.was),
        _listed("Changed", first.changed),
        _listed("No longer given", first.missed),
        _listed("Given in its place", first.more),
    ]
    return "".join(lines)


def _listed(title: str, texts: Sequence[str]) -> str:
    return f"<p>{title}: {'; '.join(map(page.clipped, texts))}</p>" if texts else ""


def _reached(found: Effect) -> str:
    rows = [
        [
            page.escape(each.agent),
            page.escape(", ".join(each.through) or "–"),
            number(each.tick),
            number(each.decided),
        ]
        for each in found.reached[:_MOST_REACHED]
    ]
    heads = ["Agent", "Through", "Reached in tick", "Decided otherwise in tick"]
    more = len(found.reached) - len(rows)
    note = f'<p class="note">{more} more are in spread.parquet.</p>' if more > 0 else ""
    return page.table(heads, rows, 2) + note if rows else "<p>It reached nobody.</p>"


def ranking_section(ranked: Ranked) -> str:
    """Which memories mattered, as a section of a report."""
    rows = [
        [
            page.clipped(each.candidate.text)
            + f'<span class="about">{page.escape(each.candidate.agent)} · from tick '
            f"{number(each.candidate.born)}</span>",
            number(each.candidate.decisions),
            signed(each.difference),
            interval(each._asdict()),
        ]
        for each in ranked.tested
    ]
    heads = ["Memory", "Decisions", f"{ranked.metric}, if it is forgotten", "95 % interval"]
    return (
        "<h2>Which memories mattered</h2>"
        + page.table([page.escape(head) for head in heads], rows, 3)
        + f'<p class="note">{len(ranked.untested)} of {ranked.candidates} candidates were not '
        "tested; a memory that took part in no decision is not a candidate.</p>"
        + "".join(f"<p>{page.escape(line)}</p>" for line in ranked.failed)
    )
