"""What the bank's state machine may do, and which of a bank's rules are on while it does it."""

from dataclasses import replace
from typing import Any, NamedTuple

from hypothesis import strategies as st
from model.memories import PINNED, TEMPERATURES, Rules

from tiermem.testing.strategies import contents, metadata, queries, spelled_tiers

AGENTS = ("alice", "bob", "@Carol-3._")

_some = st.sampled_from
agents = _some([*AGENTS, *[AGENTS[0]] * 4])
picks = st.integers(0, 40)
_limits = st.one_of(st.none(), st.integers(0, 6), st.just(10_000))
_tokens = st.one_of(st.none(), st.none(), st.integers(1, 60))
_kinds = _some(["fact", "fact", "decision", "preference", "message"])
_tag = _some(["task", "blocker", "open", "blocker", "ü"])
_sessions = _some(["talk", "7"])
_queries = st.one_of(queries, _some(["zq00001qz", "zq00004qz"]))

texts = st.one_of(contents, _some([0, 0, 1, 1, 2, 4, 8]), _some(["Hello", " hello\n", "HELLO"]))
"""A text, or the length of one that no other memory has, or one that others say as well."""


class Switches(NamedTuple):
    """What one run of the machine keeps as it is."""

    rules: Rules
    snapshots: tuple[int, int]
    cache_size: int
    reproducible: bool
    seed: int
    sync: str
    """When mem0's store is written; then it, and not the journal, finds what is cold."""
    searches: bool
    """Whether agents search after every step."""
    wall: bool
    """Whether a wall clock moves the tick, too: one tick a day."""


_cap = _some([2, 1, 2, 0, 3])
caps = st.fixed_dictionaries(
    {"max_pinned": _cap, "max_critical": _cap, "reject": _some([False, False, True])}
)
"""Small, so that tiers are full most of the time."""

_boosts = _some(
    [
        (1.0, 0.3, 0.15, 0.0, -0.1),
        # Differences that similarities of small vectors have too: equal sums of unequal parts.
        (1.0, 0.5, 0.25, 0.0, -0.25),
        (0.0, 0.0, 0.0, 0.0, 0.0),
    ]
)
_LIFETIME = {"ttl_cold_below": 2, "ttl_warm_below": 5, "initial": "hot"}
_SMALL = {"hot_tokens": 20, "hot_facts": 4, "most_cold": 2, "grace": 3}
_OF_SESSIONS = {"session_tokens": 12, "session_facts": 2}
_rules = st.builds(
    lambda caps, limits, lifetime, **others: replace(Rules(**caps), **limits, **lifetime, **others),
    caps=caps,
    limits=_some([_SMALL, _SMALL | _OF_SESSIONS, _OF_SESSIONS, {}]),
    lifetime=_some([{}, _LIFETIME]),
    boosts=_boosts,
    multiplier=st.integers(1, 3),
    default_limit=st.integers(0, 4),
    context_tokens=_some([None, None, 20, 60]),
    auto_spill=_some([True, True, True, False]),
    auto_prune=_some([False, False, True]),
    decays=st.booleans(),
    merges=_some([False, False, True]),
)
switches = st.builds(
    Switches,
    rules=_rules,
    snapshots=_some([(1, 1), (4, 6), (10_000, 1_000_000)]),
    cache_size=_some([0, 1, 65536]),
    reproducible=st.booleans(),
    seed=_some([0, 7]),
    sync=_some(["manual", "manual", "manual", "close", "commit"]),
    searches=st.booleans(),
    wall=st.booleans(),
)


_OF_PINNED = ("kind", "tags", "key", "session")


def _mostly_sensible(item: tuple[Any, ...]) -> tuple[Any, ...]:
    """A pinned memory is hot for ever; now and then, it is asked to be something else.

    One in four that has a key keeps the tier of the former.
    """
    agent, text, tier, extra, options, anyway = item
    if "key" in options and extra is not None and len(extra) % 2 == 0:
        tier = (None, None)
    if tier[0] in (None, PINNED) and not anyway:
        options = {key: options[key] for key in _OF_PINNED if key in options}
    return (agent, text, tier, extra, options)


_options = st.fixed_dictionaries(
    {"ttl": _some([None, None, None, 1, 3, 6])},
    optional={
        "kind": _kinds,
        "tags": st.lists(_tag, max_size=2),
        "temperature": _some(["hot", "hot", "warm", "cold", "cold"]),
        "key": _some(["diet", "place"]),
        "session": _some(["talk", "talk", 7, "7"]),
    },
)
adding = st.tuples(
    agents, texts, spelled_tiers, metadata, _options, _some([False] * 7 + [True])
).map(_mostly_sensible)

_tiers = st.integers(0, 4)
_filters = st.fixed_dictionaries(
    {},
    optional={
        "tier": st.lists(_tiers, min_size=1, max_size=3),
        "temperature": st.lists(_some(TEMPERATURES), min_size=1, max_size=3),
        "kind": st.lists(_kinds, min_size=1, max_size=2),
        "tags": st.lists(_tag, min_size=1, max_size=2),
        "min_score": _some([0.0, 0.3, 0.9]),
        "since_tick": st.integers(0, 6),
        "session": _sessions,
    },
)
_requests = st.lists(st.tuples(agents, _queries), max_size=6)
_groups = _some(["guild", "guild", "alice"])
_one = st.one_of(st.none(), agents)


def _of_memory(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(st.just("of_memory"), st.just(name), agents, picks, *arguments)


_add = st.tuples(st.just("add"), adding)
operation = st.one_of(
    _add,
    _add,
    _add,
    st.tuples(st.just("add_many"), st.lists(adding, max_size=6)),
    st.tuples(st.just("add_many"), st.lists(adding, max_size=4), agents),
    st.tuples(st.just("record_observation"), agents, texts, spelled_tiers),
    st.tuples(st.just("record_action"), agents, st.booleans(), spelled_tiers),
    st.tuples(st.just("update"), agents, picks, texts, st.none() | spelled_tiers),
    _of_memory("set_tier", spelled_tiers),
    _of_memory("pin"),
    st.tuples(st.just("pin_what_is_critical"), agents, picks),
    _of_memory("unpin", spelled_tiers),
    _of_memory("promote"),
    _of_memory("demote", _some(["warm", "cold", "cold"])),
    st.tuples(st.just("cold_to_hot_to_cold"), agents, picks),
    st.tuples(st.just("delete_and_restore"), agents, picks, st.integers(0, 4)),
    _some(["archive", "delete", "restore", "restore", "forget"]).flatmap(_of_memory),
    st.tuples(st.just("tell"), agents, picks, agents),
    st.tuples(st.just("tell"), agents, picks, agents),
    st.tuples(st.just("tell_and_retract"), agents, picks, agents, st.none() | texts),
    st.tuples(st.just("join"), agents, _groups),
    st.tuples(st.just("post"), agents, _groups, texts, spelled_tiers),
    st.tuples(st.just("post"), agents, _groups, texts, spelled_tiers),
    st.tuples(st.just("leave"), agents, _groups),
    st.tuples(st.just("search_groups"), agents, _queries, _limits, _tokens),
    st.tuples(st.just("trust"), agents, agents, _some([0, 0.5, 1])),
    st.tuples(st.just("spill"), agents, st.none(), st.none() | st.lists(picks, max_size=3)),
    st.tuples(st.just("spill"), agents, st.integers(0, 3), st.none()),
    st.tuples(st.just("spill"), agents, st.none(), st.none(), st.integers(0, 30)),
    st.tuples(st.just("spill"), agents, st.none() | picks, st.none(), st.none(), _sessions),
    st.tuples(
        st.just("spill"), agents, st.none(), st.lists(picks, max_size=3), st.none(), _sessions
    ),
    st.tuples(
        st.just("recall"),
        agents,
        _queries,
        st.integers(0, 5),
        st.booleans(),
        _some([None, None, ["fact"], ["decision", "fact"]]),
        _some([None, None, 0.5]),
        _some([True, True, False]),
        st.none() | _sessions,
    ),
    st.tuples(
        st.just("search"), agents, _queries, _limits, _tokens, st.just({}) | _filters, st.booleans()
    ),
    st.tuples(st.just("search_many"), _requests, _limits, _tokens),
    st.tuples(st.just("relevant"), agents, _queries, _limits, _tokens, st.none() | _sessions),
    st.tuples(st.just("compact"), _one),
    st.tuples(st.just("compact"), agents, _sessions),
    st.tuples(st.just("prune"), _one),
    st.tuples(st.just("sweep")),
    st.tuples(st.just("advance"), st.integers(-2, 3)),
    st.tuples(st.just("pass_time"), st.integers(1, 5)),
    st.tuples(st.just("pass_at_once"), st.integers(-1, 5)),
    st.tuples(st.just("wall_clock_moves"), st.integers(-3, 5)),
)
operations = st.lists(operation, min_size=1, max_size=4)
