"""The folder of an experiment: it appears when it is whole, and replaces nothing but another."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...bank import history
from ...errors import RunError, TierMemError
from ...storage.files import TemporaryFolder, is_temporary, make_folder, replace_file
from ...storage.whole_folder import clear_up, name_beside, put_in_place
from ..runs.folder import not_of_a_run, read_folder
from ..runs.found_effects import ARMS, AS_IT_WAS
from ..runs.trust import is_trusted_run, seal_run

_FOUND = "effect.json"
_HALF = "unfinished.txt"
_HALF_SAYS = "This experiment is not whole. The next one with this folder replaces it.\n"
_OURS = frozenset(
    {
        _FOUND, _HALF, "effect.svg", "report.html", "pairs.parquet", "statistics.parquet",
        "spread.parquet", "ranking.parquet",
    }
)  # fmt: skip
_PAIR = re.compile(r"(seed|future|memory)-\d+")
_ANOTHER = "choose another with --out"


@contextmanager
def arms_folder(run: Path, out: str | Path | None, force: bool) -> Iterator[Path]:
    """The folder in which the arms are run: it becomes ``out``, or is removed at the end.

    The arms are run beside ``out``, so an experiment that has this name stays until the new one is
    whole. What an error or an interrupt leaves gets the name only if there is no such experiment,
    and a file that says so; the next one replaces it, also without ``force``.
    """
    if out is None:
        with TemporaryFolder("effect") as scratch:
            try:
                yield Path(scratch)
            except TierMemError as error:
                _name_anew(error, run, Path(scratch), Path(scratch), is_kept=False)
                raise
        return
    folder = Path(out)
    if not folder.name:
        raise RunError("an experiment needs a folder of its own", hint=_ANOTHER)
    clear_up(folder)
    _check_free(run, folder, force)
    place = name_beside(folder)
    shutil.rmtree(place, ignore_errors=True)
    try:
        with _as_run_error(folder):
            make_folder(place)
        yield place
        _check_free(run, folder, force)
        _take_name(place, folder)
    except BaseException as error:
        is_kept = not (folder / _FOUND).exists() and _keep_half(run, place, folder)
        if isinstance(error, TierMemError):
            _name_anew(error, run, place, folder, is_kept)
        raise
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _check_free(run: Path, folder: Path, force: bool) -> None:
    """Refuse a folder that holds the run, is of something else, in use, or whole and not forced."""
    if run.resolve().is_relative_to(folder.resolve()):
        raise RunError(f"{folder} holds the run itself: {run}", hint=_ANOTHER)
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise RunError(f"{folder} exists and is not a folder", hint=_ANOTHER)
    if folder.is_mount():
        raise RunError(f"{folder} is a disk of its own", hint="name a folder in it with --out")
    if not folder.exists() or not any(folder.iterdir()):
        return
    strange = next(_strange(folder), None)
    if strange or not (_is_half(folder) or (folder / _FOUND).is_file()):
        holds = f": it holds {strange.relative_to(folder)}" if strange else ""
        raise RunError(f"{folder} exists and is not an experiment{holds}", hint=_ANOTHER)
    if not force and (folder / _FOUND).exists():
        raise RunError(f"{folder} exists already", hint=f"{_ANOTHER}, or replace it: --force")
    for arm in _arms(folder):
        if (arm / "bank").is_dir():
            history.check_unused(arm / "bank")


def _strange(folder: Path) -> Iterator[Path]:
    """The files and folders that are not an experiment's."""
    for path in sorted(folder.iterdir()):
        is_folder = path.is_dir() and not path.is_symlink()
        if is_folder and path.name in ARMS:
            yield from not_of_a_run(path)
        elif is_folder and _PAIR.fullmatch(path.name):
            yield from _strange(path)
        elif not is_temporary(path.name) and (is_folder or path.name not in _OURS):
            yield path


def _is_half(folder: Path) -> bool:
    """Whether this is an unfinished experiment: the user's own runs may be called like its arms."""
    try:
        return (folder / _HALF).read_text() == _HALF_SAYS
    except (OSError, ValueError):
        return False


def _arms(folder: Path) -> list[Path]:
    """The runs of an experiment."""
    found = (path.parent for path in folder.rglob("run.json"))
    return sorted(arm for arm in found if arm.name in ARMS)


def _keep_half(run: Path, place: Path, folder: Path) -> bool:
    """Give an unfinished experiment its name, for its tracebacks and what a model answered."""
    try:
        (place / _FOUND).unlink(missing_ok=True)
        if not (place / AS_IT_WAS).is_dir():
            return False
        replace_file(place / _HALF, _HALF_SAYS)
        _check_free(run, folder, force=False)
        _take_name(place, folder)
    except (OSError, TierMemError):
        return False
    return True


def _take_name(place: Path, folder: Path) -> None:
    """Give a folder its name, also in the runs that branched from others in it."""
    with _as_run_error(folder):
        for arm in _arms(place):
            _move_parent(arm, place.absolute(), folder.absolute())
        put_in_place(place, folder)


def _move_parent(arm: Path, place: Path, folder: Path) -> None:
    settings, about = read_folder(arm)
    parent = about.get("parent")
    if not parent or not Path(parent["run"]).is_relative_to(place):
        return
    was_trusted = is_trusted_run(arm)
    parent["run"] = str(folder / Path(parent["run"]).relative_to(place))
    replace_file(arm / "run.json", json.dumps(about, indent=2) + "\n")
    if was_trusted:
        seal_run(arm, settings)


def _name_anew(error: TierMemError, run: Path, place: Path, folder: Path, is_kept: bool) -> None:
    """Let an error name the folder that is there, and not the one in which the arms were run.

    An arm can't be resumed for its experiment: the next one runs both arms anew, with the code that
    the run itself has.
    """
    before, now = str(place), str(folder)
    if before in error.hint:
        failed = [arm / "error.txt" for arm in _arms(folder if is_kept else place)]
        said = error.hint.replace(before, now) if is_kept else error.hint
        traces = [str(file) for file in failed if str(file) in said]
        where = f" in {run / 'code'}" if traces and (run / "code").is_dir() else ""
        kept = [f"the traceback is in {file}" for file in traces if is_kept]
        error.hint = "; ".join([*kept, f"mend it{where}, then give the same command again"])
    error.args = tuple(
        each.replace(before, now) if isinstance(each, str) else each for each in error.args
    )


@contextmanager
def _as_run_error(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(
            f"the experiment {os.fspath(folder)!r} can't be made: {error}",
            hint="make room and let your user write there, or choose another with --out",
        ) from error
