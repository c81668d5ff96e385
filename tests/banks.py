"""What tests of a whole bank share: a look at its journal from outside, and a busy bank."""

import gc
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import PIPE
from typing import Any

from agents import MemoryBank
from waiting import ended
from warm_children import Popen

MakeBank = Callable[..., MemoryBank]

TESTS = Path(__file__).parent
ROOT = TESTS.parent
MANUAL = {"sync": "manual"}


def connection(folder: Path) -> sqlite3.Connection:
    """The bank's own connection to its journal, wherever it keeps it."""
    for each in gc.get_objects():
        if isinstance(each, sqlite3.Connection):
            try:
                (row,) = each.execute("PRAGMA database_list").fetchall()
            except sqlite3.ProgrammingError:  # closed
                continue
            if row[2] and Path(row[2]).samefile(folder / "journal.db"):
                return each
    raise AssertionError("the bank has no connection")


def change(folder: Path, statement: str, *values: object) -> None:
    """Change the journal from outside."""
    database = sqlite3.connect(folder / "journal.db")
    with database:
        assert database.execute(statement, values).rowcount > 0
    database.close()


def value(folder: Path, statement: str) -> Any:
    database = sqlite3.connect(folder / "journal.db")
    try:
        return database.execute(statement).fetchone()[0]
    finally:
        database.close()


def flipped(data: bytes | str | int) -> bytes | str | int:
    """``data`` with one bit changed."""
    if isinstance(data, int):
        return data ^ 1
    if isinstance(data, str):
        middle = len(data) // 2
        return data[:middle] + chr(ord(data[middle]) ^ 1) + data[middle + 1 :]
    return data[:-1] + bytes([data[-1] ^ 1])


def child(code: str, *arguments: object, start: Any = Popen, **environment: str) -> str:
    """Run ``code`` in a process of its own and give what it printed."""
    with start(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=PIPE,
        stderr=PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS), **environment},
    ) as process:
        out, err = ended(process)
    assert process.returncode == 0, err
    return str(out).strip()


class Undone(Exception):
    """Ends a transaction."""


@contextmanager
def undone(bank: MemoryBank) -> Iterator[None]:
    """A transaction that an error ends."""
    with suppress(Undone), bank.transaction():
        yield
        raise Undone


def contents(bank: MemoryBank, agent: str = "alice") -> list[str]:
    return [memory.content for memory in bank.agent(agent).all()]


def busy(bank: MemoryBank) -> None:
    """A bit of everything that a journal can hold."""
    for tick in range(5):
        bank.advance(tick * 2)
        bank.add_many(
            [(f"a{n % 3}", f"m{n} “{tick}”\n <{n} 1>", n % 5, {"n": n}) for n in range(20)]
        )
        for name in bank.agents():
            agent = bank.agent(name)
            agent.unpin(agent.get_pinned_memories()[0].id, "low")
            agent.delete(agent.all("low")[0].id)
            agent.add(f"cold {tick}", 1 + tick % 4, kind="decision", temperature="cold", ttl=50)
            agent.update(
                agent.add(f"archived {tick}", temperature="hot", tags=["x"]).id,
                retention="archived",
            )
            agent.forget(agent.add(f"forgotten {tick}", 3, {"secret": tick}).id)
            agent.recall(f"cold {tick}")
            agent.search(f"m{tick}")


def everything(bank: MemoryBank) -> tuple[object, ...]:
    agents = bank.agents()
    return (
        bank.tick,
        bank.state_hash(),
        [list(map(tuple, bank.agent(name).all())) for name in agents],
        [bank.agent(name).get_pinned_memories() for name in agents],
        # What a search would give; the search itself would count as use.
        [bank.agent(name).explain("<1 2>", 9) for name in agents],
    )
