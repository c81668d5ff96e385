"""LangGraph's ttl on the bank's clock."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from langgraph.store.base import GetOp

from agents import MemoryBank
from agents.langgraph import TierMemStore
from agents.simulation.kept_ticks import keep_tick
from banks import MANUAL
from embedders import Directions
from wall_clock import WALL, WallClock

ANN = ("users", "ann")
PER_MINUTE = {"mode": "wall", "ticks_per_day": 1440}


def store_of(bank: MemoryBank) -> TierMemStore:
    return TierMemStore(bank, fields=["a", "b"])


@pytest.mark.parametrize(("minutes", "ticks"), [(1, 1), (60, 1), (61, 2), (0.5, 1), (1440, 24)])
def test_minutes_become_whole_ticks_rounded_up(minutes: float, ticks: int) -> None:
    with MemoryBank.ephemeral() as bank:  # 24 ticks a day
        store = store_of(bank)
        store.put(ANN, "k", {"a": "tea", "b": "cup"}, ttl=minutes)
        bank.pass_time(ticks - 1)
        assert store.get(ANN, "k", refresh_ttl=False) is not None
        bank.pass_time(ticks)
        assert store.get(ANN, "k") is None
        assert store.search(ANN, query="cup") == [] == store.list_namespaces()
        assert bank.agent("users.ann").count() == 0


def test_reads_let_the_lifetime_begin_anew() -> None:
    with MemoryBank.ephemeral() as bank:
        store = store_of(bank)
        store.put(ANN, "k", {"a": "tea", "b": "cup"}, ttl=180)
        store.put(ANN, "by name", {"a": "granite"}, ttl=180)
        store.put(ANN, "unread", {"a": "granite"}, ttl=180)
        for tick in range(2, 20, 2):
            bank.pass_time(tick)
            assert store.search(ANN, query="cup", filter={"a": "tea"})
            assert store.get(ANN, "by name") is not None
            assert (store.get(ANN, "unread", refresh_ttl=False) is None) is (tick > 3)
        assert store.search(ANN, query="cup", filter={"a": "tea"})[0].score == pytest.approx(1.0)
        bank.pass_time(21)
        assert store.search(ANN) == []


def test_a_store_can_be_told_not_to_refresh() -> None:
    with MemoryBank.ephemeral() as bank:
        store = TierMemStore(bank, ttl={"refresh_on_read": False, "default_ttl": 180})
        store.put(ANN, "k", {"n": 1})
        store.put(ANN, "for ever", {"n": 1}, ttl=None)
        bank.pass_time(2)
        assert store.get(ANN, "k") is not None
        bank.pass_time(3)
        assert [item.key for item in store.search(())] == ["for ever"]


def test_reads_in_one_tick_write_nothing(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        store = store_of(bank)
        store.put(ANN, "k", {"a": "tea", "b": "cup"}, ttl=60)
        bank.pass_time(0)
        before = bank.engine.journal.head
        store.batch([GetOp(ANN, "k")] * 5)
        assert bank.engine.journal.head == before


def test_a_refreshed_lifetime_is_there_after_reopening(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        store_of(bank).put(ANN, "k", {"a": "tea"}, ttl=180)
        bank.pass_time(2)
        store_of(bank).get(ANN, "k")
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        bank.pass_time(4)
        assert store_of(bank).get(ANN, "k", refresh_ttl=False) is not None
        bank.pass_time(5)
        assert store_of(bank).get(ANN, "k") is None


@pytest.mark.parametrize("late", [0, 0.9])
def test_a_wall_clock_lets_nothing_end_before_its_minutes(
    late: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = WallClock(monkeypatch)
    with MemoryBank.ephemeral(clock=WALL) as bank:
        store = store_of(bank)
        store.list_namespaces()
        wall.go(hours=late)
        store.put(ANN, "k", {"a": "tea"}, ttl=120)
        wall.go(hours=1.99)
        assert store.get(ANN, "k", refresh_ttl=False) is not None
        wall.go(hours=1.02)
        assert store.get(ANN, "k") is None


def test_a_slow_embedder_takes_nothing_from_a_lifetime(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = WallClock(monkeypatch)

    class Slow(Directions):
        def embed(self, texts: Sequence[str], /) -> list[list[float]]:
            wall.go(hours=5)
            return super().embed(texts)

    with MemoryBank.ephemeral(clock=WALL, embedder=Slow()) as bank:
        store = store_of(bank)
        store.put(ANN, "k", {"a": "tea"}, ttl=120)
        wall.go(hours=1.99)
        assert store.get(ANN, "k") is not None


def test_an_item_that_is_pinned_past_its_end_is_deleted_and_put_anew() -> None:
    with MemoryBank.ephemeral() as bank:
        store, ann = store_of(bank), bank.agent("users.ann")
        for key in ("tea", "cake"):
            store.put(("users", "ann"), key, {"x": f"likes {key}"}, ttl=1)
            ann.pin(ann.all()[-1].id)
        bank.advance(500)
        store.delete(("users", "ann"), "tea")
        assert store.get(("users", "ann"), "tea") is None
        store.put(("users", "ann"), "cake", {"x": "likes pie"})
        found = store.get(("users", "ann"), "cake")
        assert found is not None
        assert found.value == {"x": "likes pie"}


def test_dates_are_those_of_the_puts_after_reopening_too(tmp_path: Path) -> None:
    first, second = datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    days = iter([first, second])
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        store = TierMemStore(bank, now=lambda: next(days))
        store.put(ANN, "k", {"a": "tea"})
        store.put(ANN, "k", {"a": "coffee"})
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        item = store_of(bank).get(ANN, "k")
        assert item is not None
        assert (item.created_at, item.updated_at) == (first, second)


def test_dates_are_the_wall_clocks_unless_somebody_says_otherwise() -> None:
    with MemoryBank.ephemeral() as bank:
        store_of(bank).put(ANN, "k", {"a": "tea"})
        item = store_of(bank).get(ANN, "k")
        assert item is not None
        assert item.created_at == item.updated_at
        assert abs(datetime.now(UTC) - item.created_at) < timedelta(days=1)


def test_the_dates_in_a_run_are_those_of_its_ticks() -> None:
    with MemoryBank.ephemeral() as bank:
        with bank.transaction():
            bank.advance(24)
            keep_tick(bank, {"tick": 24}, None)
        store_of(bank).put(ANN, "k", {"a": "tea"})
        item = store_of(bank).get(ANN, "k")
        assert item is not None
        assert item.created_at == datetime(1970, 1, 2, tzinfo=UTC)
        assert "item_at" not in bank.agent("users.ann").all()[0].metadata


def test_dates_of_ticks_are_those_of_the_clock_that_moves_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wall = WallClock(monkeypatch)
    with MemoryBank.ephemeral(clock=PER_MINUTE) as bank:
        store = TierMemStore(bank, now=None)
        store.put(ANN, "k", {"a": "tea"})
        wall.go(hours=2)
        store.put(ANN, "k", {"a": "coffee"})
        item = store.get(ANN, "k")
        assert item is not None
        assert item.updated_at == datetime.fromtimestamp(wall.ms / 1000, UTC)
        assert (item.updated_at - item.created_at).total_seconds() == 7200
    with MemoryBank.ephemeral() as bank:
        bank.pass_time(36)
        TierMemStore(bank, now=None).put(ANN, "k", {"a": "tea"})
        item = store_of(bank).get(ANN, "k")
        assert item is not None
        assert item.created_at == datetime(1970, 1, 2, 12, tzinfo=UTC)


def test_items_without_a_query_are_in_the_order_that_the_bank_knows(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        for n, name in enumerate("abab"):
            store_of(bank).put(("users", name), f"{name}{n}", {"n": n})
        bank.pass_time(1)
        for n, name in enumerate("bba", 4):
            store_of(bank).put(("users", name), f"{name}{n}", {"n": n})
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        listed = [item.key for item in store_of(bank).search(())]
        assert listed == ["a6", "b5", "b4", "a2", "a0", "b3", "b1"]
