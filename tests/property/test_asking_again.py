"""A question asked again is answered from what it found before, and the answer is the same."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import MemoryBank, MemoryNotFound, MemoryPinned
from agents.memory.ids import id_prefix, memory_id
from agents.search import search as retrieval
from property.model import SmallEmbedder

AGENTS = st.sampled_from(["alice", "bob"])
QUERIES = st.sampled_from(["red", "green", "blue", "red and blue", ""])
STEPS = st.one_of(
    st.tuples(st.just("add"), AGENTS, st.sampled_from("abcdef"), st.integers(0, 4)),
    st.tuples(st.just("tier"), AGENTS, st.integers(0, 99), st.integers(0, 4)),
    st.tuples(st.just("delete"), AGENTS, st.integers(0, 99), st.none()),
    st.tuples(st.just("restore"), AGENTS, st.integers(0, 99), st.none()),
    st.tuples(st.just("hot"), AGENTS, st.integers(0, 99), st.none()),
    st.tuples(st.just("warm"), AGENTS, st.integers(0, 99), st.none()),
    st.tuples(st.just("cold"), AGENTS, st.integers(0, 99), st.none()),
    st.tuples(st.just("undone"), AGENTS, st.sampled_from("abcdef"), st.integers(0, 4)),
    st.tuples(st.just("search"), st.lists(st.tuples(AGENTS, QUERIES), max_size=4), st.none(),
              st.sampled_from([0, 1, 3, 3, 3, 8])),
)  # fmt: skip


class Undone(Exception):
    pass


def apply(bank: MemoryBank, step: tuple[Any, ...]) -> None:
    what, agent, which, tier = step
    view = bank.agent(agent)
    memories = view.all()
    if what == "add":
        view.add(f"{which} {len(memories)}", tier)
    elif what == "undone":
        with contextlib.suppress(Undone), bank.transaction():
            view.add(which, tier)
            raise Undone
    elif memories and what == "tier":
        view.set_tier(memories[which % len(memories)].id, tier)
    elif what == "restore":
        with contextlib.suppress(MemoryNotFound):
            view.restore(memory_id(id_prefix(bank.settings.seed, agent), which % 8 + 1))
    elif memories:
        chosen = memories[which % len(memories)].id
        with contextlib.suppress(MemoryPinned):
            if what == "delete":
                view.delete(chosen)
            elif what == "hot":
                view.promote(chosen)
            else:
                view.demote(chosen, what)


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(STEPS, max_size=60))
def test_remembering_what_was_found_changes_no_answer(steps: list[tuple[Any, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        options: dict[str, Any] = {"memory": {"max_pinned": 2, "max_critical": 2}}
        remembering = MemoryBank.ephemeral(embedder=SmallEmbedder(), preset="vector", **options)
        plain = MemoryBank.ephemeral(embedder=SmallEmbedder(), preset="vector", **options)
        # Eight memories allow for one question; here there are never many more.
        patch.setattr("agents.storage.resident.agent_rows._MEMORIES_PER_QUERY", 1)
        for step in steps:
            if step[0] != "search":
                apply(remembering, step)
                apply(plain, step)
                continue
            answers = []
            for bank, least in ((remembering, 1), (plain, 10**9)):
                patch.setattr(retrieval, "_WORTH_REMEMBERING", least)
                answers.append(bank.search_many(step[1], step[3]))
            assert answers[0] == answers[1]
            assert remembering.state_hash() == plain.state_hash()
            assert [[hit.boosted_score.hex() for hit in hits] for hits in answers[0]] == [
                [hit.boosted_score.hex() for hit in hits] for hits in answers[1]
            ]


def test_a_question_asked_again_reads_only_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "_WORTH_REMEMBERING", 1)
    with MemoryBank.ephemeral(embedder=SmallEmbedder(), preset="vector") as bank:
        alice = bank.agent("alice")
        alice.add_many([f"memory {number}" for number in range(40)])
        first = alice.search("what now?")
        block = bank._ledger.resident.blocks["alice"]
        kept = block.found["what now?"]
        assert kept.size == 40
        block._vectors[: kept.size] = 0  # would change every score, if it were read
        assert alice.search("what now?") == first
        alice.add("memory 40")
        alice.search("what now?")
        assert block.found["what now?"].size == 41


def test_what_is_kept_of_questions_is_a_share_of_the_memories(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retrieval, "_WORTH_REMEMBERING", 1)
    with MemoryBank.ephemeral(embedder=SmallEmbedder(), preset="vector") as bank:
        alice = bank.agent("alice")
        alice.add_many([f"memory {number}" for number in range(40)])
        for number in range(100):
            alice.search(f"question {number}")
        assert list(bank._ledger.resident.blocks["alice"].found) == [
            f"question {number}" for number in (98, 99)
        ]
