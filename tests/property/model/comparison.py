"""What a bank and the model have in common: settings, and memories to the last bit."""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from tiermem.bank.memory_bank import MemoryBank
from tiermem.memory.records import Explanation, Hit, Memory
from tiermem.memory.tiers import Retention
from tiermem.telling.groups import board_of

from .bank import ModelBank
from .memories import (
    HALF_LIVES,
    LEAST,
    PROMOTE_AT,
    RECALLS,
    WINDOW,
    Kept,
    Key,
    Rules,
)
from .reading import NAMES
from .searching import Found


def settings_of(rules: Rules) -> dict[str, Any]:
    """How a bank is told the rules. The model knows no words, so neither does the bank."""
    memory = ("max_pinned", "max_critical", "default_limit", "context_tokens")
    temperature = ("auto_spill", "auto_prune", "initial", "ttl_cold_below", "ttl_warm_below")
    return {
        "preset": "vector",
        "memory": {name: getattr(rules, name) for name in memory}
        | {
            "on_tier_full": "reject" if rules.reject else "demote",
            "tier_boosts": dict(zip(NAMES, rules.boosts, strict=True)),
            "candidate_multiplier": rules.multiplier,
            "merge_duplicates": rules.merges,
        },
        "temperature": {name: getattr(rules, name) for name in temperature}
        | {
            "hot_max_tokens": rules.hot_tokens,
            "hot_max_facts": rules.hot_facts,
            "session_max_tokens": rules.session_tokens,
            "session_max_facts": rules.session_facts,
            "max_cold_items": rules.most_cold,
            "min_score": LEAST,
            "promote_threshold": PROMOTE_AT,
            "promote_accesses": RECALLS,
            "promote_window": WINDOW,
        },
        "clock": {"mode": "ticks", "ticks_per_day": 1},
        "decay": {
            "enabled": rules.decays,
            "half_life": {NAMES[tier]: ticks for tier, ticks in HALF_LIVES.items()},
        },
        "retention": {"grace": rules.grace},
    }


def fields(memory: Any) -> tuple[Any, ...]:
    """What a memory and a model's memory have in common. As JSON, 1, 1.0 and true differ."""
    return (
        memory.agent_id,
        memory.sequence,
        memory.content,
        int(memory.tier),
        memory.created_tick,
        memory.tier_tick,
        json.dumps(dict(memory.metadata)),
        memory.kind,
        memory.tags,
        int(memory.temperature),
        int(memory.retention),
        memory.expires_tick,
        memory.access_count,
        memory.last_access_tick,
        memory.relevance.hex(),
    )


def plain(value: Any) -> Any:
    """What the bank gives and what the model gives, in the same form."""
    if isinstance(value, Memory | Kept):
        return fields(value)
    if isinstance(value, Hit | Explanation | Found):
        numbers = (value.score.hex(), value.boost.hex(), value.boosted_score.hex())
        more = getattr(value, "rank", None), getattr(value, "reason", "")
        return fields(value.memory), *numbers, *more
    if hasattr(value, "pinned_left_out"):
        return [plain(list(value)), plain(value.pinned_left_out)]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    return value.hex() if isinstance(value, float) else value


def memories_in(value: Any) -> Iterator[Memory]:
    """The memories that the bank gave."""
    if isinstance(value, Memory):
        yield value
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from memories_in(each)


Stored = tuple[Memory, bytes, tuple[int, ...]]
"""A memory, its vector, and the ticks in which it was recalled."""


def look(bank: MemoryBank) -> dict[Key, Stored]:
    """Every memory that the bank has, deleted and expired ones and boards of groups too."""
    state = bank.engine.state
    found: dict[Key, Stored] = {}
    for agent in [*bank.agents(), *map(board_of, bank.groups())]:
        block = state.block(agent)
        for row in range(block.size):
            memory = block.memory(row)
            vector = block.vectors([row]).tobytes()
            found[agent, memory.sequence] = (memory, vector, block.recalls.get(memory.sequence, ()))
        for retention in Retention:
            for record in state.shelf.of_agent(agent, retention):
                assert (agent, record.sequence) not in found, "a memory is in two places"
                memory = record.memory(agent, block.prefix)
                found[agent, record.sequence] = (memory, record.vector, record.recalls)
    return found


def assert_equal(bank: MemoryBank, model: ModelBank) -> Collection[Stored]:
    """The bank has the model's memories, to the bit, and no others: these. So do its groups."""
    found = look(bank)
    groups = {name: bank.group(name).members() for name in bank.groups()}
    assert groups == model.groups, f"the bank has the groups {groups}, and the model {model.groups}"
    assert bank.tick == model.tick, f"the bank is at tick {bank.tick}, the model at {model.tick}"
    unlike = found.keys() ^ model.memories.keys()
    assert not unlike, f"only the bank or only the model has {sorted(unlike)}"
    for key, (memory, vector, recalls) in found.items():
        expected = model.memories[key]
        got, wanted = fields(memory), fields(expected)
        assert got == wanted, f"the bank has {got}, and the model {wanted}"
        assert vector == expected.vector, f"the vector of {key} is not its text's"
        assert recalls == expected.recalls, f"{key} was recalled in other ticks"
    return found.values()
