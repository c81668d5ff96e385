"""Ctrl-C at the worst moments."""

from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from embedders import Directions


class Interrupting:
    """A database connection on which Ctrl-C is pressed right before or after one statement."""

    def __init__(self, database: Any, statement: str, after: bool) -> None:
        self._database = database
        self._statement = statement
        self._after = after

    def execute(self, statement: str, *arguments: Any) -> Any:
        if statement != self._statement:
            return self._database.execute(statement, *arguments)
        self._statement = ""
        if self._after:
            self._database.execute(statement, *arguments)
        raise KeyboardInterrupt

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "COMMIT"])
def test_an_interrupted_commit_is_there_whole_or_not_at_all_and_the_bank_goes_on(
    tmp_path: Path, statement: str, after: bool
) -> None:
    def open_bank() -> MemoryBank:
        return MemoryBank.open(tmp_path, embedder=Directions(), storage={"sync": "manual"})

    with open_bank() as bank:
        alice = bank.agent("alice")
        alice.add("before")
        file = bank.parts.ledger.journal.file
        file.db = Interrupting(file.db, statement, after)  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            alice.add_many(["one", "two"])
        kept = [memory.content for memory in alice.all()]
        assert kept in (["before"], ["before", "one", "two"])
        assert (kept == ["before"]) == (not (statement == "COMMIT" and after))
        alice.add("next")
        state = bank.state_hash()
    with open_bank() as bank:
        assert bank.state_hash() == state
