"""What is stored under a key: the same key again supersedes the former, and history keeps it."""

import json
from pathlib import Path

import pytest

from agents import (
    AgentMemory,
    InvalidContent,
    InvalidInput,
    InvalidMetadata,
    Memory,
    MemoryBank,
    MemoryNotFound,
    Retention,
    TierFull,
)
from agents.bank.history import branch, rewind
from agents.exchange.importing import store_rows
from agents.exchange.row_files import Row, exported
from asking import asker
from banks import MANUAL, MakeBank, contents, everything, undone, value
from embedders import Directions
from plain_mem0 import assert_store_is_exact

CAPS = {"max_pinned": 2, "max_critical": 2}


def texts(memories: list[Memory]) -> list[str]:
    return [memory.content for memory in memories]


def test_the_same_key_again_supersedes_the_former(bank: MemoryBank, alice: AgentMemory) -> None:
    former = alice.add("I eat meat <1 0>", key="diet")
    bank.advance(3)
    now = alice.add("I am vegan <1 0>", key="diet")
    assert alice.all() == [now]
    assert [hit.memory for hit in alice.search("<1 0>", include_cold=True)] == [now]
    assert alice.get(former.id).retention is Retention.ARCHIVED
    assert (now.key, former.key) == ("diet", "diet")
    history = alice.history("diet")
    assert [(each.id, each.created_tick) for each in history] == [(former.id, 0), (now.id, 3)]


def test_keys_are_an_agents_own(bank: MemoryBank, alice: AgentMemory) -> None:
    alice.add("I eat meat", key="diet")
    bank.agent("bob").add("I eat fish", key="diet")
    alice.add("plain")
    alice.add("other", key="Diet")
    assert texts(alice.all()) == ["I eat meat", "plain", "other"]
    assert texts(bank.agent("bob").history("diet")) == ["I eat fish"]


def test_the_tier_stays_unless_one_is_given(alice: AgentMemory) -> None:
    alice.add("a", "important", key="k")
    assert alice.add("b", key="k").tier.name == "IMPORTANT"
    assert alice.add("c", "low", key="k").tier.name == "LOW"
    assert alice.add("d", None, key="k").tier.name == "LOW"
    assert alice.add("e", None).tier.name == "NORMAL"


def test_a_pin_needs_no_unpinning_and_its_successor_has_its_place(make_bank: MakeBank) -> None:
    bank = make_bank(memory=CAPS)
    alice = bank.agent("alice")
    alice.add("first", "pinned", key="k")
    bank.advance(1)
    alice.add("second", "pinned")
    bank.advance(2)
    now = alice.add("first again", key="k")
    assert texts(alice.get_pinned_memories()) == ["first again", "second"]
    assert (now.tier_tick, now.created_tick) == (0, 2)
    former = alice.history("k")[0]
    assert (former.tier.name, former.temperature.name) == ("NORMAL", "WARM")
    alice.add("third", "pinned")
    assert texts(alice.get_pinned_memories()) == ["second", "third"]
    assert texts(alice.all("critical")) == ["first again"]


def test_a_full_tier_that_rejects_takes_a_successor(make_bank: MakeBank) -> None:
    alice = make_bank(memory={**CAPS, "on_tier_full": "reject"}).agent("alice")
    alice.add("a", "pinned", key="k")
    alice.add("b", "pinned")
    alice.add("c", key="k")
    assert texts(alice.get_pinned_memories()) == ["c", "b"]
    with pytest.raises(TierFull):
        alice.add("d", "pinned", key="other")
    alice.add("e", "low", key="other")
    with pytest.raises(TierFull):
        alice.add("f", "pinned", key="other")
    assert texts(alice.history("other")) == ["e"]
    assert texts(alice.all("low")) == ["e"]


@pytest.mark.parametrize("temperature", ["hot", "warm", "cold"])
def test_a_former_of_any_temperature_leaves(alice: AgentMemory, temperature: str) -> None:
    alice.add("a <1 0>", "critical", key="k", temperature=temperature)
    alice.add("b <1 0>", key="k")
    assert texts(alice.all()) == ["b <1 0>"]
    assert texts(alice.all("critical")) == ["b <1 0>"]
    assert texts([hit.memory for hit in alice.search("<1 0>", include_cold=True)]) == ["b <1 0>"]


def test_a_batch_supersedes_in_its_order(bank: MemoryBank) -> None:
    made = bank.add_many(
        [
            ("alice", "a", "pinned", None, {"key": "k"}),
            ("alice", "plain"),
            ("bob", "b", None, None, {"key": "k"}),
            ("alice", "c", None, {"n": 1}, {"key": "k"}),
        ]
    )
    alice = bank.agent("alice")
    assert texts(list(made)) == ["a", "plain", "b", "c"]
    assert texts(alice.all()) == ["plain", "c"]
    assert alice.history("k")[1].metadata["n"] == 1
    assert alice.history("k")[1].tier.name == "PINNED"
    assert texts(bank.agent("bob").all()) == ["b"]


def test_an_update_keeps_all_but_the_text(bank: MemoryBank, alice: AgentMemory) -> None:
    old = alice.add(
        "a", "important", {"n": 1}, kind="decision", tags=["x"], temperature="cold", ttl=9
    )
    bank.advance(2)
    new = alice.update(old.id, "b")
    same = {"id": old.id, "content": "a", "sequence": 1, "created_tick": 0, "tier_tick": 0}
    assert new._replace(**same, metadata={"n": 1}) == old
    assert new.metadata == {"n": 1, "memory_key": old.id}
    newest = alice.update(new.id, "c", "low", {"n": 2})
    assert newest.metadata == {"n": 2, "memory_key": old.id}
    assert newest.tier.name == "LOW"
    for name in (old.id, new.id, newest.id):
        assert texts(alice.history(name)) == ["a", "b", "c"]
    assert alice.all() == [newest]


def test_an_update_of_a_key_is_the_next_under_it(alice: AgentMemory) -> None:
    memory = alice.add("a", "pinned", key="k")
    new = alice.update(memory.id, "b")
    assert (new.key, new.tier.name) == ("k", "PINNED")
    assert texts([alice.add("c", key="k"), *alice.history("k")]) == ["c", "a", "b", "c"]


def test_what_can_not_be_updated(alice: AgentMemory) -> None:
    old = alice.add("a", key="k")
    new = alice.add("b", key="k")
    with pytest.raises(InvalidInput, match=f"update {new.id}"):
        alice.update(old.id, "c")
    alice.update(new.id, retention="archived")
    with pytest.raises(InvalidInput, match="restore"):
        alice.update(new.id, "c")
    with pytest.raises(MemoryNotFound):
        alice.update("no id", "c")
    alice.update(new.id, retention="active")
    with pytest.raises(InvalidInput, match="keeps the key"):
        alice.update(new.id, "c", metadata={"memory_key": "other"})
    for wrong in ({"tier": 0}, {"x": []}, "x"):
        with pytest.raises(InvalidMetadata):
            alice.update(new.id, "c", metadata=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidContent):
        alice.update(new.id, " ")
    assert alice.all() == [new]
    alice.update(new.id, retention="archived")
    assert alice.count() == 0


def test_a_note_is_not_superseded(open_bank: MakeBank) -> None:
    alice = open_bank().agent("alice")
    alice.notes.write("MEMORY.md", "Never trade fish.")
    (chunk,) = alice.all()
    with pytest.raises(InvalidInput, match="edit the note"):
        alice.update(chunk.id, "b")
    with pytest.raises(InvalidInput, match="edit the note"):
        alice.add("b", key=chunk.id)
    assert alice.all() == [chunk]


@pytest.mark.parametrize("key", ["", " ", 5, True, "x" * 257, ["k"], b"k", "nul \0"], ids=repr)
def test_a_bad_key_is_refused(alice: AgentMemory, key: object) -> None:
    with pytest.raises(InvalidInput, match="key"):
        alice.add("a", key=key)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="key"):
        alice.history(key)  # type: ignore[arg-type]
    assert alice.count() == 0


def test_the_metadata_may_name_the_key(alice: AgentMemory) -> None:
    first = alice.add("a", metadata={"memory_key": "k"})
    alice.add("b", None, first.metadata)
    assert texts(alice.all()) == ["b"]
    with pytest.raises(InvalidMetadata, match="memory_key"):
        alice.add("c", metadata={"memory_key": "k"}, key="other")


def test_a_key_without_memories_has_no_history(alice: AgentMemory) -> None:
    assert alice.history("diet") == []


def test_only_one_memory_is_active_under_a_key(alice: AgentMemory) -> None:
    old = alice.add("a", key="k")
    new = alice.add("b", key="k")
    for call in (asker(alice, "restore"), alice.pin):
        with pytest.raises(InvalidInput, match=new.id):
            call(old.id)
    alice.delete(old.id)
    with pytest.raises(InvalidInput, match=new.id):
        alice.update(old.id, retention="active")
    alice.update(new.id, retention="archived")
    assert alice.update(old.id, retention="active").content == "a"
    with pytest.raises(InvalidInput, match=old.id):
        alice.update(new.id, retention="active")
    assert texts([alice.add("c", key="k"), *alice.history("k")]) == ["c", "a", "b", "c"]


def test_what_is_gone_is_not_superseded(bank: MemoryBank, alice: AgentMemory) -> None:
    alice.delete(alice.add("a", "low", key="k").id)
    assert alice.add("b", key="k", ttl=2).tier.name == "NORMAL"
    bank.advance(5)
    now = alice.add("c", key="k")
    assert texts(alice.all()) == texts(alice.history("k")) == ["c"]
    alice.forget(now.id)
    assert alice.history("k") == []


@pytest.mark.usefixtures("snapshots_on_close")
@pytest.mark.parametrize("tier", ["pinned", "critical", "normal"])
def test_a_purged_version_changes_nothing_else(
    open_bank: MakeBank, tier: str, folder: Path
) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    former = alice.add("secret meat", tier, {"x": "secret too"}, key="k")
    bank.advance(4)
    alice.add("vegan", key="k")
    alice.forget(former.id)
    bank.vacuum()
    before = everything(bank)
    bank = open_bank()
    assert everything(bank) == before
    assert texts(bank.agent("alice").history("k")) == ["vegan"]
    bank.close()
    assert b"secret" not in (folder / "journal.db").read_bytes()


def test_it_is_one_commit(open_bank: MakeBank, folder: Path) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    alice.add("a", "pinned", key="k")
    before = value(folder, "SELECT count(*) FROM commits")
    alice.add("b", key="k")
    alice.update(alice.all()[0].id, "c")
    assert value(folder, "SELECT count(*) FROM commits") == before + 2


def test_an_undone_transaction_leaves_the_former(bank: MemoryBank, alice: AgentMemory) -> None:
    alice.add("a", "pinned", key="k")
    alice.add("cold", key="c", temperature="cold")
    before = everything(bank)
    with undone(bank):
        alice.add("b", key="k")
        alice.add("c", "low", key="k")
        alice.add("d", key="c")
        assert texts(alice.all()) == ["c", "d"]
    assert everything(bank) == before
    assert texts(alice.history("k")) == ["a"]


@pytest.mark.usefixtures("snapshots_on_close")
def test_keys_survive_reopening_checkpoints_branches_and_the_past(
    open_bank: MakeBank, folder: Path, tmp_path: Path
) -> None:
    bank = open_bank(memory=CAPS)
    for tick, text in enumerate("abc"):
        bank.advance(tick)
        bank.agent("alice").add(text, "pinned" if tick == 0 else None, key="k")
        bank.agent("alice").add(f"cold {text}", key="c", temperature="cold")
    before = everything(bank)
    bank.checkpoint(tmp_path / "now.tmck")
    bank = open_bank()
    assert everything(bank) == before
    bank.close()
    branch(folder, 1, tmp_path / "branch")
    restored = MemoryBank.restore(
        tmp_path / "now.tmck", tmp_path / "restored", embedder=Directions(), storage=MANUAL
    )
    with restored as bank:
        assert everything(bank) == before
        bank.agent("alice").add("d", key="k")
        assert texts(bank.agent("alice").history("k")) == ["a", "b", "c", "d"]
    with MemoryBank.open(tmp_path / "branch", embedder=Directions(), storage=MANUAL) as bank:
        assert texts(bank.agent("alice").history("k")) == ["a", "b"]
        assert sorted(contents(bank)) == ["b", "cold b"]
    with MemoryBank.at(folder, 0, embedder=Directions()) as bank:
        assert texts(bank.agent("alice").history("c")) == ["cold a"]
    rewind(folder, 1)
    assert texts(open_bank().agent("alice").history("k")) == ["a", "b"]


def test_an_export_and_an_import_keep_keys_and_history(make_bank: MakeBank) -> None:
    alice = make_bank().agent("alice")
    for text in "abc":
        alice.add(text, "pinned" if text == "a" else None, key="k")
    other = alice.add("x", key="o")
    alice.update(alice.add("y", key="o").id, retention="archived")
    alice.update(other.id, retention="active")
    source = MemoryBank(alice.engine)
    rows = [dict(row) for row in exported(source, ["alice"], archived=True)]
    copy = make_bank()
    given = [Row(f"row {n}", json.loads(json.dumps(row))) for n, row in enumerate(rows)]
    assert store_rows(copy, given).archived == 3
    assert texts(copy.agent("alice").history("k")) == ["a", "b", "c"]
    assert texts(copy.agent("alice").all()) == texts(alice.all()) == ["c", "x"]
    assert copy.agent("alice").history("k")[-1].tier.name == "PINNED"


@pytest.mark.slow
def test_mem0s_store_has_the_successor_alone(folder: Path) -> None:
    with MemoryBank.open(folder, embedder=Directions(), storage={"sync": "close"}) as bank:
        alice = bank.agent("alice")
        alice.add("a", "pinned", key="k")
        alice.add("cold a", key="c", temperature="cold")
        bank.sync()
        bank.advance(2)
        alice.add("b", key="k")
        alice.add("cold b", key="c", temperature="cold")
        alice.add("new")
        bank.sync()
        assert_store_is_exact(bank)
        assert sorted(contents(bank)) == ["b", "cold b", "new"]


def test_explain_names_the_successor(alice: AgentMemory) -> None:
    old = alice.add("a <1 0>", key="k")
    new = alice.add("b <1 0>", key="k")
    plain = alice.add("c <1 0>")
    later = alice.update(plain.id, "d <1 0>")
    alice.update(alice.add("e <1 0>").id, retention="archived")
    told = {each.memory.content[0]: each.reason for each in alice.explain("<1 0>")}
    assert told == {
        "a": f"superseded by {new.id}",
        "c": f"superseded by {later.id}",
        "b": "chosen",
        "d": "chosen",
        "e": "archived",
    }
    assert alice.get(old.id).retention is Retention.ARCHIVED
