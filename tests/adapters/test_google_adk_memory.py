"""A memory service for Google's ADK, where ADK is installed.

Elsewhere ``tests/adapters/upstream/google_adk.py`` runs these tests.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk")

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import preload_memory
from google.genai import types

from agents import AsyncMemoryBank, InvalidInput, MemoryBank
from agents.google_adk import TierMemoryService
from agents.testing import AgentMemoryLaws
from banks import ROOT

pytestmark = pytest.mark.filterwarnings("default")  # those of ADK
PAGE = (ROOT / "docs/howto/google-adk.md").read_text()
ANN = {"app_name": "town", "user_id": "ann"}


@pytest.fixture
def bank() -> Iterator[MemoryBank]:
    with MemoryBank.ephemeral() as opened:
        yield opened


def said(text: str, number: int = 0, author: str = "user") -> Event:
    content = types.Content(role=author, parts=[types.Part(text=text)])
    return Event(id=f"event-{number}", author=author, timestamp=60.0 * number, content=content)


def session(*texts: str, first: int = 0, user: str = "ann") -> Session:
    events = [said(text, number) for number, text in enumerate(texts, first)]
    return Session(id="monday", app_name="town", user_id=user, events=events)


def stored(bank: MemoryBank, *sessions: Session) -> TierMemoryService:
    service = TierMemoryService(bank, limit=3)
    for each in sessions:
        asyncio.run(service.add_session_to_memory(each))
    return service


def found(service: TierMemoryService, query: str, **whose: str) -> list[MemoryEntry]:
    return asyncio.run(service.search_memory(**{**ANN, **whose}, query=query)).memories  # type: ignore[no-any-return]


def texts(entries: list[MemoryEntry]) -> list[str]:
    return [entry.content.parts[0].text for entry in entries]


def test_events_with_text_are_memories_once_in_one_commit(bank: MemoryBank) -> None:
    before = bank.engine.journal.head
    silent = Event(id="silent", author="user", timestamp=1.0)
    given = session("The harbour opens at six", "Well")
    given.events.insert(1, silent)
    stored(bank, given)
    assert bank.engine.journal.head == before + 1
    stored(bank, given)
    assert bank.engine.journal.head == before + 1
    longer = session("The harbour opens at six", "Well", "Rain")
    stored(bank, longer)
    kept = bank.agent("town@2Fann").all()
    assert [each.content for each in kept] == ["The harbour opens at six", "Well", "Rain"]
    assert {(m.kind, m.metadata["speaker"], m.metadata["session"]) for m in kept} == {
        ("message", "user", "monday")
    }


def test_a_search_finds_what_matters_and_pinned_ones_first(bank: MemoryBank) -> None:
    talk = [f"small talk {n}" for n in range(9)]
    service = stored(bank, session(*talk, "The harbour opens at six"))
    stored(bank, session("The harbour opens at nine", user="ben"))
    bank.agent("town@2Fann").add("Never pay a stranger", "pinned")
    entries = found(service, "When does the harbour open?")
    assert texts(entries)[:2] == ["Never pay a stranger", "The harbour opens at six"]
    assert len(entries) == 3
    assert (entries[1].author, entries[1].content.role) == ("user", "user")
    assert entries[1].timestamp == "1970-01-01T00:09:00+00:00"
    assert texts(found(service, "harbour", user_id="ben")) == ["The harbour opens at nine"]
    assert found(service, "harbour", user_id="carol") == []


def test_names_with_slashes_and_long_ones_are_never_the_same(bank: MemoryBank) -> None:
    service = TierMemoryService(bank)
    pairs = [("a/b", "c"), ("a", "b/c"), ("a%2Fb", "c"), ("a", "x" * 200), ("a", "x" * 201)]
    for number, (app, user) in enumerate(pairs):
        events = [said(f"{number}", number)]
        asyncio.run(service.add_events_to_memory(app_name=app, user_id=user, events=events))
    for number, (app, user) in enumerate(pairs):
        assert texts(found(service, "", app_name=app, user_id=user)) == [f"{number}"]


def test_events_and_memories_say_their_tier_and_metadata(bank: MemoryBank) -> None:
    service = TierMemoryService(bank)
    own = {"tier": "pinned", "place": "bay", "deep": {"a": [1]}}
    add, keep = service.add_events_to_memory, service.add_memory
    asyncio.run(add(**ANN, events=[said("a")], custom_metadata=own))
    entry = MemoryEntry(
        content=said("b").content, author="clerk", custom_metadata={"place": "hill"}
    )
    asyncio.run(keep(**ANN, memories=[entry], custom_metadata={"place": "bay", "year": 7}))
    pinned, other = bank.agent("town@2Fann").all()
    assert (pinned.tier.name, pinned.metadata["place"]) == ("PINNED", "bay")
    first, second = found(service, "b")
    assert first.custom_metadata == {"place": "bay", "deep": {"a": [1]}}
    assert second.custom_metadata == {"place": "hill", "year": 7}
    assert (second.author, second.timestamp, second.id) == ("clerk", None, other.id)
    with pytest.raises(InvalidInput):
        asyncio.run(add(**ANN, events=[said("c", 1)], custom_metadata={"tier": "gold"}))
    assert bank.agent("town@2Fann").count() == 2


def test_what_was_deleted_does_not_come_back_with_its_session(bank: MemoryBank) -> None:
    both = session("a secret", "the harbour")
    service = stored(bank, both)
    first, second = sorted(found(service, "secret"), key=lambda entry: texts([entry]))
    asyncio.run(service.delete_memory(**ANN, memory_id=first.id))
    asyncio.run(service.delete_memory(**ANN, memory_id=second.id))
    asyncio.run(service.delete_memory(**ANN, memory_id=second.id))
    asyncio.run(service.delete_memory(**ANN))
    stored(bank, both, session("new", first=9))
    assert texts(found(service, "secret")) == ["new"]
    assert texts(found(service, "harbour", user_id="ben")) == []


def test_an_async_bank_answers_as_well(tmp_path: Path) -> None:
    async def ask() -> list[str]:
        async with AsyncMemoryBank.open(tmp_path, storage={"sync": "manual"}) as bank:
            service = TierMemoryService(bank)
            await service.add_session_to_memory(session("The harbour opens at six"))
            return texts((await service.search_memory(**ANN, query="harbour")).memories)

    assert asyncio.run(ask()) == ["The harbour opens at six"]


class Model(BaseLlm):
    """A model that says one thing, and keeps the instructions of each request."""

    model: str = "scripted"
    read: list[str] = []  # noqa: RUF012 - pydantic copies it

    async def generate_content_async(
        self, request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.read.append(f"{request.config.system_instruction}{request.contents}")
        part = types.Part(text="At six.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def test_an_agent_of_adk_reads_what_another_session_left(bank: MemoryBank) -> None:
    service, model = stored(bank, session("The harbour opens at six")), Model()

    async def ask() -> None:
        sessions = InMemorySessionService()
        agent = LlmAgent(name="clerk", model=model, tools=[preload_memory])
        runner = Runner(
            app_name="town", agent=agent, session_service=sessions, memory_service=service
        )
        tuesday = await sessions.create_session(**ANN, session_id="tuesday")
        question = said("When does the harbour open?").content
        async for _ in runner.run_async(user_id="ann", session_id="tuesday", new_message=question):
            pass
        tuesday = await sessions.get_session(**ANN, session_id="tuesday")
        await service.add_session_to_memory(tuesday)

    asyncio.run(ask())
    assert "The harbour opens at six" in model.read[0]
    assert [each.content for each in bank.agent("town@2Fann").all()] == [
        "The harbour opens at six",
        "When does the harbour open?",
        "At six.",
    ]


def test_the_program_of_the_page_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    quick = code.replace('open("bank-folder")', 'open("bank", storage={"sync": "manual"})')
    assert quick != code
    exec(compile(quick, "docs/howto/google-adk.md", "exec"), {"__name__": "example"})
    promised = re.findall(r"^ +# (.*)$", code, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == promised


class OfUsers(TierMemoryService):
    """The laws call an agent as the bank does: here, after the user alone."""

    def _agent(self, app_name: str, user_id: str) -> Any:
        return self.bank.agent(user_id)


class TestAdksMemory(AgentMemoryLaws):
    """The laws of adapters hold for memories that ADK's calls write."""

    def make(self, folder: Path) -> MemoryBank:
        return MemoryBank.open(folder, storage={"sync": "manual"})

    def restore(self, file: Path, folder: Path) -> MemoryBank:
        return MemoryBank.restore(file, folder, storage={"sync": "manual"})

    def add(self, made: MemoryBank, agent: str, text: str) -> None:
        events = [said(text, made.agent(agent).count())]
        service = OfUsers(made)
        asyncio.run(service.add_events_to_memory(app_name="", user_id=agent, events=events))

    def search(self, made: MemoryBank, agent: str, query: str, limit: int) -> list[str]:
        return texts(found(OfUsers(made, limit=limit), query, user_id=agent))
