"""The law of profiles: its calls and the plain calls that they stand for leave the same state."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from agents import AgentMemory, MemoryBank, TierMemError
from agents.config.load import load_settings
from agents.config.packaged import packaged
from agents.memory.tiers import TIER_VALUES
from agents.tools.calling import run
from agents.tools.profiles import table_of
from embedders import Directions

CALLS = 60
SEEDS = range(8)
SESSIONS = ("s1", "s2")
KINDS = ("message", "fact", "decision", "entity", "context")
TEMPERATURES = ("hot", "warm", "cold")
TIERS = (*TIER_VALUES, None)
Arguments = dict[str, Any]
Call = tuple[str, Arguments, Callable[[AgentMemory], object]]
"""An operation of a profile with its arguments, and the plain call that it stands for."""


def text(rng: Random) -> str:
    return f"{rng.choice('abc')} {'x' * rng.randrange(1, 60)} <{rng.randrange(4)} 1>"


def some_id(rng: Random, memory: AgentMemory) -> str:
    ids = [each.id for each in memory.all()]
    return rng.choice(ids) if ids and rng.random() < 0.95 else "nobody's"


def of_ctx_sys(rng: Random, memory: AgentMemory) -> Call:
    session, content, kind = rng.choice(SESSIONS), text(rng), rng.choice(KINDS)
    own: Arguments = {"sessionId": session}
    draw = rng.random()
    if draw < 0.5:
        return (
            "memory_add",
            {**own, "content": content, "type": kind},
            lambda memory: memory.add(content, session=session, kind=kind),
        )
    if draw < 0.8:
        limit, promotes = rng.choice((None, 1, 5.0)), rng.choice((None, True, False))
        return (
            "memory_recall",
            {**own, "query": content, "limit": limit, "autoPromote": promotes},
            lambda memory: memory.recall(
                content,
                3 if limit is None else int(limit),
                session=session,
                auto_promote=promotes is not False,
                include_hot=False,
            ),
        )
    if draw < 0.95:
        count = rng.choice((None, 1, 2))
        return (
            "memory_spill",
            own if count is None else {**own, "count": count},
            lambda memory: memory.spill(4 if count is None else count, session=session),
        )
    return "memory_status", own, lambda memory: memory.status(session=session)


def of_fr_004(rng: Random, memory: AgentMemory) -> Call:
    content, kind, heat = text(rng), rng.choice(KINDS), rng.choice(TEMPERATURES)
    draw, identifier = rng.random(), some_id(rng, memory)
    if draw < 0.4:
        tags = rng.sample(("task", "blocker", "open"), rng.randrange(3))
        return (
            "memory_add",
            {"content": content, "category": kind, "tier": heat, "tags": tags},
            lambda memory: memory.add(content, kind=kind, temperature=heat, tags=tags),
        )
    if draw < 0.6:
        cold = rng.choice((None, True, False))
        return (
            "memory_recall",
            {"query": content, "includeCold": cold},
            lambda memory: memory.recall(content, include_cold=cold is True),
        )
    if draw < 0.75:
        return (
            "memory_query",
            {"query": content, "tier": heat, "category": kind},
            lambda memory: memory.search(content, 10, temperature=heat, kind=kind),
        )
    if draw < 0.85:
        return (
            "memory_update",
            {"memory_id": identifier, "tier": heat},
            lambda memory: memory.update(identifier, temperature=heat),
        )
    if draw < 0.95:
        return "pin_memory", {"memory_id": identifier}, lambda memory: memory.pin(identifier)
    return "memory_compact", {}, lambda memory: memory.compact()


def of_agent_ecology(rng: Random, memory: AgentMemory) -> Call:
    content, tier, identifier = text(rng), rng.choice(TIERS), some_id(rng, memory)
    draw = rng.random()
    if draw < 0.5:
        return (
            "store_memory",
            {"content": content, "tier": tier},
            lambda memory: memory.add(content, tier=tier or "normal"),
        )
    if draw < 0.65:
        return (
            "set_memory_tier",
            {"memory_id": identifier, "tier": tier or "low"},
            lambda memory: memory.set_tier(identifier, tier or "low"),
        )
    if draw < 0.75:
        return "pin_memory", {"memory_id": identifier}, lambda memory: memory.pin(identifier)
    if draw < 0.85:
        return "unpin_memory", {"memory_id": identifier}, lambda memory: memory.unpin(identifier)
    return "memory_recall", {"query": content}, lambda memory: memory.recall(content)


DRAWN = {"agent-ecology": of_agent_ecology, "ctx-sys": of_ctx_sys, "fr-004": of_fr_004}
"""The profiles memorysync and openclaw have laws of their own, with clocks and notes."""


def outcome(call: Callable[[], object]) -> str | None:
    try:
        call()
    except TierMemError as error:
        return type(error).__name__
    return None


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", DRAWN)
def test_a_profile_and_the_plain_calls_leave_the_same_state(name: str, seed: int) -> None:
    rng = Random(f"{name} {seed}")
    small = {"profile": name, "temperature": {"hot_max_tokens": 90, "session_max_tokens": 60}}
    more = {"store": None, "memory": {"max_pinned": 2}, "clock": {"mode": "ticks"}}
    own = load_settings(small, overrides=more)
    plain = load_settings({**own.to_dict(), "profile": None})
    assert plain.profile is None
    with (
        MemoryBank.ephemeral(own, embedder=Directions()) as theirs,
        MemoryBank.ephemeral(plain, embedder=Directions()) as ours,
    ):
        for step in range(CALLS):
            agent = rng.choice(("ann", "ben"))
            operation, arguments, call = DRAWN[name](rng, ours.agent(agent))
            memory, twin = theirs.agent(agent), ours.agent(agent)
            told = outcome(lambda: run(memory, operation, arguments))  # noqa: B023
            assert told == outcome(lambda: call(twin))  # noqa: B023
            if rng.random() < 0.3:
                for bank in (theirs, ours):
                    bank.pass_time(step + 1)
            assert theirs.state_hash() == ours.state_hash(), (operation, arguments)


@pytest.mark.parametrize("name", sorted(path.stem for path in packaged("profiles").glob("*.yaml")))
@pytest.mark.parametrize("seed", SEEDS)
def test_a_call_that_is_refused_changes_nothing(name: str, seed: int) -> None:
    rng = Random(f"refused {name} {seed}")
    with MemoryBank.ephemeral(profile=name, embedder=Directions(), store=None) as bank:
        memory = bank.agent("ann")
        memory.add("a <1 1>", session="s1", temperature="hot")
        for operation in table_of(name).values():
            before = bank.state_hash()
            known = list(operation.arguments["properties"])
            junk = rng.choice([[], {}, -1, "\0", "x" * 3, 2.5, True])
            given = {rng.choice([*known, "agent_id", "sessionid"]): junk for _ in range(3)}
            if outcome(lambda: run(memory, operation.name, given)) is not None:  # noqa: B023
                assert bank.state_hash() == before
            else:
                assert given.keys() <= set(known)
