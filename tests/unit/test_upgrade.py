"""A bank that an earlier version wrote opens, has what it had, and goes on.

The golden journals hold what users' banks hold. Don't make them again, see ``make_journal_2.py``.
"""

import gzip
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import BankDamaged, MemoryBank, Retention, Temperature, Tier
from banks import change, value

GOLDEN = Path(__file__).parent.parent / "golden"
EXPECTED: dict[str, Any] = json.loads((GOLDEN / "journal-2.json").read_text(encoding="utf-8"))
SHA256 = {
    "journal-2": "6b3955eb1cb93a58ba4d22283d5624368450978580b5c341a15a36e7778b07af",
    "journal-2-snapshot": "4cef8a533e7abcd4cd6b1339da250bcfb249f90bfa040d36a3d43a5c340c5b15",
    "journal-2-snapshot-last": "9463aa374cd7870cc47519b3d4c5790c0b11ca6b4b46f5cc10ad07fbf0d53f63",
}

Open = Callable[[], MemoryBank]


@pytest.fixture(params=SHA256)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def old(tmp_path: Path, name: str) -> Path:
    """The folder of a bank with a journal of format 2."""
    packed = GOLDEN / f"{name}.db.gz"
    assert packed.stat().st_size < 100_000
    folder = tmp_path / "bank"
    folder.mkdir()
    (folder / "journal.db").write_bytes(gzip.decompress(packed.read_bytes()))
    return folder


@pytest.fixture
def reopen(old: Path) -> Iterator[Open]:
    """Opens it, closing it first if it is open."""
    banks: list[MemoryBank] = []

    def again() -> MemoryBank:
        for bank in banks:
            bank.close()
        banks.append(MemoryBank.open(old))
        return banks[-1]

    yield again
    for bank in banks:
        bank.close()


def test_the_golden_journal_is_the_one_that_was_made_first(old: Path, name: str) -> None:
    assert hashlib.sha256((old / "journal.db").read_bytes()).hexdigest() == SHA256[name]
    assert value(old, "PRAGMA user_version") == 2
    assert bool(value(old, "SELECT count(*) FROM snapshots")) == ("snapshot" in name)


def test_it_has_every_memory_it_had(reopen: Open) -> None:
    bank = reopen()
    memories = [memory for agent in bank.agents() for memory in bank.agent(agent).all()]
    found = [[*memory[:7], dict(memory.metadata)] for memory in memories]
    assert found == EXPECTED["memories"]


def test_it_is_at_the_tick_and_has_the_settings_and_the_pins_it_had(reopen: Open) -> None:
    bank = reopen()
    assert bank.tick == EXPECTED["tick"] == 8
    assert (bank.settings.seed, bank.settings.memory.max_pinned) == (7, 2)
    pinned = {a: [m.id for m in bank.agent(a).get_pinned_memories()] for a in bank.agents()}
    assert pinned == EXPECTED["pinned"]


def test_a_search_finds_the_same_with_the_same_scores(reopen: Open) -> None:
    bank = reopen()
    for agent, expected in EXPECTED["found"].items():
        hits = bank.agent(agent).search("who is a scammer?", 4)
        assert [[hit.memory.id, hit.score.hex()] for hit in hits] == expected


def test_pinned_memories_are_hot_the_others_warm_and_all_are_active_unused_facts(
    reopen: Open,
) -> None:
    bank = reopen()
    for agent in bank.agents():
        for memory in bank.agent(agent).all():
            hot = memory.tier is Tier.PINNED
            assert memory.temperature is (Temperature.HOT if hot else Temperature.WARM)
            assert memory[8:10] == ("fact", ())
            assert memory[11:] == (Retention.ACTIVE, None, 0, None, 0.5)


def test_what_was_deleted_stays_gone(reopen: Open) -> None:
    bank = reopen()
    assert bank.agent("alice").find(6) is None
    assert bank.agent("bob").find(4) is None
    assert bank.agent("bob").add("new").sequence == 6  # its number is not given again


def test_it_goes_on_with_all_that_is_new_and_reopens_the_same(reopen: Open) -> None:
    bank = reopen()
    alice = bank.agent("alice")
    cold, archived, deleted, forgotten, *_ = [
        each for each in alice.all() if each.tier is not Tier.PINNED
    ]
    bank.advance(9)
    alice.demote(cold.id, "cold")
    alice.archive(archived.id)
    alice.delete(deleted.id)
    alice.forget(forgotten.id)
    alice.add("hot", kind="preference", tags=["x"], temperature="hot", ttl=30)
    assert alice.recall(cold.content).items[0].id == cold.id
    bank.compact()
    before = bank.state_hash(), [tuple(each) for each in alice.all()]
    bank = reopen()
    alice = bank.agent("alice")
    assert (bank.state_hash(), [tuple(each) for each in alice.all()]) == before
    assert alice.get(archived.id).retention is Retention.ARCHIVED
    assert alice.restore(deleted.id).content == deleted.content
    assert alice.find(forgotten.sequence) is None


def test_opening_it_a_second_time_upgrades_nothing_more(reopen: Open, old: Path) -> None:
    before = reopen().state_hash()
    assert value(old, "PRAGMA user_version") == 5
    assert reopen().state_hash() == before


def test_with_and_without_a_snapshot_it_has_one_state(tmp_path: Path) -> None:
    hashes = set()
    for name in SHA256:
        folder = tmp_path / name
        folder.mkdir()
        packed = (GOLDEN / f"{name}.db.gz").read_bytes()
        (folder / "journal.db").write_bytes(gzip.decompress(packed))
        with MemoryBank.open(folder) as bank:
            hashes.add(bank.state_hash())
    assert len(hashes) == 1


@pytest.mark.usefixtures("snapshots_on_close")
def test_a_snapshot_of_today_takes_the_place_of_the_old(reopen: Open, old: Path) -> None:
    bank = reopen()
    bank.agent("alice").add("new", temperature="cold")
    before = bank.state_hash()
    assert reopen().state_hash() == before
    assert value(old, "SELECT count(*) FROM snapshots") == 2


def test_its_past_can_be_looked_at(reopen: Open, old: Path) -> None:
    reopen()
    with MemoryBank.at(old, 3) as past:
        texts = [memory.content for memory in past.agent("alice").all()]
        assert len(texts) == 6
        assert "a rumour" not in texts
        assert past.tick == 3
        assert past.agent("bob").count("pinned") == 1


def test_its_past_can_be_looked_at_before_it_was_ever_opened(old: Path) -> None:
    before = (old / "journal.db").read_bytes()
    with MemoryBank.at(old) as copy:
        assert len(copy.agent("alice").all()) == 7
    assert (old / "journal.db").read_bytes() == before  # the copy was upgraded, not the bank


def test_a_checkpoint_of_it_restores(reopen: Open, tmp_path: Path) -> None:
    bank = reopen()
    bank.checkpoint(tmp_path / "now.tmck")
    with MemoryBank.restore(tmp_path / "now.tmck", tmp_path / "other") as other:
        assert other.state_hash() == bank.state_hash()


def test_damage_to_an_old_snapshot_is_found_and_the_journal_left_as_it_was(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "bank"
    folder.mkdir()
    packed = (GOLDEN / "journal-2-snapshot.db.gz").read_bytes()
    (folder / "journal.db").write_bytes(gzip.decompress(packed))
    change(folder, "UPDATE snapshots SET next_sequence = next_sequence + 1 WHERE agent = 'bob'")
    with pytest.raises(BankDamaged, match="bob"):
        MemoryBank.open(folder)
    assert value(folder, "PRAGMA user_version") == 2


def test_damage_to_an_old_commit_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    folder.mkdir()
    packed = (GOLDEN / "journal-2.db.gz").read_bytes()
    (folder / "journal.db").write_bytes(gzip.decompress(packed))
    change(folder, "UPDATE commits SET events = replace(events, 'bob', 'eve') WHERE id = 5")
    with pytest.raises(BankDamaged, match="commit 5"):
        MemoryBank.open(folder)


def test_a_format_before_that_is_refused_with_its_number(old: Path) -> None:
    database = sqlite3.connect(old / "journal.db")
    database.execute("PRAGMA user_version = 1")
    database.close()
    with pytest.raises(BankDamaged, match="format 1"):
        MemoryBank.open(old)
