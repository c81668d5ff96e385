"""The profile memorysync is our operations: random calls leave the state of the plain ones."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import MemoryBank, tools
from examples import examples
from tiermem.testing import SmallEmbedder

PLAIN = {"clock": {"mode": "ticks", "ticks_per_day": 1440}, "embedder": SmallEmbedder()}
TEXTS = st.text(alphabet="ab ", min_size=1, max_size=6).filter(str.strip)
TIERS = st.sampled_from(["hot", "warm", "cold"])
STATUSES = {"active": "active", "archived": "archived", "soft_deleted": "deleted"}
Call = tuple[str, dict[str, Any], dict[str, Any]]
"""An operation, with its arguments under the document's names and under ours."""


@st.composite
def calls(draw: st.DrawFn) -> Call:
    which = draw(st.sampled_from(["add", "query", "update", "update", "forget", "advance"]))
    if which == "advance":
        given = {"by": draw(st.integers(0, 3000))}
        return "memory_advance", given, given
    theirs: dict[str, Any] = {}
    ours: dict[str, Any] = {}
    if which == "add":
        theirs["text"] = ours["content"] = draw(TEXTS)
        ours["metadata"] = theirs["metadata"] = {"x": draw(st.integers(0, 2))}
        if draw(st.booleans()):
            theirs["ttl_minutes"] = ours["ttl"] = draw(st.integers(1, 12_000))
    elif which == "query":
        theirs["query"] = ours["query"] = draw(TEXTS)
    elif draw(st.booleans()):
        theirs["text"] = ours["content"] = draw(TEXTS)
    if which in ("update", "forget"):
        number = draw(st.integers(1, 4))
        ours["memory_id"] = theirs["memory_id"] = number
    if which == "update" and draw(st.booleans()):
        theirs["retention_status"] = draw(st.sampled_from(sorted(STATUSES)))
        ours["retention"] = STATUSES[theirs["retention_status"]]
    if which == "forget":
        theirs, ours = ({"memory_id": each["memory_id"], "purge": True} for each in (theirs, ours))
    elif draw(st.booleans()):
        theirs["tier"] = ours["temperature"] = draw(TIERS)
    if which in ("add", "query"):
        place = "metadata" if which == "add" else "filters"
        for name in draw(st.lists(st.sampled_from(["source", "project_id", "environment"]))):
            theirs[name] = draw(st.sampled_from(["one", "two"]))
            key = name if which == "add" else f"metadata.{name}"
            ours[place] = {**ours.get(place, {}), key: theirs[name]}
    return f"memory_{which}", theirs, ours


def did(bank: MemoryBank, name: str, arguments: dict[str, Any], texts: str) -> object:
    """What an agent gets of a call: an error's type, or the texts of a result."""
    agent = bank.agent("ann")
    if "memory_id" in arguments:
        prefix = bank.engine.state.block("ann").prefix
        arguments = {**arguments, "memory_id": f"{prefix}{arguments['memory_id']:012x}"}
    outcome = tools.call(agent, name, arguments, "advance")
    if outcome.failure is not None:
        return outcome.failure.type
    result = outcome.result or {}
    rows = result.get("memories", result.get("results"))
    return None if rows is None else [(each["id"], each[texts], each["score"]) for each in rows]


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(st.lists(calls(), min_size=4, max_size=25))
def test_the_profile_leaves_the_state_of_the_plain_calls(made: list[Call]) -> None:
    with (
        MemoryBank.ephemeral(profile="memorysync", **PLAIN) as theirs,  # type: ignore[arg-type]
        MemoryBank.ephemeral(preset="lifetime", **PLAIN) as ours,  # type: ignore[arg-type]
    ):
        first: Call = "memory_add", {"text": "a"}, {"content": "a"}
        for name, named, plain in [first, first, *made]:
            assert did(theirs, name, named, "text") == did(ours, name, plain, "content")
            assert theirs.state_hash() == ours.state_hash(), (name, named)


@settings(max_examples=examples(100))
@given(
    st.integers(1, 10**7),
    st.sampled_from([1, 24, 1440, 86_400, 13]),
    st.integers(0, 10**6),
    st.integers(-12, 12),
)
def test_a_date_is_the_first_tick_that_is_not_before_it(
    ahead: int, ticks_per_day: int, now: int, zone: int
) -> None:
    clock = {"mode": "ticks", "ticks_per_day": ticks_per_day}
    with MemoryBank.ephemeral(profile="memorysync", clock=clock, embedder=SmallEmbedder()) as bank:
        bank.advance(now)
        first = datetime(1970, 1, 1, tzinfo=UTC)
        date = first + timedelta(days=now / ticks_per_day, milliseconds=ahead + 1)
        written = (date + timedelta(hours=zone)).replace(tzinfo=None).isoformat()
        row = bank.agent("ann").call(
            "memory_add",
            text="x",
            expires_at=f"{written}{'-' if zone < 0 else '+'}{abs(zone):02}:00",
        )
        read = datetime.fromisoformat(row["expires_at"])
        whole = date.replace(microsecond=date.microsecond // 1000 * 1000)
        assert timedelta(0) <= read - whole <= timedelta(days=1 / ticks_per_day, milliseconds=1)
