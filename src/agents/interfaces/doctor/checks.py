"""What a check of the doctor is: it says what it finds, and can't keep others from being heard."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ...errors import BankDamaged, BankTooNew, BankTooOld, EmbedderError, TierMemError
from .. import failures

__all__ = ["Check", "Finding", "Findings", "run_checks"]


class Finding(NamedTuple):
    """What a check found out."""

    state: str
    """ok, warning or problem."""
    about: str
    said: str
    todo: str = ""
    """What to do about it."""


Findings = Iterator[Finding]


class Check(NamedTuple):
    """What it is about, unless a finding says otherwise, and how to look."""

    about: str
    look: Callable[[], Findings]


def run_checks(checks: Iterable[Check]) -> Findings:
    """What all of them find. One that fails is a finding as well, and the next is still made."""
    for check in checks:
        try:
            yield from check.look()
        except ImportError as error:
            yield _not_checked(check.about, error)
        except TierMemError as error:
            lacking = error.__cause__ if isinstance(error.__cause__, ImportError) else None
            yield _not_checked(check.about, lacking) if lacking else _of_error(check.about, error)
        except OSError as error:
            _, why, todo = failures.of_system(error)
            yield Finding("problem", check.about, f"it can't be checked: {why}", todo)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others are to be heard
            said = f"it can't be checked: {type(error).__name__}: {error}"
            yield Finding("problem", check.about, said, "tell the authors of TierMem")


def _not_checked(about: str, error: ImportError) -> Finding:
    """That a package is missing is a finding of its own, and no fault of what needs it."""
    missing = (error.name or str(error)).partition(".")[0]
    todo = f"get {missing} first, then look again"
    return Finding("warning", about, f"not checked: it needs {missing}", todo)


def _of_error(about: str, error: TierMemError) -> Finding:
    if isinstance(error, EmbedderError):
        return Finding("problem", "embedder", error.why, error.hint)
    if isinstance(error, BankDamaged) and not isinstance(error, BankTooNew | BankTooOld):
        todo = "restore journal.db from a backup, or a checkpoint with MemoryBank.restore()"
        return Finding("problem", about, error.why, todo)
    return Finding("problem", about, error.why, error.hint)
