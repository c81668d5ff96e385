"""Settings of temperature, decay, retention and status: their defaults, durations and rules."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agents.config.load import load_settings
from agents.config.settings import ClockSettings
from agents.errors import ConfigError, InvalidInput
from agents.memory.records import KINDS
from agents.memory.tiers import TIER_NAMES
from banks import ROOT
from default_rules import default_rules

SCHEMA = yaml.safe_load((ROOT / "config" / "schema.yaml").read_text(encoding="utf-8"))
DURATION = "a duration: ticks, or text such as 7d or 12h"
PERIOD = "a duration of at least one tick: ticks, or text such as 7d or 12h"
KIND = "message, fact, decision, preference, entity, context, observation, action, note or insight"
TAG = "a tag: 1 to 64 characters without commas and without blanks around"


def refusal(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(*args, **kwargs)
    return str(caught.value)


def with_rules(*rules: Mapping[str, Any]) -> dict[str, Any]:
    return {"temperature": {"rules": list(rules)}}


# Defaults


def test_the_defaults_of_temperature_are_these() -> None:
    temperature = load_settings().temperature
    assert replace(temperature, rules=()) == type(temperature)(
        initial="warm", ttl_cold_below=None, ttl_warm_below=None, hot_max_tokens=2000,
        hot_max_facts=50, auto_spill=True, warm_access_threshold=3, auto_promote=True,
        promote_threshold=0.85, promote_accesses=3, promote_window="7d", min_score=0.2,
        max_cold_items=1000, auto_prune=False, compact_every=None, compact_on_close=False,
        inactive_preference="7d", rules=(),
    )  # fmt: skip


def test_the_default_rules_are_these_in_this_order() -> None:
    settings: Any = load_settings().to_dict()
    assert settings["temperature"]["rules"] == default_rules()


def test_nothing_fades_and_nothing_is_measured_unless_asked_for() -> None:
    settings = load_settings()
    assert not settings.decay.enabled
    assert not settings.telemetry.enabled


def test_the_other_defaults_are_these() -> None:
    settings = load_settings().to_dict()
    assert settings["clock"] == {"mode": "ticks", "ticks_per_day": 24}
    assert settings["decay"] == {
        "enabled": False,
        "half_life": {"critical": "90d", "important": "60d", "normal": "30d", "low": "7d"},
        "hot_below": 0.5,
        "warm_below": 0.25,
        "every": "1d",
    }
    assert settings["retention"] == {"grace": "7d"}
    assert settings["status"] == {"spill_above": 0.9}


def test_the_schema_knows_the_kinds_and_tiers_that_memories_have() -> None:
    condition = SCHEMA["$defs"]["condition"]["properties"]
    assert tuple(condition["kind"]["else"]["enum"]) == KINDS
    assert condition["tier"]["else"]["enum"] == list(TIER_NAMES.values())
    assert [KIND.replace(" or ", ", ")] == [", ".join(KINDS)]


def test_every_key_of_a_new_section_is_described_in_the_schema() -> None:
    sections = ("clock", "temperature", "decay", "retention", "status", "telemetry")
    for section in (SCHEMA["properties"][name] for name in sections):
        assert all(each["description"] for each in (section, *section["properties"].values()))


def test_a_whole_number_for_a_fraction_is_a_float() -> None:
    settings = load_settings({"temperature": {"min_score": 1}, "status": {"spill_above": 0}})
    assert type(settings.temperature.min_score) is type(settings.status.spill_above) is float


# Durations


@pytest.mark.parametrize(
    ("duration", "ticks"),
    [(0, 0), (90, 90), ("90", 90), ("0d", 0), ("7d", 70), ("24h", 10), ("12h", 5), ("007d", 70)],
)
def test_a_duration_is_translated_to_ticks(duration: int | str, ticks: int) -> None:
    assert ClockSettings("ticks", 10).ticks(duration) == ticks


@pytest.mark.parametrize(
    ("hours", "ticks_per_day", "ticks"), [("1h", 1, 1), ("25h", 1, 2), ("1h", 10, 1), ("3h", 10, 2)]
)
def test_hours_round_up_to_whole_ticks(hours: str, ticks_per_day: int, ticks: int) -> None:
    assert ClockSettings("ticks", ticks_per_day).ticks(hours) == ticks


@given(st.integers(0, 10**9 - 1), st.integers(1, 86_400_000))
def test_so_many_days_are_24_times_as_many_hours(days: int, ticks_per_day: int) -> None:
    clock = ClockSettings("ticks", ticks_per_day)
    if days * 24 < 10**9:
        assert clock.ticks(f"{days}d") == clock.ticks(f"{days * 24}h")
    assert clock.ticks(f"{days}d") < 2**63


@pytest.mark.parametrize(
    "duration", ["7 days", "", "d", "-1d", "1.5d", "7D", "7d\n", "٣d", "9999999999d", -1, True, 1.5]
)
def test_what_is_no_duration_is_refused_by_the_clock(duration: Any) -> None:
    with pytest.raises(InvalidInput, match="is not a duration; use ticks, or text such as 7d"):
        ClockSettings("ticks", 24).ticks(duration)


@pytest.mark.parametrize(
    "duration", ["7 days", "", "d", "-1d", "1.5d", "7D", "7d\n", "٣d", "9999999999d", -1, True, 1.5]
)
def test_what_is_no_duration_is_refused_in_settings(duration: object) -> None:
    message = refusal({"retention": {"grace": duration}})
    assert message.startswith(f"config mapping: retention.grace must be {DURATION}, not ")


@pytest.mark.parametrize("duration", [0, 90, "90", "7d", "12h"])
def test_a_duration_is_kept_as_it_was_written(duration: int | str) -> None:
    settings = load_settings({"retention": {"grace": duration}})
    assert settings.retention.grace == duration
    assert settings.to_dict()["retention"] == {"grace": duration}


@pytest.mark.parametrize("key", ["decay.half_life.low", "temperature.compact_every"])
@pytest.mark.parametrize("nothing", [0, "0", "0d", "000h"])
def test_where_nothing_makes_no_sense_a_duration_is_at_least_a_tick(
    key: str, nothing: int | str
) -> None:
    assert f"{key} must be {PERIOD}" in refusal(overrides={key: nothing})
    load_settings(overrides={key: "10d"})
    load_settings(overrides={key: "01h"})


# Bad values


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("clock.ticks_per_day", "0", "a whole number from 1 to 86400000, not 0"),
        ("temperature.initial", "tepid", "hot, warm or cold, not the text 'tepid'"),
        ("temperature.ttl_cold_below", "7 days", f"{DURATION}, or null, not the text '7 days'"),
        ("temperature.ttl_warm_below", "-1", f"{DURATION}, or null, not -1"),
        ("temperature.hot_max_tokens", "-1", "a whole number, 0 or more, not -1"),
        ("temperature.hot_max_facts", "1.5", "a whole number, 0 or more, or null, not 1.5"),
        ("temperature.auto_spill", "1", "true or false, not 1"),
        ("temperature.auto_spill", "'no'", "true or false, not the text 'no'"),
        ("temperature.warm_access_threshold", "-1", "a whole number, 0 or more, not -1"),
        ("temperature.promote_threshold", "85", "a number from 0 to 1, not 85"),
        ("temperature.promote_accesses", "17", "a whole number from 1 to 16, not 17"),
        ("temperature.promote_accesses", "0", "a whole number from 1 to 16, not 0"),
        ("temperature.promote_window", "null", f"{DURATION}, not null"),
        ("temperature.promote_window", "10000000000", "at most 999999999, not 10000000000"),
        ("temperature.min_score", "-0.1", "a number from 0 to 1, not -0.1"),
        ("temperature.max_cold_items", "many", "a whole number, 0 or more, not the text 'many'"),
        ("temperature.auto_prune", "null", "true or false, not null"),
        ("temperature.compact_every", "0d", f"{PERIOD}, or null, not the text '0d'"),
        ("temperature.compact_on_close", "[]", "true or false, not a list"),
        ("temperature.rules", "{}", "a list, not a mapping"),
        ("decay.enabled", "sure", "true or false, not the text 'sure'"),
        ("decay.half_life", "30d", "a mapping of keys, not the text '30d'"),
        ("decay.half_life.low", "0", f"{PERIOD}, not 0"),
        ("decay.hot_below", "2", "a number from 0 to 1, not 2"),
        ("decay.warm_below", "x", "a number from 0 to 1, not the text 'x'"),
        ("retention.grace", "7 days", f"{DURATION}, not the text '7 days'"),
        ("status.spill_above", "90", "a number from 0 to 1, not 90"),
        ("status.spill_above", "-1", "a number from 0 to 1, not -1"),
        ("telemetry.enabled", "otlp", "true or false, not the text 'otlp'"),
    ],
)
def test_a_bad_value_is_told_what_is_allowed(key: str, value: str, said: str) -> None:
    assert refusal(assignments=[f"{key}={value}"]) == f"--set {key}={value}: {key} must be {said}"


def test_a_pinned_half_life_is_unknown_since_pinned_never_fades() -> None:
    assert refusal({"decay": {"half_life": {"pinned": "9d"}}}) == (
        "config mapping: unknown key decay.half_life.pinned; did you mean"
        " memory.tier_boosts.pinned?"
    )


# Rules


@pytest.mark.parametrize(
    "condition",
    [
        {},
        {"kind": "fact"},
        {"kind": ["fact", "message"], "tag": ["a", "b c"], "tier": ["low", "normal"]},
        {
            "temperature": ["hot", "warm"],
            "idle": 0,
            "idle_below": "2d",
            "age": "12h",
            "accesses": 0,
        },
        {"accesses_below": 3, "any": [{}, {"tag": "x"}, {"any": [{"tier": "pinned"}]}]},
    ],
)
def test_a_rule_survives_the_round_trip(condition: dict[str, Any]) -> None:
    rule = {"name": "mine", "when": condition, "unless": condition, "to": "hot"}
    settings = load_settings(with_rules(rule))
    assert settings.to_dict()["temperature"]["rules"] == [rule]  # type: ignore[index]
    assert load_settings(settings.to_dict()) == load_settings(settings) == settings
    assert hash(load_settings(settings.to_dict())) == hash(settings)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({}, "temperature.rules[0] needs name, when and to"),
        ({"name": "x", "when": {}}, "temperature.rules[0] needs to"),
        (
            {"name": "x", "when": {}, "to": "cool"},
            "temperature.rules[0].to must be hot, warm or cold, not the text 'cool'",
        ),
        (
            {"name": "", "when": {}, "to": "hot"},
            "temperature.rules[0].name must be text that is not empty, not an empty text",
        ),
        (
            {"name": "x", "when": {}, "to": "hot", "unles": {}},
            "unknown key temperature.rules[0].unles; did you mean temperature.rules[0].unless?",
        ),
        (
            {"name": "x", "when": "always", "to": "hot"},
            "temperature.rules[0].when must be a mapping of keys, not the text 'always'",
        ),
        (
            {"name": "x", "when": {}, "unless": None, "to": "hot"},
            "temperature.rules[0].unless must be a mapping of keys, not null",
        ),
    ],
)
def test_a_bad_rule_is_told_where_and_why(rule: dict[str, Any], said: str) -> None:
    assert refusal(with_rules(rule)) == f"config mapping: {said}"


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ({"kind": "facts"}, f".kind must be {KIND}, not the text 'facts'"),
        ({"kind": 3}, f".kind must be {KIND}, not 3"),
        ({"kind": ["fact", "x"]}, f".kind[1] must be {KIND}, not the text 'x'"),
        ({"kind": []}, ".kind must not be an empty list"),
        ({"tag": ""}, f".tag must be {TAG}, not an empty text"),
        ({"tag": "a, b"}, f".tag must be {TAG}, not the text 'a, b'"),
        ({"tag": ["a", " b"]}, f".tag[1] must be {TAG}, not the text ' b'"),
        ({"tag": [3]}, f".tag[0] must be {TAG}, not 3"),
        ({"temperature": "cool"}, ".temperature must be hot, warm or cold, not the text 'cool'"),
        ({"tier": 0}, ".tier must be pinned, critical, important, normal or low, not 0"),
        (
            {"idle": "7 days"},
            f".idle must be {DURATION}, or inactive_preference, not the text '7 days'",
        ),
        ({"idle_below": 0}, f".idle_below must be {PERIOD}, not 0"),
        ({"age": None}, f".age must be {DURATION}, not null"),
        ({"accesses": -1}, ".accesses must be a whole number, 0 or more, not -1"),
        ({"accesses_below": "3"}, ".accesses_below must be a whole number, 0 or more, not the"),
        ({"any": {"kind": "fact"}}, ".any must be a list, not a mapping"),
        ({"any": []}, ".any must not be an empty list"),
        ({"any": [{}, {"tag": 3}]}, f".any[1].tag must be {TAG}, not 3"),
    ],
)
@pytest.mark.parametrize("part", ["when", "unless"])
def test_a_bad_condition_is_told_where_and_why(
    part: str, condition: dict[str, Any], said: str
) -> None:
    rule = {"name": "x", "when": {}, "to": "hot", part: condition}
    message = refusal(with_rules({"name": "fine", "when": {}, "to": "hot"}, rule))
    assert message.startswith(f"config mapping: temperature.rules[1].{part}{said}")


@pytest.mark.parametrize(
    ("key", "near"), [("kinds", "kind"), ("tags", "tag"), ("acesses", "accesses")]
)
def test_an_unknown_key_of_a_condition_suggests_the_near_one(key: str, near: str) -> None:
    where = "temperature.rules[0].when"
    assert refusal(with_rules({"name": "x", "when": {key: "a"}, "to": "hot"})) == (
        f"config mapping: unknown key {where}.{key}; did you mean {where}.{near}?"
    )


def test_an_unknown_key_like_no_other_lists_those_of_a_condition() -> None:
    assert refusal(with_rules({"name": "x", "when": {"zzz": 1}, "to": "hot"})) == (
        "config mapping: unknown key temperature.rules[0].when.zzz; known here: kind, tag,"
        " temperature, tier, idle, idle_below, age, accesses, accesses_below, any"
    )


def test_a_mistake_in_a_rule_names_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(
        "temperature:\n  rules:\n    - name: x\n      when:\n        kind: facts\n      to: hot\n"
        "    - name: y\n      when: {}\n"
    )
    assert refusal("my.yaml").splitlines() == [
        f"my.yaml:5: temperature.rules[0].when.kind must be {KIND}, not the text 'facts'",
        "my.yaml:7: temperature.rules[1] needs to",
    ]


def test_a_list_of_rules_replaces_the_one_before() -> None:
    assert load_settings(with_rules()).temperature.rules == ()
    rule = {"name": "x", "when": {}, "to": "hot"}
    settings = load_settings(with_rules(rule), base=with_rules(rule, rule))
    assert settings.temperature.rules == (rule,)


def test_rules_cannot_be_written_to_at_any_depth() -> None:
    first = load_settings().temperature.rules[0]
    for part in (first, first["when"], first["when"]["any"][0]):
        assert isinstance(part, MappingProxyType)
    assert isinstance(first["when"]["any"], tuple)


def test_to_dict_shares_no_rule_with_the_settings() -> None:
    settings = load_settings()
    given: Any = settings.to_dict()
    given["temperature"]["rules"][0]["when"]["any"].clear()
    given["decay"]["half_life"].clear()
    assert settings == load_settings()


def test_redaction_leaves_rules_and_limits_of_tokens_alone() -> None:
    settings = load_settings(with_rules({"name": "x", "when": {"tag": "api_key"}, "to": "hot"}))
    assert settings.to_dict(redact=True) == settings.to_dict()


def test_a_bank_made_before_there_were_temperatures_gets_their_defaults() -> None:
    assert load_settings(base={"seed": 3}).temperature == load_settings().temperature
