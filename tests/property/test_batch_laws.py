"""Laws of what batched calls take: each part of it is taken, or refused, as it is by itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import InvalidAgentId, Tier, TierMemError
from agents.memory.requests import check_all_new, check_new, check_searches
from examples import examples
from tiermem.testing.strategies import any_text, contents, not_tiers, queries, spellings, tiers

_MOST_BYTES = 64


class Named(str):
    """A text of another type."""

    __slots__ = ()


_IDS = ("alice", "bob", "carol")
_STRANGE_IDS = ("*", "", ".x", 7, None, ["alice"], Named("alice"), "é", "newcomer")
_TEXTS = ("tea at five", "a", "the budget is $50K", " padded ", "x" * 64)
_STRANGE_TEXTS = (
    "", " ", "\t\n", "a\0b", "\ud800", "x" * 65, "x" * 1000, "x" * 1001, "€" * 21, "€" * 22,
    "\u2003", "é", None, 3, b"bytes", ["tea"], Named("tea"), Named(" "),
)  # fmt: skip
_TIERS = {"as tiers": tuple(Tier), "by name": ("normal", "low", "pinned")}
_STRANGE_TIERS = (
    "LOW", "Pinned", "urgent", "", 3, 7, -1, True, 2.5, None, np.int64(2), ["low"], Named("low"),
    Tier.LOW, "low",
)  # fmt: skip
_STRANGE_ITEMS = (
    ("alice",), ("alice", "tea"), ("alice", "tea", 3), ("alice", "tea", 3, None),
    ("alice", "tea", 3, {"n": 1}, {"kind": "decision"}), ("alice", "tea", 3, None, None, None),
    ["alice", "tea"], ["alice", "tea", "low"], "al", "abc", None, {"alice": "tea"}, 7,
)  # fmt: skip


def _outcome(call):
    """What it gives, with its types, or the first error, with what it says."""
    try:
        result = call()
    except TierMemError as error:
        return type(error), str(error)
    return result, _types(result)


def _types(value):
    """A text of another type is equal to a text, and a tier to its number."""
    if isinstance(value, tuple | list):
        return [type(value), *map(_types, value)]
    return type(value)


def _check_searches(requests) -> None:
    def one_by_one():
        checked = [check_searches([request]) for request in requests]
        return [agent for (agent,), _ in checked], [query for _, (query,) in checked]

    assert _outcome(lambda: check_searches(requests)) == _outcome(one_by_one)


def _rows(new):
    return list(zip(*new, strict=True))


def _check_new(items) -> None:
    together = _outcome(lambda: _rows(check_all_new(items, _MOST_BYTES)))
    assert together == _outcome(lambda: [check_new(item, _MOST_BYTES) for item in items])


@pytest.mark.parametrize("place", [0, 4, 8])
def test_one_strange_search_among_plain_ones_is_taken_for_what_it_is(place) -> None:
    plain = [(agent, text) for agent in _IDS for text in _TEXTS[:3]]
    agent, text = plain[place]
    _check_searches(plain)
    for strange in (
        *[(other, text) for other in _STRANGE_IDS],
        *[(agent, other) for other in _STRANGE_TEXTS],
        *_STRANGE_ITEMS,
    ):
        _check_searches([*plain[:place], strange, *plain[place + 1 :]])


@pytest.mark.parametrize("place", [0, 4, 8])
@pytest.mark.parametrize("given", _TIERS)
def test_one_strange_memory_among_plain_ones_is_taken_for_what_it_is(given, place) -> None:
    tier_of = _TIERS[given]
    texts = enumerate(text for _ in _IDS for text in _TEXTS[:3])
    plain = [(_IDS[n % 3], text, tier_of[n % len(tier_of)]) for n, text in texts]
    agent, text, tier = plain[place]
    _check_new(plain)
    for strange in (
        *[(other, text, tier) for other in _STRANGE_IDS],
        *[(agent, other, tier) for other in (*_TEXTS, *_STRANGE_TEXTS)],
        *[(agent, text, other) for other in _STRANGE_TIERS],
        *_STRANGE_ITEMS,
    ):
        _check_new([*plain[:place], strange, *plain[place + 1 :]])


def test_a_tier_may_be_left_out_of_all() -> None:
    plain = [(agent, text) for agent in _IDS for text in _TEXTS[:3]]
    _check_new(plain)
    assert set(check_all_new(plain, _MOST_BYTES).tiers) == {Tier.NORMAL}
    for strange in ((7, "tea"), ("alice", " "), ("alice", None), ("alice", "tea", "low"), ("al",)):
        _check_new([*plain, strange])
    _check_new([("alice",)] * 9)
    _check_new([()] * 9)


_ids = st.sampled_from([*_IDS, *_IDS, *_STRANGE_IDS])
_texts = st.one_of(st.sampled_from(_TEXTS), st.sampled_from(_STRANGE_TEXTS), any_text, contents)
_any_tier = st.one_of(tiers, tiers.flatmap(spellings), not_tiers)


@given(st.lists(st.tuples(_ids, st.one_of(_texts, queries)) | st.sampled_from(_STRANGE_ITEMS)))
@settings(max_examples=examples(200))
def test_any_searches_are_checked_as_each_of_them_is(requests) -> None:
    _check_searches(requests)


@given(st.lists(st.tuples(_ids, _texts, _any_tier) | st.sampled_from(_STRANGE_ITEMS)))
@settings(max_examples=examples(200))
def test_any_new_memories_are_checked_as_each_of_them_is(items) -> None:
    _check_new(items)


def _refilled(rows):
    """One list again and again, with other things in it."""
    item: list[object] = []
    for row in rows:
        item[:] = row
        yield item


def test_what_an_iterator_gives_is_looked_at_as_it_comes() -> None:
    texts = [f"text {n}" for n in range(12)]
    assert check_searches(_refilled(("alice", text) for text in texts)) == (["alice"] * 12, texts)
    new = check_all_new(_refilled(("alice", text, "low") for text in texts), _MOST_BYTES)
    assert list(new.contents) == texts

    def failing():
        yield "*", "tea"
        raise OSError

    with pytest.raises(InvalidAgentId):
        check_searches(failing())
    with pytest.raises(InvalidAgentId):
        check_all_new(failing(), _MOST_BYTES)
