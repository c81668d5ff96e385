"""An import gives new ids: what names a memory by its former id names the same memory after it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank, Tier
from agents.engine.read import nth
from agents.exchange.importing import store_rows
from agents.exchange.row_files import Row, exported
from embedders import Counting

Command = Callable[..., Any]

MANUAL = {"sync": "manual"}


def opened(name: str, **options: Any) -> MemoryBank:
    return MemoryBank.open(name, storage=MANUAL, **options)


@pytest.fixture
def other(tiermem: Command) -> Path:
    """An empty bank, which gives the same ids as any other with its seed."""
    assert tiermem("init", "other", "--set", "storage.sync=manual").code == 0
    return Path("other")


def moved(tiermem: Command, *options: str) -> str:
    """Export the bank ``crew``, and import the file into ``other``; what the import says."""
    assert tiermem("store", "export", "crew", "--out", "out.jsonl", *options).code == 0
    done = tiermem("store", "import", "other", "out.jsonl")
    assert done.code == 0, done.err
    return str(done.out)


def texts(bank: MemoryBank, agent: str) -> list[str]:
    return [memory.content for memory in bank.agent(agent).all()]


def test_a_later_version_supersedes_no_other_memory(tiermem: Command, other: Path) -> None:
    with opened("crew") as bank:
        alice = bank.agent("alice")
        code = alice.add("the door code is 1234")
        alice.add("Bob likes tea")
        alice.update(code.id, "the door code is 9999")
        alice.add("it rains")
    moved(tiermem)
    with opened("other") as bank:
        alice = bank.agent("alice")
        assert texts(bank, "alice") == ["Bob likes tea", "the door code is 9999", "it rains"]
        tea, code, _ = alice.all()
        assert [each.content for each in alice.history(tea.id)] == ["Bob likes tea"]
        alice.update(code.id, "the door code is 5555")
        assert texts(bank, "alice") == ["Bob likes tea", "it rains", "the door code is 5555"]


def test_versions_stay_together_with_what_is_archived(tiermem: Command, other: Path) -> None:
    said = ["the code is 1", "the code is 2", "the code is 3"]
    with opened("other") as bank:
        bank.agent("alice").add("is here before")
    with opened("crew") as bank:
        alice = bank.agent("alice")
        first = alice.add(said[0])
        second = alice.update(first.id, said[1])
        alice.add("it rains")
        alice.update(second.id, said[2])
    moved(tiermem, "--all")
    with opened("other") as bank:
        alice = bank.agent("alice")
        assert texts(bank, "alice") == ["is here before", "it rains", said[2]]
        last = alice.all()[-1]
        assert [each.content for each in alice.history(last.id)] == said


def test_versions_whose_first_is_gone_stay_together(tiermem: Command, other: Path) -> None:
    with opened("crew") as bank:
        alice = bank.agent("alice")
        first = alice.add("the code is 1")
        second = alice.update(first.id, "the code is 2")
        alice.update(second.id, "the code is 3")
        alice.forget(first.id)
    moved(tiermem, "--all")
    with opened("other") as bank:
        alice = bank.agent("alice")
        (last,) = alice.all()
        found = [each.content for each in alice.history(last.id)]
        assert found == ["the code is 2", "the code is 3"]


def test_a_key_of_ones_own_is_kept(tiermem: Command, other: Path) -> None:
    with opened("crew") as bank:
        bank.agent("alice").add("eats no fish", key="diet")
    with opened("other") as bank:
        bank.agent("alice").add("eats no meat", key="diet")
    moved(tiermem)
    with opened("other") as bank:
        assert texts(bank, "alice") == ["eats no fish"]
        assert bank.agent("alice").all()[0].key == "diet"


@pytest.mark.parametrize("seed", [0, 9])
def test_evidence_names_the_same_memories(tiermem: Command, other: Path, seed: int) -> None:
    with opened("crew", seed=seed) as bank:
        alice = bank.agent("alice")
        gone = alice.add("Bob was late")
        alice.add("it rains")
        kept = alice.add("Bob was late again")
        alice.add("Bob is late often", kind="insight", evidence=[gone.id, kept.id])
        alice.update(gone.id, retention="archived")
    moved(tiermem)
    with opened("other") as bank:
        alice = bank.agent("alice")
        rain, late, insight = alice.all()
        unknown, known = insight.evidence
        assert known == late.id
        assert unknown not in {rain.id, late.id, insight.id}
        # It has the id of what was archived, with the same seed.
        assert nth(alice.engine, "alice", 1) == rain


def test_what_was_told_leads_to_its_teller_and_is_retracted(tiermem: Command, other: Path) -> None:
    with opened("crew") as bank:
        zoe = bank.agent("zoe")  # after its listeners in the order of names
        zoe.add("it rains")
        rumor = zoe.add("the bridge is closed")
        copy = zoe.social.tell("bob", rumor.id).memory_id
        bank.agent("bob").social.tell("alice", copy)
    moved(tiermem)
    with opened("other") as bank:
        (heard,) = bank.agent("alice").all()
        chain = bank.chain(heard)
        assert [each.agent_id for each in chain.memories] == ["alice", "bob", "zoe"]
        assert chain.is_whole
        bank.agent("zoe").social.retract(chain.memories[-1].id, "the bridge is open")
        for name in ("zoe", "bob", "alice"):
            assert "the bridge is open" in texts(bank, name)
            assert "the bridge is closed" not in texts(bank, name)


def test_a_teller_that_was_not_exported_is_missing(tiermem: Command, other: Path) -> None:
    with opened("crew") as bank:
        zoe = bank.agent("zoe")
        zoe.social.tell("bob", zoe.add("the bridge is closed").id)
    with opened("other") as bank:
        bank.agent("zoe").add("something else")
    moved(tiermem, "--agent", "bob")
    with opened("other") as bank:
        (heard,) = bank.agent("bob").all()
        chain = bank.chain(heard)
        assert chain.memories == (heard,)
        assert not chain.is_whole


def test_a_row_without_a_tier_keeps_the_tier_of_its_key(tiermem: Command, other: Path) -> None:
    with opened("other") as bank:
        bank.agent("alice").add("eats no meat", "pinned", key="diet")
    row = {"agent_id": "alice", "content": "eats no eggs", "metadata": {"memory_key": "diet"}}
    Path("row.jsonl").write_text(json.dumps(row))
    done = tiermem("store", "import", "other", "row.jsonl")
    assert done.code == 0
    assert "lower tier" not in done.out
    with opened("other") as bank:
        (memory,) = bank.agent("alice").all()
        assert (memory.content, memory.tier) == ("eats no eggs", Tier.PINNED)


def test_a_pinned_memory_past_its_end_stops_no_import_and_no_add(tiermem: Command) -> None:
    for name in ("crew", "other"):
        with opened(name, memory={"max_pinned": 1}) as bank:
            alice = bank.agent("alice")
            alice.pin(alice.add("an old pin", ttl=3).id)
            bank.advance(10)
    row = {"agent_id": "alice", "content": "a new pin", "tier": "pinned"}
    Path("row.jsonl").write_text(json.dumps(row))
    done = tiermem("store", "import", "other", "row.jsonl")
    assert (done.code, done.err) == (0, "")
    done = tiermem("add", "crew", "--agent", "alice", "--tier", "pinned", "a new pin")
    assert (done.code, done.err) == (0, "")
    for name in ("crew", "other"):
        with opened(name, memory={"max_pinned": 1}) as bank:
            assert texts(bank, "alice") == ["a new pin"]


def test_a_version_that_is_not_in_the_file_is_no_later_one(tiermem: Command, other: Path) -> None:
    with opened("crew") as bank:
        bob = bank.agent("bob")
        shop = bob.add("the shop is closed")
        bob.social.tell("carl", shop.id)  # after bob in the order of names
        bob.add("Dan is poor", kind="insight", evidence=[shop.id])
        bob.update(shop.id, "the shop is open")
    moved(tiermem)
    with opened("other") as bank:
        insight, is_open = bank.agent("bob").all()
        assert is_open.content == "the shop is open"
        assert is_open.id not in insight.evidence
        assert bank.agent("bob").links(insight.id).flags
        (heard,) = bank.agent("carl").all()
        chain = bank.chain(heard)
        assert (chain.memories, chain.is_whole) == ((heard,), False)


def test_rows_that_are_left_out_change_no_other_row(tiermem: Command) -> None:
    with opened("crew") as bank:
        alice = bank.agent("alice")
        alice.update(alice.add("version 1").id, "version 2")
    assert tiermem("store", "export", "crew", "--out", "good.jsonl").code == 0
    bad = {"content": "a pin is hot", "temperature": "cold", "metadata": {"memory_key": "k"}}
    rows = Path("good.jsonl").read_text() + json.dumps({"agent_id": "alice", **bad})
    Path("one_bad.jsonl").write_text(rows)
    found = []
    for name in ("good", "one_bad"):
        with opened(f"into_{name}") as bank:
            bank.agent("alice").add("a pin", "pinned", key="k")
        done = tiermem("store", "import", f"into_{name}", f"{name}.jsonl", "--skip-bad")
        assert done.code == 0, done.err
        with opened(f"into_{name}") as bank:
            found.append((bank.state_hash(), [each.key for each in bank.agent("alice").all()]))
    assert "1 row" in done.out
    assert found[0] == found[1]
    assert found[0][1] == ["k", None]


@pytest.mark.parametrize("text", ["ticket 12", "[]", "{}", '["a", 1]', json.dumps(["x" * 99] * 40)])
def test_metadata_that_looks_like_evidence_is_kept(
    tiermem: Command, other: Path, text: str
) -> None:
    with opened("crew") as bank:
        bank.agent("alice").add("it rains", metadata={"memory_evidence": text})
    moved(tiermem)
    with opened("other") as bank:
        assert bank.agent("alice").all()[0].metadata == {"memory_evidence": text}


def test_a_source_that_is_no_text_is_refused(tiermem: Command, other: Path) -> None:
    source = json.dumps(["\ud800", 0, "id", "bob", "id", 1])
    row = {"agent_id": "alice", "content": "x", "metadata": {"memory_source": source}}
    Path("row.jsonl").write_text(json.dumps(row))
    done = tiermem("store", "import", "other", "row.jsonl")
    assert done.code != 0
    assert "lone surrogate" in done.err
    assert "Traceback" not in done.err


def test_rows_that_name_memories_are_embedded_together() -> None:
    with MemoryBank.ephemeral() as bank:
        bob = bank.agent("bob")
        for number in range(20):
            bob.social.tell("carl", bob.add(f"fact {number}", key=f"key {number}").id)
        bob.update(bob.all()[0].id, "fact 0 again")
        given = list(exported(bank, bank.agents(), archived=True))
    embedder = Counting()
    with MemoryBank.ephemeral(embedder=embedder) as bank:
        store_rows(bank, [Row(f"row {place}", row) for place, row in enumerate(given)])
        assert bank.agent("bob").count() == bank.agent("carl").count() == 20
        assert len(bank.chain(bank.agent("carl").all()[5]).memories) == 2
    assert len(embedder.batches) <= 3
