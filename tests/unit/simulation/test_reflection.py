"""Reflection in simulations: agents conclude something when enough has happened to them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agents import Memory, MemoryBank
from agents.config.load import load_settings
from agents.errors import SimulationError
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.policies.cassette import Cassette
from agents.simulation.policies.llm import Llm
from agents.simulation.policies.model import Question, Reply
from agents.simulation.protocols import Ask, Insight, Observation, Rating, Reflecting
from agents.simulation.runs.branch import branch
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import Run
from agents.simulation.tick.loop import Loop
from embedders import Directions

EACH: dict[str, Any] = {"enabled": True, "threshold": 30}
"""Ten normal memories, of the importance 3, are enough."""


class Street:
    """Everybody sees one thing in each tick."""

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        self.tick = 0

    def observe(self, agent_id: str) -> Observation:
        return Observation(f"{agent_id} sees {self.tick} <1 {self.tick % 3}>")

    def apply(self, agent_id: str, action: Any) -> None: ...

    def end_tick(self) -> None:
        self.tick += 1

    def metrics(self) -> Mapping[str, float]:
        return {"tick": self.tick}

    def get_state(self) -> Any:
        return self.tick

    def set_state(self, state: Any) -> None:
        self.tick = state


class Idle:
    """Does nothing."""

    def decide(self, observation: Observation, memories: Any, rng: Random) -> list[Any]:
        self.errors = list(observation.errors)
        return []


class Thinker(Idle):
    """Concludes what the test says; a function gets the latest memories."""

    def __init__(self, conclude: Any) -> None:
        self.conclude = conclude
        self.seen: list[tuple[Observation, list[Memory]]] = []

    def reflect(self, observation: Observation, memories: Sequence[Memory], rng: Random) -> Any:
        self.seen.append((observation, list(memories)))
        return self.conclude(observation, memories) if callable(self.conclude) else self.conclude


def bank_with(**reflection: Any) -> MemoryBank:
    return MemoryBank.ephemeral(
        embedder=Directions(), preset="vector", reflection={**EACH, **reflection}
    )


@pytest.fixture
def bank() -> Iterator[MemoryBank]:
    with bank_with() as made:
        yield made


def run(bank: MemoryBank, policy: Any, ticks: int, agents: Sequence[str] = ("alice",)) -> list[Any]:
    loop = Loop(bank, Street(), policy, agents)
    loop.begin()
    return [loop.tick() for _ in range(ticks)]


def insights(bank: MemoryBank, agent: str = "alice") -> list[Memory]:
    return [memory for memory in bank.agent(agent).all() if memory.kind == "insight"]


def test_an_agent_reflects_when_its_importance_comes_to_the_threshold(bank: MemoryBank) -> None:
    policy = Thinker([])
    records = run(bank, policy, 31)
    assert [each["tick"] for each in records if each["reflections"]] == [10, 20, 30]
    assert [len(memories) for _, memories in policy.seen] == [10, 20, 30]
    assert isinstance(policy, Reflecting)


def test_importance_that_is_given_counts(bank: MemoryBank) -> None:
    class Shock(Street):
        def observe(self, agent_id: str) -> Observation:
            return Observation("a fire <1 0>", metadata={"importance": 10})

    loop = Loop(bank, Shock(), Thinker([]), ["alice"])
    loop.begin()
    assert [loop.tick()["reflections"] for _ in range(6)] == [0, 0, 1, 0, 0, 1]


def test_an_insight_is_a_memory_that_knows_its_evidence(bank: MemoryBank) -> None:
    def conclude(_: Observation, memories: Sequence[Memory]) -> list[Insight]:
        return [Insight("They see a lot", [memories[0].id, memories[4].id], 8, "important")]

    records = run(bank, Thinker(conclude), 10)
    (insight,) = insights(bank)
    first = bank.agent("alice").all()
    assert insight.content == "They see a lot"
    assert insight.evidence == (first[0].id, first[4].id)
    assert (insight.importance, int(insight.tier), insight.created_tick) == (8.0, 2, 10)
    assert [(each["reflections"], each["insights"]) for each in records][-1] == (1, 1)


def test_an_insight_does_not_bring_the_next_reflection_nearer(bank: MemoryBank) -> None:
    def conclude(_: Observation, memories: Sequence[Memory]) -> list[Insight]:
        return [Insight(f"insight {n}", [memories[0].id], 10) for n in range(5)]

    records = run(bank, Thinker(conclude), 20)
    assert [each["tick"] for each in records if each["reflections"]] == [10, 20]


def test_questions_are_answered_before_the_agent_concludes(bank: MemoryBank) -> None:
    def conclude(seen: Observation, memories: Sequence[Memory]) -> Any:
        if not seen.answers:
            return [Ask("<1 2>", 2), Ask(" ")]
        found, refused = seen.answers
        assert "blank" in refused.note
        return [Insight("about it", [hit.memory.id for hit in found.hits])]

    run(bank, Thinker(conclude), 10)
    (insight,) = insights(bank)
    asked = [bank.agent("alice").get(each).content for each in insight.evidence]
    assert asked == ["alice sees 8 <1 2>", "alice sees 5 <1 2>"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("a text", "an insight has a text and evidence"),
        (Insight("x", []), "1 to 32 memories as evidence"),
        (Insight("x", ["unknown"]), "has no memory"),
        (Insight(" ", ["ID"]), "blank"),
        (Insight("x", ["ID"], 11), "from 1 to 10"),
        (Insight("x", ["BOBS"]), "has no memory"),
    ],
)
def test_an_insight_that_can_not_be_kept_is_told_to_the_agent(
    bank: MemoryBank, wrong: Any, said: str
) -> None:
    bobs = bank.agent("bob").add("secret <0 1>").id

    def conclude(_: Observation, memories: Sequence[Memory]) -> list[Any]:
        names = {"ID": memories[0].id, "BOBS": bobs}
        given = wrong
        if isinstance(wrong, Insight):
            given = wrong._replace(evidence=[names.get(each, each) for each in wrong.evidence])
        return [given, Insight("fine", [memories[0].id])]

    policy = Thinker(conclude)
    run(bank, policy, 11)
    assert [each.content for each in insights(bank)] == ["fine"]
    (told,) = policy.errors
    assert said in told


@pytest.mark.parametrize("wrong", [None, "text", Insight("x", ["y"]), 3])
def test_what_is_no_list_ends_the_run(bank: MemoryBank, wrong: Any) -> None:
    with pytest.raises(SimulationError, match=r"Thinker\.reflect\(\) gave .* in tick 10"):
        run(bank, Thinker(wrong), 10)
    assert bank.tick == 9


def test_an_error_of_a_policy_is_named(bank: MemoryBank) -> None:
    def conclude(*_: Any) -> Any:
        raise KeyError("x")

    with pytest.raises(SimulationError, match=r"Thinker\.reflect\(\) raised KeyError in tick 10"):
        run(bank, Thinker(conclude), 10)


def test_without_a_reflect_an_insight_quotes_memories_that_are_alike(bank: MemoryBank) -> None:
    run(bank, Idle(), 10)
    found = insights(bank)
    assert found
    for each in found:
        quoted = [bank.agent("alice").get(own).content for own in each.evidence]
        assert each.content == "Together: " + "; ".join(quoted)
        assert len(quoted) > 1
        assert each.importance == 3.0
    assert len({frozenset(each.evidence) for each in found}) == len(found)


def test_an_insight_is_not_quoted_in_another(bank: MemoryBank) -> None:
    run(bank, Idle(), 60)
    assert len(insights(bank)) > 3
    assert all(each.content.count("Together: ") == 1 for each in insights(bank))


def test_agents_reflect_on_their_own_memories(bank: MemoryBank) -> None:
    run(bank, Idle(), 10, ["alice", "bob"])
    for agent in ("alice", "bob"):
        own = {memory.id for memory in bank.agent(agent).all()}
        assert insights(bank, agent)
        for each in insights(bank, agent):
            assert set(each.evidence) <= own


def test_nobody_reflects_unless_it_is_enabled() -> None:
    with MemoryBank.ephemeral(embedder=Directions(), preset="vector") as bank:
        records = run(bank, Thinker([]), 60)
        assert all("reflections" not in each for each in records)


@pytest.mark.parametrize("most", [1, 7, 100])
def test_the_latest_memories_are_given(most: int) -> None:
    with bank_with(memories=most) as bank:
        policy = Thinker([])
        run(bank, policy, 20)
        assert [len(memories) for _, memories in policy.seen] == [min(most, 10), min(most, 20)]
        assert policy.seen[-1][1][-1].content.startswith("alice sees 19")


# Flags


def test_an_insight_is_flagged_when_its_evidence_no_longer_holds(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    kept, gone, changed, purged = (alice.add(f"{n} <1 {n}>") for n in range(4))
    told = [each.id for each in (kept, gone, changed, purged)]
    insight = alice.add("so it is", kind="insight", evidence=told)
    assert insight.evidence == tuple(told)
    assert alice.links(insight.id).flags == ()
    alice.update(kept.id, retention="archived")  # put away, and as true as before
    alice.delete(gone.id)
    now = alice.update(changed.id, "other <0 1>")
    alice.forget(purged.id)
    assert alice.links(insight.id).flags == (
        f"evidence {gone.id} was deleted",
        f"evidence {changed.id} was superseded by {now.id}",
        f"evidence {purged.id} is gone",
    )
    alice.update(gone.id, retention="active")
    assert len(alice.links(insight.id).flags) == 2
    assert alice.links(now.id).flags == ()


def test_evidence_is_the_agents_own(bank: MemoryBank) -> None:
    from agents import InvalidInput, MemoryNotFound

    bobs = bank.agent("bob").add("secret <1 0>")
    alice = bank.agent("alice")
    with pytest.raises(MemoryNotFound):
        alice.add("x", kind="insight", evidence=[bobs.id])
    own = alice.add("y <1 0>").id
    for wrong in (own, [own, 3], [], [f"{n}" for n in range(33)]):
        with pytest.raises((InvalidInput, MemoryNotFound)):
            alice.add("x", evidence=wrong)  # type: ignore[arg-type]
    assert alice.count() == 1


# Runs: killed, resumed, branched, replayed


def scenario(**changes: Any) -> Any:
    simulation = {"world": "market", "agents": 4, "ticks": 24, "world_options": {"scammers": 1}}
    return load_settings(
        preset="generative-agents",
        overrides={
            "simulation": simulation,
            "reflection.threshold": 40,
            "storage.sync": "manual",
            "checkpoint": {"every": 7, "keep": 9},
            **changes,
        },
    )


def hashes(run: Run) -> list[tuple[Any, ...]]:
    return [
        (each["tick"], each["state_hash"], each["reflections"], each["insights"])
        for each, _ in ticks_of(run.bank).records()
    ]


@pytest.mark.slow
def test_a_run_that_stops_and_goes_on_reflects_as_one_that_does_not(tmp_path: Path) -> None:
    with Run.create(tmp_path / "whole", scenario()) as whole:
        list(whole.advance(24))
        expected = hashes(whole)
    assert sum(each[2] for each in expected) > 8
    assert sum(each[3] for each in expected) > 8
    for stop in (5, 8):
        folder = tmp_path / f"stopped-{stop}"
        with Run.create(folder, scenario()) as run:
            list(run.advance(stop))
        with Run.open(folder) as run:
            list(run.advance(24))
            assert hashes(run) == expected
    replay = Replay(tmp_path / "whole")
    assert list(replay.ticks()) == [None] * 25
    replay.close()
    branch(tmp_path / "whole", 10, tmp_path / "branch")
    with Run.open(tmp_path / "branch") as run:
        list(run.advance(24))
        assert hashes(run) == expected


# With a language model


class Scribe:
    """A model that answers each kind of prompt, and counts."""

    def __init__(self, ratings: int = 5) -> None:
        self.prompts: list[str] = []
        self.ratings = ratings

    def prepare(self) -> None: ...

    def reply(self, question: Question) -> Reply:
        return Reply(self.answer(question.messages[-1]["content"]))

    def answer(self, text: str) -> str:
        self.prompts.append(text)
        if "rate the likely poignancy" in text:
            count = sum(line[:1].isdigit() for line in text.splitlines())
            return json.dumps({"importance": [self.ratings] * count})
        if "most salient high-level questions" in text:
            return '```json\n{"questions": ["<1 0> what?", "<1 1> why?"]}\n```'
        if "high-level insights can you infer" in text:
            return (
                '{"insights": [{"insight": "Alice sees", "because_of": [2, 1], "importance": 9}]}'
            )
        return '{"actions": []}'


def test_a_language_model_asks_and_concludes_and_the_cassette_replays_it(tmp_path: Path) -> None:
    found = []
    model = Scribe()
    for mind in (model, Scribe()):
        with bank_with(ratings="policy", threshold=20) as bank:
            policy = Llm(mind, Cassette(tmp_path / "c.jsonl"), {}, {}, bank.settings.reflection)
            assert isinstance(policy, Reflecting)
            assert isinstance(policy, Rating)
            records = run(bank, policy, 5)
            found.append([each["state_hash"] for each in records])
            assert [each["reflections"] for each in records] == [0, 0, 0, 1, 0]
            one, _ = insights(bank)
            assert (one.content, one.importance, len(one.evidence)) == ("Alice sees", 9.0, 2)
            own = [each for each in bank.agent("alice").all() if each.kind == "observation"]
            assert {each.importance for each in own} == {5.0}
    assert found[0] == found[1]
    assert mind.prompts == []  # all of it was in the cassette
    assert len(model.prompts) == 5 + 5 + 1 + 2  # decisions, ratings, questions, insights


@pytest.mark.parametrize(
    "reply",
    [
        "no JSON",
        '{"insights": [{"insight": "x", "because_of": [99]}]}',
        '{"insights": [{"insight": "", "because_of": [1]}]}',
        '{"insights": [{"insight": "x", "because_of": [1], "importance": 11}]}',
        '{"insights": [{"insight": "x"}]}',
        '{"insights": 3}',
    ],
)
def test_a_reply_in_the_wrong_form_is_no_insight_and_the_run_goes_on(
    tmp_path: Path, reply: str
) -> None:
    class Wrong(Scribe):
        def answer(self, text: str) -> str:
            given = super().answer(text)
            return reply if "insights can you infer" in self.prompts[-1] else given

    with bank_with(threshold=12) as bank:
        mind = Wrong()
        policy = Llm(mind, Cassette(tmp_path / "c"), {}, {}, bank.settings.reflection, retries=1)
        records = run(bank, policy, 8)
        assert [each["reflections"] for each in records] == [0, 0, 0, 1, 0, 0, 0, 1]
        assert insights(bank) == []
        assert sum("insights can you infer" in each for each in mind.prompts) == 2 * 2 * 2


def test_ratings_in_the_wrong_form_leave_the_importance_to_the_tier(tmp_path: Path) -> None:
    with bank_with(ratings="policy") as bank:
        policy = Llm(Scribe(ratings=0), Cassette(tmp_path / "c"), {}, {}, retries=0)
        run(bank, policy, 2)
        assert {each.importance for each in bank.agent("alice").all()} == {None}


def test_a_text_in_a_prompt_is_one_line(tmp_path: Path) -> None:
    class Hostile(Street):
        def observe(self, agent_id: str) -> Observation:
            return Observation("one\n7. two <1 0>")

    with bank_with(threshold=3) as bank:
        mind = Scribe()
        loop = Loop(bank, Hostile(), Llm(mind, Cassette(tmp_path / "c"), {}, {}), ["alice"])
        loop.begin()
        loop.tick()
        (prompt,) = [each for each in mind.prompts if "high-level questions" in each]
        assert "\n7. two" not in prompt
        assert "1. one" in prompt


class Numbers(Idle):
    """Rates by what the test gives."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def rate_all(self, observations: Any, texts: Any) -> Any:
        return self.given


@pytest.mark.parametrize("wrong", [[], [[]], [[3, 4]], [[11]], [["7"]], None, [3]])
def test_ratings_of_a_policy_are_one_number_for_each_text(wrong: Any) -> None:
    with bank_with(ratings="policy") as bank, pytest.raises(SimulationError, match="rate_all"):
        run(bank, Numbers(wrong), 1)


def test_a_policy_may_leave_a_rating_to_the_tier() -> None:
    with bank_with(ratings="policy") as bank:
        run(bank, Numbers([[None]]), 1)
        assert bank.agent("alice").all()[0].importance is None
