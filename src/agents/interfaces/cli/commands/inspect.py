"""The command that shows a run, a bank or a sweep in a browser."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated

from typer import Argument, Option

from ....packages import need, needed
from ..options import Force, Quiet
from ..output import say
from ..progress import Screen, stopping

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
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Look at a run in a browser: any tick, any agent, any memory, and why.

    The page is served to this machine alone, at an address with a token, until Ctrl-C. Nothing is
    written to the run, which may go on meanwhile: the page follows it. With --allow-branch, the
    page makes branches, in new folders beside the run: for a run of a sweep, in SWEEP/cells. With
    --export, the same page goes into one file that opens without a server. Of a damaged run, both
    show what is whole, and say what is not.
    """
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
        Inspection(folders, allow_branch=allow_branch) as inspection,
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
