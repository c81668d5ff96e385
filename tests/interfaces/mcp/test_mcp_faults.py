"""What a client learns of a fault of the machine: its name, and nothing of the machine if far."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from http_service import is_problem, served
from mcp_versions import Client

from agents import AgentMemory, AsyncMemoryBank, MemoryBank
from agents.engine import write
from agents.errors import (
    BankBroken,
    CommitFailed,
    CommitUnknown,
    EmbedderError,
    InvalidInput,
    StoreError,
    TierMemError,
)
from agents.interfaces.http.problems import private_paths
from agents.interfaces.mcp.server import Access, make_server
from agents.notes.agent_notes import AgentNotes

FAULTS: list[tuple[type[Exception], str]] = [
    (CommitFailed, "the journal can't be written"),
    (CommitUnknown, "may be kept or not"),
    (EmbedderError, "the embedder failed"),
    (BankBroken, "the bank in memory can't be trusted"),
    (InvalidInput, "it was refused"),
]


@pytest.fixture
def failing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[type[Exception], str]]:
    """Every add fails with this error, which names a file of the bank and a server."""
    error, said = request.param

    def fail(*_: object) -> None:
        raise error(f"{tmp_path / 'bank'}/journal.db at http://10.0.0.7:9000")

    with monkeypatch.context() as patched:
        patched.setattr(write, "add_many", fail)
        yield error, said


@pytest.mark.parametrize("failing", FAULTS, indirect=True, ids=lambda each: each[0].__name__)
def test_http_tells_the_error_and_no_path(
    tmp_path: Path, failing: tuple[type[Exception], str], caplog: pytest.LogCaptureFixture
) -> None:
    error, said = failing
    with served(tmp_path / "bank") as service, service.agent("alice") as alice:
        answer: httpx.Response = alice.post("/memory", json={"content": "tea"})
    is_problem(answer, 422 if error is InvalidInput else 503, error.__name__)
    assert said in answer.json()["detail"]
    assert str(tmp_path) not in answer.text
    assert "10.0.0.7" in caplog.text


@pytest.mark.parametrize("is_far", [True, False])
@pytest.mark.parametrize("failing", FAULTS, indirect=True, ids=lambda each: each[0].__name__)
def test_mcp_tells_a_client_far_away_no_path(
    tmp_path: Path, failing: tuple[type[Exception], str], is_far: bool
) -> None:
    error, said = failing
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        access = Access(AsyncMemoryBank(bank).agent("alice"), "write")
        private = private_paths(tmp_path / "bank", bank.settings) if is_far else None
        found: list[Any] = []

        async def call() -> None:
            async with Client(make_server(lambda _: access, private)) as client:
                found.append(await client.call_tool("memory_add", {"content": "tea"}))

        anyio.run(call)
    text = found[0].content[0].text
    assert text.startswith(f"{error.__name__}: ")
    assert (str(tmp_path) in text) is not is_far
    assert (said in text) is is_far
    assert is_far is not ("10.0.0.7" in text)


@pytest.mark.parametrize("is_far", [True, False])
@pytest.mark.parametrize("error", [EmbedderError, StoreError])
def test_a_prompt_and_a_resource_tell_a_client_far_away_nothing_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[TierMemError], is_far: bool
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error("postgres://10.0.0.7 refused; see /etc/pg.conf")

    monkeypatch.setattr(AgentMemory, "get_relevant_memories", fail)
    monkeypatch.setattr(AgentNotes, "read", fail)
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        access = Access(AsyncMemoryBank(bank).agent("alice"), "write")
        private = private_paths(tmp_path / "bank", bank.settings) if is_far else None
        found: list[str] = []

        async def call() -> None:
            async with Client(make_server(lambda _: access, private)) as client:
                for asked in (
                    lambda: client.get_prompt("recall", {"query": "tea"}),
                    lambda: client.read_resource("memory://notes/MEMORY.md"),
                ):
                    with pytest.raises(Exception, match=r"\S") as refused:
                        await asked()
                    found.append(str(refused.value))

        anyio.run(call)
    for text in found:
        assert ("10.0.0.7" in text) is not is_far
        assert ("the service's log says why" in text) is is_far
