"""Compaction: the first rule that holds decides, hot keeps its limits, a second run is idle."""

from typing import Any

import numpy as np
import pytest

from agents.memory.records import Traits, traits
from agents.memory.tiers import Temperature, Tier
from agents.rules.compaction import Condition, Facts, Move, Rule, parse_rules, plan
from agents.rules.temperature import HotLimits
from default_rules import default_rules as as_written

HOT, WARM, COLD = Temperature
PLENTY = HotLimits(tokens=1_000_000, facts=1_000_000)


def ticks(duration: int | str) -> int:
    return duration if isinstance(duration, int) else int(duration.removesuffix("d")) * 24


@pytest.fixture
def default_rules() -> tuple[Rule, ...]:
    return parse_rules(as_written("7d"), ticks)


def row(
    temperature: Temperature,
    kind: str = "fact",
    *tags: str,
    tier: Tier = Tier.NORMAL,
    age: int = 0,
    idle: int = 0,
    accesses: int = 0,
) -> tuple[Tier, Temperature, int, int, int, Traits]:
    return tier, temperature, age, idle, accesses, traits(kind, tuple(sorted(tags)))


def facts(*rows: tuple[Tier, Temperature, int, int, int, Traits]) -> Facts:
    return Facts(
        np.array([each[0] for each in rows], np.int8),
        np.array([each[1] for each in rows], np.int8),
        np.array([each[2] for each in rows], np.int64),
        np.array([each[3] for each in rows], np.int64),
        np.array([each[4] for each in rows], np.int64),
        [each[5] for each in rows],
    )


def apply(given: Facts, moves: list[Move]) -> Facts:
    temperatures = given.temperatures.copy()
    for move in moves:
        temperatures[move.row] = move.to
    return given._replace(temperatures=temperatures)


def one_token(_row: int) -> int:
    return 1


def rule(to: Temperature, when: Condition | None = None, name: str = "rule") -> Rule:
    return Rule(name, when or Condition(), None, to)


def moved(given: Facts, when: Condition) -> list[int]:
    """The rows for which the condition holds, none of which is cold yet."""
    return [move.row for move in plan(given, [rule(COLD, when)], PLENTY, one_token)]


# Conditions


def test_an_empty_condition_always_holds() -> None:
    assert moved(facts(row(HOT), row(WARM, "decision", "x")), Condition()) == [0, 1]


def test_a_kind_is_any_of_those_given() -> None:
    given = facts(row(HOT, "fact"), row(HOT, "decision"), row(HOT, "entity"))
    assert moved(given, Condition(kinds=frozenset({"fact", "entity"}))) == [0, 2]


def test_one_of_the_tags_is_enough() -> None:
    given = facts(row(HOT), row(HOT, "fact", "a", "z"), row(HOT, "fact", "b"))
    assert moved(given, Condition(tags=frozenset({"a", "c"}))) == [1]


def test_tiers_and_temperatures_are_any_of_those_given() -> None:
    given = facts(row(HOT), row(WARM), row(WARM, tier=Tier.LOW))
    assert moved(given, Condition(temperatures=frozenset({WARM}))) == [1, 2]
    assert moved(given, Condition(tiers=frozenset({Tier.LOW, Tier.CRITICAL}))) == [2]


@pytest.mark.parametrize("key", ["idle", "age", "accesses"])
def test_idle_age_and_accesses_mean_at_least(key: str) -> None:
    rows: list[dict[str, Any]] = [{key: 4}, {key: 5}, {key: 6}]
    given = facts(*(row(HOT, **each) for each in rows))
    condition: dict[str, Any] = {key: 5}
    assert moved(given, Condition(**condition)) == [1, 2]


def test_accesses_below_means_fewer() -> None:
    given = facts(row(HOT), row(HOT, accesses=1), row(HOT, accesses=2))
    assert moved(given, Condition(accesses_below=2)) == [0, 1]
    assert moved(given, Condition(accesses_below=0)) == []


def test_everything_given_must_hold() -> None:
    given = facts(row(HOT, "decision", idle=3), row(HOT, "decision"), row(HOT, idle=3))
    assert moved(given, Condition(kinds=frozenset({"decision"}), idle=3)) == [0]


def test_any_needs_one_of_its_conditions_besides_the_rest() -> None:
    given = facts(row(HOT, "decision"), row(HOT, "fact", "task"), row(HOT), row(WARM, "decision"))
    either = (Condition(kinds=frozenset({"decision"})), Condition(tags=frozenset({"task"})))
    assert moved(given, Condition(any=either)) == [0, 1, 3]
    assert moved(given, Condition(temperatures=frozenset({HOT}), any=either)) == [0, 1]


def test_traits_that_are_equal_but_not_one_object_count_alike() -> None:
    twin = Traits("decision", (), "")
    given = facts(row(HOT, "decision"), row(HOT))._replace(traits=[twin, Traits(*twin)])
    assert moved(given, Condition(kinds=frozenset({"decision"}))) == [0, 1]


# Parsing


def test_rules_are_parsed_with_single_values_lists_and_durations() -> None:
    when = {
        "kind": "fact",
        "tag": ["a", "b"],
        "temperature": ["hot", "warm"],
        "tier": "low",
        "idle": "7d",
        "age": 3,
        "accesses": 1,
        "accesses_below": 9,
        "any": [{}, {"tag": "c"}],
    }
    given = [{"name": "n", "when": when, "unless": {"kind": ["entity"]}, "to": "cold"}]
    condition = Condition(
        kinds=frozenset({"fact"}),
        tags=frozenset({"a", "b"}),
        temperatures=frozenset({HOT, WARM}),
        tiers=frozenset({Tier.LOW}),
        idle=168,
        age=3,
        accesses=1,
        accesses_below=9,
        any=(Condition(), Condition(tags=frozenset({"c"}))),
    )
    unless = Condition(kinds=frozenset({"entity"}))
    assert parse_rules(given, ticks) == (Rule("n", condition, unless, COLD),)


def test_a_rule_without_unless_has_none() -> None:
    (parsed,) = parse_rules([{"name": "n", "when": {}, "to": "warm"}], ticks)
    assert parsed == Rule("n", Condition(), None, WARM)


# Deciding


def test_without_rules_or_memories_nothing_moves() -> None:
    assert plan(facts(row(HOT)), [], PLENTY, one_token) == []
    assert plan(facts(), [rule(COLD)], PLENTY, one_token) == []


def test_the_first_rule_that_holds_decides() -> None:
    rules = [rule(WARM, Condition(idle=5), "first"), rule(COLD, name="second")]
    moves = plan(facts(row(HOT, idle=5), row(HOT)), rules, PLENTY, one_token)
    assert moves == [Move(0, WARM, "first"), Move(1, COLD, "second")]


def test_a_first_rule_that_leaves_it_in_place_shields_it_from_later_rules() -> None:
    rules = [rule(HOT, Condition(tags=frozenset({"keep"}))), rule(COLD)]
    assert plan(facts(row(HOT, "fact", "keep")), rules, PLENTY, one_token) == []


def test_unless_keeps_a_rule_from_holding() -> None:
    rules = [Rule("r", Condition(), Condition(tags=frozenset({"open"})), COLD)]
    assert plan(facts(row(HOT, "fact", "open"), row(HOT)), rules, PLENTY, one_token) == [
        Move(1, COLD, "r")
    ]


def test_pinned_is_never_moved() -> None:
    given = facts(row(HOT, tier=Tier.PINNED), row(HOT, tier=Tier.CRITICAL))
    assert plan(given, [rule(COLD)], PLENTY, one_token) == [Move(1, COLD, "rule")]


def test_rules_that_lead_on_are_followed_to_the_end() -> None:
    rules = [
        rule(WARM, Condition(temperatures=frozenset({HOT})), "hot to warm"),
        rule(COLD, Condition(temperatures=frozenset({WARM}), idle=9), "warm to cold"),
    ]
    moves = plan(facts(row(HOT, idle=9), row(HOT)), rules, PLENTY, one_token)
    assert moves == [Move(0, COLD, "warm to cold"), Move(1, WARM, "hot to warm")]


def test_rules_that_lead_round_in_a_circle_move_nothing() -> None:
    rules = [
        rule(WARM, Condition(temperatures=frozenset({HOT}))),
        rule(HOT, Condition(temperatures=frozenset({WARM}))),
    ]
    assert plan(facts(row(HOT), row(WARM), row(COLD)), rules, PLENTY, one_token) == []


# Into hot


def test_the_newest_go_into_hot_first() -> None:
    given = facts(row(COLD), row(WARM), row(COLD))
    moves = plan(given, [rule(HOT)], HotLimits(99, 2), one_token)
    assert [move.row for move in moves] == [1, 2]


def test_one_that_does_not_fit_is_skipped_and_a_smaller_one_still_goes_in() -> None:
    given = facts(row(COLD), row(COLD), row(COLD))
    moves = plan(given, [rule(HOT)], HotLimits(10, 9), [4, 7, 6].__getitem__)
    assert [move.row for move in moves] == [0, 2]


def test_what_is_hot_already_counts_with_the_pinned() -> None:
    given = facts(row(HOT, tier=Tier.PINNED), row(HOT), row(COLD))
    assert plan(given, [rule(HOT)], HotLimits(2, 99), one_token) == []
    assert plan(given, [rule(HOT)], HotLimits(99, 2), one_token) == []
    assert len(plan(given, [rule(HOT)], HotLimits(3, 3), one_token)) == 1


def test_what_leaves_hot_makes_room_at_once() -> None:
    rules = [rule(COLD, Condition(idle=1), "out"), rule(HOT, name="in")]
    moves = plan(facts(row(HOT, idle=1), row(WARM)), rules, HotLimits(1, 1), one_token)
    assert moves == [Move(0, COLD, "out"), Move(1, HOT, "in")]


def test_where_hot_is_over_its_limits_nothing_goes_in_not_even_what_costs_nothing() -> None:
    given = facts(row(HOT), row(COLD))
    assert plan(given, [rule(HOT)], HotLimits(4, 9), [5, 0].__getitem__) == []


def test_the_cost_is_asked_only_of_rows_that_are_or_might_become_hot() -> None:
    asked: list[int] = []

    def cost(row: int) -> int:
        asked.append(row)
        return 1

    rules = [rule(HOT, Condition(tags=frozenset({"up"}))), rule(COLD, Condition(idle=1))]
    given = facts(row(HOT), row(HOT, idle=1), row(WARM), row(COLD, "fact", "up"), row(WARM, idle=1))
    plan(given, rules, PLENTY, cost)
    assert sorted(asked) == [0, 3]


# The default rules


@pytest.mark.parametrize("temperature", [HOT, WARM])
@pytest.mark.parametrize(("kind", "tags"), [("decision", ()), ("fact", ("task",))])
def test_what_is_completed_becomes_cold(
    default_rules: tuple[Rule, ...], temperature: Temperature, kind: str, tags: tuple[str, ...]
) -> None:
    given = facts(row(temperature, kind, *tags))
    assert plan(given, default_rules, PLENTY, one_token) == [Move(0, COLD, "completed")]


def test_an_open_task_only_cools_down(default_rules: tuple[Rule, ...]) -> None:
    given = facts(row(HOT, "fact", "open", "task"), row(WARM, "fact", "open", "task"))
    assert plan(given, default_rules, PLENTY, one_token) == [Move(0, WARM, "cool down")]


def test_a_preference_stays_hot_until_it_was_idle_for_a_week(
    default_rules: tuple[Rule, ...],
) -> None:
    given = facts(row(HOT, "preference", idle=167), row(HOT, "preference", idle=168))
    assert plan(given, default_rules, PLENTY, one_token) == [Move(1, WARM, "idle preference")]


def test_a_blocker_becomes_hot(default_rules: tuple[Rule, ...]) -> None:
    given = facts(row(WARM, "fact", "blocker"), row(COLD, "fact", "blocker"))
    moves = plan(given, default_rules, PLENTY, one_token)
    assert moves == [Move(0, HOT, "blocker"), Move(1, HOT, "blocker")]


def test_any_other_hot_memory_cools_down(default_rules: tuple[Rule, ...]) -> None:
    given = facts(row(HOT), row(WARM), row(COLD))
    assert plan(given, default_rules, PLENTY, one_token) == [Move(0, WARM, "cool down")]


@pytest.mark.parametrize("temperature", list(Temperature))
@pytest.mark.parametrize("kind", ["decision", "preference", "fact"])
@pytest.mark.parametrize("limits", [PLENTY, HotLimits(0, 0)])
def test_a_blocker_does_not_flip_between_runs(
    default_rules: tuple[Rule, ...], temperature: Temperature, kind: str, limits: HotLimits
) -> None:
    given = facts(row(temperature, kind, "blocker", "task", idle=500))
    after = apply(given, plan(given, default_rules, limits, one_token))
    assert plan(after, default_rules, limits, one_token) == []


def test_a_decision_that_blocks_is_hot_and_stays_so(default_rules: tuple[Rule, ...]) -> None:
    given = facts(row(COLD, "decision", "blocker"))
    moves = plan(given, default_rules, PLENTY, one_token)
    assert moves == [Move(0, HOT, "blocker")]
    assert plan(apply(given, moves), default_rules, PLENTY, one_token) == []


def test_a_preference_that_blocks_stays_hot_however_idle(default_rules: tuple[Rule, ...]) -> None:
    given = facts(row(HOT, "preference", "blocker", idle=500))
    assert plan(given, default_rules, PLENTY, one_token) == []
