"""Strategies for Hypothesis: what people give a bank, whole histories, banks and worlds."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from string import ascii_letters, digits
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from ..bank.memory_bank import MemoryBank
from ..errors import InvalidInput, MemoryNotFound, MemoryPinned
from ..memory.records import Memory
from ..memory.requests import RESERVED_METADATA_KEYS
from ..memory.tiers import TIER_NAMES, Retention, Tier
from .small import SmallEmbedder, SmallWorld

__all__ = [
    "agent_ids",
    "any_text",
    "banks",
    "by_tick",
    "contents",
    "forgetful",
    "histories",
    "memories",
    "metadata",
    "not_tiers",
    "queries",
    "spelled_tiers",
    "spellings",
    "tiers",
    "worlds",
]


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


AGENTS = ("alice", "bob", "carol")
"""The agents of all histories."""

_GROUP = "guild"
Operation = tuple[Any, ...]
"""The name of what is done, and with what."""

_agents = st.sampled_from(AGENTS)
_picks = st.integers(0, 99)
_adding = st.tuples(_agents, memories).map(lambda drawn: ("add", drawn[0], *drawn[1]))
_still = st.one_of(
    _adding,
    _adding,
    _adding,
    st.tuples(
        st.sampled_from(["delete", "archive", "restore", "promote", "warm", "cold"]),
        _agents,
        _picks,
    ),
    st.tuples(st.just("tier"), _agents, _picks, tiers),
    st.tuples(st.just("spill"), _agents, st.one_of(st.none(), st.integers(0, 3))),
    st.tuples(st.sampled_from(["tell", "tell", "retract"]), _agents, _picks, _agents),
    st.tuples(st.just("trust"), _agents, _agents, st.sampled_from([0, 0.5, 1])),
    st.tuples(st.sampled_from(["join", "post", "leave"]), _agents),
    st.tuples(st.sampled_from(["search", "search all", "recall"]), _agents, queries),
    st.tuples(st.sampled_from(["compact", "prune", "sweep"])),
)
_simple = st.one_of(_still, _still, st.tuples(st.just("tick"), st.integers(1, 3)))
_forgetful = st.one_of(_simple, _simple, st.tuples(st.just("forget"), _agents, _picks))


def _also_in_transactions(simple: st.SearchStrategy[Operation]) -> st.SearchStrategy[Operation]:
    several = st.lists(simple, min_size=1, max_size=5)
    return st.one_of(simple, simple, st.tuples(st.sampled_from(["together", "undone"]), several))


forgetful = st.lists(_also_in_transactions(_forgetful), max_size=12)
"""Histories that also forget memories, which going back does not restore."""
histories = st.lists(_also_in_transactions(_simple), max_size=12)
"""Lists of operations; see :func:`perform_all`."""
by_tick = st.lists(st.lists(_also_in_transactions(_still), max_size=4), min_size=1, max_size=5)
"""The operations of each tick."""


_CHANGES: dict[str, dict[str, str]] = {
    "promote": {"temperature": "hot"},
    "warm": {"temperature": "warm"},
    "cold": {"temperature": "cold"},
    "archive": {"retention": "archived"},
    "restore": {"retention": "active"},
}
"""What changes a memory by :meth:`AgentMemory.update`."""


class _Undone(Exception):
    """Ends a transaction."""


@contextmanager
def _undone(bank: MemoryBank) -> Iterator[None]:
    """A transaction that an error ends."""
    with suppress(_Undone), bank.transaction():
        yield
        raise _Undone


def perform(bank: MemoryBank, operation: Operation) -> None:
    """Do one operation; an operation on a memory that refuses it does nothing."""
    name, *rest = operation
    if name in ("together", "undone"):
        with bank.transaction() if name == "together" else _undone(bank):
            for each in rest[0]:
                perform(bank, each)
    elif name == "tick":
        bank.advance(bank.tick + rest[0])
    elif name in ("compact", "prune", "sweep"):
        getattr(bank, name)()
    else:
        _of_agent(bank, name, *rest)


def _of_agent(bank: MemoryBank, name: str, agent_id: str, *rest: Any) -> None:
    agent = bank.agent(agent_id)
    if name == "add":
        text, tier, extra, *options = rest
        agent.add(text, tier, extra, **(options[0] if options else {}))
    elif name == "search all":
        agent.search(rest[0], include_cold=True)
    elif name in ("search", "recall", "spill"):
        getattr(agent, name)(rest[0])
    elif name in ("trust", "join", "post", "leave"):
        _among_agents(bank, name, agent_id, *rest)
    elif own := every_memory(bank, agent_id):
        chosen = own[rest[0] % len(own)]
        if name in ("tell", "retract"):
            with suppress(InvalidInput, MemoryNotFound):
                _told(bank, name, chosen, rest[1])
            return
        with suppress(*_refusals(chosen, bank.tick)):
            if name == "tier":
                agent.set_tier(chosen.id, rest[1])
            elif name in _CHANGES:
                agent.update(chosen.id, **_CHANGES[name])  # type: ignore[arg-type]
            else:
                getattr(agent, name)(chosen.id)


def _told(bank: MemoryBank, name: str, memory: Memory, to: str) -> None:
    agent = bank.agent(memory.agent_id)
    if name == "tell":
        agent.social.tell(to, memory.id)
    else:
        agent.social.retract(memory.id, "it is not so")


def _among_agents(bank: MemoryBank, name: str, agent_id: str, *rest: Any) -> None:
    """What is not about a memory; without a membership, posting and leaving do nothing."""
    agent = bank.agent(agent_id)
    with suppress(InvalidInput):
        if name == "trust":
            agent.social.trust(*rest)
        elif name == "join":
            bank.group(_GROUP, [agent_id])
        elif name == "post":
            agent.social.post(_GROUP, f"{agent_id} was here")
        else:
            agent.social.leave(_GROUP)


def _refusals(memory: Memory, tick: int) -> tuple[type[Exception], ...]:
    """What may be said of an operation on it: only where it is pinned, or not active."""
    if memory.retention is Retention.DELETED or memory.is_expired(tick):
        return (MemoryNotFound,)
    if memory.retention is Retention.ARCHIVED:
        return (InvalidInput,)
    return (MemoryPinned,) if memory.tier is Tier.PINNED else ()


def perform_all(bank: MemoryBank, done: Sequence[Operation]) -> None:
    """Do a history, and commit it."""
    for operation in done:
        perform(bank, operation)
    bank.commit()  # what searches did to memories comes with the next commit


def every_memory(bank: MemoryBank, agent: str) -> list[Memory]:
    """All memories, also expired and archived ones."""
    resident = bank.engine.state
    found = [
        resident.memory(agent, sequence)
        for sequence in range(1, resident.block(agent).next_sequence)
    ]
    return [memory for memory in found if memory is not None]


class Recipe(NamedTuple):
    """How a bank came about: a seed and a history. It is printed in full where a law breaks."""

    seed: int
    history: list[Operation]

    def open(self, folder: str | PathLike[str] | None = None, **options: Any) -> MemoryBank:
        """The bank, in memory or in a new folder. Close it."""
        options = {"embedder": SmallEmbedder(), "preset": "vector", "seed": self.seed, **options}
        if folder is None:
            bank = MemoryBank.ephemeral(**options)
        else:
            bank = MemoryBank.open(folder, **{"storage": {"sync": "manual"}, **options})
        perform_all(bank, self.history)
        return bank


banks = st.builds(Recipe, st.integers(0, 99), histories)
"""Recipes of banks: ``with recipe.open() as bank``."""


worlds = st.builds(
    SmallWorld,
    words=st.lists(contents, min_size=1, max_size=4),
    every=st.integers(1, 4),
    tier=tiers.map(int),
    most=st.integers(0, 20),
)
"""Worlds that keep every law; ``world.rules()`` gives the policy."""
