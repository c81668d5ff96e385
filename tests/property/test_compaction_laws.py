"""Laws of compaction, for any rules and memories; and a row-by-row reference it must agree with."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agents.memory.records import Traits, traits
from agents.memory.tiers import Temperature, Tier
from agents.rules.compaction import Condition, Facts, Move, Rule, parse_rules, plan
from agents.rules.temperature import HotLimits
from default_rules import default_rules

KINDS = ("decision", "preference", "fact")
TAGS = ("blocker", "open", "task")
HOT = Temperature.HOT

DEFAULT_RULES = parse_rules(default_rules(idle=3), int)

small = st.integers(0, 5)


def some(*values: int) -> st.SearchStrategy[frozenset[int] | None]:
    return st.none() | st.frozensets(st.sampled_from(values), min_size=1)


def texts(values: Sequence[str]) -> st.SearchStrategy[frozenset[str] | None]:
    return st.none() | st.frozensets(st.sampled_from(values), min_size=1)


def conditions(
    inner: st.SearchStrategy[tuple[Condition, ...]],
) -> st.SearchStrategy[Condition]:
    return st.builds(
        Condition,
        kinds=texts(KINDS),
        tags=texts(TAGS),
        temperatures=some(*Temperature),
        tiers=some(*Tier),
        idle=st.just(0) | small,
        age=st.just(0) | small,
        accesses=st.just(0) | small,
        accesses_below=st.none() | small,
        any=inner,
    )


flat = conditions(st.just(()))
nested = conditions(st.just(()) | st.lists(flat, max_size=3).map(tuple))
one_rule = st.builds(
    Rule,
    name=st.sampled_from("abc"),
    when=nested,
    unless=st.none() | nested,
    to=st.sampled_from(Temperature),
)
# Sharp rules seldom meet a memory; those that ask for the temperature alone lead on and in circles.
by_temperature = st.builds(
    lambda before, to: Rule("t", Condition(temperatures=before), None, to),
    some(*Temperature),
    st.sampled_from(Temperature),
)
rule_lists = st.just(DEFAULT_RULES) | st.lists(one_rule | by_temperature, max_size=5).map(tuple)
limits = st.builds(HotLimits, tokens=st.integers(0, 30), facts=st.integers(0, 8))

Row = tuple[int, int, int, int, int, Traits, int]
rows = st.lists(
    st.tuples(
        st.sampled_from(Tier),
        st.sampled_from(Temperature),
        small,
        small,
        small,
        st.builds(
            lambda kind, tags: traits(kind, tuple(sorted(tags))),
            st.sampled_from(KINDS),
            st.sets(st.sampled_from(TAGS)),
        ),
        st.integers(0, 9),
    ),
    max_size=12,
)


def as_facts(given_rows: Sequence[Row]) -> Facts:
    return Facts(
        np.array([row[0] for row in given_rows], np.int8),
        np.array([row[1] for row in given_rows], np.int8),
        np.array([row[2] for row in given_rows], np.int64),
        np.array([row[3] for row in given_rows], np.int64),
        np.array([row[4] for row in given_rows], np.int64),
        [row[5] for row in given_rows],
    )


def run(given_rows: Sequence[Row], rules: Sequence[Rule], limit: HotLimits) -> list[Move]:
    return plan(as_facts(given_rows), rules, limit, lambda row: given_rows[row][6])


def applied(given_rows: Sequence[Row], moves: Sequence[Move]) -> list[Row]:
    after = list(given_rows)
    for move in moves:
        after[move.row] = (after[move.row][0], int(move.to), *after[move.row][2:])
    return after


def hot(given_rows: Sequence[Row]) -> HotLimits:
    tokens = [row[6] for row in given_rows if row[1] == HOT]
    return HotLimits(sum(tokens), len(tokens))


# The reference


def holds(condition: Condition, row: Row) -> bool:
    tier, temperature, age, idle, accesses, its, _ = row
    return (
        (condition.kinds is None or its.kind in condition.kinds)
        and (condition.tags is None or bool(condition.tags & set(its.tags)))
        and (condition.temperatures is None or temperature in condition.temperatures)
        and (condition.tiers is None or tier in condition.tiers)
        and idle >= condition.idle
        and age >= condition.age
        and accesses >= condition.accesses
        and (condition.accesses_below is None or accesses < condition.accesses_below)
        and (not condition.any or any(holds(each, row) for each in condition.any))
    )


def first_rule(rules: Sequence[Rule], row: Row) -> Rule | None:
    for rule in rules:
        if holds(rule.when, row) and not (rule.unless and holds(rule.unless, row)):
            return rule
    return None


def wanted(rules: Sequence[Rule], row: Row) -> Rule | None:
    """The rule by which the row comes to rest elsewhere, if it does."""
    last, passed = None, {row[1]}
    while (rule := first_rule(rules, row)) is not None and rule.to != row[1]:
        if rule.to in passed:
            return None
        passed.add(rule.to)
        last, row = rule, (row[0], int(rule.to), *row[2:])
    return last


def naive(given_rows: Sequence[Row], rules: Sequence[Rule], limit: HotLimits) -> list[Move]:
    asked = [
        Move(number, rule.to, rule.name)
        for number, row in enumerate(given_rows)
        if row[0] != Tier.PINNED and (rule := wanted(rules, row)) is not None
    ]
    moves = [move for move in asked if move.to != HOT]
    for move in reversed([move for move in asked if move.to == HOT]):
        after = hot(applied(given_rows, [*moves, move]))
        if after.tokens <= limit.tokens and after.facts <= limit.facts:
            moves.append(move)
    return sorted(moves)


# The laws


@given(rows, rule_lists, limits)
def test_a_plan_is_that_of_the_row_by_row_reference(
    given_rows: list[Row], rules: tuple[Rule, ...], limit: HotLimits
) -> None:
    assert run(given_rows, rules, limit) == naive(given_rows, rules, limit)


@given(rows, limits)
def test_the_default_rules_are_those_of_the_reference(
    given_rows: list[Row], limit: HotLimits
) -> None:
    assert run(given_rows, DEFAULT_RULES, limit) == naive(given_rows, DEFAULT_RULES, limit)


@given(rows, rule_lists, limits)
def test_a_second_run_finds_nothing_to_do(
    given_rows: list[Row], rules: tuple[Rule, ...], limit: HotLimits
) -> None:
    after = applied(given_rows, run(given_rows, rules, limit))
    assert run(after, rules, limit) == []


@given(rows, rule_lists, limits)
def test_pinned_is_never_moved_and_each_move_is_a_change(
    given_rows: list[Row], rules: tuple[Rule, ...], limit: HotLimits
) -> None:
    for move in run(given_rows, rules, limit):
        assert given_rows[move.row][0] != Tier.PINNED
        assert given_rows[move.row][1] != move.to


@given(rows, rule_lists, limits)
def test_hot_keeps_its_limits_or_shrinks(
    given_rows: list[Row], rules: tuple[Rule, ...], limit: HotLimits
) -> None:
    before, after = hot(given_rows), hot(applied(given_rows, run(given_rows, rules, limit)))
    assert after.tokens <= max(before.tokens, limit.tokens)
    assert after.facts <= max(before.facts, limit.facts)
