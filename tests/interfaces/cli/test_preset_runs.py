"""A run of every preset is the same run, straight or in pieces, and ending it changes nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from agents.simulation.kept_ticks import ticks_of
from banks import ROOT

pytestmark = [
    pytest.mark.slow_after(1),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
]

Command = Callable[..., Any]
FIRST = "hot-warm-cold"
OTHERS = sorted(path.stem for path in (ROOT / "config/presets").glob("*.yaml"))
PRESETS = [FIRST, *(each for each in OTHERS if each != FIRST)]
SMALL = ("--set", "storage.sync=manual", "--set", "simulation.agents=6", "-q")


@pytest.mark.long_after(3)
@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_a_run_in_pieces_is_the_straight_run(tiermem: Command, preset: str) -> None:
    market = ROOT / "simulations/market.yaml"
    for name, ticks in (("straight", 10), ("pieces", 6)):
        begun = ("run", market, "--preset", preset, *SMALL, "--ticks", ticks, "--out", name)
        assert tiermem(*begun).code == 0
    assert tiermem("replay", "pieces", "--verify", "-q").code == 0
    assert tiermem("resume", "pieces", "--ticks", 10, "-q").code == 0
    hashes = []
    for name in ("straight", "pieces"):
        verified = tiermem("replay", name, "--verify", "--json")
        assert (verified.code, verified.json["problems"]) == (0, [])
        with MemoryBank.at(Path(name, "bank")) as bank:
            hashes.append([record["state_hash"] for record, _ in ticks_of(bank).records()])
            assert bank.state_hash() == hashes[-1][-1]
    assert hashes[0] == hashes[1]
