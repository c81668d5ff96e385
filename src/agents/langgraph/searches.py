"""Searches of items: those that wait together are one search of the bank."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import ge, gt, le, lt
from types import MappingProxyType
from typing import Any, NamedTuple

from langgraph.store.base import ListNamespacesOp, MatchCondition, SearchOp

from ..errors import InvalidInput
from ..memory.records import Hit, Memory, shown
from ..memory.tiers import Tier
from ..search.request import SearchRequest
from ..storage.state.state import Accesses
from .items import INDEXED, Items, Namespace

_MOST = 1 << 40
"""More items than any bank has: a larger limit says no more."""


class Found(NamedTuple):
    """An item that a search found."""

    memory: Memory
    score: float | None
    """None without a query, and for an item that is not indexed."""


class _Scope(NamedTuple):
    """A search, the agents that it sees, and how many items it needs."""

    op: SearchOp
    agents: Sequence[str]
    most: int


def search(items: Items, ops: Sequence[SearchOp]) -> list[list[Found]]:
    """What each search finds: best first, or in the order of :func:`_listed` without a query.

    It counts no use: :func:`count_uses` does.
    """
    scopes = _scopes(items, ops)
    ranked = _ranked(items, {at: scope for at, scope in enumerate(scopes) if _has_query(scope.op)})
    results = []
    for at, scope in enumerate(scopes):
        page = ranked.get(at)
        if page is None:
            page = [Found(memory, None) for memory in _listed(items, scope)]
        elif len(page) < scope.most:
            page += [
                Found(memory, None)
                for memory in _listed(items, scope)
                if not memory.metadata.get(INDEXED, True)
            ]
        results.append(page[scope.op.offset : scope.most])
    return results


def count_uses(items: Items, results: Sequence[Sequence[Found]]) -> None:
    """Count what searches gave as used, as every search does."""
    given = [(found.memory, found.score) for page in results for found in page]
    used = [(memory, score) for memory, score in given if score is not None and score >= 0]
    accesses = Accesses.of([([memory.sequence], [score]) for memory, score in used])
    items.bank.engine.used([memory.agent_id for memory, _ in used], [accesses])


def namespaces(items: Items, op: ListNamespacesOp) -> list[Namespace]:
    """The namespaces that have items, in alphabetical order, cut to the depth that is asked for."""
    cut = {
        namespace[: op.max_depth]
        for agent, namespace in items.namespaces().items()
        if all(meets(namespace, each) for each in op.match_conditions or ())
        and items.bank.agent(agent).count()
    }
    return sorted(cut)[op.offset : op.offset + op.limit]


def _scopes(items: Items, ops: Sequence[SearchOp]) -> list[_Scope]:
    """Each search with the agents whose namespaces begin as it says."""
    agents: dict[Namespace, list[str]] = {tuple(op.namespace_prefix): [] for op in ops}
    sizes = {len(prefix) for prefix in agents}
    for agent, namespace in items.namespaces().items() if ops else ():
        for size in sizes:
            if size <= len(namespace) and namespace[:size] in agents:
                agents[namespace[:size]].append(agent)
    return [
        _Scope(op, agents[tuple(op.namespace_prefix)], min(op.offset + op.limit, _MOST))
        for op in ops
    ]


def _has_query(op: SearchOp) -> bool:
    return bool(op.query and op.query.strip())


def _listed(items: Items, scope: _Scope) -> list[Memory]:
    """The memories of all items that pass the filter, those of the newest tick first.

    In a tick, they are in the order of their agents, the newest of each agent first: a bank knows
    the order of an agent's memories, and its state does not depend on which agent came first.
    """
    memories = [
        memory
        for agent in scope.agents
        for memory in reversed(items.bank.agent(agent).all())
        if memory.kind != "note" and not items.is_part(memory) and _passes(items, scope, memory)
    ]
    return sorted(memories, key=lambda memory: -memory.created_tick)


def _passes(items: Items, scope: _Scope, memory: Memory) -> bool:
    return not scope.op.filter or matches(items.value(memory), scope.op.filter)


def _ranked(items: Items, waiting: Mapping[int, _Scope]) -> dict[int, list[Found]]:
    """The items of each search, best first: at least as many as it needs, if there are.

    Where parts and filters leave too few of the best memories, all memories are asked for; and
    where the best ones are unrelated, because the bank does not know which of them is nearest.
    """
    done: dict[int, list[Found]] = {}
    limits = [max([1, *[scope.most for scope in waiting.values()]]), _everything(items)]
    for limit in limits:
        hits = _hits(items, waiting, limit) if waiting else {}
        for at, scope in waiting.items():
            kept = [list(islice(_kept(items, scope, near), scope.most)) for near in hits[at]]
            if limit == limits[-1] or all(
                len(near) < limit or (len(chosen) == scope.most and all(map(_is_best, chosen)))
                for near, chosen in zip(hits[at], kept, strict=True)
            ):
                done[at] = _merged(items, kept)
        waiting = {at: scope for at, scope in waiting.items() if at not in done}
    return done


def _everything(items: Items) -> int:
    """At least as many memories as any agent has."""
    blocks = items.bank.engine.state.blocks
    return max([number for _, number in blocks.following()], default=1)


def _hits(items: Items, scopes: Mapping[int, _Scope], limit: int) -> dict[int, list[list[Hit]]]:
    """The hits of each agent of each search, of one search of the bank."""
    bank = items.bank.engine
    pairs = [(agent, str(s.op.query)) for s in scopes.values() for agent in s.agents]
    agents, queries = [agent for agent, _ in pairs], [query for _, query in pairs]
    with bank.observing():  # what a filter leaves out is not used
        with_cold = bank.state.cold > 0
        answers = iter(bank.find(SearchRequest(agents, queries, limit, with_cold=with_cold)))
    return {
        at: [_below_zero(items, str(scope.op.query), next(answers)) for _ in scope.agents]
        for at, scope in scopes.items()
    }


def _below_zero(items: Items, query: str, hits: list[Hit]) -> list[Hit]:
    """The hits, with the cosine for a score of 0, best first: LangGraph's scores go below it."""
    unrelated = [hit.memory for hit in hits if not hit.score]
    if not unrelated:
        return hits
    scores = iter(items.bank.engine.search.cosines(query, unrelated))
    scored = [hit if hit.score else _scored(hit, min(0.0, next(scores))) for hit in hits]
    return sorted(scored, key=_place)


def _scored(hit: Hit, score: float) -> Hit:
    return hit._replace(score=score, boosted_score=score + hit.boost)


def _kept(items: Items, scope: _Scope, hits: Sequence[Hit]) -> Iterator[Hit]:
    """The hits that are items of the search, each item once; a part stands for its item."""
    seen = set[int]()
    for hit in hits:
        memory = items.whole(hit.memory)
        if memory is None or memory.sequence in seen or not memory.metadata.get(INDEXED, True):
            continue
        seen.add(memory.sequence)
        if _passes(items, scope, memory):
            yield hit._replace(memory=memory)


def _merged(items: Items, kept: Sequence[list[Hit]]) -> list[Found]:
    """The items of several agents, in the order that the bank gives those of one."""
    hits = sorted(chain.from_iterable(kept), key=_place)
    return [Found(hit.memory, hit.score) for hit in hits]


def _place(hit: Hit) -> tuple[bool, float]:
    """Pinned items come first, then the best by score and tier boost."""
    is_pinned = hit.memory.tier is Tier.PINNED
    return not is_pinned, 0.0 if is_pinned else -hit.boosted_score


def _is_best(hit: Hit) -> bool:
    """Whether no memory that the bank left out can come before a hit."""
    return hit.score > 0 or hit.memory.tier is Tier.PINNED


# Which values a filter lets pass, and which namespaces meet a condition


_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
)
_OPERATORS = ("$eq", "$ne", *_ORDERS)


def check_filter(wanted: object) -> None:
    """Raise :class:`InvalidInput` if a filter is not a mapping, or has an unknown operator."""
    if wanted is None:
        return
    if not isinstance(wanted, Mapping):
        raise InvalidInput(f"a filter is a mapping such as {{'kind': 'note'}}, not {shown(wanted)}")
    for condition in wanted.values():
        if not isinstance(condition, Mapping):
            continue
        if not _has_operators(condition):
            check_filter(condition)
        elif unknown := [key for key in condition if key not in _OPERATORS]:
            raise InvalidInput(
                f"a filter has no operator {shown(unknown[0])}",
                hint=f"use {', '.join(_OPERATORS)}",
            )


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value has all that a filter names.

    A key that the value lacks is a path if it has dots: ``user.name`` is ``name`` inside ``user``.
    """
    return all(_holds(_at(value, path), each) for path, each in (wanted or {}).items())


def _at(value: Mapping[str, Any], path: object) -> Any:
    """What the value has there; None if it has nothing."""
    if not isinstance(path, str):  # all keys of a value are texts
        return None
    if path in value:
        return value[path]
    first, dot, rest = path.partition(".")
    inside = value.get(first)
    return _at(inside, rest) if dot and isinstance(inside, dict) else None


def _has_operators(wanted: Mapping[Any, Any]) -> bool:
    return any(str(key).startswith("$") for key in wanted)


def _holds(value: Any, wanted: Any) -> bool:
    """Whether a value is what is wanted, or has it: objects may have more keys."""
    if isinstance(wanted, Mapping):
        if _has_operators(wanted):
            return all(_compares(value, operator, other) for operator, other in wanted.items())
        return isinstance(value, dict) and all(_holds(value.get(k), v) for k, v in wanted.items())
    if isinstance(wanted, list | tuple):
        same_size = isinstance(value, list) and len(value) == len(wanted)
        return same_size and all(map(_holds, value, wanted))
    return _is_same(value, wanted)


def _compares(value: Any, operator: str, other: Any) -> bool:
    """Values of different kinds are never equal, and neither comes before the other."""
    if operator in _ORDERS:
        kind = _kind(value)
        is_ordered = kind in ("number", "str") and kind == _kind(other)
        return is_ordered and _ORDERS[operator](value, other)
    return _is_same(value, other) is (operator == "$eq")


def _is_same(value: Any, other: Any) -> bool:
    if isinstance(other, Mapping):
        same_keys = isinstance(value, dict) and value.keys() == other.keys()
        return same_keys and all(_is_same(value[key], other[key]) for key in value)
    if isinstance(other, list | tuple):
        same_size = isinstance(value, list) and len(value) == len(other)
        return same_size and all(map(_is_same, value, other))
    return _kind(value) == _kind(other) and bool(value == other)


def _kind(value: object) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


def meets(namespace: Namespace, condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends as the condition says; ``*`` stands for any label."""
    path: Sequence[str] = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise InvalidInput(
            f"a namespace has no {shown(condition.match_type)}", hint="use prefix or suffix"
        )
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)]
    if condition.match_type == "suffix":
        part = namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", own) for own, wanted in zip(part, path, strict=True))
