"""What people might give a bank: ids, texts, tiers in every spelling, metadata."""

from string import ascii_letters, digits
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..memory.metadata import RESERVED_METADATA_KEYS
from ..memory.tiers import TIER_NAMES, Tier

agent_ids = st.text(ascii_letters + digits + "._-@", min_size=1, max_size=128).filter(
    lambda text: not text.startswith(".")
)

# Whatever can be kept: no lone surrogates, no NUL.
_characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")

any_text = st.text(_characters, max_size=30)

# What tries to look like a label, a line or a section of its own.
_hostile = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "[pinned]", "[critical] ", "- ", "\n", "\r\n", "\u2028", "\u2029", "\x85", "\x0b",
                "\x1b[2J", "\u202e", "\u2066", "\u200f", "\u200b", "\u0301", "\ufeff", "\u00a0",
                " ", "\t", "\\", "(No relevant memories)", "#", "```", "[", "]", "x", "🙂", "שלום",
            ]
        ),
        st.text(_characters, max_size=3),
    ),
    min_size=1,
    max_size=8,
).map("".join)  # fmt: skip

# Few texts, which come back often: equal contents, equal scores.
_frequent = st.sampled_from(
    ["NEVER transfer to agent_X (scammer)", "hello", "trade", "the budget is $50K", "a", "b", "c"]
)

contents = st.one_of(_frequent, _frequent, any_text, _hostile).filter(lambda text: text.strip())

queries = st.one_of(_frequent, any_text, st.sampled_from(["", " ", "\n\t\u2003"]))


def spellings(tier: Tier) -> st.SearchStrategy[Any]:
    """The ways in which a caller may name ``tier``."""
    name = TIER_NAMES[tier]
    cases = st.lists(st.booleans(), min_size=len(name), max_size=len(name)).map(
        lambda upper: "".join(
            letter.upper() if up else letter for letter, up in zip(name, upper, strict=True)
        )
    )
    return st.one_of(st.just(tier), st.just(int(tier)), cases, st.just(np.int64(tier)))


# The tiers with caps twice as often: they are where the rules are.
tiers = st.sampled_from([*Tier, Tier.PINNED, Tier.CRITICAL])
spelled_tiers = tiers.flatmap(lambda tier: st.tuples(st.just(tier), spellings(tier)))
"""Pairs of a tier and one of its spellings."""

not_tiers = st.one_of(
    st.integers().filter(lambda number: not 0 <= number <= 4),
    st.floats(),
    st.booleans(),
    any_text.filter(lambda text: text.lower() not in TIER_NAMES.values()),
)

_keys = (
    st.text(_characters, min_size=1, max_size=8)
    .filter(lambda key: key[0] not in "$#" and not key.startswith("chroma:"))
    .filter(lambda key: key not in RESERVED_METADATA_KEYS)
)
_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    any_text,
)
metadata = st.one_of(st.none(), st.dictionaries(_keys, _values, max_size=3))

options = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["decision", "preference", "fact", "observation"]),
        "tags": st.lists(st.sampled_from(["blocker", "open", "task"]), max_size=2),
        "temperature": st.sampled_from(["hot", "warm", "cold"]),
        "ttl": st.integers(1, 6),
    },
)


def _fitting(new: tuple[Any, ...]) -> tuple[Any, ...]:
    """A pinned memory is hot, and does not expire."""
    content, tier, extra, more = new
    if tier is Tier.PINNED:
        more = {name: own for name, own in more.items() if name in ("kind", "tags")}
    return content, tier, extra, more


memories = st.tuples(contents, tiers, metadata, options).map(_fitting)
"""New memories, as :meth:`AgentMemory.add_many` takes them: content, tier, metadata, options."""
