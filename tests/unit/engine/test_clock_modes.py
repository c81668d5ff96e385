"""Which clock a bank has: its own setting, or for an older bank, what moved it so far."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agents import BankError, ConfigError, MemoryBank
from agents.bank.opening import Opening
from agents.simulation.kept_ticks import keep_tick
from banks import MANUAL, value
from embedders import Directions
from wall_clock import WallClock

Opened = Callable[..., MemoryBank]


def made_before_the_setting(folder: Path, tick: int = 0) -> None:
    """A bank whose settings do not name clock.mode."""
    with MemoryBank.open(folder, embedder=Directions(), storage=MANUAL) as bank:
        bank.agent("alice").add("Old", ttl=5)
        bank.advance(tick)
        journal = bank.engine.journal
        identity = journal.get("bank")
        del identity["settings"]["clock"]["mode"]
        journal.set(bank=identity)


def served(folder: Path) -> MemoryBank:
    """As ``tiermem mcp`` and ``tiermem serve`` open a bank."""
    return MemoryBank(Opening(clock_mode="wall", embedder=Directions()).in_folder(folder))


def test_an_older_bank_gets_a_wall_clock_if_nothing_ever_moved_it(
    tmp_path: Path, wall: WallClock
) -> None:
    made_before_the_setting(tmp_path / "unmoved")
    with MemoryBank.open(tmp_path / "unmoved", embedder=Directions()) as bank:
        assert bank.settings.clock.mode == "ticks"
    with served(tmp_path / "unmoved") as bank:
        assert bank.settings.clock.mode == "wall"
        wall.go(hours=6)
    for again in (
        lambda: MemoryBank.at(tmp_path / "unmoved", embedder=Directions()),
        lambda: MemoryBank.open(tmp_path / "unmoved", embedder=Directions()),
    ):
        with again() as bank:
            bank.follow_clock()
            assert bank.settings.clock.mode == "wall"
            assert (bank.tick, bank.agent("alice").count()) == (6, 0)
    made_before_the_setting(tmp_path / "moved", tick=1)
    with served(tmp_path / "moved") as bank:
        assert bank.settings.clock.mode == "ticks"


def test_a_bank_of_a_program_keeps_its_ticks_when_it_is_served(
    tmp_path: Path, wall: WallClock
) -> None:
    MemoryBank.open(tmp_path / "own", embedder=Directions()).close()
    with served(tmp_path / "own") as bank:
        assert bank.settings.clock.mode == "ticks"
    with served(tmp_path / "new") as bank:
        assert bank.settings.clock.mode == "wall"
    assert '"mode": "wall"' in value(tmp_path / "new", "SELECT value FROM meta WHERE key = 'bank'")


def recorded(bank: MemoryBank, tick: int = 1) -> None:
    with bank.transaction():
        bank.advance(tick)
        keep_tick(bank, {"tick": tick}, None)


def test_a_simulation_refuses_the_wall_clock(opened: Opened) -> None:
    with opened() as bank, pytest.raises(ConfigError, match="not for simulations"):
        recorded(bank)
    with opened(clock={"mode": "ticks"}) as bank:
        recorded(bank)
    with pytest.raises(ConfigError, match="whose run moves its ticks"):
        opened()


def test_an_older_bank_of_a_simulation_never_gets_a_wall_clock(
    tmp_path: Path, wall: WallClock
) -> None:
    made_before_the_setting(tmp_path / "run")
    with MemoryBank.open(tmp_path / "run", embedder=Directions()) as bank:
        recorded(bank, 0)
    with served(tmp_path / "run") as bank:
        assert bank.settings.clock.mode == "ticks"


def test_the_bank_of_a_simulation_is_moved_by_its_run_alone(opened: Opened) -> None:
    with opened(clock={"mode": "ticks"}) as bank:
        recorded(bank)
        before = bank.state_hash()
        with pytest.raises(BankError, match="whose run moves its ticks"):
            bank.pass_time(9)
        assert bank.state_hash() == before
