"""Memory for Mesa-LLM's agents, where Mesa-LLM is installed: Python 3.12 and later.

CI has 3.11. There ``tests/adapters/upstream/mesa_llm.py`` runs these tests.
"""

import asyncio
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no network
pytest.importorskip("mesa_llm", reason="Mesa-LLM needs Python 3.12")

from mesa import Model
from mesa_llm.llm_agent import LLMAgent
from mesa_llm.memory.st_lt_memory import STLTMemory
from mesa_llm.reasoning.cot import CoTReasoning

from agents import Diverged, MemoryBank, Tier
from agents.mesa_llm import TierMemory, record
from banks import ROOT
from openai_server import OpenAIServer

pytestmark = pytest.mark.filterwarnings("default")  # those of Mesa, litellm and pydantic
PAGE = ROOT / "docs/howto/mesa-llm.md"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as started:
        started.reply = lambda _: f"answer {len(started.requests)}"
        yield started


@pytest.fixture
def bank() -> Iterator[MemoryBank]:
    with MemoryBank.ephemeral() as opened:
        yield opened


class Talker(LLMAgent):  # type: ignore[misc]
    def __init__(self, model: Any, bank: MemoryBank | None = None, **options: Any) -> None:
        url = getattr(model, "url", None)
        super().__init__(model, CoTReasoning, "openai/gpt-4o-mini", api_base=url)
        self.memory = TierMemory(self, bank, display=False, **options)

    def step(self) -> None:
        for _ in range(2):  # the same question twice
            answer = self.llm.generate(f"{self.memory.format_short_term()} What now?")
            self.memory.add_to_memory("action", {"said": answer.choices[0].message.content})


class Town(Model):  # type: ignore[misc]
    def __init__(self, bank: MemoryBank | None, url: str | None = None, **options: Any) -> None:
        super().__init__(rng=7)
        self.url = url
        Talker.create_agents(self, 2, bank=bank, **options)

    def step(self) -> None:
        self.agents.do("step")


def agent_of(bank: MemoryBank | None, **options: Any) -> Any:
    return Town(bank, **options).agents[0]


def play(agent: Any, step: int, **events: dict[str, Any]) -> None:
    """A step of an agent, with an event of each type."""
    agent.model.steps = step
    agent.memory.process_step(pre_step=True)
    for name, event in events.items():
        agent.memory.add_to_memory(name, event)
    agent.memory.process_step()


def test_it_is_what_mesa_llm_takes_for_short_and_long_term_memory(bank: MemoryBank) -> None:
    assert isinstance(agent_of(bank).memory, STLTMemory)


def test_the_events_of_a_step_are_stored_in_one_commit_when_it_ends(bank: MemoryBank) -> None:
    agent = agent_of(bank)
    agent.memory.add_to_memory("observation", {"weather": "rain", "near": [2, 3]})
    assert bank.agents() == []
    agent.model.steps = 3
    agent.memory.process_step(pre_step=True)
    agent.memory.add_to_memory("message", {"message": "hello", "sender": 2})
    agent.memory.add_to_memory("message", {"message": "bye", "sender": 2})
    agent.memory.process_step()
    stored = bank.agent("1").all()
    assert sorted((each.kind, each.content, each.created_tick) for each in stored) == [
        ("message", "message: Agent 2 says: bye", 3),
        ("message", "message: Agent 2 says: hello", 3),
        ("observation", "observation: weather: rain; near: 2, 3", 3),
    ]
    assert {each.metadata.get("speaker") for each in stored} == {None, "2"}


def test_old_steps_come_back_when_they_matter(bank: MemoryBank) -> None:
    agent = agent_of(bank, short_term_capacity=2, considered_entries=1)
    play(agent, 1, observation={"seen": "a shark in the bay"})
    for step in range(2, 9):
        play(agent, step, observation={"price": "fish costs 7"})
    play(agent, 9, observation={"seen": "the bay, with something like a shark"})
    prompt = agent.memory.get_prompt_ready()
    assert "Step 9: \n{'observation': {'seen': 'the bay, with" in prompt
    assert "Long term memory: \n- observation: seen: a shark in the bay" in prompt
    assert len(agent.memory.short_term_memory) == 2


def test_what_matters_is_what_is_nearest_and_not_what_is_oldest(bank: MemoryBank) -> None:
    agent = agent_of(bank, short_term_capacity=1, considered_entries=1)
    for step, seen in enumerate(["a fish", "a boat", "a shark in the bay", "rain"], 1):
        play(agent, step, observation={"seen": seen})
    play(agent, 5, observation={"seen": "the bay, with something like a shark"})
    assert agent.memory.format_long_term() == "- observation: seen: a shark in the bay"


def test_what_the_short_term_memory_shows_is_not_shown_again(bank: MemoryBank) -> None:
    agent = agent_of(bank)
    play(agent, 1, observation={"seen": "a shark"})
    assert agent.memory.format_long_term() == ""
    bank.agent("1").add("NEVER swim.", tier="pinned")
    assert agent.memory.format_long_term() == "- [pinned] NEVER swim."


def test_what_happens_again_and_again_is_shown_once(bank: MemoryBank) -> None:
    agent = agent_of(bank, short_term_capacity=1)
    for step in range(1, 9):
        play(agent, step, action={"decision": "wait" if step != 3 else "buy"})
    assert sorted(agent.memory.format_long_term().splitlines()) == [
        "- action: decision: buy",
        "- action: decision: wait",
    ]


def test_tiers_come_from_types_and_from_importance(bank: MemoryBank) -> None:
    agent = agent_of(bank, tiers={"plan": "important"})
    play(agent, 1, plan={"do": "flee"}, observation={"seen": "fire", "importance": 5})
    play(agent, 2, observation={"seen": "a fly", "importance": 1}, action={"importance": "high"})
    tiers = {each.content.partition(":")[0]: each.tier for each in bank.agent("1").all()[:2]}
    assert tiers == {"plan": Tier.IMPORTANT, "observation": Tier.CRITICAL}
    later = sorted(each.tier for each in bank.agent("1").all()[2:])
    assert later == [Tier.NORMAL, Tier.LOW]


def test_a_text_assigned_as_long_term_memory_is_pinned(bank: MemoryBank) -> None:
    memory = agent_of(bank).memory
    memory.long_term_memory = "was born at sea"
    memory.long_term_memory = "was born in a storm"
    assert memory.long_term_memory == "- [pinned] was born in a storm"


def test_all_events_can_be_listed(bank: MemoryBank) -> None:
    agent = agent_of(bank)
    play(agent, 1, observation={"seen": "a shark"})
    agent.memory.add_to_memory("plan", {"do": "flee"})
    assert [(each.step, each.content) for each in agent.memory.memory_entries] == [
        (1, {"observation": {"seen": "a shark"}}),
        (1, {"plan": {"do": "flee"}}),
    ]


def test_any_content_can_be_stored(bank: MemoryBank) -> None:
    agent = agent_of(bank)
    odd = {"at": (1, 2), 3: {4, 5}, "nan": float("nan"), "who": agent, "text": "a\0b\ud800"}
    play(agent, 1, observation=odd, action={"long": "x" * 100_000}, plan={})
    kept = {each.value["type"]: each.value["event"] for each in bank.agent("1").all()}
    assert kept["observation"] == {
        "at": [1, 2],
        "3": [4, 5],
        "nan": "nan",
        "who": "LLMAgent 1",
        "text": "ab?",
    }
    assert kept["action"] == {"long": "x" * 100_000}


def test_agents_of_a_model_share_a_bank_and_models_do_not() -> None:
    one, two = Town(None), Town(None)
    banks = [agent.memory.bank for town in (one, two) for agent in town.agents]
    assert banks[0] is banks[1]
    assert banks[2] is banks[3]
    assert banks[0] is not banks[2]
    play(one.agents[0], 1, observation={"seen": "a shark"})
    assert one.agents[1].memory.memory_entries == []


def test_a_model_on_the_same_folder_goes_on_with_the_last_steps(tmp_path: Path) -> None:
    def opened() -> MemoryBank:
        return MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"})

    with opened() as bank:
        agent = agent_of(bank, short_term_capacity=2)
        for step in (1, 2, 3):
            play(agent, step, observation={"step": step}, message={"message": "hi", "sender": 2})
        before = agent.memory.get_prompt_ready(), agent.memory.get_communication_history()
    with opened() as bank:
        memory = agent_of(bank, short_term_capacity=2).memory
        assert (memory.get_prompt_ready(), memory.get_communication_history()) == before


def test_a_model_that_counts_from_one_again_finds_its_former_steps(bank: MemoryBank) -> None:
    agent = agent_of(bank, short_term_capacity=1)
    for step in (1, 2, 3):
        play(agent, step, observation={"seen": f"shark {step}"})
    agent = agent_of(bank, short_term_capacity=1)
    play(agent, 1, observation={"seen": "a boat"})
    assert agent.memory.format_short_term() == "Step 1: \n{'observation': {'seen': 'a boat'}}"
    assert sorted(agent.memory.format_long_term().splitlines()) == [
        f"- observation: seen: shark {step}" for step in (1, 2, 3)
    ]


def test_async_steps_are_the_same(bank: MemoryBank) -> None:
    agent = agent_of(bank)

    async def step() -> None:
        await agent.memory.aprocess_step(pre_step=True)
        await agent.memory.aadd_to_memory("observation", {"seen": "a shark"})
        await agent.memory.aprocess_step()

    asyncio.run(step())
    assert [each.content for each in bank.agent("1").all()] == ["observation: seen: a shark"]


# Records


def run(server: OpenAIServer, path: Path, steps: int, *, replay: bool = False) -> str:
    with MemoryBank.ephemeral() as bank:
        town = Town(bank, server.url)
        record(town.agents, path, replay=replay)
        for _ in range(steps):
            town.step()
        return bank.state_hash()


def test_a_model_is_replayed_from_its_cassette(server: OpenAIServer, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    state = run(server, path, 3)
    asked = len(server.requests)
    assert asked == 2 * 2 * 3
    server.reply = lambda _: "something else"
    assert run(server, path, 3, replay=True) == state
    assert len(server.requests) == asked


def test_a_question_asked_twice_has_two_answers(server: OpenAIServer, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    run(server, path, 1)
    replies = [json.loads(json.loads(line)["reply"]) for line in path.read_text().splitlines()]
    said = [each["choices"][0]["message"]["content"] for each in replies]
    assert said == ["answer 1", "answer 2", "answer 3", "answer 4"]


def test_a_model_that_was_stopped_asks_only_what_is_new(
    server: OpenAIServer, tmp_path: Path
) -> None:
    path = tmp_path / "answers.jsonl"
    run(server, path, 2)
    run(server, path, 3)
    assert len(server.requests) == 2 * 2 * 3


def test_a_replay_that_asks_something_else_diverges(server: OpenAIServer, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    run(server, path, 1)
    with pytest.raises(Diverged):
        run(server, path, 2, replay=True)


def test_async_questions_are_recorded(server: OpenAIServer, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"

    def ask(replay: bool) -> str:
        agent = Town(None, server.url).agents[0]
        record([agent], path, replay=replay)
        answer = asyncio.run(agent.llm.agenerate("What now?", tool_schema=None))
        return str(answer.choices[0].message.content)

    assert ask(replay=False) == ask(replay=True) == "answer 1"
    assert len(server.requests) == 1


def test_the_howto_runs(
    server: OpenAIServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LLM_URL", server.url)
    server.reply = lambda _: "wait"
    code = code.replace('open("market")', 'open("market", storage={"sync": "manual"})')
    exec(compile(code, PAGE.name, "exec"), {})
    printed = capsys.readouterr().out
    assert "Long term memory: \n- [pinned] NEVER buy from Mallory.\n- " in printed
    assert "Step 4: \n{'observation': {'price of fish': " in printed
    assert printed.endswith("the same again: True\n")
