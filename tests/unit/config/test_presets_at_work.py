"""Each preset at work: what the system that it stands for does, from one session to the next."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import AgentMemory, MemoryBank, MemoryNotFound, Retention, Temperature
from agents.simulation.tick.loop import Loop
from embedders import Directions
from worlds import Diary, Mind

HOT, WARM, COLD = Temperature
DAY = 24

Open = Callable[..., MemoryBank]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Open]:
    """Opens the bank in ``tmp_path`` with a preset; the one that was open ends its session."""
    banks: list[MemoryBank] = []

    def begin(preset: str | None = None, **options: Any) -> MemoryBank:
        for bank in banks:
            bank.close()
        options.setdefault("storage", {"sync": "manual"})
        options.setdefault("retrieval", {"mode": "vector", "sif": 0})  # texts say where they point
        bank = MemoryBank.open(
            tmp_path / "bank", preset=preset, embedder=Directions(), count_tokens=len, **options
        )
        banks.append(bank)
        return bank

    yield begin
    for bank in banks:
        bank.close()


def temperatures(agent: AgentMemory) -> dict[str, Temperature]:
    return {memory.content.split(" <")[0]: memory.temperature for memory in agent.all()}


def lines(text: str) -> list[str]:
    return [line.removeprefix("- ").split(" <")[0] for line in text.splitlines()]


# tiers


def a_bit_of_everything(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("NEVER transfer to agent_X (scammer) <1 0>", "pinned")
    for number in range(12):
        alice.add(f"warning {number} <1 {number}>", "critical", kind="decision")
    alice.add("short <0 1>", ttl=3)
    for tick in range(1, 9):
        bank.advance(tick)
        alice.search("<1 3>")
        alice.recall("<0 1>")
        bank.sweep()


def test_tiers_works_as_the_default(tmp_path: Path) -> None:
    hashes = set()
    for preset in (None, "tiers"):
        own: dict[str, Any] = {"embedder": Directions(), "storage": {"sync": "manual"}}
        with MemoryBank.open(tmp_path / str(preset), preset=preset, **own) as bank:
            a_bit_of_everything(bank)
        with MemoryBank.open(tmp_path / str(preset), **own) as bank:
            hashes.add(bank.state_hash())
    assert len(hashes) == 1


def test_tiers_alone_decide_and_nothing_moves_by_itself(session: Open) -> None:
    bank = session("tiers")
    alice = bank.agent("alice")
    alice.add("pin <0 1>", "pinned")
    alice.add("critical <0.9 0.4>", "critical")
    alice.add("done <1 0>", kind="decision", ttl=10_000)
    bank.advance(9_000)
    bank.sweep()
    assert lines(alice.get_relevant_memories("<1 0>")) == ["[pinned] pin", "[critical] critical",
                                                            "done"]  # fmt: skip
    alice = session("tiers").agent("alice")
    assert temperatures(alice) == {"pin": HOT, "critical": WARM, "done": WARM}


# hot-warm-cold


@pytest.fixture
def project(session: Open) -> Callable[[], AgentMemory]:
    """A first session on a project; gives what opens the next one."""
    alice = session("hot-warm-cold").agent("alice")
    alice.add("the build server is called ursa <1 0 0>", kind="fact")
    alice.add("we use SQLite <0 1 0>", kind="decision")
    alice.add("write the parser <0 1 1>", tags=["task"])
    alice.add("ship the docs <1 1 0>", tags=["task", "open"])
    alice.add("the licence is unclear <0 0 1>", tags=["blocker"])
    alice.add("which database <1 1 1>", kind="decision", tags=["blocker"])
    alice.add("tabs, not spaces <1 0 1>", kind="preference", temperature="hot")
    alice.add("we met on Friday <1 1 1>", kind="message", temperature="hot")
    alice.add("never push to main <0 0 0 1>", "pinned")
    return lambda: session("hot-warm-cold").agent("alice")


def test_closing_a_session_compacts(project: Callable[[], AgentMemory]) -> None:
    assert temperatures(project()) == {
        "the build server is called ursa": WARM,
        "we use SQLite": COLD,
        "write the parser": COLD,
        "ship the docs": WARM,
        "the licence is unclear": HOT,
        "which database": HOT,
        "tabs, not spaces": HOT,
        "we met on Friday": WARM,
        "never push to main": HOT,
    }


def test_the_next_session_begins_with_pins_blockers_and_preferences(
    project: Callable[[], AgentMemory],
) -> None:
    assert lines(project().get_relevant_memories()) == [
        "[pinned] never push to main",
        "tabs, not spaces",
        "which database",
        "the licence is unclear",
    ]


def test_what_is_completed_is_not_searched_but_recalled(project: Callable[[], AgentMemory]) -> None:
    alice = project()
    query = "<0 1 0>"
    found = [hit.memory.content for hit in alice.search(query, 50)]
    assert "we use SQLite <0 1 0>" not in found
    result = alice.recall(query, 1)
    assert [item.content for item in result.items] == ["we use SQLite <0 1 0>"]
    assert temperatures(alice)["we use SQLite"] is HOT  # for this session
    assert temperatures(project())["we use SQLite"] is COLD


def test_sessions_without_work_move_nothing_more(project: Callable[[], AgentMemory]) -> None:
    before = temperatures(project())
    for _ in range(3):
        assert temperatures(project()) == before


def test_a_blocker_comes_to_hot_from_wherever_it_is(session: Open) -> None:
    alice = session("hot-warm-cold").agent("alice")
    alice.add("forgotten <1 0>", tags=["blocker"], temperature="cold")
    assert lines(session("hot-warm-cold").agent("alice").get_relevant_memories()) == ["forgotten"]


def test_preferences_stay_hot_for_a_week_without_use(session: Open) -> None:
    bank = session("hot-warm-cold")
    bank.agent("alice").add("tabs", kind="preference", temperature="hot")
    bank.advance(7 * DAY - 1)
    bank = session("hot-warm-cold")
    assert temperatures(bank.agent("alice"))["tabs"] is HOT
    bank.advance(7 * DAY)
    assert temperatures(session("hot-warm-cold").agent("alice"))["tabs"] is WARM


def test_hot_never_grows_beyond_its_limits_over_many_sessions(session: Open) -> None:
    own = {"hot_max_facts": 3}
    for number in range(6):
        alice = session("hot-warm-cold", temperature=own).agent("alice")
        alice.add(f"blocker {number}", tags=["blocker"])
        assert len(alice.all(temperature="hot")) <= 3
    alice = session("hot-warm-cold", temperature=own).agent("alice")
    assert len(alice.all(temperature="hot")) == 3


def test_too_many_completed_ones_are_archived(session: Open) -> None:
    own = {"max_cold_items": 2}
    alice = session("hot-warm-cold", temperature=own).agent("alice")
    done = [alice.add(f"done {number}", kind="decision") for number in range(4)]
    alice = session("hot-warm-cold", temperature=own).agent("alice")
    assert [alice.get(each.id).retention for each in done] == [
        Retention.ARCHIVED, Retention.ARCHIVED, Retention.ACTIVE, Retention.ACTIVE,
    ]  # fmt: skip


def test_a_simulation_compacts_once_a_day(session: Open) -> None:
    bank = session("hot-warm-cold")
    loop = Loop(bank, Diary(), Mind(), ["alice"])
    loop.begin([("alice", "done", "normal", None, {"kind": "decision"})])
    for _ in range(DAY - 1):
        loop.tick()
    assert temperatures(bank.agent("alice"))["done"] is WARM
    loop.tick()
    assert temperatures(bank.agent("alice"))["done"] is COLD


def test_the_preset_that_a_bank_was_made_with_stays(session: Open) -> None:
    session("hot-warm-cold").agent("alice").add("done", kind="decision")
    assert temperatures(session().agent("alice")) == {"done": COLD}
    session().agent("alice").add("done too", kind="decision")
    assert temperatures(session().agent("alice"))["done too"] is COLD


# hot-cold-session


SMALL = {"hot_max_tokens": 60}


def test_a_new_memory_is_in_front_at_once(session: Open) -> None:
    alice = session("hot-cold-session").agent("alice")
    memory = alice.add("hello <1 0>")
    assert memory.temperature is HOT
    assert lines(alice.get_relevant_memories()) == ["hello"]
    assert lines(alice.get_relevant_memories("<0 1>")) == ["hello"]


def test_a_long_conversation_spills_the_oldest_when_hot_is_full(session: Open) -> None:
    alice = session("hot-cold-session", temperature=SMALL).agent("alice")
    for number in range(8):
        alice.add(f"turn {number:02} <1 {number}>", kind="message")  # 17 characters as a line
        assert sum(len(m.content) + 3 for m in alice.all(temperature="hot")) <= 60
    now = temperatures(alice)
    assert [name for name, at in now.items() if at is HOT] == ["turn 05", "turn 06", "turn 07"]
    assert {at for name, at in now.items() if name < "turn 05"} == {COLD}


def test_what_is_used_stays_or_goes_to_warm_only(session: Open) -> None:
    alice = session("hot-cold-session", temperature={"hot_max_facts": 2}).agent("alice")
    liked = alice.add("liked <1 0>")
    for _ in range(4):
        alice.search("<1 0>", 1)
    alice.add("other <0 1>")
    alice.add("third <0 0 1>")
    assert temperatures(alice) == {"liked": HOT, "other": COLD, "third": HOT}
    assert alice.spill(ids=[liked.id]).moved == {liked.id: WARM}


def test_a_recall_brings_back_what_was_spilled(session: Open) -> None:
    bank = session("hot-cold-session", temperature=SMALL)
    alice = bank.agent("alice")
    alice.add("my name is Ada <1 0 0>", kind="entity")
    for number in range(6):
        alice.add(f"small talk {number} <0 1 {number}>", kind="message")
    assert temperatures(alice)["my name is Ada"] is COLD
    assert "Ada" not in alice.get_relevant_memories("what is my name? <1 0 0>", 50)
    result = alice.recall("what is my name? <1 0 0>")
    assert result.items[0].content == "my name is Ada <1 0 0>"
    assert result.promoted == (result.items[0].id,)
    assert "my name is Ada" in lines(alice.get_relevant_memories())
    assert sum(len(m.content) + 3 for m in alice.all(temperature="hot")) <= 60


def test_what_is_asked_for_again_and_again_comes_back(session: Open) -> None:
    bank = session("hot-cold-session")
    alice = bank.agent("alice")
    memory = alice.add("vague <1 1>", temperature="cold")
    found = []
    for day in range(3):
        bank.advance(day * DAY)
        found.append(bool(alice.recall("<1 0>").promoted))
    assert found == [False, False, True]
    assert alice.get(memory.id).temperature is HOT


def test_a_session_that_ends_leaves_all_where_it_is(session: Open) -> None:
    alice = session("hot-cold-session").agent("alice")
    alice.add("hello", kind="decision")
    assert temperatures(session("hot-cold-session").agent("alice")) == {"hello": HOT}


# lifetime


def test_the_lifetime_decides_how_a_memory_starts(session: Open) -> None:
    alice = session("lifetime").agent("alice")
    started = {
        ttl: alice.add("a", ttl=ttl).temperature
        for ttl in (1, DAY - 1, DAY, 7 * DAY - 1, 7 * DAY, 365 * DAY)
    }
    assert list(started.values()) == [COLD, COLD, WARM, WARM, HOT, HOT]
    assert alice.add("for ever").temperature is HOT
    assert alice.add("as asked", ttl=1, temperature="hot").temperature is HOT


def test_what_nobody_uses_fades_and_use_keeps_it(session: Open) -> None:
    bank = session("lifetime")
    alice = bank.agent("alice")
    alice.add("idle <1 0>")
    alice.add("critical <0 1>", "critical")
    alice.add("used <0 0 1>")
    found: dict[str, dict[Temperature, int]] = {"idle": {}, "critical": {}, "used": {}}
    for day in range(1, 400):
        bank.advance(day * DAY)
        if day == 20:
            alice.search("<0 0 1>", 1)
        bank.sweep()
        for name, at in temperatures(alice).items():
            found[name].setdefault(at, day)
    assert found == {
        "idle": {HOT: 1, WARM: 31, COLD: 61},
        "critical": {HOT: 1, WARM: 91, COLD: 181},
        "used": {HOT: 1, WARM: 20 + 61, COLD: 20 + 121},
    }


def test_use_brings_a_faded_memory_back(session: Open) -> None:
    bank = session("lifetime")
    alice = bank.agent("alice")
    memory = alice.add("faded <1 0>")
    for day in (31, 61):
        bank.advance(day * DAY)
        bank.sweep()
    assert alice.get(memory.id).temperature is COLD
    assert alice.recall("<1 0>").promoted == (memory.id,)
    bank.advance(90 * DAY)
    bank.sweep()
    assert alice.get(memory.id).temperature is HOT


def test_what_expired_is_gone_at_once_and_for_good_after_the_grace(session: Open) -> None:
    bank = session("lifetime")
    alice = bank.agent("alice")
    memory = alice.add("the code is 1234 <1 0>", ttl=10)
    bank.advance(9)
    assert alice.recall("<1 0>", auto_promote=False).items != ()
    bank.advance(10)
    assert alice.recall("<1 0>").items == ()
    assert alice.search("<1 0>", include_cold=True) == []
    bank.sweep()
    with pytest.raises(MemoryNotFound, match="restore"):
        alice.get(memory.id)
    bank.advance(10 + 7 * DAY)
    bank.sweep()
    with pytest.raises(MemoryNotFound):
        alice.update(memory.id, retention="active")


def test_fading_and_expiring_go_on_over_sessions(session: Open) -> None:
    bank = session("lifetime")
    bank.agent("alice").add("idle")
    bank.agent("alice").add("short", ttl=40 * DAY)
    bank.advance(25 * DAY)
    bank.sweep()
    bank = session()
    bank.advance(31 * DAY)
    bank.sweep()
    assert temperatures(bank.agent("alice")) == {"idle": WARM, "short": WARM}
    bank = session()
    bank.advance(61 * DAY)
    bank.sweep()
    assert temperatures(bank.agent("alice")) == {"idle": COLD}


def test_in_a_simulation_each_tick_fades_and_expires(session: Open) -> None:
    own = {"half_life": {"critical": 8, "important": 6, "normal": 4, "low": 2}, "every": 1}
    bank = session("lifetime", decay=own)
    loop = Loop(bank, Diary(), Mind(), ["alice"])
    loop.begin([("alice", "idle"), ("alice", "short", 3, None, {"ttl": 3, "temperature": "hot"})])
    found = []
    for _ in range(9):
        loop.tick()
        found.append(temperatures(bank.agent("alice")))
    assert [sorted(each) for each in found] == [["idle", "short"]] * 2 + [["idle"]] * 7
    assert [each["idle"] for each in found] == [HOT] * 4 + [WARM] * 4 + [COLD]
