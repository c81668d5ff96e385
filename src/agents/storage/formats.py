"""The formats of files that last, and what brings a file of an earlier one to the present one.

Who raises a number writes a :class:`Migration` from the number before, and golden files of the new
number: ``tests/unit/storage/test_formats.py`` says what is missing. A migration is never changed
after the release that has it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

JOURNAL = 6
CHECKPOINT = 3
RUN = 1
CASSETTE = 1
"""Of a line; a line that names no format has format 1."""


class Migration(NamedTuple):
    """How a file of a format gets the next one. The function's name says what it does."""

    kind: str
    """journal, checkpoint, run or cassette."""
    before: int
    change: Callable[[Any], None]
    """It changes what it is given, a copy that nobody else sees:

    - of a journal and of a checkpoint its open database, inside a transaction. The last commit of
      a journal has to keep its number, its tick and its hash: the records beside it name them. The
      ``sha256`` of a checkpoint has to be compared by the rule of ``before``, and made anew.
    - of a run, what its ``run.json`` says; of a cassette, one of its lines: each as a dictionary.
    """


MIGRATIONS: tuple[Migration, ...] = ()
"""All migrations, in any order. The formats before those of the first release have none."""


def present(kind: str) -> int:
    """The number of a kind's format, as this version of TierMem writes it."""
    return {"journal": JOURNAL, "checkpoint": CHECKPOINT, "run": RUN, "cassette": CASSETTE}[kind]


def steps(kind: str, version: int) -> list[Migration]:
    """What brings a file of this format to the present one, in order; empty if nothing does."""
    found = {each.before: each for each in MIGRATIONS if each.kind == kind}
    wanted = range(version, present(kind))
    return [found[each] for each in wanted] if all(each in found for each in wanted) else []


def migrate(kind: str, version: int, value: Any) -> bool:
    """Bring a copy of a file's content to the present format; False if nothing does that."""
    wanted = steps(kind, version)
    for step in wanted:
        step.change(value)
    return bool(wanted)
