"""Memory for AgentSociety's people, where AgentSociety 2 is installed.

Elsewhere ``tests/adapters/upstream/agent_society.py`` runs these tests.
"""

import asyncio
import json
import os
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

os.environ.setdefault("AGENTSOCIETY_LLM_API_KEY", "none")  # it is wanted at the import
pytest.importorskip("agentsociety2")

from agentsociety2.agent import AgentMemoryStore
from agentsociety2.agent.memory import MemoryConsolidationConfig
from agentsociety2.agent.service_proxy import LLMClients, ServiceProxy
from hypothesis import given
from hypothesis import strategies as st

from agents import MemoryBank
from agents.agent_society import TierMemoryStore, TierPersonAgent
from agents.testing import AgentMemoryLaws
from banks import ROOT

pytestmark = pytest.mark.filterwarnings("default")  # those of AgentSociety and pydantic
PAGE = (ROOT / "docs/howto/agent-society.md").read_text()
START = datetime(2026, 1, 1)  # noqa: DTZ001 - as the times of AgentSociety


@pytest.fixture
def bank() -> Iterator[MemoryBank]:
    with MemoryBank.ephemeral() as opened:
        yield opened


def store_of(bank: MemoryBank, folder: Path, agent: str = "alice") -> TierMemoryStore:
    return TierMemoryStore(bank.agent(agent), folder / agent, agent_id=1)


def append(store: Any, step: int, *episodes: dict[str, Any]) -> list[dict[str, Any]]:
    when = START + timedelta(hours=step)
    return store.append_episodes(list(episodes), tick=3600, t=when, step_count=step)  # type: ignore[no-any-return]


def texts(episodes: list[dict[str, Any]]) -> list[str]:
    return [each["text"] for each in episodes]


def test_an_episode_is_a_memory_and_a_step_is_a_commit_and_a_tick(
    bank: MemoryBank, tmp_path: Path
) -> None:
    store = store_of(bank, tmp_path)
    before = bank.engine.journal.head
    goal = {"text": "Open a shop", "type": "goal", "importance": 0.8, "keywords": ["shop", "work"]}
    written = append(store, 3, goal, {"text": " "}, {"text": "It rains"})
    assert bank.engine.journal.head == before + 1
    first, second = bank.agent("alice").all()
    assert (first.content, first.kind) == ("Open a shop (work)", "decision")
    assert (first.metadata["importance"], first.metadata["type"]) == (8, "goal")
    assert (second.content, second.kind, second.created_tick) == ("It rains", "observation", 3)
    assert store.recent() == written


EPISODES = st.fixed_dictionaries(
    {},
    optional={
        "text": st.sampled_from(["", " a  b", "The harbour opens at six", "Bob likes tea"]),
        "type": st.sampled_from(["goal", "identity", "observation", "commitment", "routine", ""]),
        "importance": st.sampled_from([0.0, 0.5, 0.7, 0.9, 3, "x"]),
        "keywords": st.lists(st.sampled_from(["tea", "harbour", " "]), max_size=2),
        "refs": st.just(["m_1"]),
        "source": st.just("told"),
    },
)
STEPS = st.lists(st.lists(EPISODES, max_size=3), max_size=4)


@given(STEPS)
def test_all_but_searches_is_as_with_agent_societys_own_store(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[dict[str, Any]]]
) -> None:
    folder = tmp_path_factory.mktemp("society")
    with MemoryBank.ephemeral() as bank:
        ours, theirs = store_of(bank, folder), AgentMemoryStore(folder / "theirs", agent_id=1)
        config = MemoryConsolidationConfig(pending_threshold=2, interval_steps=2)
        for number, episodes in enumerate(steps, 1):
            written = append(ours, number, *episodes)
            assert written == append(theirs, number, *episodes)
            options: dict[str, Any] = {"step_count": number, "config": config}
            should = theirs.should_consolidate(written, **options)
            assert ours.should_consolidate(written, **options) == should
            if should[0]:
                for store in (ours, theirs):
                    store.write_memory_md("# Memory", step_count=number, tick=3600)
        ids = [each["id"] for each in theirs.iter_episodes()]
        for call, arguments in (
            ("iter_episodes", {}),
            ("recent", {"limit": 2}),
            ("read_ids", {"ids": ids[::2]}),
            ("range", {"start_step": 2, "end_step": 3}),
            ("range", {"end_time": "2026-01-01T02:00:00", "limit": 2}),
            ("unconsolidated", {}),
            ("read_state", {}),
            ("read_memory_md", {}),
        ):
            assert getattr(ours, call)(**arguments) == getattr(theirs, call)(**arguments), call
        again = store_of(bank, folder)
        assert again.iter_episodes() == theirs.iter_episodes()
        assert AgentMemoryStore(folder / "alice", agent_id=1).iter_episodes() == (
            theirs.iter_episodes()
        )


def test_a_search_finds_by_meaning_and_the_nearest_first(bank: MemoryBank, tmp_path: Path) -> None:
    store = store_of(bank, tmp_path)
    append(store, 1, *[{"text": f"Small talk {n}"} for n in range(9)])
    append(store, 2, {"text": "The harbour opens at six"}, {"text": "Bob likes tea"})
    append(store_of(bank, tmp_path, "ben"), 2, {"text": "The harbour opens at nine"})
    assert texts(store.search("when does the port open in the morning?", limit=1)) == [
        "The harbour opens at six"
    ]
    assert store.search(" ") == []


def test_memories_of_other_code_are_episodes_and_what_is_forgotten_is_none(
    bank: MemoryBank, tmp_path: Path
) -> None:
    store = store_of(bank, tmp_path)
    append(store, 1, {"text": "a secret"}, {"text": "the harbour"})
    bank.agent("alice").add("Never pay a stranger", "pinned")
    bank.agent("alice").forget(bank.agent("alice").all()[0].id)
    assert texts(store.recent()) == ["the harbour", "Never pay a stranger"]
    assert texts(store.in_mind("harbour", 2)) == ["Never pay a stranger", "the harbour"]
    assert texts(store.range(start_step=1)) == ["the harbour", "Never pay a stranger"]
    assert texts(store_of(bank, tmp_path).recent()) == ["the harbour", "Never pay a stranger"]


def test_a_workspace_that_had_no_bank_goes_on_with_one(bank: MemoryBank, tmp_path: Path) -> None:
    append(
        AgentMemoryStore(tmp_path / "alice", agent_id=1), 1, {"text": "The harbour opens at six"}
    )
    store = store_of(bank, tmp_path)
    append(store, 2, {"text": "Bob likes tea"})
    assert texts(store.recent()) == ["The harbour opens at six", "Bob likes tea"]
    assert texts(store.search("harbour", limit=1)) == ["The harbour opens at six"]


class Model:
    """A model that says what it is given, and keeps the prompts."""

    model_name = "scripted"

    def __init__(self) -> None:
        self.says: list[tuple[str, dict[str, Any]]] = []
        self.prompts: list[str] = []

    async def call(self, messages: list[dict[str, Any]], **_: Any) -> Any:
        self.prompts.append(str(messages[1]["content"]))
        name, arguments = self.says.pop(0)
        function = SimpleNamespace(name=name, arguments=json.dumps(arguments))
        call = SimpleNamespace(id="1", type="function", function=function)
        message = SimpleNamespace(content="", tool_calls=[call])
        choice = SimpleNamespace(message=message, finish_reason="stop")
        return SimpleNamespace(choices=[choice], usage=None)


class Town:
    """A world in which a person sees the same thing at each step."""

    async def ask(self, about: Any, *_: Any, **__: Any) -> tuple[Any, str]:
        return about, "A ship comes. When does the harbour open?"

    async def get_world_description(self) -> str:
        return "A town."


def play(folder: Path, model: Model, *steps: list[str], **config: Any) -> None:
    """Steps of a person, who is made anew for each, as AgentSociety does; each leaves memories."""

    async def run() -> None:
        proxy = ServiceProxy(Town(), LLMClients(model, model), None, None)
        TierPersonAgent.create(folder, {"id": 1, "name": "Alice"}, config)
        for number, left in enumerate(steps):
            person = await TierPersonAgent.from_workspace(folder, proxy)
            model.says.append(("finish", {"memories": [{"text": text} for text in left]}))
            await person.step(3600, START + timedelta(hours=number))
            await person.to_workspace(folder)

    asyncio.run(run())


def told(prompt: str) -> dict[str, Any]:
    """What a prompt says of memories."""
    (text,) = re.findall(r"<memory_context>\n(.*?)\n</memory_context>", prompt, re.DOTALL)
    return json.loads(text)  # type: ignore[no-any-return]


def test_a_person_reads_what_matters_for_what_it_observes(tmp_path: Path) -> None:
    model, talk = Model(), [[f"Small talk {n}"] for n in range(4)]
    play(
        tmp_path,
        model,
        ["Bob likes tea"],
        ["The harbour opens at six"],
        *talk,
        recent_memory_limit=2,
    )
    play(tmp_path, model, ["Well"], recent_memory_limit=2, relevant_memory_limit=1)
    context = told(model.prompts[-1])
    assert texts(context["recent_episodes"]) == ["Small talk 2", "Small talk 3"]
    assert texts(context["relevant_episodes"]) == ["The harbour opens at six"]
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        assert bank.agent("agent_0001").count() == 7


def test_a_person_is_asked_and_finds_by_its_tools(tmp_path: Path) -> None:
    model = Model()
    play(tmp_path, model, ["The harbour opens at six"], *[[f"Talk {n}"] for n in range(9)])

    async def ask() -> str:
        proxy = ServiceProxy(Town(), LLMClients(model, model), None, None)
        person = await TierPersonAgent.from_workspace(tmp_path, proxy)
        model.says = [
            ("memory_search", {"query": "port", "limit": 1}),
            ("finish", {"answer": "Six"}),
        ]
        return await person.ask("When does the port open?", t=START)

    assert asyncio.run(ask()) == "Six"
    assert "The harbour opens at six" in texts(told(model.prompts[-1])["relevant_episodes"])


def test_an_error_in_a_step_leaves_the_bank_for_the_next(tmp_path: Path) -> None:
    model = Model()
    play(tmp_path, model, ["The harbour opens at six"])

    async def fail() -> None:
        proxy = ServiceProxy(Town(), LLMClients(model, model), None, None)
        person = await TierPersonAgent.from_workspace(tmp_path, proxy)
        await person.step(3600, START)

    model.says = []
    with pytest.raises(IndexError):
        asyncio.run(fail())
    play(tmp_path, model, ["Well"])
    assert texts(told(model.prompts[-1])["recent_episodes"]) == ["The harbour opens at six"]


def test_a_person_without_memory_has_no_bank(tmp_path: Path) -> None:
    model = Model()
    play(tmp_path, model, ["a"], enable_memory=False)
    assert not (tmp_path / "bank").exists()
    assert "<memory_context>" not in model.prompts[-1].partition("<agent>")[2]


def test_the_program_of_the_page_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(compile(code, "docs/howto/agent-society.md", "exec"), {"__name__": "example"})
    promised = re.findall(r"^ *# (.*)$", code, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == promised


class TestAgentSocietysMemory(AgentMemoryLaws):
    """The laws of adapters hold for memories that episodes leave."""

    def make(self, folder: Path) -> MemoryBank:
        return MemoryBank.open(folder, storage={"sync": "manual"})

    def restore(self, file: Path, folder: Path) -> MemoryBank:
        return MemoryBank.restore(file, folder, storage={"sync": "manual"})

    def add(self, made: MemoryBank, agent: str, text: str) -> None:
        assert made.folder is not None
        workspaces = made.folder.with_name(f"{made.folder.name}-workspaces")
        store = store_of(made, workspaces, agent)
        if " ".join(text.split()) == text:
            append(store, 0, {"text": text})
        else:  # of which AgentSociety makes one space
            made.agent(agent).add(text)
