"""The folder of a sweep: its plan, and the runs that are finished."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from ...config.yaml_files import to_yaml
from ...errors import RunError
from ...storage.files import lock_folder, make_folder, replace_file
from ..whole_folder import strangers
from .kept import ANEW
from .sweep import Sweep

_HEAD = "# What `tiermem sweep` runs here. Finished runs are kept as long as this is the same.\n"
LOCK = "sweep.lock"
"""The file that a process locks while it runs the sweep."""
_OURS = {"cells", "plan.yaml", "results.parquet", "statistics.parquet", "report.html", LOCK}


def prepare(sweep: Sweep, folder: Path, force: bool) -> None:
    """Make the sweep's folder, or check that the folder is of this sweep.

    With ``force``, a folder of another sweep is replaced.
    """
    text = plan = _HEAD + to_yaml(sweep.to_dict(), sort_keys=True)
    if sweep.question:  # for readers of the folder; it may change when the sweep goes on
        text += to_yaml({"question": sweep.question})
    made = folder / "plan.yaml"
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise RunError(f"{folder} exists and is not a folder", hint="choose another with --out")
    if folder.exists() and any(folder.iterdir()):
        _check_ours(folder, made)
        if _without_question(made.read_text()) == plan and not force:
            if made.read_text() != text:
                _write(folder, text)
            return
        if not force:
            raise RunError(
                f"{folder} is of another sweep, or the settings or the code of this one have "
                "changed since",
                hint=ANEW,
            )
        lock_folder(folder, LOCK).release()  # raises if another process runs the sweep
        shutil.rmtree(folder)
    _write(folder, text)


def _write(folder: Path, plan: str) -> None:
    """Write the plan into the sweep's folder, which is made if there is none."""
    try:
        make_folder(folder)
        make_folder(folder / "cells")
        replace_file(folder / "plan.yaml", plan)
    except OSError as error:
        raise RunError(
            f"the sweep {str(folder)!r} can't be made: {error}",
            hint="make room and let your user write there, or choose another with --out",
        ) from error


def _without_question(plan: str) -> str:
    """The text of a plan without its question, which is the last of its keys."""
    return re.sub(r"^question: .*", "", plan, count=1, flags=re.MULTILINE | re.DOTALL)


def _check_ours(folder: Path, made: Path) -> None:
    """Refuse a folder that holds files of something other than a sweep."""
    strange = [path.name for path in strangers(folder, _OURS) if path.suffix != ".svg"]
    if strange or not made.is_file() or not made.read_text().startswith(_HEAD):
        holds = f": it holds {strange[0]}" if strange else ""
        raise RunError(
            f"{folder} exists and is not a sweep{holds}", hint="choose another with --out"
        )


def finished(folder: Path, keep_runs: bool) -> dict[str, Any] | None:
    """The summary of a finished cell, or None. A run writes its summary after its tables."""
    try:
        summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    except (OSError, ValueError):
        return None
    is_whole = summary.get("finished") and (not keep_runs or (folder / "report.html").is_file())
    return summary if is_whole else None
