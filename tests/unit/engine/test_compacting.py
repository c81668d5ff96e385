"""Compaction of a bank: rules move memories."""

from pathlib import Path

import pytest

from agents import MemoryBank, Temperature
from agents.simulation.tick.loop import Loop
from banks import MakeBank
from movements import COLD, HOT, WARM, added_hot, commits, hot, moved, small, temperatures, used
from worlds import Diary, Mind


@pytest.mark.parametrize("start", ["hot", "warm", "cold"])
@pytest.mark.parametrize(
    ("kind", "tags", "to"),
    [
        ("decision", (), {"hot": COLD, "warm": COLD, "cold": COLD}),
        ("fact", ("task",), {"hot": COLD, "warm": COLD, "cold": COLD}),
        ("decision", ("open",), {"hot": WARM, "warm": WARM, "cold": COLD}),
        ("fact", ("task", "open"), {"hot": WARM, "warm": WARM, "cold": COLD}),
        ("decision", ("blocker",), {"hot": HOT, "warm": HOT, "cold": HOT}),
        ("fact", ("task", "blocker"), {"hot": HOT, "warm": HOT, "cold": HOT}),
        ("fact", ("blocker",), {"hot": HOT, "warm": HOT, "cold": HOT}),
        ("preference", (), {"hot": HOT, "warm": WARM, "cold": COLD}),
        ("fact", (), {"hot": WARM, "warm": WARM, "cold": COLD}),
        ("message", ("other",), {"hot": WARM, "warm": WARM, "cold": COLD}),
    ],
    ids=str,
)
def test_the_default_rules(
    bank: MemoryBank, start: str, kind: str, tags: tuple[str, ...], to: dict[str, Temperature]
) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a", kind=kind, tags=tags, temperature=start)
    alice.compact()
    assert alice.get(memory.id).temperature is to[start]
    before = bank.state_hash()
    assert moved(alice.compact()) == (0, 0, 0)  # a second time moves nothing
    assert bank.state_hash() == before


def test_a_hot_preference_that_was_idle_for_seven_days_becomes_warm(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("idle <1 0>", kind="preference", temperature="hot")
    alice.add("used <0 1>", kind="preference", temperature="hot")
    bank.advance(1)
    alice.search("<0 1>", 1)
    bank.advance(7 * 24 - 1)
    assert moved(alice.compact()) == (0, 0, 0)
    bank.advance(7 * 24)
    assert moved(alice.compact()) == (0, 1, 0)
    assert temperatures(alice) == {"idle": WARM, "used": HOT}


def test_compaction_never_moves_pinned_memories(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    for kind, tags in [("decision", ()), ("fact", ("task",)), ("preference", ()), ("fact", ())]:
        alice.add("pin", "pinned", kind=kind, tags=tags)
    bank.advance(9999)
    assert moved(bank.compact()) == (0, 0, 0)
    assert alice.count("pinned") == 4


def test_blockers_become_hot_newest_first_while_there_is_room(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 3}).agent("alice")
    alice.add("pin", "pinned")
    for number in range(5):
        alice.add(f"blocker {number}", tags=["blocker"])
    assert alice.compact().hot == 2
    assert hot(alice) == ["pin", "blocker 3", "blocker 4"]


def test_blockers_that_are_hot_already_count_and_stay(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 3}).agent("alice")
    for number in range(5):
        heat = "hot" if number < 2 else "warm"
        alice.add(f"blocker {number}", tags=["blocker"], temperature=heat)
    for _ in range(5):  # however often
        alice.compact()
        assert hot(alice) == ["blocker 0", "blocker 1", "blocker 4"]


def test_blockers_keep_within_the_tokens_and_a_smaller_one_still_goes_in(
    make_bank: MakeBank,
) -> None:
    alice = small(make_bank)
    alice.add("s" * 7, tags=["blocker"])
    alice.add("l" * 17, tags=["blocker"])
    alice.add("m" * 12, tags=["blocker"])
    alice.compact()
    assert hot(alice) == ["s" * 7, "m" * 12]  # 10 + 15; the one of 20 did not fit


def test_what_leaves_hot_makes_room_for_blockers(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    added_hot(alice, "a", "b")
    alice.add("blocker 1", tags=["blocker"])
    alice.add("blocker 2", tags=["blocker"], temperature="cold")
    result = alice.compact()
    assert (result.hot, result.warm, result.cold) == (2, 2, 0)
    assert hot(alice) == ["blocker 1", "blocker 2"]


def test_a_decision_that_is_a_blocker_does_not_flip(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("a", kind="decision", tags=["blocker"])
    assert bank.compact().hot == 1
    for _ in range(4):
        assert moved(bank.compact()) == (0, 0, 0)
    assert hot(alice) == ["a"]


def test_compaction_counts_what_it_moved_over_all_agents(bank: MemoryBank) -> None:
    for name in ("alice", "bob"):
        agent = bank.agent(name)
        agent.add("done", kind="decision")
        agent.add("blocker", tags=["blocker"])
        added_hot(agent, "a", "b")
    result = bank.compact("alice")
    assert (result.hot, result.warm, result.cold, result.pruned) == (1, 2, 1, 0)
    assert hot(bank.agent("bob")) == ["a", "b"]
    assert moved(bank.compact()) == (1, 2, 1)  # bob's


def test_a_dry_run_lists_the_rules_and_changes_nothing(open_bank: MakeBank, folder: Path) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    done = alice.add("done", kind="decision")
    blocker = alice.add("blocker", tags=["blocker"])
    chat = alice.add("chat", temperature="hot")
    before, number = bank.state_hash(), commits(folder)
    planned = bank.compact(dry_run=True)
    assert [(move.memory, move.to, move.rule) for move in planned.moves] == [
        (done, COLD, "completed"), (blocker, HOT, "blocker"), (chat, WARM, "cool down"),
    ]  # fmt: skip
    assert (bank.state_hash(), commits(folder)) == (before, number)
    assert moved(bank.compact()) == moved(planned) == (1, 1, 1)
    assert bank.compact(dry_run=True).moves == ()


def test_compaction_is_one_commit(open_bank: MakeBank, folder: Path) -> None:
    bank = open_bank()
    for name in ("alice", "bob", "carol"):
        bank.agent(name).add("done", kind="decision")
        bank.agent(name).add("chat", temperature="hot")
    before = commits(folder)
    bank.compact()
    assert commits(folder) == before + 1
    bank.compact()
    assert commits(folder) == before + 1  # nothing moved, nothing to write


def test_a_compaction_in_a_failed_transaction_never_happened(bank: MemoryBank) -> None:
    bank.agent("alice").add("done", kind="decision")
    before = bank.state_hash()

    def fail() -> None:
        with bank.transaction():
            assert bank.compact().cold == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert bank.state_hash() == before


def test_compaction_does_not_touch_what_is_archived(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    archived = alice.add("a", tags=["blocker"])
    alice.update(archived.id, retention="archived")
    assert moved(bank.compact()) == (0, 0, 0)
    assert alice.get(archived.id).temperature is WARM


def test_rules_of_ones_own_replace_the_defaults(make_bank: MakeBank) -> None:
    rules = [
        {"name": "old", "when": {"age": "1d", "tier": "low", "accesses_below": 2}, "to": "cold"},
        {"name": "liked", "when": {"accesses": 2}, "to": "hot"},
    ]
    bank = make_bank(temperature={"rules": rules})
    alice = bank.agent("alice")
    alice.add("a", "low")
    alice.add("b", kind="decision")
    liked = alice.add("c <1 0>", "low")
    used(alice, liked, "<1 0>", 2)
    bank.advance(24)
    planned = bank.compact(dry_run=True).moves
    assert {(move.memory.content, move.rule) for move in planned} == {
        ("a", "old"), ("c <1 0>", "liked"),
    }  # fmt: skip
    bank.compact()
    assert temperatures(alice) == {"a": COLD, "b": WARM, "c": HOT}


def test_closing_compacts_where_the_settings_say_so(open_bank: MakeBank) -> None:
    own = {"compact_on_close": True}
    open_bank(temperature=own).agent("alice").add("done", kind="decision")
    assert temperatures(open_bank(temperature=own).agent("alice")) == {"done": COLD}


def test_a_simulation_compacts_every_so_many_ticks(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"compact_every": 3})
    loop = Loop(bank, Diary(), Mind(), ["alice"])
    loop.begin([("alice", "done", "normal", None, {"kind": "decision"})])
    found = []
    for _ in range(4):
        loop.tick()
        found.append(temperatures(bank.agent("alice"))["done"])
    assert found == [WARM, WARM, COLD, COLD]


def test_an_expired_cold_memory_takes_no_place_in_hot(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"hot_max_facts": 1})
    alice = bank.agent("alice")
    old = alice.add("old", tags=["blocker"], temperature="cold")
    alice.add("expired", tags=["blocker"], temperature="cold", ttl=5)
    bank.advance(10)
    assert bank.compact().hot == 1
    assert alice.get(old.id).temperature is HOT
    assert bank.compact()[:3] == (0, 0, 0)
