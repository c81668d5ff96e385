"""What is explained is what is given, in that order, and each other memory has a true reason."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import AgentMemory, MemoryBank, Retention, Temperature, Tier
from embedders import Noise
from examples import examples

WORDS = ("coins", "mill", "debt", "tea")
TIERS = st.sampled_from(list(Tier))
MEMORY = st.fixed_dictionaries(
    {
        "content": st.builds(
            lambda words, pad: " ".join(words) + " x" * pad,
            st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
            st.integers(0, 12),
        ),
        "tier": TIERS,
        "temperature": st.sampled_from([None, "hot", "warm", "cold"]),
        "ttl": st.sampled_from([None, None, None, 1, 2, 9]),
        "kind": st.sampled_from(["fact", "decision"]),
        "tags": st.sampled_from([(), ("open",), ("open", "task")]),
    }
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "tier": st.sampled_from(["normal", ["pinned", "low"], [1, 2, 3]]),
        "temperature": st.sampled_from(["hot", ["hot", "warm"], ["warm", "cold"]]),
        "kind": st.just("decision"),
        "tags": st.sampled_from(["open", ["task"]]),
        "min_score": st.sampled_from([0.0, 0.3, 0.9]),
        "since_tick": st.sampled_from([0, 1, 2]),
        "include_cold": st.booleans(),
    },
)
BANK: dict[str, Any] = {
    "memory": {"max_pinned": 3, "max_critical": 4, "candidate_multiplier": 2},
    "temperature": {"hot_max_facts": 5, "hot_max_tokens": 60, "auto_spill": False},
}


@given(
    st.lists(MEMORY, max_size=25),
    st.lists(st.integers(0, 24), max_size=4),
    st.sampled_from(["vector", "hybrid"]),
    st.sampled_from(["coins of the mill", "debt", " "]),
    st.sampled_from([None, 0, 1, 3, 8, 40]),
    st.sampled_from([None, 1, 15, 60]),
    FILTERS,
)
@settings(deadline=None, max_examples=examples(60))
def test_what_is_explained_is_what_is_given(
    memories: list[dict[str, Any]],
    archived: list[int],
    preset: str,
    query: str,
    limit: int | None,
    tokens: int | None,
    filters: dict[str, Any],
) -> None:
    with MemoryBank.ephemeral(BANK, preset=preset, embedder=Noise(16)) as bank:
        alice = bank.agent("alice")
        ids = []
        for start in range(0, len(memories), 8):
            bank.advance(start // 8)
            ids += [each.id for each in alice.add_many(map(row, memories[start : start + 8]))]
        for place in archived:
            if place < len(ids):
                archive(alice, ids[place])
        told = alice.explain(query, limit, context_tokens=tokens, **filters)
        given = alice.search(query, limit, context_tokens=tokens, **filters)
        check(alice, told, given, filters, context=False)
        told = alice.explain(query, limit, context_tokens=tokens, context=True)
        (given,) = bank.context_many([("alice", query)], limit, context_tokens=tokens)
        check(alice, told, given, {}, context=True)


def row(new: dict[str, Any]) -> tuple[Any, ...]:
    """A memory for ``add_many``; a pinned memory neither expires nor is it cold."""
    options = {key: new[key] for key in ("kind", "tags")}
    if new["tier"] is not Tier.PINNED:
        options |= {key: new[key] for key in ("temperature", "ttl")}
    return (new["content"], new["tier"], None, options)


def archive(agent: AgentMemory, identifier: str) -> None:
    memory = next((each for each in agent.all() if each.id == identifier), None)
    if memory is not None and memory.tier is not Tier.PINNED:
        agent.update(identifier, retention="archived")


def check(
    agent: AgentMemory, rows: list[Any], given: list[Any], filters: dict[str, Any], *, context: bool
) -> None:
    """The given ones come first and in their order; everything else has its own reason."""
    assert [tuple(row[:4]) for row in rows[: len(given)]] == [tuple(hit[:4]) for hit in given]
    assert [row.rank for row in rows] == [*range(1, len(given) + 1)] + [None] * (
        len(rows) - len(given)
    )
    tick = MemoryBank(agent.engine).tick
    known = {m.sequence for m in [*agent.all(), *agent.all(retention=Retention.ARCHIVED)]}
    assert known <= {row.memory.sequence for row in rows}
    assert len({row.memory.sequence for row in rows}) == len(rows)
    for row in rows:
        memory, reason = row.memory, row.reason
        is_hot = memory.temperature is Temperature.HOT and memory.tier is not Tier.PINNED
        if reason == "pinned":
            assert memory.tier is Tier.PINNED
        elif reason == "hot":
            assert context
            assert is_hot
        elif reason == "archived":
            assert memory.retention is Retention.ARCHIVED
        elif reason == "expired":
            assert memory.is_expired(tick)
        elif reason == "cold":
            assert memory.temperature is Temperature.COLD
            assert not filters.get("include_cold")
        elif reason == "over the limits of hot":
            assert context
            assert is_hot
        elif reason == "filtered":
            assert filters.keys() - {"include_cold"}
        else:
            assert not memory.is_expired(tick)
            assert memory.retention is Retention.ACTIVE
            assert reason in ("chosen", "over the token budget", "below the cut") or (
                reason.startswith("outside the ")
            )
            if context:
                assert not is_hot or reason == "over the token budget"


@pytest.mark.parametrize(
    ("temperature", "reason"), [("hot", "hot"), ("warm", "chosen"), ("cold", "cold")]
)
def test_the_reason_follows_the_temperature(temperature: str, reason: str) -> None:
    with MemoryBank.ephemeral(BANK, embedder=Noise(16)) as bank:
        bank.agent("alice").add("coins", temperature=temperature)
        (row,) = bank.agent("alice").explain("coins", context=True)
        assert row.reason == reason
