"""A bank that is given another embedder is as if it always had it."""

import asyncio
import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agents.simulation.kept_ticks import keep_tick
from asking import asked
from embedders import Counting, FromFunction, Noise
from plain_mem0 import assert_store_is_exact
from tiermem import AsyncMemoryBank, BankError, BankLocked, EmbedderError, MemoryBank, TierMemError
from tiermem.errors import BankNotFound

MANUAL = {"sync": "manual"}
CHANGES = (
    ("archive",),
    ("delete",),
    ("restore",),
    ("demote", "cold"),
    ("set_tier", "low"),
    ("forget",),
    ("update",),
    ("advance",),
)
OFFLINE = "offline/wordllama-l2-supercat-256"


def opened(folder: Path, embedder: Any = None) -> MemoryBank:
    return MemoryBank.open(folder, embedder=embedder, storage=MANUAL)


def live(bank: MemoryBank, seed: int) -> None:
    """Random calls that end with memories in every tier, temperature and retention."""
    chance, ids = random.Random(seed), list[tuple[str, str]]()
    for number in range(60):
        agent, kind = bank.agent(chance.choice("ab")), chance.random()
        if kind < 0.5 or not ids:
            tier = chance.choice(("normal", "critical", "pinned"))
            ids.append((agent.agent_id, agent.add(f"text {number} {seed}", tier).id))
            continue
        owner, memory_id = chance.choice(ids)
        agent = bank.agent(owner)
        name, *more = chance.choice(CHANGES)
        try:
            if name == "advance":
                bank.advance(bank.tick + 1)
            elif name == "update":
                ids.append((owner, agent.update(memory_id, f"new {number} {seed}").id))
            else:
                asked(agent, name, memory_id, *more)
        except TierMemError:
            continue  # such as a memory that is gone


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", range(3))
def test_it_is_as_if_the_bank_always_had_the_embedder(tmp_path: Path, seed: int) -> None:
    for name, embedder in (("changed", None), ("always", Noise())):
        with opened(tmp_path / name, embedder) as bank:
            live(bank, seed)
            half = bank.tick // 2
    done = MemoryBank.reembed(tmp_path / "changed", Noise())
    assert (done.before, done.after) == (OFFLINE, "test/noise-32")
    with (
        opened(tmp_path / "changed", Noise()) as changed,
        opened(tmp_path / "always", Noise()) as always,
    ):
        assert changed.state_hash() == always.state_hash()
        for bank in (changed, always):
            live(bank, seed + 50)
        assert changed.state_hash() == always.state_hash()
    with (
        MemoryBank.at(tmp_path / "changed", half, embedder=Noise()) as then,
        MemoryBank.at(tmp_path / "always", half, embedder=Noise()) as ever,
    ):
        assert then.state_hash() == ever.state_hash()


@pytest.mark.slow
def test_a_bank_that_was_restored_from_a_checkpoint_changes_as_well(tmp_path: Path) -> None:
    for name, embedder in (("changed", None), ("always", Noise())):
        with opened(tmp_path / f"first-{name}", embedder) as bank:
            live(bank, 1)
            bank.checkpoint(tmp_path / f"{name}.tmck")
        options = {"embedder": embedder, "storage": MANUAL}
        with MemoryBank.restore(tmp_path / f"{name}.tmck", tmp_path / name, **options) as bank:
            live(bank, 2)
        with opened(tmp_path / name, embedder) as bank:  # with a later snapshot
            live(bank, 3)
    MemoryBank.reembed(tmp_path / "changed", Noise())
    with (
        opened(tmp_path / "changed", Noise()) as changed,
        opened(tmp_path / "always", Noise()) as always,
    ):
        assert changed.state_hash() == always.state_hash()


def test_ids_tiers_and_history_stay(tmp_path: Path) -> None:
    with opened(tmp_path / "bank") as bank:
        agent = bank.agent("ann")
        first = agent.add("tea", "pinned", {"day": 3}, value={"a": [1]})
        agent.add("sad", key="mood")
        agent.add("glad", key="mood")
        before = agent.all()
    MemoryBank.reembed(tmp_path / "bank", {"provider": "none"})
    with opened(tmp_path / "bank") as bank:
        agent = bank.agent("ann")
        assert agent.all() == before
        assert agent.get(first.id).value == {"a": [1]}
        assert [each.content for each in agent.history("mood")] == ["sad", "glad"]
        assert bank.status().embedder == "none"
        assert [hit.memory.content for hit in agent.search("glad")][1] == "glad"


def test_a_dry_run_changes_nothing_and_says_how_far_the_embedders_agree(tmp_path: Path) -> None:
    with opened(tmp_path / "bank") as bank:
        bank.agent("ann").add_many([f"text {number}" for number in range(40)])
        whole = bank.state_hash()
        done = MemoryBank.reembed(tmp_path / "bank", Noise(), dry_run=True)  # it is open
        assert done.texts == done.compared == 40
        assert done.agreement is not None
        assert 0 < done.agreement < 0.6
        assert bank.state_hash() == whole
        same = FromFunction(bank.engine.embedder.units, 256, name="test/same")
        alike = MemoryBank.reembed(tmp_path / "bank", same, dry_run=True).agreement
        assert alike is not None
        assert alike > 0.95
    assert not (tmp_path / "bank" / "reembed.db").exists()


def test_texts_that_have_new_vectors_are_not_embedded_again(tmp_path: Path) -> None:
    with opened(tmp_path / "bank") as bank:
        bank.agent("ann").add_many([f"text {number}" for number in range(600)])
        whole = bank.state_hash()

    class Failing(Counting):
        def embed(self, texts: Any, /) -> Any:
            if len(self.batches) == 1:
                raise RuntimeError("no tokens left")
            return super().embed(texts)

    with pytest.raises(EmbedderError, match="no tokens left"):
        MemoryBank.reembed(tmp_path / "bank", Failing())
    with opened(tmp_path / "bank") as bank:
        assert bank.state_hash() == whole
    rest = Counting()
    steps: list[tuple[int, int]] = []
    MemoryBank.reembed(tmp_path / "bank", rest, progress=lambda *step: steps.append(step))
    assert len(rest.texts) == 600 - 256
    assert steps[-1] == (600, 600)
    assert not (tmp_path / "bank" / "reembed.db").exists()
    again = Counting()
    assert MemoryBank.reembed(tmp_path / "bank", again).texts == 0
    assert again.texts == []


def test_new_vectors_of_another_embedder_are_not_used(tmp_path: Path) -> None:
    with opened(tmp_path / "bank") as bank:
        bank.agent("ann").add("tea")
    with sqlite3.connect(tmp_path / "bank" / "reembed.db") as database:
        database.execute("CREATE TABLE of (name TEXT)")
        database.execute("INSERT INTO of VALUES ('another 4')")
        database.execute("CREATE TABLE vectors (hash BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
    database.close()
    fresh = Counting()
    MemoryBank.reembed(tmp_path / "bank", fresh)
    assert fresh.texts == ["tea"]


def test_the_vectors_of_an_embedder_that_is_not_reproducible_are_kept(tmp_path: Path) -> None:
    with opened(tmp_path / "bank") as bank:
        bank.agent("ann").add("tea")
    MemoryBank.reembed(tmp_path / "bank", Counting(reproducible=False))
    later = Counting(reproducible=False)
    with opened(tmp_path / "bank", later) as bank:
        bank.agent("bob").add("tea")
    assert later.texts == []


@pytest.mark.slow
def test_mem0s_store_is_made_anew(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank") as bank:
        live(bank, 4)
    MemoryBank.reembed(tmp_path / "bank", Noise())
    with MemoryBank.open(tmp_path / "bank", embedder=Noise()) as bank:
        bank.sync()
        assert_store_is_exact(bank)


@pytest.mark.slow
def test_a_store_with_vectors_of_the_former_embedder_stops_no_bank(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank") as bank:
        ids = [bank.agent("ann").add(f"tea {number}").id for number in range(3)]
    MemoryBank.reembed(tmp_path / "bank", Noise())
    shutil.copytree(tmp_path / "bank", tmp_path / "copy", copy_function=shutil.copyfile)
    with MemoryBank.open(tmp_path / "copy", embedder=Noise()) as bank:
        bank.agent("ann").forget(ids[0])
        bank.sync()
        assert_store_is_exact(bank)
    assert [path.name for path in (tmp_path / "copy").glob("chroma*")] == ["chroma"]


def test_a_model_with_encode_is_an_embedder(tmp_path: Path) -> None:
    class Model:
        name = "mini"

        def encode(self, sentences: list[str]) -> list[list[float]]:
            return [[float(len(text)), 1.0, 0.0] for text in sentences]

    with opened(tmp_path / "bank") as bank:
        bank.agent("ann").add("tea")
    assert MemoryBank.reembed(tmp_path / "bank", Model()).after == "encode/mini"  # type: ignore[arg-type]
    with opened(tmp_path / "bank", Model()) as bank:
        assert bank.status().embedder == "encode/mini"
        assert len(bank.agent("ann").search("tea")) == 1


def test_what_can_not_be_done_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BankNotFound):
        MemoryBank.reembed(tmp_path / "none", Noise())
    with opened(tmp_path / "bank") as bank:
        bank.agent("ann").add("tea")
        with pytest.raises(BankLocked):
            MemoryBank.reembed(tmp_path / "bank", Noise())
    with pytest.raises(EmbedderError, match="encode"):
        MemoryBank.reembed(tmp_path / "bank", 3)  # type: ignore[arg-type]
    with pytest.raises(TierMemError, match="nonsense"):
        MemoryBank.reembed(tmp_path / "bank", "nonsense")
    with opened(tmp_path / "run") as bank, bank.transaction():
        bank.agent("ann").add("tea")
        keep_tick(bank, {"tick": 1}, None)
    with pytest.raises(BankError, match="bank of a run"):
        MemoryBank.reembed(tmp_path / "run", Noise())


def test_an_async_program_can_do_it(tmp_path: Path) -> None:
    with opened(tmp_path / "bank") as bank:
        bank.agent("ann").add("tea")
    done = asyncio.run(AsyncMemoryBank.reembed(tmp_path / "bank", "none"))
    assert done.after == "none"
