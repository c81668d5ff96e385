"""Commands that look at a whole run: diff, report, inspect."""

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ....errors import InvalidInput, RunError
from ....packages import need, needed
from ..options import AsJson, Force, Quiet, RunFolder
from ..output import echo_json, say, table
from ..progress import Screen, stopping

if TYPE_CHECKING:
    from ....memory.records import Memory


_MOST_LISTED = 20


def diff(
    first: Annotated[Path, Argument(metavar="RUN1", help="The folder of a run.")],
    second: Annotated[Path, Argument(metavar="RUN2", help="The folder of another run.")],
    plot: Annotated[
        Path | None, Option(metavar="FILE", help="The plot; without it, RUN2/diff.svg.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two runs: the first tick that differs, the memories and the metrics.

    Memories in both runs are compared by tier, temperature, kind, tags, expiry and metadata. The
    command also plots the metrics of both runs.
    """
    from ....simulation.reports import plots
    from ....simulation.runs.compare import compare_runs, shown
    from ....storage.files import FILE_MODE, SHARED_MODE, replace_file

    if plot and plot.suffix not in ("", ".svg"):
        raise InvalidInput(
            f"a plot is SVG, and {plot} is not its name", hint=f"--plot {plot.with_suffix('.svg')}"
        )
    compared = compare_runs(first, second)
    names = (str(first), str(second)) if first != second else ("first", "second")
    target = plot or second / "diff.svg"
    ticks = [[record["tick"] for record in records] for records in compared.series]
    picture = plots.side_by_side(
        *map(_curves, compared.series),
        left_x=ticks[0],
        right_x=ticks[1],
        names=(first.name, second.name),
        diverged=compared.parted,
    )
    try:
        replace_file(target, plots.alone(picture), SHARED_MODE if plot else FILE_MODE)
    except OSError as error:
        raise RunError(
            f"the plot {target} can't be written: {error.strerror or error}",
            hint="name another with --plot",
        ) from error
    pairs: dict[str, Any] = {"metrics": compared.metrics, "settings": compared.settings}
    if as_json:
        both = {
            name: {key: [one, other] for key, one, other in rows} for name, rows in pairs.items()
        }
        result = {"runs": list(names), "parted": compared.parted, "last": compared.last, **both}
        memories = {
            "only_first": [{"id": each.id, **_named(each)} for each in compared.only_first],
            "only_second": [{"id": each.id, **_named(each)} for each in compared.only_second],
            "changed": [
                {
                    "ids": [each.first.id, each.second.id],
                    **_named(each.first),
                    "fields": {field: [shown(one), shown(two)] for field, one, two in each.fields},
                }
                for each in compared.changed
            ],
        }
        echo_json({**result, **memories, "plot": str(target)})
        return
    lists = {
        f"only in {names[0]}": [_named(each) for each in compared.only_first],
        f"only in {names[1]}": [_named(each) for each in compared.only_second],
        "in both, but not the same": [
            {
                **_named(each.first),
                f"{names[0]} → {names[1]}": "; ".join(
                    f"{field}: {shown(one)} → {shown(two)}" for field, one, two in each.fields
                ),
            }
            for each in compared.changed
        ],
    }
    if compared.parted is None:
        since = ", but for what was changed since" if any(lists.values()) else ""
        say(f"equal after every tick up to {compared.last}{since}")
    else:
        say(f"they part in tick {compared.parted}")
    for name, triples in pairs.items():
        rows = [{name: key, names[0]: one, names[1]: other} for key, one, other in triples]
        title = (
            f"metrics, after tick {compared.last}" if name == "metrics" else "settings that differ"
        )
        if rows:
            table(title, rows)
    for title, rows in lists.items():
        if rows:
            more = f", the first {_MOST_LISTED}" if len(rows) > _MOST_LISTED else ""
            table(f"{title}, after tick {compared.last}: {len(rows)}{more}", rows[:_MOST_LISTED])
    say(f"plot: {target}")


def report(folder: RunFolder) -> None:
    """Write report.html and the tables of a run anew."""
    from ....simulation.runs.run import Run
    from ..progress import Screen

    with Run.open(folder, say=Screen(quiet=False).say) as opened:
        opened.finish()
    say(str(folder / "report.html"))


def paper(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="The folder of a run or a sweep.")],
    out: Annotated[
        Path | None,
        Option("--out", "-o", metavar="FOLDER", help="The new folder; without it, FOLDER-paper."),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write what goes into a paper: methods, an ODD protocol, tables and figures.

    All of it comes from what the run or the sweep has recorded, and nothing is run. Gaps for the
    author are marked. Tables are CSV and LaTeX, figures SVG and PDF.
    """
    need("pyarrow", "scipy")
    from ....simulation.paper.methods import GAP
    from ....simulation.paper.paper import write_paper

    place = folder if folder.name not in ("", "..") else folder.resolve()
    target = out or place.with_name(f"{place.name}-paper")
    files = write_paper(folder, target, force=force)
    if as_json:
        echo_json({"paper": str(target), "files": [str(file) for file in files]})
        return
    mark = GAP.partition("{")[0]
    for file in files:
        # The first mark of a page explains what it is.
        gaps = file.read_text("utf-8").count(mark) - 1 if file.suffix == ".md" else 0
        say(f"{file}{f', {gaps} gaps to fill' if gaps else ''}")


def _curves(records: list[dict[str, Any]]) -> dict[str, list[float | None]]:
    names = records[-1]["metrics"] if records else ()
    return {name: [record["metrics"].get(name) for record in records] for name in names}


def _named(memory: "Memory") -> dict[str, Any]:
    """How a comparison names a memory: an id is another memory in another run, a text is not."""
    return {
        "agent": memory.agent_id,
        "created": memory.created_tick,
        "memory": memory.content,
    }


_HOST = "127.0.0.1"


def inspect(
    folder: Annotated[
        Path, Argument(metavar="FOLDER", help="The folder of a run, a bank or a sweep.")
    ],
    other: Annotated[
        Path | None, Argument(metavar="[RUN2]", help="Another run, to compare the first with.")
    ] = None,
    port: Annotated[int, Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    open_: Annotated[bool, Option("--open", help="Open the page in your browser.")] = False,
    export: Annotated[
        Path | None,
        Option(metavar="FILE", help="Write one HTML file that needs no server, and end."),
    ] = None,
    allow_branch: Annotated[
        bool, Option("--allow-branch", help="Let the page run branches, each in a new folder.")
    ] = False,
    allow_ask: Annotated[
        bool, Option("--allow-ask", help="Let the page ask agents, by the run's language model.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Look at a run in a browser: any tick, any agent, any memory, and why.

    The page is served to this machine alone, at an address with a token, until Ctrl-C. Nothing is
    written to the run, which may go on meanwhile: the page follows it. With --allow-branch, the
    page makes branches, in new folders beside the run: for a run of a sweep, in SWEEP/cells. With
    --allow-ask, it has a box for interviews, which are recorded as those of tiermem ask. With
    --export, the same page goes into one file that opens without a server. Of a damaged run, both
    show what is whole, and say what is not.
    """
    if not (folder / "journal.db").is_file():  # a bank alone is looked at without them
        need("pyarrow", "scipy")
    folders = [folder] if other is None else [folder, other]
    from ...inspector.inspection import Inspection

    if export is not None:
        from ...inspector.export import write_export

        with Screen(quiet=quiet) as screen, Inspection(folders) as inspection:
            write_export(
                inspection, export, force=force, progress=screen.meter("export", "answers")
            )
            damaged = [(run.folder, run.damaged) for run in inspection.runs if run.damaged]
        for place, why in damaged:
            say(f"{place} is damaged: {why}; the file has what is whole", err=True)
        say(str(export))
        return
    server, http = _server()
    with (
        http.listen(_HOST, port, hint="choose another with --port, or leave it out") as sock,
        Inspection(folders, allow_branch=allow_branch, allow_ask=allow_ask) as inspection,
        stopping() as asked_to_stop,
    ):
        token = server.new_token()
        where = f"{http.address(_HOST, sock)}/{token}/"
        say(where)
        sys.stdout.flush()
        if open_:
            import webbrowser

            webbrowser.open(where)
        if not quiet:
            say(f"looking at {' and '.join(map(str, folders))}; Ctrl-C ends it", err=True)
        server.serve(server.Inspector(inspection, token, _HOST), sock, asked_to_stop)
        if inspection.left is not None:
            say(f"{inspection.left.why}: {inspection.left.hint}", err=True)


def _server() -> tuple[ModuleType, ModuleType]:
    """The module that serves the page, and the one that opens a port."""
    with needed(
        "to serve the page", "starlette", "uvicorn", otherwise="; --export needs nothing more"
    ):
        from ...http import server as http
        from ...inspector import server
    return server, http
