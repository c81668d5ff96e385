"""Policies that ask their agents' memory within a tick."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agents import MemoryBank
from agents.errors import SimulationError
from agents.memory.records import Hits
from agents.simulation import Action, Ask, Loop, Observation
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.tick.decision_log import unpack
from worlds import Diary

MakeBank = Callable[..., MemoryBank]
AGENTS = ["alice", "bob"]


class Curious:
    """Asks what a function says, and keeps what it saw."""

    def __init__(self, does: Callable[[Observation], Any]) -> None:
        self.seen: list[Observation] = []
        self.given: list[Hits] = []
        self._does = does

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> Any:
        self.seen.append(observation)
        self.given.append(memories)
        return self._does(observation)


def ask_once(question: Any, then: Sequence[Any] = ()) -> Callable[[Observation], Any]:
    return lambda seen: list(then) if seen.answers else question


def texts(hits: Hits) -> list[str]:
    return [hit.memory.content for hit in hits]


def start(bank: MemoryBank, does: Callable[[Observation], Any]) -> tuple[Loop, Curious, Diary]:
    world, policy = Diary(), Curious(does)
    loop = Loop(bank, world, policy, AGENTS)
    loop.begin(
        [
            ("alice", "the mill <1 0>"), ("alice", "the well <0 1>"),
            ("alice", "an old debt <1 0.1>", "normal", None, {"temperature": "cold"}),
            ("bob", "the bridge <1 0>"),
        ]
    )  # fmt: skip
    return loop, policy, world


def kept(bank: MemoryBank, tick: int) -> Any:
    data, row = ticks_of(bank).log(tick), ticks_of(bank).tick(tick)
    assert data is not None
    assert row is not None
    return unpack(data, row.retrieved, AGENTS)


def test_a_question_is_answered_before_the_agent_acts(bank: MemoryBank) -> None:
    loop, policy, world = start(bank, ask_once(Ask("<1 0>", limit=1), [Action("go")]))
    loop.tick()
    assert [seen.agent_id for seen in policy.seen] == ["alice", "bob", "alice", "bob"]
    assert [seen.asks_left for seen in policy.seen] == [2, 2, 1, 1]
    found = [texts(answer.hits) for seen in policy.seen for answer in seen.answers]
    assert found == [["the mill <1 0>"], ["the bridge <1 0>"]]
    assert policy.given[0] is policy.given[2]  # what the tick gave stays as it was
    assert sorted(world.made("apply")) == [("alice", "go"), ("bob", "go")]


def test_a_question_about_a_session_finds_nothing_of_others_and_is_kept(bank: MemoryBank) -> None:
    asked = [Ask("<1 0>", cold=True, session=7), Ask("<1 0>", session="talk")]
    loop, policy, _ = start(bank, ask_once(asked))
    for session in (7, "talk"):
        bank.agent("alice").add(f"{session} <1 0>", session=session)
    loop.tick()
    (seen,) = [each for each in policy.seen if each.agent_id == "alice" and each.answers]
    assert [texts(answer.hits) for answer in seen.answers] == [["7 <1 0>"], ["talk <1 0>"]]
    assert kept(bank, 1)[0].sessions == [7, "talk"]
    assert kept(bank, 1)[0].boards == [None, None]


def test_only_agents_that_ask_decide_again(bank: MemoryBank) -> None:
    loop, policy, _ = start(
        bank, lambda seen: Ask("<1 0>") if seen.agent_id == "bob" and not seen.answers else []
    )
    loop.tick()
    assert [seen.agent_id for seen in policy.seen] == ["alice", "bob", "bob"]


def test_cold_memories_are_found_if_asked_for(bank: MemoryBank) -> None:
    asked = [Ask("<1 0.1>", 1), Ask("<1 0.1>", 1, cold=True)]
    loop, policy, _ = start(bank, lambda seen: [] if seen.answers else asked)
    loop.tick()
    first, second = policy.seen[2].answers
    assert texts(first.hits) == ["the mill <1 0>"]
    assert texts(second.hits) == ["an old debt <1 0.1>"]


def test_a_question_among_cold_memories_is_a_recall(bank: MemoryBank) -> None:
    loop, policy, _ = start(bank, ask_once(Ask("an old debt <1 0.1>", 1, cold=True)))
    record = loop.tick()
    (found,) = policy.seen[-2].answers[0].hits
    assert record["recalled"] >= 1
    assert bank.agent("alice").get(found.memory.id).temperature.name == "HOT"


def test_many_rounds_are_possible_up_to_the_limit(make_bank: MakeBank) -> None:
    bank = make_bank(simulation={"asks": 3})
    loop, policy, world = start(bank, lambda _: Ask("<1 0>", 1))
    record = loop.tick()
    own = [seen for seen in policy.seen if seen.agent_id == "alice"]
    assert [(len(seen.answers), seen.asks_left) for seen in own] == [(0, 3), (1, 2), (2, 1), (3, 0)]
    assert record["errors"] == 2  # one question of each agent is refused
    assert world.made("apply") == []
    (did,) = kept(bank, 1)[0].did
    assert did[2] == 3
    loop.tick()
    told = next(seen for seen in policy.seen if seen.tick == 2).errors
    assert "no more questions are answered in this tick" in told[0]


def test_without_asks_every_question_is_refused(make_bank: MakeBank) -> None:
    loop, policy, _ = start(make_bank(simulation={"asks": 0}), lambda _: Ask("<1 0>"))
    assert loop.tick()["errors"] == 2
    assert len(policy.seen) == 2


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (Ask(" "), "blank"),
        (Ask("x", limit=-1), "limit"),
        (Ask("x", cold="yes"), "cold"),  # type: ignore[arg-type]
        (Ask(7), "query"),  # type: ignore[arg-type]
    ],
)
def test_a_question_that_can_not_be_answered_gets_a_note(
    bank: MemoryBank, question: Ask, why: str
) -> None:
    loop, policy, _ = start(bank, ask_once(question))
    loop.tick()
    answer = policy.seen[2].answers[0]
    assert not answer.hits
    assert why in answer.note


def test_questions_and_what_they_found_are_in_the_log(bank: MemoryBank) -> None:
    loop, policy, _ = start(bank, ask_once([Ask("<1 0>", 1), Ask("<0 1>", 1)]))
    loop.tick()
    (first, second) = kept(bank, 1)[0].asked
    hit = policy.seen[2].answers[0].hits[0]
    assert first == ("<1 0>", 1, False, [hit.memory.sequence], [hit.score], "")
    assert second[0] == "<0 1>"


def test_what_is_found_counts_as_used(bank: MemoryBank) -> None:
    loop, _, _ = start(bank, ask_once(Ask("<1 0.1>", 1, cold=True)))
    loop.tick()
    (found,) = bank.agent("alice").all(temperature="hot")
    assert found.access_count == 1


def test_an_answer_that_is_neither_actions_nor_questions_ends_the_run(bank: MemoryBank) -> None:
    loop, _, _ = start(bank, lambda _: "go")
    with pytest.raises(SimulationError, match="a list of actions is needed"):
        loop.tick()


def test_a_resumed_run_asks_and_finds_the_same(make_bank: MakeBank, tmp_path: Path) -> None:
    def decisions(stop: int) -> list[tuple[int, bytes]]:
        does = ask_once(Ask("<1 0>", 2, cold=True), [Action("go")])
        folder = tmp_path / f"stopped-{stop}"
        with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
            loop, _, _ = start(bank, does)
            for _ in range(stop):
                loop.tick()
        with MemoryBank.open(folder) as bank:
            loop = Loop(bank, Diary(), Curious(does), AGENTS)
            loop.begin()
            for _ in range(stop, 4):
                loop.tick()
            return list(ticks_of(bank).logs())

    assert decisions(1) == decisions(3) == decisions(4)
