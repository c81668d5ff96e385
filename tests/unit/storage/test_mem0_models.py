"""mem0's LLM extraction and embedders, against a server on loopback."""

import contextlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents import BankClosed, EmbedderError, ExtractionError, InvalidInput, InvalidTier, MemoryBank
from agents.config.settings import EmbedderSettings, LlmSettings
from agents.storage.embedding import CachedEmbedder
from agents.storage.mem0 import models
from openai_server import OpenAIServer

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

TALK = [
    {"role": "user", "content": "Bob cheated me with the grain again."},
    {"role": "assistant", "content": "Then stay away from him."},
]


def facts(*texts: str) -> str:
    return json.dumps({"memory": [{"text": text} for text in texts]})


def llm(server: OpenAIServer) -> dict[str, Any]:
    config = {"openai_base_url": server.url, "api_key": "unused", "model": "m"}
    return {"provider": "openai", "config": config}


def test_extracted_facts_are_stored_at_the_given_tier() -> None:
    with (
        OpenAIServer(lambda _: facts("Bob cheats", "Bob sells grain")) as server,
        MemoryBank.ephemeral(llm=llm(server)) as bank,
    ):
        stored = bank.agent("alice").add_messages(TALK, tier="critical", metadata={"talk": 1})
        assert [memory.content for memory in stored] == ["Bob cheats", "Bob sells grain"]
        assert bank.agent("alice").all("critical") == stored
        assert all(memory.metadata == {"talk": 1} for memory in stored)


def test_the_llm_sees_the_messages_and_the_agents_own_memories_only() -> None:
    with (
        OpenAIServer(lambda _: facts()) as server,
        MemoryBank.ephemeral(llm=llm(server)) as bank,
    ):
        bank.agent("alice").add("Bob sells grain by the river")
        bank.agent("mallory").add("alice is easy to cheat with grain")
        assert bank.agent("alice").add_messages(TALK) == []
        ((path, request),) = server.requests
        prompt = json.dumps(request["messages"])
        assert path == "/v1/chat/completions"
        assert "Bob cheated me with the grain again." in prompt
        assert "Bob sells grain by the river" in prompt
        assert "easy to cheat" not in prompt


def test_a_fact_that_the_agent_knows_is_not_stored_twice() -> None:
    with (
        OpenAIServer(lambda _: facts("Bob cheats", "Bob cheats")) as server,
        MemoryBank.ephemeral(llm=llm(server)) as bank,
    ):
        alice = bank.agent("alice")
        assert len(alice.add_messages(TALK)) == 1
        assert alice.add_messages(TALK) == []


def test_without_an_llm_the_error_says_what_to_set() -> None:
    with MemoryBank.ephemeral() as bank, pytest.raises(ExtractionError, match=r"llm\.provider"):
        bank.agent("alice").add_messages(TALK)


def test_an_llm_that_fails_stores_nothing() -> None:
    def fail(_: object) -> str:
        raise RuntimeError("out of tokens")

    with OpenAIServer(fail) as server, MemoryBank.ephemeral(llm=llm(server)) as bank:
        with pytest.raises(ExtractionError, match="out of tokens"):
            bank.agent("alice").add_messages(TALK)
        assert bank.agents() == []


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "",
        "not json",
        "[]",
        "null",
        "5",
        "[" * 100_000,
        '{"memory": [{"text": "Bob che',
        '{"facts": ["Bob cheats"]}',
        '{"memory": "Bob cheats"}',
        '{"memory": {"text": "Bob cheats"}}',
        '{"memory": ["Bob cheats"]}',
        '{"memory": [{"fact": "Bob cheats"}]}',
        '{"memory": [{"text": 5}]}',
        '{"memory": [{"text": "Bob cheats"}, {"text": ["Bob sells grain"]}]}',
        "```json\nnot json\n```",
        "<think>What is new?</think>",
    ],
)
def test_an_answer_that_cannot_be_read_is_an_error_and_can_be_asked_for_again(reply: Any) -> None:
    replies = [facts("Bob cheats"), reply]
    with (
        OpenAIServer(lambda _: replies.pop()) as server,
        MemoryBank.ephemeral(llm=llm(server)) as bank,
    ):
        alice = bank.agent("alice")
        with pytest.raises(ExtractionError, match=r"^the LLM's answer can't be read") as refused:
            alice.add_messages(TALK)
        assert "\n" not in refused.value.why
        assert bank.agents() == []
        assert [memory.content for memory in alice.add_messages(TALK)] == ["Bob cheats"]
        first, again = (body["messages"] for _, body in server.requests)
        assert first == again


@pytest.mark.parametrize(
    "reply",
    [
        '{"memory": []}',
        '{"memory": null}',
        "{}",
        '{"memory": [{"text": ""}]}',
        '{"memory": [{"text": null}]}',
        '```json\n{"memory": []}\n```',
    ],
)
def test_an_answer_without_facts_stores_nothing(reply: str) -> None:
    with OpenAIServer(lambda _: reply) as server, MemoryBank.ephemeral(llm=llm(server)) as bank:
        assert bank.agent("alice").add_messages(TALK) == []


@pytest.mark.parametrize(
    "reply",
    [
        '```json\n{"memory": [{"text": "Bob cheats"}]}\n```',
        '```\n{"memory": [{"text": "Bob cheats"}]}\n```',
        'Here it is:\n```json\n{"memory": [{"text": "Bob cheats"}]}\n```\nDone.',
        'Sure! {"memory": [{"text": "Bob cheats"}]} That is all.',
        '<think>{"memory": 5}</think>{"memory": [{"text": "Bob cheats"}]}',
        '{"memory": [{"id": "0", "text": "Bob cheats", "event": "ADD"}], "more": 1}',
        '{"memory": [{"text": ""}, {"text": "Bob cheats"}, {"text": null}]}',
        '{"memory": [{"text": " "}, {"text": "Bob cheats"}, {"text": "\\n"}]}',
        '{"memory": [{"text": "Bob cheats", "attributed_to": "a\nb"}]}',
    ],
)
def test_all_that_mem0_can_read_is_read(reply: str) -> None:
    with OpenAIServer(lambda _: reply) as server, MemoryBank.ephemeral(llm=llm(server)) as bank:
        stored = bank.agent("alice").add_messages(TALK)
        assert [memory.content for memory in stored] == ["Bob cheats"]


def test_facts_that_cannot_be_embedded_are_an_error(tmp_path: Path) -> None:
    """mem0 drops a fact whose vector it can't get."""

    def reply(_: object) -> str:
        server.vector = lambda _: []  # type: ignore[method-assign]
        return facts("Bob cheats")

    with OpenAIServer(reply) as server:
        settings = {"llm": llm(server), "embedder": embedder(server), "storage": {"sync": "manual"}}
        with MemoryBank.open(tmp_path, settings) as bank:
            with pytest.raises(EmbedderError):
                bank.agent("alice").add_messages(TALK)
            assert bank.agents() == []


def ends(work: Callable[[], object], seconds: float = 60.0) -> bool:
    """Whether another thread can do this now."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def test_other_threads_use_the_bank_while_the_llm_is_asked(tmp_path: Path) -> None:
    ended: list[bool] = []

    def reply(_: object) -> str:
        ended.append(ends(lambda: bank.agent("bob").add("salt is cheap")))
        ended.append(ends(lambda: bank.agent("bob").search("salt")))
        ended.append(ends(lambda: bank.agent("alice").add("Bob has a boat")))
        return facts("Bob cheats")

    with OpenAIServer(reply) as server:
        settings = {"llm": llm(server), "embedder": embedder(server), "storage": {"sync": "manual"}}
        with MemoryBank.open(tmp_path, settings) as bank:
            stored = bank.agent("alice").add_messages(TALK)
            assert ended == [True, True, True]
            known = [memory.content for memory in bank.agent("alice").all()]
            assert known == ["Bob has a boat", "Bob cheats"]
            assert [memory.content for memory in stored] == ["Bob cheats"]
            before = bank.state_hash()
        with MemoryBank.open(tmp_path, settings) as bank:
            assert bank.state_hash() == before


def test_other_threads_use_the_bank_while_the_llms_client_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[bool] = []
    make = models._make_llm

    def made(settings: LlmSettings) -> Any:
        ended.append(ends(lambda: bank.agent("bob").add("salt is cheap")))
        return make(settings)

    monkeypatch.setattr(models, "_make_llm", made)
    reply = facts("Bob cheats")
    with OpenAIServer(lambda _: reply) as server, MemoryBank.ephemeral(llm=llm(server)) as bank:
        bank.agent("alice").add_messages(TALK)
        bank.agent("alice").add_messages(TALK)
    assert ended == [True]


def test_threads_extract_at_the_same_time() -> None:
    together = threading.Barrier(4, timeout=60)

    def reply(request: dict[str, Any]) -> str:
        together.wait()
        name = json.dumps(request["messages"]).split("My name is ")[1][:2]
        return facts(f"The name is {name}")

    def talk(name: str) -> None:
        bank.agent(name).add_messages(f"My name is {name}.")

    with OpenAIServer(reply) as server, MemoryBank.ephemeral(llm=llm(server)) as bank:
        names = ["a0", "a1", "a2", "a3"]
        threads = [threading.Thread(target=talk, args=[name], daemon=True) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        known = {name: [memory.content for memory in bank.agent(name).all()] for name in names}
        assert known == {name: [f"The name is {name}"] for name in names}


def test_in_a_transaction_facts_are_part_of_it_and_other_threads_wait() -> None:
    added = threading.Event()
    ended: list[bool] = []

    def add() -> None:
        bank.agent("bob").add("salt is cheap")
        added.set()

    def reply(_: object) -> str:
        if not ended:
            ended.append(ends(add, 0.2))
        return facts("Bob cheats")

    with OpenAIServer(reply) as server, MemoryBank.ephemeral(llm=llm(server)) as bank:
        alice = bank.agent("alice")
        with contextlib.suppress(KeyError), bank.transaction():
            assert len(alice.add_messages(TALK)) == 1
            raise KeyError
        assert added.wait(60)
        assert ended == [False]
        assert bank.agents() == ["bob"]
        with bank.transaction():
            assert len(alice.add_messages(TALK)) == 1
        assert alice.count() == 1


def test_a_bank_that_is_closed_while_the_llm_is_asked_says_so(tmp_path: Path) -> None:
    def reply(_: object) -> str:
        assert ends(bank.close)
        return facts("Bob cheats")

    with OpenAIServer(reply) as server:
        settings = {"llm": llm(server), "embedder": embedder(server), "storage": {"sync": "manual"}}
        bank = MemoryBank.open(tmp_path, settings)
        with pytest.raises(BankClosed):
            bank.agent("alice").add_messages(TALK)
        with MemoryBank.open(tmp_path, settings) as bank:
            assert bank.agents() == []


def test_without_infer_each_message_is_stored_but_the_systems() -> None:
    with MemoryBank.ephemeral() as bank:
        system = {"role": "system", "content": "You are a trader."}
        stored = bank.agent("alice").add_messages([system, *TALK], infer=False, tier="low")
        assert [memory.content for memory in stored] == [turn["content"] for turn in TALK]


@pytest.mark.parametrize("messages", [7, [7], [{"role": "user"}], {"content": "x"}, [{"role": 1}]])
def test_what_is_no_message_is_refused(messages: Any) -> None:
    with MemoryBank.ephemeral() as bank, pytest.raises(InvalidInput, match="message"):
        bank.agent("alice").add_messages(messages, infer=False)


def test_a_bad_tier_is_refused_before_the_llm_is_asked() -> None:
    with (
        OpenAIServer() as server,
        MemoryBank.ephemeral(llm=llm(server)) as bank,
    ):
        with pytest.raises(InvalidTier):
            bank.agent("alice").add_messages(TALK, tier="urgent")
        assert server.requests == []


def embedder(server: OpenAIServer, model: str = "m") -> dict[str, Any]:
    config = {"openai_base_url": server.url, "api_key": "unused", "model": model}
    return {"provider": "openai", "config": config}


def test_any_mem0_embedder_works_by_config_and_is_asked_once_for_a_text(tmp_path: Path) -> None:
    manual = {"sync": "manual"}
    with OpenAIServer() as server:
        plain = {"retrieval": {"sif": 0}}  # else a query is asked without the words of all
        with MemoryBank.open(tmp_path, plain, embedder=embedder(server), storage=manual) as bank:
            alice = bank.agent("alice")
            alice.add_many([f"memory {n}" for n in range(150)])
            assert alice.search("memory 7", limit=1)[0].memory.content == "memory 7"
            assert alice.search("memory 7", limit=1)[0].score == pytest.approx(1.0)
            before = bank.state_hash()
        asked = [text for _, body in server.requests for text in body["input"]]
        assert sorted(asked) == sorted({*(f"memory {n}" for n in range(150)), "dimensions"})

        server.requests.clear()
        with MemoryBank.open(tmp_path, embedder=embedder(server), storage=manual) as bank:
            assert bank.state_hash() == before
            bank.agent("bob").add("memory 8")
        assert server.requests == []


def test_an_api_key_in_the_config_is_not_written_to_the_bank(tmp_path: Path) -> None:
    config = {"llm": {"provider": "openai", "config": {"api_key": "sk-hush-hush"}}}
    with MemoryBank.open(tmp_path, config, storage={"sync": "manual"}) as bank:
        bank.agent("alice").add("hello")
    for file in tmp_path.iterdir():
        assert b"sk-hush-hush" not in file.read_bytes()


def test_another_model_than_the_banks_is_refused(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        with MemoryBank.open(tmp_path, {"embedder": embedder(server)}, storage={"sync": "manual"}):
            pass
        with pytest.raises(EmbedderError, match=r"mem0/openai/m .*mem0/openai/other"):
            MemoryBank.open(tmp_path, {"embedder": embedder(server, "other")})


def test_an_embedder_that_fails_is_a_clear_error_and_stores_nothing(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        settings = {"embedder": embedder(server), "storage": {"sync": "manual"}}
        with MemoryBank.open(tmp_path, settings) as bank:
            server.vector = lambda _: []  # type: ignore[method-assign]
            with pytest.raises(EmbedderError):
                bank.agent("alice").add("hello")
            assert bank.agents() == []


@pytest.mark.parametrize(
    ("provider", "asked"),
    [
        ("vertexai", [("tea", "add"), ("tea", "search")]),
        ("openai", [("tea", "add")]),
    ],
)
def test_mem0_embeds_a_query_as_one_where_it_tells_them_apart(
    monkeypatch: pytest.MonkeyPatch, provider: str, asked: list[tuple[str, str]]
) -> None:
    calls: list[tuple[str, str]] = []

    class Factory:
        @staticmethod
        def create(*_: object) -> Any:
            def embed_batch(texts: list[str], action: str) -> list[list[float]]:
                calls.extend((text, action) for text in texts)
                return [[1.0, 0.0] if action == "add" else [0.0, 1.0] for _ in texts]

            return SimpleNamespace(embed_batch=embed_batch)

    monkeypatch.setattr(models, "import_mem0", lambda _: SimpleNamespace(EmbedderFactory=Factory))
    embedder = models.Mem0Embedder(EmbedderSettings(provider, {}, 10), 2)
    cached = CachedEmbedder(embedder, 10, lambda keys: {})
    cached.encode(["tea"])
    cached.encode_queries(["tea"])
    cached.encode_queries(["tea"])
    assert calls == asked
