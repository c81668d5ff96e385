"""The doctor's checks: a check yields findings, and its failure does not stop the next check."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ...errors import BankDamaged, BankTooNew, BankTooOld, EmbedderError, TierMemError
from .. import failures


class Finding(NamedTuple):
    """One result of a check."""

    state: str
    """ok, warning or problem."""
    about: str
    said: str
    todo: str = ""
    """What to do about it."""


Findings = Iterator[Finding]


class Check(NamedTuple):
    """A function that yields findings, and the subject for the finding that it failed."""

    about: str
    look: Callable[[], Findings]


def run_checks(checks: Iterable[Check]) -> Findings:
    """The findings of all checks; the failure of a check is a finding, too."""
    for check in checks:
        try:
            yield from check.look()
        except ImportError as error:
            yield _not_checked(check.about, error)
        except TierMemError as error:
            lacking = error.__cause__ if isinstance(error.__cause__, ImportError) else None
            yield _not_checked(check.about, lacking) if lacking else of_error(check.about, error)
        except OSError as error:
            _, why, todo = failures.of_system(error)
            yield Finding("problem", check.about, f"it can't be checked: {why}", todo)
        except Exception as error:  # noqa: BLE001 - the next checks still run
            said = f"it can't be checked: {type(error).__name__}: {error}"
            yield Finding("problem", check.about, said, "tell the authors of TierMem")


def _not_checked(about: str, error: ImportError) -> Finding:
    """A warning for the check; the missing package itself is a problem of another check."""
    missing = (error.name or str(error)).partition(".")[0]
    todo = f"get {missing} first, then look again"
    return Finding("warning", about, f"not checked: it needs {missing}", todo)


def of_error(about: str, error: TierMemError) -> Finding:
    """The finding that a check ended with an error."""
    if isinstance(error, EmbedderError):
        return Finding("problem", "embedder", error.why, error.hint)
    if isinstance(error, BankDamaged) and not isinstance(error, BankTooNew | BankTooOld):
        todo = "restore journal.db from a backup, or a checkpoint with MemoryBank.restore()"
        return Finding("problem", about, error.why, todo)
    return Finding("problem", about, error.why, error.hint)
