"""Time on the command line: what a wall clock does by itself, and ``tiermem advance``."""

from pathlib import Path

import pytest
from commands import run_command, write_scenario

from agents import MemoryBank
from wall_clock import WallClock

QUIET = ("--set", "storage.sync=manual", "--set", "embedder.provider=none")


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    return WallClock(monkeypatch)


@pytest.fixture
def crew(tmp_path: Path, wall: WallClock) -> Path:
    """A bank with a wall clock, in which alice has one memory for a day and one for good."""
    folder = tmp_path / "crew"
    assert run_command("init", folder, *QUIET).code == 0
    for text, *options in (("The gate is closed", "--ttl", 24), ("The gate is blue",)):
        assert run_command("add", folder, "--agent", "alice", text, *options).code == 0
    return folder


def found(folder: Path) -> list[str]:
    done = run_command("search", folder, "--agent", "alice", "gate", "--json")
    return [row["content"] for row in done.json["results"]]


def test_a_ttl_expires_on_the_command_line(crew: Path, wall: WallClock) -> None:
    before = (crew / "journal.db").read_bytes()
    wall.go(hours=23.9)
    assert sorted(found(crew)) == ["The gate is blue", "The gate is closed"]
    wall.go(hours=0.2)
    assert found(crew) == ["The gate is blue"]
    status = run_command("status", crew, "--json").json
    assert status["tick"] == 24
    assert status["clock"] == {"mode": "wall", "ticks_per_day": 24}
    assert status["retention"] == {"active": 1, "archived": 0, "deleted": 1}
    assert (crew / "journal.db").read_bytes() == before  # whoever looks writes nothing
    assert run_command("add", crew, "--agent", "alice", "A new day").code == 0
    with MemoryBank.at(crew) as bank:
        assert bank.tick == 24
        assert [memory.created_tick for memory in bank.agent("alice").all()] == [0, 24]


def test_a_bank_says_what_moves_its_ticks(tmp_path: Path, crew: Path) -> None:
    made = run_command("init", tmp_path / "a", *QUIET)
    assert "clock      wall: a day that passes is 24 ticks" in made.out
    ticks = run_command("init", tmp_path / "b", *QUIET, "--set", "clock.mode=ticks", "--json")
    assert ticks.json["clock"] == {"mode": "ticks", "ticks_per_day": 24}
    assert "clock\twall: a day that passes is 24 ticks" in run_command("status", crew).out


@pytest.mark.parametrize(
    ("options", "tick", "expired"),
    [(("--by", 23), 23, 0), (("--to", 24), 24, 1), (("--days", 2), 48, 1)],
)
def test_advance_moves_the_clock_and_does_what_is_due(
    tmp_path: Path, options: tuple[str, int], tick: int, expired: int
) -> None:
    folder = tmp_path / "crew"
    run_command("init", folder, *QUIET, "--set", "clock.mode=ticks")
    run_command("add", folder, "--agent", "alice", "The gate is closed", "--ttl", 24)
    done = run_command("advance", folder, *options, "--json")
    assert done.json == {
        "before": 0, "tick": tick, "expired": expired,
        "purged": 0, "promoted": 0, "cooled": 0, "archived": 0,
    }  # fmt: skip
    with MemoryBank.at(folder) as bank:
        assert (bank.tick, bank.agent("alice").count()) == (tick, 1 - expired)


def test_advance_of_a_wall_clock_goes_on_from_there(crew: Path, wall: WallClock) -> None:
    done = run_command("advance", crew, "--days", 1)
    assert done.out.splitlines() == [
        f"{crew} is at tick 24, 24 ticks later",
        "  1 expired, 0 purged, 0 became hot, 0 became warm or cold, 0 archived",
        "  the wall clock moves it on from there",
    ]
    wall.go(hours=1)
    assert run_command("status", crew, "--json").json["tick"] == 25


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "say how far, once"),
        (("--by", 1, "--to", 3), "say how far, once"),
        (("--to", 3), "at tick 5 and can't go back to 3"),
        (("--to", -1), "not a whole number"),
        (("--by", 2**63), "too large"),
    ],
)
def test_what_says_no_time_is_refused(crew: Path, options: tuple[object, ...], said: str) -> None:
    run_command("advance", crew, "--to", 5)
    assert run_command("advance", crew, *options).is_one_error(2, said)
    with MemoryBank.at(crew) as bank:
        assert bank.tick == 5


def test_the_bank_of_a_run_never_gets_a_wall_clock(tmp_path: Path, wall: WallClock) -> None:
    scenario, run = write_scenario(tmp_path, ticks=3), tmp_path / "run"
    assert run_command("run", scenario, "--out", run, "--quiet").code == 0
    wall.go(days=30)
    bank = run / "bank"
    assert run_command("advance", bank, "--by", 1).is_one_error(1, "whose run moves its ticks")
    for command in (("advance", bank, "--by", 1), ("serve", bank, "--agent", "alice")):
        done = run_command(*command, "--set", "clock.mode=wall")
        assert done.is_one_error(2, "clock.mode: wall is not for the bank of a simulation")
    assert run_command("add", bank, "--agent", "alice", "From outside").code == 0
    status = run_command("status", bank, "--json").json
    assert (status["tick"], status["clock"]["mode"]) == (3, "ticks")


def test_a_scenario_with_a_wall_clock_is_refused(tmp_path: Path) -> None:
    scenario, run = write_scenario(tmp_path), tmp_path / "run"
    done = run_command("run", scenario, "--out", run, "--set", "clock.mode=wall")
    assert done.is_one_error(2, "clock.mode: wall is not for simulations")
    assert not run.exists()


@pytest.mark.slow
def test_doctor_says_that_the_clock_is_behind_and_what_to_do(crew: Path, wall: WallClock) -> None:
    wall.go(days=400)
    assert run_command("add", crew, "--agent", "alice", "In the far future").code == 0
    wall.go(days=-400)
    checks = run_command("doctor", crew, "--json").json
    (finding,) = [each for each in checks if "clock" in each.values()]
    assert "the wall clock is behind" in str(finding)
    assert f"tiermem advance {crew} --by 0" in str(finding)
    wall.go(hours=3)
    assert run_command("status", crew, "--json").json["tick"] == 9600
    assert run_command("advance", crew, "--by", 0).code == 0
    wall.go(hours=3)
    assert run_command("status", crew, "--json").json["tick"] == 9603
    assert "behind" not in run_command("doctor", crew).out
