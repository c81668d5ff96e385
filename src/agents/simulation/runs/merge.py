"""A copy of a run in which all agents are in one bank."""

from pathlib import Path
from typing import Any

from ...bank import history
from ...errors import RunError
from ...storage.files import copy_file
from ..policies.cassette import Cassette
from ..workers.cells import CASSETTE, SHARDS, base_of
from ..workers.merge import gather_cassettes
from .folder import as_run_error, make_folder, places_of_code
from .placement import LOCAL, is_over_workers, reading
from .record import last_tick
from .run import Run
from .scenario import check_scenario
from .trust import check_run, is_trusted_run, seal_run


def merge(folder: Path, out: Path, *, force: bool = False) -> dict[str, Any]:
    """Copy a run to the folder ``out``, with all agents in one bank; the summary of the copy."""
    settings, about = reading(folder)
    if out.resolve() == folder.resolve():
        raise RunError(f"{out} is the run itself", hint="name another folder with --out")
    check_run(folder, settings, is_parent=True)
    code = check_scenario(settings, places_of_code(folder, about))

    def fill(new: Path) -> None:
        with as_run_error(f"{folder} can't be copied"):
            history.branch(folder / "bank", last_tick(folder), new / "bank")
        if (folder / CASSETTE).exists():
            copy_file(folder / CASSETTE, new / CASSETTE)
        if is_over_workers(folder):
            shards = folder / SHARDS
            gather_cassettes(shards, base_of(shards).cells, Cassette(new / CASSETTE))
        if is_trusted_run(folder):
            seal_run(new, settings)

    own = {name: value for name, value in about.items() if name != "engine"}
    make_folder(out, settings, own, code, force=force, fill=fill)
    with Run.open(out, engine=LOCAL) as run:
        return run.finish()
