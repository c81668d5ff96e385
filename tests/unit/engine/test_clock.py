"""The bank's time: ticks that calls move, and the wall clock."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agents import BankError, CommitFailed, InvalidInput, MemoryBank
from agents.engine import clock
from agents.storage.journal.journal import Journal
from banks import MANUAL, Undone
from embedders import Directions
from wall_clock import WALL, WallClock

Opened = Callable[..., MemoryBank]


def commits(bank: MemoryBank) -> int:
    return bank.engine.journal.head


def last_events(bank: MemoryBank) -> list[list[Any]]:
    journal = bank.engine.journal
    (last,) = journal.commits(after=journal.head - 1)
    events: list[list[Any]] = json.loads(last.events)
    return events


# The wall clock


def test_time_passes_in_ticks_of_the_day(opened: Opened, wall: WallClock) -> None:
    with opened() as bank:
        assert bank.tick == 0
        for hours, tick in (
            (0.99, 0),
            (0.02, 1),
            (1, 2),
            (21.98, 23),
            (0.02, 24),
            (24 * 365, 8784),
        ):
            wall.go(hours=hours)
            bank.follow_clock()
            assert bank.tick == tick


def test_time_passes_while_the_bank_is_closed(opened: Opened, wall: WallClock) -> None:
    with opened() as bank:
        bank.agent("alice").add("Fleeting", ttl=2)
    wall.go(hours=1.5)
    with opened() as bank:
        assert bank.tick == 1
        assert bank.agent("alice").count() == 1
    wall.go(hours=0.5)  # no part of an hour is lost
    with opened() as bank:
        assert bank.tick == 2
        assert bank.agent("alice").count() == 0


def test_without_a_wall_clock_no_time_passes(opened: Opened, wall: WallClock) -> None:
    with opened(clock={"mode": "ticks"}) as bank:
        wall.go(days=9)
        bank.follow_clock()
        assert bank.tick == 0
        assert bank.engine.journal.get("clock") is None


def test_a_bank_in_memory_can_follow_it_too(wall: WallClock) -> None:
    with MemoryBank.ephemeral(clock=WALL, embedder=Directions()) as bank:
        wall.go(hours=3)
        bank.follow_clock()
        assert bank.tick == 3


def test_a_clock_that_was_set_back_never_moves_the_tick_back(
    opened: Opened, wall: WallClock
) -> None:
    with opened() as bank:
        wall.go(hours=10)
        bank.follow_clock()
        for hours in (-5, -24 * 365 * 60, 24 * 365 * 60 + 4.5):
            wall.go(hours=hours)
            bank.follow_clock()
            assert bank.tick == 10
    with opened() as bank:
        assert bank.tick == 10
        wall.go(hours=1.5)  # an hour after it was set back
        bank.follow_clock()
        assert bank.tick == 11


def test_the_wall_clock_goes_on_from_where_advance_left_it(opened: Opened, wall: WallClock) -> None:
    with opened() as bank:
        bank.advance(100)
        wall.go(hours=1)
        bank.follow_clock()
        assert bank.tick == 101
        wall.go(hours=-50)
        bank.advance(101)  # the clock is right now, and the tick need not wait for it
        wall.go(hours=2)
        bank.follow_clock()
        assert bank.tick == 103


def test_the_wall_clock_goes_on_from_where_an_opening_without_it_left_the_tick(
    opened: Opened, wall: WallClock
) -> None:
    with opened():
        pass
    wall.go(hours=10)
    with opened(clock={"mode": "ticks"}) as bank:
        bank.advance(3)
    with opened() as bank:
        assert bank.tick == 10  # these hours have passed
    with opened(clock={"mode": "ticks"}) as bank:
        bank.advance(100)
    with opened() as bank:
        assert bank.tick == 100
        bank.agent("alice").add("Fleeting", ttl=5)
    wall.go(hours=20)
    with opened() as bank:
        assert bank.tick == 120
        assert bank.agent("alice").count() == 0


def test_an_advance_to_the_same_tick_loses_no_part_of_a_tick(
    opened: Opened, wall: WallClock
) -> None:
    with opened() as bank:
        for _ in range(12):
            wall.go(hours=0.5)
            before = commits(bank)
            bank.pass_time(bank.tick)
            bank.advance(bank.tick)
            assert commits(bank) == before
            bank.follow_clock()
        assert bank.tick == 6


def test_no_tick_is_as_late_as_the_end_of_what_never_expires(
    opened: Opened, wall: WallClock
) -> None:
    with opened() as bank:
        alice = bank.agent("alice")
        alice.add("Stays <1 0>")
        for move in (bank.advance, bank.pass_time):
            with pytest.raises(InvalidInput, match=rf"too large; it may be {2**62 - 1} at most"):
                move(2**62)
        bank.pass_time(2**62 - 1)
        wall.go(days=2)
        bank.follow_clock()
        assert (bank.tick, alice.count()) == (2**62 - 1, 1)
        assert len(alice.search("<1 0>")) == 1


def test_an_advance_that_is_undone_leaves_the_clock_as_it_was(
    opened: Opened, wall: WallClock
) -> None:
    with opened() as bank:
        wall.go(hours=5.5)
        bank.follow_clock()
        with suppress(Undone), bank.transaction():
            bank.advance(7)
            with suppress(Undone), bank.transaction():
                bank.advance(100)
                raise Undone
            assert bank.tick == 7
            raise Undone
        assert bank.tick == 5
        for tick in (6, 7):
            wall.go(hours=1)
            bank.follow_clock()
            assert bank.tick == tick


def test_another_rate_counts_from_now_on(opened: Opened, wall: WallClock) -> None:
    opened().close()
    wall.go(days=10)
    with opened(clock={"mode": "wall", "ticks_per_day": 48}) as bank:
        assert bank.tick == 240
        wall.go(days=1)
        bank.follow_clock()
        assert bank.tick == 288


def test_nothing_is_written_while_the_tick_is_the_same(opened: Opened, wall: WallClock) -> None:
    with opened() as bank:
        bank.agent("alice").add("Here <1 0>")
        bank.commit()
        before = commits(bank)
        for _ in range(5):
            wall.go(hours=0.1)
            bank.follow_clock()
            bank.agent("alice").search("<1 0>")
        assert commits(bank) == before
        wall.go(hours=0.6)
        bank.follow_clock()
        bank.follow_clock()
        assert commits(bank) == before + 1


def test_inside_a_transaction_no_time_passes(opened: Opened, wall: WallClock) -> None:
    with opened() as bank:
        with bank.transaction():
            wall.go(hours=3)
            bank.follow_clock()
            assert bank.tick == 0
        bank.follow_clock()
        assert bank.tick == 3


def test_a_bank_that_can_not_be_written_can_be_read(
    opened: Opened,
    wall: WallClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise CommitFailed("no room")

    with opened() as bank:
        alice = bank.agent("alice")
        alice.add("Here <1 0>", ttl=1)
        wall.go(hours=2)
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "append", full)
            bank.follow_clock()
        assert "stands still at tick 0: no room" in caplog.text
        assert (bank.tick, alice.count()) == (0, 1)
        bank.follow_clock()
        assert (bank.tick, alice.count()) == (2, 0)


# What is due


def test_a_step_is_one_commit_with_all_that_is_due(opened: Opened, wall: WallClock) -> None:
    settings = {
        "decay": {"enabled": True, "half_life": {"normal": 8}, "every": 1},
        "retention": {"grace": 10},
        "temperature": {"compact_every": 12},
    }
    with opened(**settings) as bank:
        alice = bank.agent("alice")
        alice.add("Expires <1 0>", ttl=3)
        alice.delete(alice.add("Purged <1 0>").id)
        alice.add("Fades <0 1>", temperature="hot")
        alice.add("Is hot by a rule <0 0 1>", tags=["blocker"])
        before = commits(bank)
        wall.go(hours=12)
        bank.follow_clock()
        assert commits(bank) == before + 1
        found = [(event[0], event[-1]) for event in last_events(bank)]
        assert found == [
            ("tick", 12),
            ("retain", "expire"),
            ("move", "decay"),
            ("purge", [2]),
            ("move", "rule:blocker"),
        ]
        shown = [(each.content.split()[0], each.temperature.name) for each in alice.all()]
        assert shown == [("Fades", "WARM"), ("Is", "HOT")]


def test_a_long_time_does_what_its_ticks_would_have_done(wall: WallClock) -> None:
    """But for grace, which begins when a memory is deleted."""
    settings: dict[str, Any] = {
        "decay": {"enabled": True, "half_life": {"normal": 5}, "every": 2},
        "temperature": {"compact_every": 7},
        "embedder": Directions(),
    }

    def after(*ticks: int) -> list[tuple[str, str]]:
        with MemoryBank.ephemeral(**settings) as bank:
            for name in ("alice", "bob"):
                agent = bank.agent(name)
                agent.add("hot <1 0>", temperature="hot")
                agent.add("fleeting <1 0>", ttl=9)
                agent.add("done <1 0>", tags=["completed"])
            for tick in ticks:
                bank.pass_time(tick)
            return [
                (each.content, each.temperature.name)
                for name in bank.agents()
                for each in bank.agent(name).all()
            ]

    assert after(50) == after(*range(1, 51)) == after(1, 2, 30, 50)


def test_passing_time_says_what_happened(opened: Opened) -> None:
    with opened(clock={"mode": "ticks"}, retention={"grace": 4}) as bank:
        alice = bank.agent("alice")
        alice.add("Fleeting", ttl=2)
        alice.add("Stays")
        assert bank.pass_time(1) == (0, 1, 0, 0, 0, 0, 0)
        assert bank.pass_time(2) == (1, 2, 1, 0, 0, 0, 0)
        assert bank.pass_time(9) == (2, 9, 0, 1, 0, 0, 0)
        with pytest.raises(InvalidInput, match="go back"):
            bank.pass_time(8)
        with bank.transaction():
            alice.add("Fleeting", ttl=1)
            alice.delete(alice.add("Else").id)
            assert bank.pass_time(10).expired == 1


def test_time_that_is_undone_has_not_passed(opened: Opened) -> None:
    with opened(clock={"mode": "ticks"}) as bank:
        bank.agent("alice").add("Fleeting", ttl=2)
        before = bank.state_hash()
        with suppress(Undone), bank.transaction():
            assert bank.pass_time(5).expired == 1
            raise Undone
        assert bank.state_hash() == before


# The journal is the truth


def test_a_copy_of_the_past_reads_no_clock(
    opened: Opened, wall: WallClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = {}
    with opened() as bank:
        for _ in range(4):
            bank.agent("alice").add("Fleeting", ttl=2)
            hashes[bank.tick] = bank.state_hash()
            wall.go(hours=1.5)
            bank.follow_clock()
        hashes[bank.tick] = bank.state_hash()

    def read() -> int:
        raise AssertionError("the clock was read")

    monkeypatch.setattr(clock, "now_ms", read)
    assert sorted(hashes) == [0, 1, 3, 4, 6]
    for tick, state in hashes.items():
        with MemoryBank.at(tmp_path / "bank", tick, embedder=Directions()) as copy:
            assert copy.state_hash() == state
    with opened(clock={"mode": "ticks"}) as bank:
        assert bank.state_hash() == hashes[6]


def test_what_a_checkpoint_restores_is_as_old_as_it_is(
    opened: Opened, wall: WallClock, tmp_path: Path
) -> None:
    with opened() as bank:
        bank.agent("alice").add("Fleeting", ttl=30)
        wall.go(hours=3)
        bank.follow_clock()
        bank.checkpoint(tmp_path / "kept.tmck")
    wall.go(days=2)
    options = {"embedder": Directions(), "storage": MANUAL}
    with MemoryBank.restore(tmp_path / "kept.tmck", tmp_path / "other", **options) as again:
        assert again.tick == 51
        assert again.agent("alice").count() == 0


def test_an_anchor_that_says_nothing_is_damage(opened: Opened, tmp_path: Path) -> None:
    opened().close()
    with MemoryBank.open(tmp_path / "bank", embedder=Directions(), clock={"mode": "ticks"}) as bank:
        bank.engine.journal.set(clock=["soon", None])
    with pytest.raises(BankError, match="can't be read"):
        opened()


# What shows it


def test_the_daily_note_is_of_the_day_however_the_wall_clock_moves(
    opened: Opened, wall: WallClock
) -> None:
    with opened() as bank:
        wall.go(days=3)
        bank.follow_clock()
        assert bank.tick == 72
        assert "tick" not in bank.agent("alice").notes.daily_path()


def test_status_shows_the_clock(opened: Opened, wall: WallClock) -> None:
    with opened() as bank:
        wall.go(hours=2)
        bank.follow_clock()
        found = bank.status().to_dict()
        assert (found["tick"], found["clock"]) == (2, WALL)
