"""When a flush is due, and what of a context is worth saving."""

import json
from typing import Any

import pytest

from agents.errors import InvalidInput
from agents.memory.context import approximate_tokens
from agents.memory.records import NO_METADATA, Memory
from agents.memory.tiers import Tier
from agents.notes.flush import FLUSH_PROMPT, SILENT_REPLY, FlushMonitor, summary


@pytest.fixture
def monitor() -> FlushMonitor:
    return FlushMonitor(100, 20, 10)


def memory(text: str, number: int = 1, tier: Tier = Tier.NORMAL, accessed: int = 0) -> Memory:
    return Memory(
        str(number), "alice", text, tier, number, number, number, NO_METADATA,
        access_count=accessed,
    )  # fmt: skip


def words(text: str, /) -> int:
    """A token is a word, without the dash in front of a line."""
    return len(text.split()) - 1


# When


def test_the_threshold_is_the_window_less_the_reserve_less_the_soft_threshold() -> None:
    assert FlushMonitor(100, 20, 10).threshold == 70
    assert FlushMonitor(8000, 1000, 500).threshold == 6500
    assert FlushMonitor(1, 0, 0).threshold == 1


def test_a_flush_is_due_when_the_tokens_exceed_the_threshold(monitor: FlushMonitor) -> None:
    assert not monitor.due(69, 0)
    assert not monitor.due(70, 0)
    assert monitor.due(71, 0)
    assert monitor.due(1000, 0)


def test_asking_changes_nothing(monitor: FlushMonitor) -> None:
    assert [monitor.due(71, 0) for _ in range(3)] == [True] * 3


def test_in_one_cycle_a_flush_is_due_once(monitor: FlushMonitor) -> None:
    monitor.flushed()
    assert not monitor.due(71, 0)
    assert not monitor.due(99, 0)


def test_in_the_next_cycle_it_is_due_again(monitor: FlushMonitor) -> None:
    monitor.flushed()
    monitor.compacted()
    assert monitor.cycle == 1
    assert not monitor.due(70, 1)
    assert monitor.due(71, 1)


def test_a_stale_count_says_nothing(monitor: FlushMonitor) -> None:
    monitor.compacted()
    assert not monitor.due(99, 0)
    assert not monitor.due(99, 2)
    assert monitor.due(99, 1)


def test_a_missing_count_says_nothing(monitor: FlushMonitor) -> None:
    assert not monitor.due(None, 0)


@pytest.mark.parametrize(
    ("sizes", "named"),
    [
        ((30, 20, 10), "context_window (30) must be more than reserve_tokens (20)"),
        ((0, 0, 0), "context_window (0) must be more"),
        ((10, 20, 0), "must be more"),
        ((-1, 0, 0), "context_window -1"),
        ((100, -1, 0), "reserve_tokens -1"),
        ((100, 0, -1), "soft_threshold -1"),
        ((100.0, 0, 0), "context_window 100.0"),
        ((100, "1", 0), "reserve_tokens '1'"),
        ((100, 0, None), "soft_threshold None"),
        ((True, 0, 0), "context_window True"),
    ],
)
def test_numbers_that_leave_no_context_are_refused(sizes: tuple[Any, ...], named: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        FlushMonitor(*sizes)
    assert named in str(caught.value)


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize("cycles", [0, 2])
def test_another_monitor_goes_on_from_the_state(
    monitor: FlushMonitor, flushed: bool, cycles: int
) -> None:
    for _ in range(cycles):
        monitor.flushed()
        monitor.compacted()
    if flushed:
        monitor.flushed()
    other = FlushMonitor(100, 20, 10)
    other.set_state(json.loads(json.dumps(monitor.get_state())))
    assert other.get_state() == monitor.get_state()
    assert other.cycle == cycles
    assert other.due(99, cycles) is not flushed
    assert not other.due(99, cycles + 1)


def test_the_prompt_says_how_to_save_nothing() -> None:
    assert SILENT_REPLY == "NO_REPLY"
    assert SILENT_REPLY in FLUSH_PROMPT
    assert "compacted" in FLUSH_PROMPT


# What


def test_a_summary_has_a_line_for_each_memory_as_an_agent_reads_it() -> None:
    memories = [memory("rain", 1), memory("NEVER trade", 2, Tier.CRITICAL)]
    assert summary(memories, 100, approximate_tokens) == "- [critical] NEVER trade\n- rain"


def test_a_memory_of_many_lines_is_one_line_and_passes_for_nothing_else() -> None:
    text = summary([memory("rain\n# A heading <!-- tier: pinned -->")], 100, approximate_tokens)
    assert text == "- rain\\n# A heading <!-- tier: pinned -->"
    assert summary([memory("[critical] no")], 100, approximate_tokens) == "- \\[critical] no"


def test_the_highest_tier_comes_first_then_the_most_accessed_then_the_newest() -> None:
    memories = [
        memory("old", 1),
        memory("new", 2),
        memory("used", 3, accessed=4),
        memory("low", 5, Tier.LOW, accessed=9),
        memory("new used", 4, accessed=4),
        memory("important", 6, Tier.IMPORTANT),
    ]
    expected = ["[important] important", "new used", "used", "new", "old", "[low] low"]
    for given in (memories, memories[::-1]):
        assert summary(given, 100, words) == "\n".join(f"- {text}" for text in expected)


def test_what_does_not_fit_is_skipped_and_smaller_ones_still_go_in() -> None:
    memories = [memory("a b c d", 3), memory("e f", 2), memory("g", 1)]
    assert summary(memories, 7, words) == "- a b c d\n- e f\n- g"
    assert summary(memories, 6, words) == "- a b c d\n- e f"
    assert summary(memories, 5, words) == "- a b c d\n- g"
    assert summary(memories, 3, words) == "- e f\n- g"


def test_line_ends_count() -> None:
    assert summary([memory("ab")], 4, len) == ""
    assert summary([memory("ab")], 5, len) == "- ab"


def test_of_nothing_the_summary_is_empty() -> None:
    assert summary([], 100, words) == ""
    assert summary([memory("rain")], 0, words) == ""
