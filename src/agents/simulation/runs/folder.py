"""The folder of a run. It appears whole or not at all, and replaces nothing but a run."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import Any

from ...bank import history
from ...config.load import load_settings
from ...config.settings import Settings
from ...config.yaml_files import to_yaml
from ...errors import BankError, ConfigError, RunError, SimulationError
from ...storage import formats
from ...storage.files import copy_file, is_temporary, make_folders, replace_file
from ...storage.whole_folder import clear_up, strangers, whole_folder
from ..tick.branch_rules import check_rules

Say = Callable[[str], None]
"""Takes a line for the user."""


def quiet(_: str) -> None:
    """Say nothing."""


_FROM_A_COPY = "restore it from a copy of the run"
_OURS = frozenset(
    {
        "config.yaml", "run.json", "code", "bank", "checkpoints", "cassette.jsonl",
        "metrics.parquet", "ticks.parquet", "decisions.parquet", "calls.parquet",
        "summary.json", "report.html",
        "diff.svg", "error.txt", "run.seal", "shards", "interviews",
    }
)  # fmt: skip


def make_folder(
    folder: Path,
    settings: Settings,
    about: Mapping[str, Any],
    code: Mapping[str, Path | bytes],
    *,
    force: bool,
    fill: Callable[[Path], None] | None = None,
    remedy: str = "choose another folder with --out",
) -> None:
    """Make a run's folder; ``fill`` adds to the folder before the folder gets its name.

    ``code`` are the user's own files, or their bytes, by their path in the folder ``code``. With
    ``force``, the finished folder replaces a run that has this name. ``remedy`` is the hint for a
    caller whose folder can't be taken.
    """
    if not folder.name:
        raise RunError("a run needs a folder of its own", hint=remedy)
    clear_up(folder)
    _check_free(folder, force, remedy)
    try:
        with whole_folder(folder) as new:
            write_settings(new, settings)
            replace_file(new / "run.json", json.dumps(dict(about), indent=2) + "\n")
            for name, file in code.items():
                make_folders(new, (new / "code" / name).parent)
                if isinstance(file, bytes):
                    replace_file(new / "code" / name, file)
                else:
                    copy_file(file, new / "code" / name)
            if fill:
                fill(new)
            _check_free(folder, force, remedy)
    except OSError as error:
        raise RunError(
            f"the run {str(folder)!r} can't be made: {error}",
            hint="make room and let your user write there, or name another folder",
        ) from error
    except RunError:
        raise
    except SimulationError as error:  # there is no tick yet to go on from
        raise RunError(
            f"no run was made: {error.why}",
            hint="mend the world or the policy, then give the same command again",
        ) from error


def read_folder(folder: Path) -> tuple[Settings, dict[str, Any]]:
    """A run's settings, and its ``run.json``."""
    if not folder.is_dir():
        raise RunError(f"there is no run {folder}", hint="check the path; tiermem run makes a run")
    try:
        about = json.loads((folder / "run.json").read_text())
        known = about["format"]
        if isinstance(known, int) and formats.migrate("run", known, about):
            known = about["format"] = formats.RUN
        scenario, parent = about.get("scenario"), about.get("parent")
        check_rules(about.get("rules", []))
        sound = isinstance(scenario, str | None) and (
            parent is None
            or (
                isinstance(parent["run"], str)
                and {type(parent["tick"]), type(parent["edits"])} == {int}
            )
        )
    except FileNotFoundError:
        raise RunError(
            f"{folder} is not a run: it has no run.json",
            hint="name the folder that tiermem run made",
        ) from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise RunError(
            f"{folder / 'run.json'} can't be read: {error!r:.200}", hint=_FROM_A_COPY
        ) from None
    if known != formats.RUN:
        is_later = isinstance(known, int) and known > formats.RUN
        maker = about.get("tiermem")
        raise RunError(
            f"{folder} has format {known!r:.20}, and this version of TierMem reads format "
            f"{formats.RUN}" + (f": TierMem {maker!r:.20} made it" if maker else ""),
            hint="upgrade with: pip install -U tiermem"
            if is_later
            else "use the version of TierMem that made it",
        )
    if not sound:
        raise RunError(
            f"{folder / 'run.json'} was changed: its scenario or its parent is none",
            hint=_FROM_A_COPY,
        )
    if not (folder / "config.yaml").is_file():
        raise RunError(
            f"{folder} is missing config.yaml, without which it can't go on", hint=_FROM_A_COPY
        )
    config = folder / "config.yaml"
    try:
        return _settings(_Config(config.read_bytes(), config)), about
    except ConfigError as error:
        memories = f"tiermem show {quote(str(folder / 'bank'))}"
        raise ConfigError(
            error.why,
            hint=f"{error.hint}; if another version of TierMem wrote this file, go on with that "
            f"one; this one shows the memories: {memories}",
        ) from None


@dataclass(frozen=True)
class _Config:
    """The file of a run's settings: two files with the same bytes are the same."""

    data: bytes
    path: Path = field(compare=False)


@lru_cache(maxsize=64)
def _settings(config: _Config) -> Settings:
    """The settings in a run's file: an experiment has many runs with the same ones."""
    return load_settings(config.path)


def calls_of(about: Mapping[str, Any]) -> list[str]:
    """The functions that change the program of a branched run."""
    return [rule["function"] for rule in about.get("rules", ()) if rule["do"] == "call"]


def branched_from(about: Mapping[str, Any]) -> dict[str, Any] | None:
    """Where a run branched from another run, without a path: a checkpoint may move elsewhere."""
    parent = about.get("parent")
    if not parent:
        return None
    rules = {"rules": about["rules"]} if about.get("rules") else {}
    return {"tick": parent["tick"], "edits": parent["edits"], **rules}


@contextmanager
def as_run_error(what: str) -> Iterator[None]:
    """Turn an error of a run's bank into a :class:`RunError` that begins with ``what``."""
    try:
        yield
    except BankError as error:
        raise RunError(f"{what}: {error.why}", hint=error.hint) from error


def write_settings(folder: Path, settings: Settings) -> None:
    """Write all settings without secrets, which belong in the environment."""
    replace_file(folder / "config.yaml", _as_yaml(json.dumps(settings.to_dict(redact=True))))


@lru_cache(maxsize=64)
def _as_yaml(values: str) -> str:
    """Settings that are given as JSON."""
    return to_yaml(json.loads(values))


def checkpoints(folder: Path) -> list[Path]:
    """A run's checkpoints, oldest first."""
    return sorted((folder / "checkpoints").glob("tick-*.tmck"), key=checkpoint_tick)


def checkpoint_tick(path: Path) -> int:
    """The tick in a checkpoint's name."""
    number = path.stem.removeprefix("tick-")
    return int(number) if number.isdecimal() else -1


def places_of_code(folder: Path, about: Mapping[str, Any]) -> list[Path]:
    """The folders with the user's own modules: the run's copies, then the scenario's folder."""
    places = [folder / "code"]
    if about.get("scenario"):
        places.append(Path(about["scenario"]))
    return [place for place in places if place.is_dir()]


def changed_code(copies: Path, places: list[Path]) -> list[str]:
    """The user's own modules and tables that differ from their copies."""
    pairs = _originals(copies, places)
    return [str(own) for copy, own in pairs if own.read_bytes() != copy.read_bytes()]


def original_code(copies: Path, places: list[Path]) -> Path | None:
    """The user's own module of which there is a copy, or the folder of several; None if gone."""
    found = [own for _, own in _originals(copies, places, "*.py")]
    return Path(os.path.commonpath(found)) if found else None


def _originals(copies: Path, places: list[Path], named: str = "*") -> Iterator[tuple[Path, Path]]:
    """The copies of the user's own files, each with the file itself, if it is still there."""
    for copy in sorted(filter(Path.is_file, copies.rglob(named))):
        for place in places:
            original = place / copy.relative_to(copies)
            if place != copies and original.is_file():
                yield copy, original


def remove_leftovers(folder: Path) -> None:
    """Remove the half-written files of a killed process. The caller holds the run's lock."""
    for place in (folder, folder / "checkpoints"):
        for path in place.glob(".*.tmp"):
            if not is_temporary(path.name):
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _check_free(folder: Path, force: bool, remedy: str) -> None:
    """Refuse a folder that exists, unless it is an unused run and ``force`` allows replacing it."""
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_symlink() or not folder.is_dir():
        raise RunError(f"{folder} exists already and is not a run", hint=remedy)
    strange = list(_strange(folder))
    if strange:
        raise RunError(
            f"{folder} exists already and is not a run, or not only that: {strange[0]}",
            hint=remedy,
        )
    if not force:
        raise RunError(
            f"{folder} exists already",
            hint=f"go on with it by `tiermem resume {quote(str(folder))}`, "
            f"{remedy}, or replace it with --force",
        )
    for name in ("bank", "shards"):
        if (folder / name).is_dir():
            history.check_unused(folder / name)


def _strange(folder: Path) -> Iterator[str]:
    """The signs that a folder is not a run, or holds more than a run."""
    try:
        read_folder(folder)
    except (RunError, ConfigError) as error:
        yield error.why
    for path in not_of_a_run(folder):
        yield f"it holds {path.name}"


def not_of_a_run(folder: Path) -> Iterator[Path]:
    """What is in a run's folder, and no part of a run."""
    return strangers(folder, _OURS)
