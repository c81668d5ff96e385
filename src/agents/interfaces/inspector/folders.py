"""What to say of a folder that has nothing to look at: which runs, banks and sweeps are near."""

from difflib import get_close_matches
from pathlib import Path
from shlex import quote

from ...errors import RunError
from .sweeps import is_sweep

_MOST = 3
"""Folders that a hint names."""


def nothing_in(folder: Path) -> RunError:
    """The error for a folder that is not a run, a bank or a sweep."""
    if (folder / "run.json").exists():
        return RunError(
            f"the run in {folder} has no bank: {folder / 'bank'} is missing",
            hint="put it back from a copy, or make the run anew with tiermem run",
        )
    if not folder.exists():
        return RunError(f"there is no folder {folder}", hint=_hint(folder.parent, folder.name))
    return RunError(f"there is no run, bank or sweep in {folder}", hint=_hint(folder, ""))


def _hint(place: Path, name: str) -> str:
    """The folders in a place that can be looked at; first those with a similar name."""
    try:
        found = sorted(each.name for each in place.iterdir() if _has_something(each))
    except OSError:
        found = []
    if not found:
        return "check the path; tiermem run SCENARIO makes a run, and says where"
    near = get_close_matches(name, found, _MOST)
    near += [each for each in found if each not in near]
    named = ", ".join(quote(str(place / each)) for each in near[:_MOST])
    more = f" and {len(near) - _MOST} more" if len(near) > _MOST else ""
    return f"here {'is' if len(near) == 1 else 'are'} {named}{more}"


def _has_something(folder: Path) -> bool:
    return (folder / "run.json").is_file() or (folder / "journal.db").is_file() or is_sweep(folder)
