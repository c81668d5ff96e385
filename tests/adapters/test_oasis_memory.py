"""Memory for OASIS's agents, where OASIS is installed.

Elsewhere ``tests/adapters/upstream/oasis.py`` runs these tests.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("oasis_import")

import oasis
from camel.memories import MemoryRecord
from camel.messages import BaseMessage, FunctionCallingMessage
from camel.models import ModelFactory
from camel.types import ModelPlatformType, ModelType, OpenAIBackendRole, RoleType
from oasis import ActionType, AgentGraph, LLMAction, ManualAction, SocialAgent, UserInfo

from agents import MemoryBank
from agents.oasis import SocialMemory, remember
from agents.testing import AgentMemoryLaws
from banks import ROOT

pytestmark = pytest.mark.filterwarnings("default")  # those of OASIS, CAMEL and pydantic
PAGE = (ROOT / "docs/howto/oasis.md").read_text()
MODEL = ModelFactory.create(ModelPlatformType.OPENAI, ModelType.STUB)
USER = OpenAIBackendRole.USER


@pytest.fixture
def bank() -> Iterator[MemoryBank]:
    with MemoryBank.ephemeral() as opened:
        yield opened


def society(agents: int = 2) -> AgentGraph:
    graph = AgentGraph()
    for number in range(agents):
        about = {"user_profile": "calm", "mbti": "INTJ", "gender": "x", "age": 30, "country": "y"}
        who = UserInfo(f"u{number}", f"n{number}", "a user", {"other_info": about}, "reddit")
        graph.add_agent(SocialAgent(number, who, agent_graph=graph, model=MODEL))
    return graph


def run(bank: MemoryBank, folder: Path, *steps: dict[int, Any]) -> list[Any]:
    """The agents of a society after these steps, in which they act as is said by their number."""

    async def act() -> list[Any]:
        platform, file = oasis.DefaultPlatformType.REDDIT, str(folder / "reddit.db")
        env = oasis.make(agent_graph=society(), platform=platform, database_path=file)
        await env.reset()
        remember(env.agent_graph, bank)
        agents = [agent for _, agent in env.agent_graph.get_agents()]
        for tick, step in enumerate(steps, 1):
            await env.step({agents[number]: action for number, action in step.items()})
            bank.advance(bank.tick + tick)
        await env.close()
        return agents

    return asyncio.run(act())


def posts(text: str) -> ManualAction:
    return ManualAction(ActionType.CREATE_POST, {"content": text})


def memory_of(bank: MemoryBank, agent: str = "user_0", **options: Any) -> SocialMemory:
    creator = next(iter(society(1).get_agents()))[1].memory.get_context_creator()
    return SocialMemory(creator, bank.agent(agent), **options)


def shown(*texts: str, first: int = 1, time: str = "now") -> MemoryRecord:
    """A page as OASIS writes it."""
    page = [
        {"post_id": first + n, "user_id": 7, "content": text, "created_at": time, "comments": []}
        for n, text in enumerate(texts)
    ]
    text = f"After refreshing, you see some posts {json.dumps(page, indent=4)}\npick one"
    message = BaseMessage("User", RoleType.USER, None, text)
    return MemoryRecord(message=message, role_at_backend=USER)


def texts(bank: MemoryBank, agent: str = "user_0", **options: Any) -> list[str]:
    return [each.content for each in bank.agent(agent).all(**options)]


def told(memory: SocialMemory) -> list[str]:
    """The lines of memories that a model reads."""
    messages = [str(message["content"]) for message in memory.get_context()[0]]
    return [line for each in messages if each.startswith("Relevant") for line in each.split("\n")]


def test_what_agents_read_and_do_is_remembered_once_and_without_times(
    bank: MemoryBank, tmp_path: Path
) -> None:
    comment = ManualAction(ActionType.CREATE_COMMENT, {"post_id": 1, "content": "Thanks"})
    search = ManualAction(ActionType.SEARCH_POSTS, {"query": "harbour"})
    look = {1: LLMAction()}
    run(
        bank,
        tmp_path,
        {0: posts("The harbour opens at six")},
        look,
        {1: comment},
        look,
        {0: search},
    )
    assert texts(bank, "user_1")[1:] == [
        "User 0 posted: The harbour opens at six",
        "read posts 1",
        "Lorem Ipsum",
        "I performed create_comment with post_id: 1, content: Thanks",
        "User 1 commented on the post of user 0: Thanks",
        "read posts 1",
        "Lorem Ipsum",
    ]
    assert texts(bank)[1:] == [
        "I performed create_post with content: The harbour opens at six",
        "User 0 posted: The harbour opens at six",
        "User 1 commented on the post of user 0: Thanks",
        "I performed search_posts with query: harbour",
    ]
    post = bank.agent("user_1").all()[1]
    assert (post.kind, post.metadata["post"], post.metadata["user"]) == ("observation", 1, 0)
    everything = [f"{m.content}{m.value}" for name in bank.agents() for m in bank.agent(name).all()]
    assert not re.search("created_at|20[0-9]{2}-", "".join(everything))


def test_the_same_steps_leave_the_same_state(tmp_path: Path) -> None:
    hashes = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        with MemoryBank.ephemeral() as bank:
            steps = ({0: posts("one"), 1: posts("two")}, {0: LLMAction(), 1: LLMAction()})
            run(bank, tmp_path / name, *steps)
            hashes.add(bank.state_hash())
    assert len(hashes) == 1


def test_a_model_reads_what_matters_for_its_page_and_not_the_page_again(bank: MemoryBank) -> None:
    memory = memory_of(bank, retrieve_limit=1)
    memory.write_records(
        [shown("The harbour opens at six", *[f"small talk {n}" for n in range(9)])]
    )
    bank.agent("user_0").add("Never pay a stranger", "pinned")
    memory.write_records([shown("When does the harbour open?", first=20)])
    memory.clear()  # a new conversation
    memory.write_records([shown("When does the harbour open?", first=20)])
    assert told(memory) == [
        "Relevant memories:",
        "- [pinned] Never pay a stranger",
        "- User 7 posted: The harbour opens at six",
    ]
    newest = memory.retrieve()[-1].memory_record
    assert newest.role_at_backend is USER
    assert "When does the harbour open?" in newest.message.content


def test_the_window_has_the_newest_records_and_no_result_without_its_call(bank: MemoryBank) -> None:
    memory = memory_of(bank, window_size=2, retrieve_limit=0)
    call, result = acted("create_post", {"content": "hi"})
    memory.write_records([shown("one"), call, result, shown("two")])
    kept = [each.memory_record for each in memory.retrieve()]
    assert ["two" in str(each.message.content) for each in kept] == [True]


def acted(name: str, args: dict[str, Any], result: Any = None) -> list[MemoryRecord]:
    """What CAMEL writes when a model called a tool: the call, and the result."""
    own = {"func_name": name, "tool_call_id": "1"}
    call = FunctionCallingMessage("a", RoleType.ASSISTANT, None, "", args=args, **own)
    back = FunctionCallingMessage("a", RoleType.ASSISTANT, None, "", result=result or {}, **own)
    roles = (OpenAIBackendRole.ASSISTANT, OpenAIBackendRole.FUNCTION)
    return [
        MemoryRecord(message=message, role_at_backend=role)
        for message, role in zip((call, back), roles, strict=True)
    ]


def test_what_a_model_does_and_finds_is_remembered(bank: MemoryBank) -> None:
    found = {"posts": [{"post_id": 3, "user_id": 7, "content": "Rain", "created_at": "now"}]}
    memory_of(bank).write_records(acted("search_posts", {"query": "rain"}, found))
    assert texts(bank) == [
        "User 7 posted: Rain",
        "I performed search_posts with query: rain",
        "read posts 3",
    ]
    assert texts(bank, temperature="cold") == ["read posts 3"]
    assert "created_at" not in str([each.value for each in bank.agent("user_0").all()])


@pytest.mark.parametrize(
    "page", ["no page", "you see some posts [", 'you see some posts [{"post_id": 1}, 2]']
)
def test_a_prompt_without_posts_is_a_message(bank: MemoryBank, page: str) -> None:
    message = BaseMessage("User", RoleType.USER, None, page)
    memory_of(bank).write_records([MemoryRecord(message=message, role_at_backend=USER)])
    assert texts(bank) == [page]


def test_an_agent_knows_in_a_later_run_what_it_read_in_the_former(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
            text = {"a": "The harbour opens at six", "b": "When does the harbour open?"}[name]
            agents = run(bank, tmp_path / name, {0: posts(text)}, {1: LLMAction()})
            lines = told(agents[1].memory)
    assert "- User 0 posted: The harbour opens at six" in lines
    assert "- User 0 posted: When does the harbour open?" not in lines


def test_the_program_of_the_page_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    quick = code.replace('open("bank-folder")', 'open("bank", storage={"sync": "manual"})')
    assert quick != code
    exec(compile(quick, "docs/howto/oasis.md", "exec"), {"__name__": "example"})
    promised = re.findall(r"^ *# (.*)$", code, re.MULTILINE)  # OASIS prints profiles and a path
    lines = capsys.readouterr().out.splitlines()
    assert [each for each in lines if not each.startswith(("{", "db_path"))] == promised


class TestOasissMemory(AgentMemoryLaws):
    """The laws of adapters hold for memories that CAMEL's calls write for OASIS."""

    def make(self, folder: Path) -> MemoryBank:
        return MemoryBank.open(folder, storage={"sync": "manual"})

    def restore(self, file: Path, folder: Path) -> MemoryBank:
        return MemoryBank.restore(file, folder, storage={"sync": "manual"})

    def add(self, made: MemoryBank, agent: str, text: str) -> None:
        message = BaseMessage("User", RoleType.USER, None, text)
        memory_of(made, agent).write_records([MemoryRecord(message=message, role_at_backend=USER)])
