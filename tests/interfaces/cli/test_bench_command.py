"""A tick, measured on this machine."""

import json
from collections.abc import Callable
from typing import Any

Command = Callable[..., Any]


def test_it_measures_both_ways_of_searching(tiermem: Command) -> None:
    done = tiermem("bench", "--agents", "3", "--memories", "5", "--ticks", "2", "--json")
    assert done.code == 0
    rows = json.loads(done.out)
    assert [row["searching by"] for row in rows] == ["vector", "hybrid"]
    assert all(row["ms a tick"] > 0 for row in rows)


def test_numbers_that_make_no_sense_are_refused(tiermem: Command) -> None:
    assert tiermem("bench", "--agents", "0").code == 2
