"""All agents' memories are in one table, where each agent's rows lie together and may move."""

import itertools
import mmap
import os
import platform
import random
from contextlib import suppress
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import simsimd

from agents import MemoryBank
from agents.search import rank as scoring
from agents.simulation.kept_ticks import ticks_of
from agents.storage.columns.agent_columns import AgentColumns
from agents.storage.columns.table import ResidentTable
from agents.storage.embedding import products

NAMES = [f"agent_{number}" for number in range(7)]


def make() -> MemoryBank:
    return MemoryBank.ephemeral(preset="vector", seed=3)


def table_of(bank: MemoryBank) -> ResidentTable:
    return bank.engine.state.table


def texts(bank: MemoryBank) -> dict[str, list[str]]:
    return {name: [memory.content for memory in bank.agent(name).all()] for name in bank.agents()}


@pytest.mark.parametrize("together", [True, False])
def test_agents_that_grow_in_turns_keep_what_they_have(together) -> None:
    chance, expected = random.Random(5), dict[str, list[str]]()
    with make() as bank:
        for step in range(60):
            own = [(chance.choice(NAMES), f"memory {step} {n}") for n in range(chance.randrange(9))]
            for name, text in own:
                expected.setdefault(name, []).append(text)
            if together:
                bank.add_many(own)
            else:
                for name, text in own:
                    bank.agent(name).add(text)
            assert texts(bank) == {name: expected[name] for name in sorted(expected)}
        query = "memory 31 2"
        hits = bank.search_many([(name, query) for name in NAMES], limit=200)
        assert [{hit.memory.content for hit in own} for own in hits] == [
            set(expected[name]) for name in NAMES
        ]


def test_memories_of_many_agents_are_the_same_as_one_by_one() -> None:
    with make() as bank:
        for number, name in enumerate(NAMES):
            agent = bank.agent(name)
            agent.add("pinned", tier="pinned", tags=["a"])
            agent.add("with all", metadata={"n": number}, kind="decision", ttl=9)
            agent.add("hot", temperature="hot", tier="low")
            bank.advance(number + 1)
            agent.search("hot")
            agent.add("plain")
        blocks = [bank.engine.state.block(name) for name in NAMES]
        rows = np.array([block.start + row for block in blocks for row in range(4)])
        both = [[(b.agent_id, b.prefix)] * 4 for b in blocks]
        agents, prefixes = zip(*chain.from_iterable(both), strict=True)
        single = [tuple(m) for block in blocks for m in block.memories(range(4))]
        table = table_of(bank)
        together = table.memories(rows, table.numbers[rows], agents, prefixes)
        assert [tuple(m) for m in together] == single


def test_a_memory_that_is_not_plain_shows_all_that_it_has_among_many(tmp_path) -> None:
    """Whichever way it came: added, from a snapshot, from a checkpoint, back from the cold."""
    requests = [("alice", "tea"), ("bob", "tea")]

    def shown(bank):
        return [[(hit.memory.kind, dict(hit.memory.metadata)) for hit in hits]
                for hits in bank.search_many(requests)]  # fmt: skip

    for more in ({"metadata": {"n": 1}}, {"kind": "decision"}):
        expected = [[(more.get("kind", "fact"), more.get("metadata", {}))], [("fact", {})]]
        folder = tmp_path / "-".join(more)
        with MemoryBank.open(folder, preset="vector", storage={"sync": "manual"}) as bank:
            bank.add_many([("alice", "tea"), ("bob", "tea")])
            assert shown(bank) == [[("fact", {})], [("fact", {})]]
            alice = bank.agent("alice")
            alice.delete(alice.all()[0].id)
            kept = alice.add("tea", **more)
            assert shown(bank) == expected
            bank.checkpoint(folder / "checkpoint.tmck")
            bank.engine.ledger._snapshot_if(0)
        with MemoryBank.open(folder, preset="vector", storage={"sync": "manual"}) as bank:
            assert shown(bank) == expected
            bank.agent("alice").update(kept.id, temperature="cold")
            bank.engine.ledger._snapshot_if(0)
        with MemoryBank.open(folder, preset="vector", storage={"sync": "manual"}) as bank:
            assert shown(bank) == [[], [("fact", {})]]
            bank.agent("alice").update(kept.id, temperature="warm")
            assert shown(bank) == expected
        restored = MemoryBank.restore(
            folder / "checkpoint.tmck", folder / "restored", preset="vector",
            storage={"sync": "manual"},
        )  # fmt: skip
        with restored as bank:
            assert shown(bank) == expected


@pytest.mark.parametrize("hashed", [True, False])
def test_searches_at_once_count_uses_as_one_after_the_other(hashed) -> None:
    with make() as one, make() as other:
        for bank in (one, other):
            for name in NAMES:
                bank.agent(name).add_many([f"{name} likes {n}" for n in range(6)])
            for name in NAMES[::2]:  # gaps
                bank.agent(name).delete(bank.agent(name).all()[1].id)
            if hashed:
                bank.state_hash()
            bank.advance(4)
        asked = [(name, f"likes {number}") for number, name in enumerate(NAMES)]
        again = [*asked, *asked[:3]]  # some agents twice
        for pairs in (asked, again):
            at_once = one.search_many(pairs, limit=3)
            assert at_once == [other.agent(name).search(query, limit=3) for name, query in pairs]
            assert one.state_hash() == other.state_hash()
        used = [tuple(memory) for memory in one.agent(NAMES[0]).all()]
        assert used == [tuple(memory) for memory in other.agent(NAMES[0]).all()]


@pytest.mark.parametrize("least", [0.0, 0.3, 1.0])
def test_only_what_is_as_similar_counts_and_agents_without_memories_may_ask(least) -> None:
    """As when each asks alone; some find nothing that counts, and one has no memory at all."""
    hashes, metrics = [], []
    for together in (True, False):
        settings = {"temperature": {"min_score": least}}
        with MemoryBank.ephemeral(settings, preset="vector", seed=3) as bank:
            for number, name in enumerate(NAMES):
                bank.add_many([(name, f"the price of grain {n}") for n in range(number + 2)])
                bank.agent(name).add("a ship came in")
            bank.add_many([("stranger", "it rained"), ("stranger", "no wind")])
            bank.state_hash()  # from now on, uses are hashed
            # Not in the order of their sizes, in which they are scored.
            asked = [(name, "the price of grain") for name in ("stranger", *NAMES[::-1], "nobody")]
            with bank.transaction():
                if together:
                    bank.search_many(asked, limit=4)
                else:
                    for name, query in asked:
                        bank.agent(name).search(query, limit=4)
            hashes.append((bank.state_hash(), ticks_of(bank).hash()))
            metrics.append(bank.metrics())
            assert "nobody" not in bank.agents()
    assert hashes[0] == hashes[1]
    assert metrics[0] == metrics[1]


def test_what_is_in_rows_of_nobody_does_not_matter() -> None:
    """Agents with fewer memories are scored beside others, over rows that nobody wrote."""
    with make() as bank:
        bank.add_many([("alice", f"memory {n}") for n in range(7)])
        bank.add_many([("bob", "memory 1")])
        table = table_of(bank)
        used = {row for block in bank.engine.state.blocks.values()
                for row in range(block.start, block.start + block.size)}  # fmt: skip
        for row in set(range(len(table.norms))) - used:
            table.norms[row], table.tiers[row] = 1e308, 100
        asked = [("alice", "memory 1"), ("bob", "memory 1"), ("carol", "memory 1")]
        found = bank.search_many(asked)
        assert found == [bank.agent(name).search(query) for name, query in asked]


def test_what_is_undone_gives_its_rows_up() -> None:
    with make() as bank:
        bank.add_many([(name, f"kept {n}") for n in range(20) for name in NAMES])
        before = texts(bank)
        for _ in range(60):
            with suppress(ZeroDivisionError), bank.transaction():
                bank.add_many([(name, f"undone {n}") for n in range(20) for name in NAMES])
                raise ZeroDivisionError
        assert texts(bank) == before
        assert len(table_of(bank).norms) < 10 * len(NAMES) * 20


def test_a_text_that_is_forgotten_is_not_in_the_table() -> None:
    with make() as bank:
        alice = bank.agent("alice")
        secret = alice.add("the secret word")
        for n in range(300):  # she moves, and others come to where she was
            alice.add(f"later {n}")
            bank.agent(NAMES[n % 7]).add(f"of another {n}")
        alice.forget(secret.id)
        assert "the secret word" not in table_of(bank).contents.tolist()
        alice.delete(alice.all()[0].id)
        assert "later 0" not in table_of(bank).contents.tolist()


@pytest.mark.parametrize("at", range(1, 16))
def test_an_interrupt_leaves_no_agent_between_two_tables(monkeypatch, at) -> None:
    with make() as bank:
        bank.add_many([(name, f"{name} kept {n}") for name in NAMES for n in range(9)])
        before, number = texts(bank), len(table_of(bank).norms)
        calls, look_at = itertools.count(1), AgentColumns.look_at

        def interrupted(self: AgentColumns, start: int, room: int) -> None:
            if next(calls) == at:
                raise KeyboardInterrupt
            look_at(self, start, room)

        monkeypatch.setattr(AgentColumns, "look_at", interrupted)
        with suppress(KeyboardInterrupt):
            bank.add_many([("newcomer", f"new {n}") for n in range(number)])
        monkeypatch.undo()
        found = bank.search_many([(name, "kept") for name in NAMES], limit=9)
        assert [{hit.memory.content for hit in hits} for hits in found] == [
            set(before[name]) for name in NAMES
        ]
        bank.add_many([(name, "one more") for name in NAMES])
        assert {name: texts(bank)[name] for name in NAMES} == {
            name: [*before[name], "one more"] for name in NAMES
        }


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no other way to share memory by accident")
def test_a_forked_process_has_a_table_of_its_own() -> None:
    with make() as bank:
        names = [f"agent_{number}" for number in range(300)]
        bank.add_many([(name, f"text {n}") for name in names for n in range(30)])
        vectors = table_of(bank).vectors
        before = int(vectors[0, 0])
        child = os.fork()
        if not child:
            vectors[0, 0] = before + 1
            os._exit(0)
        os.waitpid(child, 0)
        assert vectors.nbytes > 1 << 20
        assert vectors[0, 0] == before


@pytest.mark.parametrize("dims", [1, 3, 31, 256, 1041, 3072])
def test_products_are_exact_with_whatever_the_processor_can_do(dims) -> None:
    rng = np.random.default_rng(dims)
    rows = rng.integers(-127, 128, (9, dims)).astype(np.int8)
    rows[:2] = [[127], [-127]]
    exact = rows.astype(np.int64) @ rows[0].astype(np.int64)
    able = [name for name, has in simsimd.get_capabilities().items() if has and name != "serial"]
    try:
        for name in [None, *reversed(able)]:
            if name is not None:
                simsimd.disable_capability(name)
            assert products(rows, rows[0]).tolist() == exact.tolist()
    finally:
        for name in able:
            simsimd.enable_capability(name)
    assert products(rows[:0], rows[0]).tolist() == []


def test_bytes_are_multiplied_by_what_an_arm_processor_has_for_that() -> None:
    can = Path("/proc/cpuinfo").read_text() if platform.machine() == "aarch64" else ""
    if " asimddp" not in can:
        pytest.skip("not an ARM processor on Linux that multiplies bytes")
    assert simsimd.get_capabilities()["neon_i8"]


@pytest.mark.skipif(not hasattr(mmap, "MADV_DONTNEED"), reason="the system takes no pages back")
def test_rows_that_an_agent_leaves_go_back_to_the_system() -> None:
    with make() as bank:
        names = ("alice", "bob", "carol")
        bank.add_many([(name, f"{name} says {n}") for name in names for n in range(2000)])
        block, table = bank.engine.state.blocks["alice"], table_of(bank)
        start, room, vectors = block.start, block.room, table.vectors
        assert vectors[start : start + 2000].any(axis=1).all()
        bank.add_many([("alice", f"alice says {n}") for n in range(2000, 2001 + room - 2000)])
        assert table.vectors is vectors, "all moved to a larger table, which this is not about"
        assert block.start != start
        page = mmap.PAGESIZE // vectors.shape[1] + 1
        assert not vectors[start + page : start + room - page].any()
        assert texts(bank) == {
            "alice": [f"alice says {n}" for n in range(2001 + room - 2000)],
            **{name: [f"{name} says {n}" for n in range(2000)] for name in names[1:]},
        }


@pytest.mark.parametrize("width", [1, 3, 7, 10])
def test_runs_are_the_values_from_each_place_on_up_to_the_end(width) -> None:
    """An agent at the table's end may have fewer rows than the largest beside it."""
    values = np.arange(10.0)
    for places in ([0], [0, 10 - width], [min(9, 11 - width)], [2, 9, 0]):
        runs = scoring._runs(values, np.array(places)[:, None], width)
        for place, run in zip(places, runs, strict=True):
            own = values[place : place + width]
            assert run.shape == (width,)
            assert run[: len(own)].tolist() == own.tolist()
