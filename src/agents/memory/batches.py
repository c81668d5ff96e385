"""What the batched calls take, looked at all at once.

A tick has thousands of requests, and nearly all are plain: tuples of one length, texts in ASCII.
To look at them together takes two thirds of what it takes to look at each. Where one is anything
else, each is looked at by itself, which takes it or says what is wrong with it. So is what
comes out of an iterator, as it comes: it may give the same list again and again, with other things
in it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from .checks import are_agent_ids, are_plain_texts
from .metadata import SharedMetadata
from .requests import PLAIN_OPTIONS, NewBatch, check_iterable, check_new, check_search
from .tiers import TIER_VALUES, Tier

__all__ = ["check_all_new", "check_searches"]

_FEW = 8
"""Fewer are looked at faster one by one."""
_LONGEST = 1000
"""Characters of a query that is surely not too long."""


def check_searches(requests: Iterable[object]) -> tuple[list[str], list[str]]:
    """Agents and queries from pairs."""
    columns = _columns(requests)
    if len(columns) == 2:
        agents, queries = columns
        if are_agent_ids(agents) and are_plain_texts(queries, _LONGEST):
            return list(agents), list(queries)
    checked = [check_search(request) for request in check_iterable(requests)]
    return [agent for agent, _ in checked], [query for _, query in checked]


def check_all_new(
    items: Iterable[object], most_bytes: int, shared: SharedMetadata | None = None
) -> NewBatch:
    """New memories from what :func:`check_new` takes."""
    columns = _columns(items)
    if len(columns) in (2, 3):
        agents, contents, *given = columns
        tiers = _tiers(given[0]) if given else [Tier.NORMAL] * len(contents)
        if (
            tiers is not None
            and are_agent_ids(agents)
            and are_plain_texts(contents, most_bytes)  # a character of theirs is a byte
            and all(contents)
            and not any(map(str.isspace, contents))
        ):
            size = len(agents)
            return NewBatch(agents, contents, tiers, (None,) * size, (PLAIN_OPTIONS,) * size)
    return NewBatch.of([check_new(item, most_bytes, shared) for item in check_iterable(items)])


def _columns(items: Any) -> list[tuple[Any, ...]]:
    """The first values of all items, the second values, and so on.

    Empty where the items are not tuples or lists of one length, and where they are few.
    """
    if type(items) not in (list, tuple) or len(items) < _FEW:
        return []
    if not set(map(type, items)) <= {tuple, list}:
        return []
    try:
        return list(zip(*items, strict=True))
    except ValueError:
        return []


def _tiers(given: Sequence[object]) -> Sequence[Tier] | None:
    """Tiers, if they are given as such or by their names."""
    kinds = set(map(type, given))
    if kinds == {Tier}:
        return given  # type: ignore[return-value]
    if kinds != {str}:
        return None
    tiers = list(map(TIER_VALUES.get, given))  # type: ignore[arg-type]
    return None if None in tiers else tiers  # type: ignore[return-value]
