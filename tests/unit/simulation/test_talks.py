"""Conversations: the world says who talks, all remember what is said, and what is told."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agents import MemoryBank, SimulationError
from agents.config.load import load_settings
from agents.memory.records import Hits
from agents.simulation.policies.cassette import Cassette
from agents.simulation.protocols import Action, Conversation, Observation, Say
from agents.simulation.runs.branch import branch
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import Run
from agents.simulation.tick.branch_rules import BranchRules
from agents.simulation.tick.loop import Loop
from banks import ROOT
from openai_server import OpenAIServer
from spread_runs import engine, results
from talking_worlds import MILL, Gossip, Inn


class Silent(Gossip):
    say = None  # type: ignore[assignment]


def played(
    world: Inn, policy: Any, rules: BranchRules | None = None, ticks: int = 1
) -> tuple[MemoryBank, list[Any]]:
    bank = MemoryBank.ephemeral(seed=3)
    loop = Loop(bank, world, policy, ["ann", "bob", "cat"], rules or BranchRules())
    loop.begin([("ann", MILL, "important")])
    return bank, [loop.tick() for _ in range(ticks)]


def messages(bank: MemoryBank, agent: str) -> list[str]:
    own = [each for each in bank.agent(agent).all() if each.kind == "message"]
    return [each.content for each in sorted(own, key=lambda each: each.sequence)]


def test_each_turn_is_remembered_by_all_with_speaker_and_session() -> None:
    bank, _ = played(Inn(), Gossip())
    said = messages(bank, "cat")
    assert said[0] == f"ann: {MILL}"
    assert len(said) > 1
    assert messages(bank, "ann") == messages(bank, "bob") == said
    for memory in bank.agent("bob").all():
        if memory.kind == "message":
            assert memory.speaker == memory.content.partition(":")[0]
            assert memory.session == "talk 1.1"


def test_a_memory_that_is_told_has_its_source() -> None:
    bank, _ = played(Inn(), Gossip())
    (told,) = [each for each in bank.agent("cat").all() if each.source is not None]
    (own,) = [each for each in bank.agent("ann").all() if each.content == MILL]
    assert told.content == MILL
    assert told.source is not None
    assert (told.source.teller, told.source.origin_id, told.source.hands) == ("ann", own.id, 1)


def test_a_conversation_shifts_no_draw_and_counts_as_no_use() -> None:
    def lucks(policy: Any) -> list[Any]:
        seen: list[Any] = []
        world = Inn()
        world.apply = lambda agent, action: seen.append(action.arguments["luck"])  # type: ignore[method-assign,assignment,func-returns-value]
        bank, _ = played(world, policy, ticks=3)
        return [seen, [each.access_count for each in bank.agent("ann").all()][:1]]

    assert lucks(Gossip()) == lucks(Silent())


class Counted(Gossip):
    """Notes what it is asked, and says what it was told to say."""

    def __init__(self, *said: Any) -> None:
        self.said, self.asked = list(said), list[tuple[str, Conversation]]()

    def say(self, observation: Observation, memories: Hits, rng: Random, talk: Conversation) -> Any:
        self.asked.append((observation.agent_id, talk))
        return self.said.pop(0) if self.said else None


def test_who_speaks_hears_what_was_said_and_silence_of_all_ends_it() -> None:
    policy = Counted("hello", " ", "is it\nso?")
    world = Inn()
    world.talks = [Conversation(["bob", "ann"], "news", 9, session="s")]
    played(world, policy)
    assert [who for who, _ in policy.asked] == ["bob", "ann", "bob", "ann", "bob"]
    talk = policy.asked[-1][1]
    assert talk == (["bob", "ann"], "news", 5, "s", [("bob", "hello"), ("bob", "is it\nso?")])


def test_blocked_words_reach_nobody_in_a_conversation() -> None:
    policy = Counted("hello", "yes", "so?")
    rules = BranchRules([{"do": "block", "from": "ann", "to": "bob", "after": 0}])
    bank, _ = played(Inn(), policy, rules)
    assert policy.asked[1][1].said == []
    assert messages(bank, "bob") == ["bob: yes", "cat: so?"]
    assert messages(bank, "cat") == ["ann: hello", "bob: yes", "cat: so?"]


def test_who_tells_what_it_has_not_is_told_so_in_the_next_tick() -> None:
    class Liar(Counted):
        def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
            self.errors = [*getattr(self, "errors", []), *observation.errors]
            return []

    policy = Liar(Say("I know it", memory_id="none"))
    bank, _ = played(Inn(), policy, ticks=2)
    assert messages(bank, "cat") == ["ann: I know it"]
    (error,) = policy.errors
    assert error.startswith("broadcast was refused: ann has no memory 'none'")


@pytest.mark.parametrize(
    ("talks", "why"),
    [
        (3, "gave in tick 1 3; a list of Conversations is needed"),
        (["ann"], "it is neither a Conversation nor a list of agents"),
        ([["ann", "eve"]], "'eve' is not an agent of the run"),
        ([["ann"]], "two agents or more talk, each of them once"),
        ([["ann", "ann"]], "two agents or more talk, each of them once"),
        ([["ann", "bob"], ["cat", "bob"]], "two conversations of bob"),
        ([Conversation(["ann", "bob"], turns=1001)], "turns is 1001"),
        ([Conversation(["ann", "bob"], topic=3)], "topic is 3"),  # type: ignore[arg-type]
        ([Conversation(["ann", "bob"], session=[])], "a session is a text"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_conversation_is_refused(talks: Any, why: str) -> None:
    world = Inn()
    world.talks = talks
    with pytest.raises(SimulationError, match=why):
        played(world, Gossip())


def test_what_is_nothing_to_say_is_refused() -> None:
    with pytest.raises(SimulationError, match=r"Counted\.say\(\) gave 3 for ann in tick 1"):
        played(Inn(), Counted(3))


# Runs


def scenario(**simulation: Any) -> Any:
    memories = [{"agent": "agent_00", "content": MILL}]
    own = {"world": "talking_worlds:Pairs", "policy": "talking_worlds:Gossip", "memories": memories}
    values = {**own, "agents": 7, "ticks": 6, **simulation}
    return load_settings({"seed": 5, "storage": {"sync": "manual"}, "simulation": values})


def ran(folder: Path, settings: Any, workers: int = 0, ticks: int = 6) -> Path:
    here = Path(__file__).parents[2]
    with Run.create(folder, settings, scenario=here, engine=engine(workers)) as run:
        list(run.advance(ticks))
    return folder


def finished(folder: Path, workers: int = 0) -> dict[str, bytes]:
    with Run.open(folder, engine=engine(workers)) as run:
        list(run.advance(run.settings.simulation.ticks))
        run.finish(report=False)
    return results(folder)


@pytest.mark.slow
def test_a_run_with_conversations_is_resumed_replayed_and_branched(tmp_path: Path) -> None:
    whole = finished(ran(tmp_path / "whole", scenario()))
    assert finished(ran(tmp_path / "stopped", scenario(), ticks=3)) == whole
    assert set(Replay(tmp_path / "whole").ticks()) == {None}
    branch(tmp_path / "whole", 2, tmp_path / "branch")
    last = [json.loads(each["summary.json"])["state_hash"]
            for each in (whole, finished(tmp_path / "branch"))]  # fmt: skip
    assert last[0] == last[1]


@pytest.mark.slow
def test_conversations_over_workers_are_those_of_one_process(tmp_path: Path) -> None:
    whole = finished(ran(tmp_path / "whole", scenario()))
    folder = ran(tmp_path / "spread", scenario(), workers=2, ticks=3)
    cell = folder / "shards" / "cell-00"
    behind = {each.name: each.read_bytes() for each in cell.iterdir() if each.is_file()}
    with Run.open(folder, engine=engine(2)) as run:
        list(run.advance(5))
    for name, data in behind.items():  # a cell that lost two ticks does them again from the log
        (cell / name).write_bytes(data)
    for path in cell.glob("journal.db-*"):
        if path.name not in behind:
            path.unlink()
    assert finished(folder, workers=1) == whole


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_language_model_talks_and_is_replayed_offline(tmp_path: Path) -> None:
    prompts: list[str] = []

    def reply(request: dict[str, Any]) -> str:
        prompt = request["messages"][-1]["content"]
        prompts.append(prompt)
        if "You talk with" not in prompt:
            return json.dumps({"reason": "it is late", "actions": [{"name": "sit"}]})
        shown = [line.split()[1] for line in prompt.splitlines() if line.endswith(f" {MILL}")]
        told = shown[0] if shown and "said so far" not in prompt else None
        return json.dumps({"say": "Good evening", "memory_id": told})

    with OpenAIServer(reply) as server:
        config = {"openai_base_url": server.url, "api_key": "hush", "model": "m"}
        settings = load_settings(
            scenario(policy="llm", agents=5, ticks=2, memories=[{"content": MILL}]).to_dict(),
            overrides={"llm": {"provider": "openai", "config": config}},
        )
        folder = ran(tmp_path / "run", settings, ticks=2)
    assert any("said so far:\n- agent_0" in each for each in prompts)
    assert set(Replay(folder).ticks()) == {None}
    with MemoryBank.at(folder / "bank") as bank:
        told = [each for name in bank.agents() for each in bank.agent(name).all() if each.source]
    assert {each.content for each in told} == {MILL}
    assert {each.session for each in told} == {None}
    assert len(list(Cassette(folder / "cassette.jsonl", replay=True))) == len(prompts)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_village_talks_of_what_it_heard(tmp_path: Path) -> None:
    def reply(request: dict[str, Any]) -> str:
        prompt = request["messages"][-1]["content"]
        if "You talk with" not in prompt:
            return json.dumps({"reason": "nothing is due", "actions": []})
        known = [line.split()[1] for line in prompt.splitlines() if " There is a " in line]
        return json.dumps({"say": "Hello", "memory_id": known[0] if known else None})

    with OpenAIServer(reply) as server:
        settings = load_settings(
            ROOT / "simulations/village_llm.yaml",
            overrides={"llm.base_url": server.url, "simulation.ticks": 8, "storage.sync": "manual"},
        )
        with Run.create(tmp_path / "run", settings) as run:
            list(run.advance(8))
            agents = map(run.bank.agent, settings.simulation.agent_ids())
            memories = [each for agent in agents for each in agent.all()]
    systems = {request["messages"][0]["content"] for _, request in server.requests}
    assert any("She hears all rumours" in each for each in systems)
    assert any(each.kind == "message" and each.session == "talk 5.1" for each in memories)
    assert any(each.source and each.content.startswith("There is a ") for each in memories)
    assert set(Replay(tmp_path / "run").ticks()) == {None}
