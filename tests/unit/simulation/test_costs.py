"""What calls of a language model cost: sums over the exchanges of a cassette."""

from agents.config.load import load_settings
from agents.simulation.policies.cassette import Exchange
from agents.simulation.policies.costs import alike, calls_of, spent, spent_by, summary_of_calls

PRICED = load_settings(
    {"llm": {"prices": [{"model": "m", "read": 1.0, "cached": 0.1, "written": 4.0}]}}
).llm
ASKED = [{"role": "user", "content": "x" * 400}]
CALL = Exchange(
    1, "alice", 0, ASKED, reply="yes", purpose="decision", model="m", read=1000, cached=600,
    written=50, seconds=2.0,
)  # fmt: skip


def test_cached_tokens_have_a_price_of_their_own() -> None:
    (call,) = calls_of([CALL], PRICED)
    assert call.cost == (400 * 1.0 + 600 * 0.1 + 50 * 4.0) / 1e6
    assert (call.read, call.cached, call.written, call.estimated) == (1000, 600, 50, False)


def test_a_model_without_a_price_has_no_cost_and_neither_has_the_sum() -> None:
    calls = calls_of([CALL, CALL._replace(agent="bob", model="other")], PRICED)
    assert [call.cost is None for call in calls] == [False, True]
    assert spent(calls).cost is None
    assert spent(calls[:1]).cost is not None


def test_tokens_that_nobody_counted_are_estimated_from_the_texts() -> None:
    (call,) = calls_of([CALL._replace(read=None, cached=None, written=None)], PRICED)
    assert (call.read, call.cached, call.written, call.estimated) == (100, 0, 1, True)


def test_what_was_passed_over_or_shared_costs_nothing() -> None:
    passed = CALL._replace(reply=None, kind="Timeout", error="late", read=None, written=None)
    calls = calls_of([passed, CALL._replace(agent="bob", shared=True)], PRICED)
    assert [(call.read, call.written, call.cost, call.usable) for call in calls] == [
        (0, 0, 0.0, False), (0, 0, 0.0, True),
    ]  # fmt: skip
    assert calls[0].problem == "Timeout: late"
    assert spent(calls).calls == 0


def test_sums_are_by_tick_agent_and_kind_whoever_answered_first() -> None:
    later = CALL._replace(tick=2, purpose="flush", seconds=4.0)
    calls = calls_of([later, CALL._replace(agent="bob"), CALL], PRICED)
    assert [(call.tick, call.agent) for call in calls] == [(1, "alice"), (1, "bob"), (2, "alice")]
    assert {tick: own.tokens for tick, own in spent_by(calls, "tick").items()} == {1: 2100, 2: 1050}
    assert [own.median_seconds for own in spent_by(calls, "kind").values()] == [2.0, 4.0]
    assert spent_by(calls, "agent")["alice"].calls == 2


def test_problems_that_differ_in_what_they_quote_are_one() -> None:
    bad = [
        CALL._replace(attempt=place, reply=f"no {place}", problem=f"it is no object: [{place}]")
        for place in range(3)
    ]
    summary = summary_of_calls([*bad, CALL._replace(tick=2)], PRICED)
    assert summary["problems"] == {"it is no object": 3}
    assert (summary["usable"], summary["unusable"]) == (1, 3)
    assert summary["example"]["reply"] == "no 0"
    assert alike("Expecting value: line 7 column 13") == "Expecting value: line N column N"
