"""A property that is computed once, and leaves nothing locked."""

import sys
import threading
from typing import Any

import pytest

from agents.storage.interrupts import once
from waiting import LONG


class Bank:
    def __init__(self) -> None:
        self.calls = 0

    @once
    def number(self) -> int:
        """How many."""
        self.calls += 1
        return self.calls


def test_it_is_computed_once_for_each_object_and_can_be_set() -> None:
    one, other = Bank(), Bank()
    assert (one.number, one.number, other.number, one.calls) == (1, 1, 1, 1)
    other.__dict__["number"] = 7
    assert other.number == 7
    assert Bank.__dict__["number"].__doc__ == "How many."


def failing(last: int) -> None:
    """Ask for the number until an error comes, at the step with this number."""
    steps = iter(range(1000))

    def profile(frame: Any, event: str, argument: Any) -> None:
        if next(steps) == last:
            sys.setprofile(None)
            raise MemoryError

    sys.setprofile(profile)
    while True:
        Bank().number  # noqa: B018


@pytest.mark.parametrize("step", range(16))
def test_an_error_at_any_step_keeps_no_other_thread_waiting(step: int) -> None:
    with pytest.raises(MemoryError):
        failing(step)
    found: list[int] = []
    other = threading.Thread(target=lambda: found.append(Bank().number), daemon=True)
    other.start()
    other.join(LONG)
    assert found == [1]
