"""A bank's store and LangGraph's own store in memory give the same results."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from agents import MemoryBank
from agents.langgraph import TierMemStore

LABELS = st.sampled_from(["a", "b", "A", "@", "a b", "é", "x" * 150])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["", " ", "k", "K", "lg:1:k", "lg:k:k", "k" * 300, "@@"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "1", "é"])
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("pqr"), inner, max_size=3)
    ),
    max_leaves=6,
)
VALUES = st.dictionaries(st.sampled_from(["p", "q", "n"]), JSON, max_size=3)
NUMBERED = VALUES.map(
    lambda value: {**value, "n": 1.5}
)  # LangGraph's $gt raises for what is not a number
PUTS = st.builds(
    PutOp,
    NAMESPACES,
    KEYS,
    st.none() | NUMBERED,
    st.sampled_from([None, False, ["p"], ["p", "q.p", "q[*]"]]),
    st.none(),
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "p": JSON.filter(lambda value: not _has_numbers(value)),
        "q": st.builds(
            lambda operator, own: {operator: own},
            st.sampled_from(["$eq", "$ne"]),
            JSON.filter(lambda value: not _has_numbers(value)),
        ),
        "n": st.builds(
            lambda operator, number: {operator: number},
            st.sampled_from(["$gt", "$gte", "$lt", "$lte", "$eq", "$ne"]),
            st.sampled_from([1, 1.5, 2]),
        ),
    },
)
PREFIXES = st.just(()) | NAMESPACES
CONDITIONS = st.builds(
    MatchCondition,
    st.sampled_from(["prefix", "suffix"]),
    st.lists(LABELS | st.just("*"), max_size=3).map(tuple),
)
OPS = (
    PUTS
    | PUTS
    | st.builds(GetOp, NAMESPACES, KEYS)
    | st.builds(lambda prefix, wanted: SearchOp(prefix, wanted, 1000), PREFIXES, FILTERS)
    | st.builds(
        lambda conditions, depth: ListNamespacesOp(conditions, depth, 1000),
        st.lists(CONDITIONS, max_size=2).map(tuple),
        st.none() | st.integers(1, 3),
    )
)


def _has_numbers(value: object) -> bool:
    """Python says that True is 1; a bank does not."""
    if isinstance(value, list | dict):
        return any(map(_has_numbers, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int | bool)


def shown(result: Any) -> Any:
    """What is told of a result: LangGraph's store orders items by their first put."""
    if isinstance(result, list):
        return sorted((repr(each) if isinstance(each, tuple) else shown(each)) for each in result)
    if result is None:
        return None
    return json.dumps([result.namespace, result.key, result.value], sort_keys=True)


@given(st.lists(st.lists(OPS, max_size=6), max_size=5))
def test_every_batch_has_the_results_of_langgraphs_own_store(batches: list[list[Any]]) -> None:
    theirs = InMemoryStore()
    with MemoryBank.ephemeral() as bank:
        ours = TierMemStore(bank)
        for batch in batches:
            expected = theirs.batch(batch)
            # It lists namespaces that a read named, or that have no item any more.
            full = {ns for ns, own in theirs._data.items() if own}
            for op, own, other in zip(batch, ours.batch(batch), expected, strict=True):
                if not isinstance(op, ListNamespacesOp):
                    assert shown(own) == shown(other)
            listed = ours.list_namespaces(limit=1000)
            assert listed == sorted(full)
        for op in [each for batch in batches for each in batch]:
            if isinstance(op, ListNamespacesOp):
                clean = InMemoryStore()
                clean.batch([PutOp(namespace, "k", {}) for namespace in full])
                assert ours.batch([op]) == clean.batch([op])


@given(st.lists(PUTS, max_size=12), st.sampled_from(["x", "p", "1", "anything else"]))
def test_a_query_gives_each_item_once_with_scores_that_fall(puts: list[PutOp], query: str) -> None:
    with MemoryBank.ephemeral(preset="vector") as bank:
        store = TierMemStore(bank)
        for put in puts:
            store.batch([put])
        found = store.search((), query=query, limit=1000)
        places = [(each.namespace, each.key) for each in found]
        listed = [(each.namespace, each.key) for each in store.search((), limit=1000)]
        assert sorted(places) == sorted(listed)
        assert len(set(places)) == len(places)
        scores = [2.0 if each.score is None else -each.score for each in found]
        assert scores == sorted(scores)
        pages = [store.search((), query=query, limit=2, offset=at) for at in range(0, 12, 2)]
        assert [(each.namespace, each.key) for page in pages for each in page] == places
