"""What a caller attaches to commits: bytes that storage keeps and does not read."""

import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest

from agents import BankDamaged, MemoryBank
from agents.bank import history
from agents.storage.journal.attachments import Attachment
from agents.storage.journal.journal import Attachments
from embedders import Directions


def _attached(tick: int) -> Attachment:
    return Attachment(f"no JSON ü {tick}", b"\0\xff", f"state {tick}" * 99, b"log %d" % tick)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bank in which three commits have attachments."""
    with _opened(tmp_path / "bank") as bank:
        for tick in (1, 2, 3):
            with bank.transaction():
                bank.advance(tick)
                bank.agent("alice").add(f"text {tick}")
                bank.engine.ledger.attach(_attached(tick))
    return tmp_path / "bank"


def _opened(folder: Path) -> MemoryBank:
    settings = {"storage": {"sync": "manual"}}
    return MemoryBank.open(folder, settings, embedder=Directions())


def _all(attachments: Attachments) -> list[tuple[int, str, bytes, bytes | None]]:
    return [
        (row.tick, row.record, row.data, row.state() if row.packed_state else None)
        for row in attachments.rows()
    ]


def _read_all(bank: MemoryBank) -> None:
    journal = bank.engine.journal
    with journal.reading():
        _all(journal.attachments)
        list(journal.attachments.logs())


def _expected(*ticks: int, states: tuple[int, ...]) -> list[tuple[int, str, bytes, bytes | None]]:
    kept = [(tick, _attached(tick)) for tick in ticks]
    return [(t, a.record, a.data, a.state.encode() if t in states else None) for t, a in kept]


def test_attachments_go_with_their_commits(folder: Path) -> None:
    with _opened(folder) as bank:
        kept = bank.engine.journal.attachments
        assert _all(kept) == _expected(1, 2, 3, states=(1, 2, 3))
        assert list(kept.logs(1)) == [(2, b"log 2"), (3, b"log 3")]
        with suppress(ZeroDivisionError), bank.transaction():
            bank.advance(4)
            bank.engine.ledger.attach(_attached(4))
            _ = 1 / 0
        bank.agent("alice").add("without an attachment")
        bank.agent("alice").forget(bank.agent("alice").all()[0].id)
        assert _all(kept) == _expected(1, 2, 3, states=(1, 2, 3))
    history.rewind(folder, 2)
    with _opened(folder) as bank:
        kept = bank.engine.journal.attachments
        assert _all(kept) == _expected(1, 2, states=(1, 2))
        assert list(kept.logs()) == [(1, b"log 1"), (2, b"log 2")]


def test_a_checkpoint_has_the_last_state_and_no_log(folder: Path, tmp_path: Path) -> None:
    with _opened(folder) as bank:
        bank.checkpoint(tmp_path / "one.tmck")
    with MemoryBank.restore(tmp_path / "one.tmck", tmp_path / "new", embedder=Directions()) as bank:
        kept = bank.engine.journal.attachments
        assert _all(kept) == _expected(1, 2, 3, states=(3,))
        assert list(kept.logs()) == []


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("UPDATE ticks SET record = '' WHERE tick = 2", "tick 2 is not what was written"),
        ("UPDATE ticks SET retrieved = x'01' WHERE tick = 2", "tick 2 is not what was written"),
        ("UPDATE ticks SET state_hash = x'01' WHERE tick = 2", "tick 2 is not what was written"),
        ("UPDATE ticks SET state = x'01' WHERE tick = 2", "the state after tick 2 is not"),
        ("DELETE FROM ticks WHERE tick = 2", "lost what it kept of 1 ticks"),
        ("UPDATE decisions SET data = x'01' WHERE tick = 2", "the decisions of tick 2 are not"),
    ],
)
def test_damage_is_named(folder: Path, damage: str, why: str) -> None:
    database = sqlite3.connect(folder / "journal.db")
    database.execute(damage)
    database.commit()
    database.close()
    with _opened(folder) as bank, pytest.raises(BankDamaged, match=why):
        _read_all(bank)
