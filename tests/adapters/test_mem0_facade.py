"""What ``tiermem.mem0`` does beyond what a comparison with mem0 shows."""

import asyncio
import inspect
import json
import subprocess
import sys
import threading
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from mem0_calls import ANN, add, texts

from banks import ROOT
from openai_server import OpenAIServer
from tiermem import ConfigError, ExtractionError, InvalidInput
from tiermem.mem0 import AsyncMemory, Memory
from tiermem.storage.mem0.package import import_mem0

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def test_no_more_than_top_k_memories_come_even_if_more_are_pinned() -> None:
    memory = Memory()
    for number in range(4):
        add(memory, f"rule {number}", metadata={"tier": "pinned"})
    assert len(memory.search("rule", filters=ANN, top_k=2)["results"]) == 2
    assert memory.search("rule", filters=ANN, top_k=0) == {"results": []}


def test_a_blank_query_asks_for_the_newest_by_tier() -> None:
    memory = Memory()
    for tier in ("low", "normal", "pinned", "normal"):
        add(
            memory, f"{tier} {len(memory.get_all(filters=ANN)['results'])}", metadata={"tier": tier}
        )
    newest = ["pinned 2", "normal 3", "normal 1", "low 0"]
    for blank in ("", " "):
        assert texts(memory.search(blank, filters=ANN)) == newest
    assert texts(memory.search("", filters={**ANN, "tier": 0})) == newest[:1]
    assert texts(memory.search("", filters=ANN, explain=True, threshold=0.9)) == newest


def test_ids_beside_the_filters_and_limit_mean_what_they_mean_to_mem0_1() -> None:
    memory = Memory()
    for user in ("ann", "bob"):
        for tier in (0, 0, 3):
            add(memory, f"rule of {user}", metadata={"tier": tier}, user_id=user)
    pinned = memory.search(query="", user_id="bob", filters={"tier": 0}, limit=5)
    assert texts(pinned) == ["rule of bob"] * 2
    assert [row["metadata"]["tier"] for row in pinned["results"]] == [0, 0]
    assert texts(memory.search("rule", user_id="bob", limit=1)) == ["rule of bob"]
    assert texts(memory.get_all(user_id="bob", filters={"user_id": "bob"})) == ["rule of bob"] * 3


# What is kept


def test_only_what_a_search_gives_counts_as_used() -> None:
    memory = Memory()
    ids = [add(memory, f"tea {place}", metadata={"place": place}) for place in ("bay", "hill")]
    memory.search("tea", filters={**ANN, "place": {"contains": "ba"}})
    agent = memory.bank.agent("ann")
    assert [agent.get(each).access_count for each in ids] == [1, 0]


@pytest.mark.slow
def test_an_update_keeps_the_id_and_all_versions_lead_to_it(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "bank")
    first = add(memory, "tea", metadata={"tier": "critical"})
    for text in ("coffee", "milk"):
        memory.update(first, text=text)
    memory.close()
    memory = Memory(tmp_path / "bank")
    assert texts(memory.search("milk", filters=ANN)) == ["milk"]
    assert memory.get_all(filters=ANN)["results"][0]["id"] == first
    events = [(row["event"], row["old_memory"], row["new_memory"]) for row in memory.history(first)]
    assert events == [
        ("ADD", None, "tea"),
        ("UPDATE", "tea", "coffee"),
        ("UPDATE", "coffee", "milk"),
    ]
    memory.delete(first)
    assert memory.get(first) is None
    assert memory.history(first)[-1]["event"] == "DELETE"
    memory.close()


def test_a_memory_under_a_key_has_an_id_that_lasts() -> None:
    memory = Memory()
    agent = memory.bank.agent("ann")
    first = agent.add("sad", key="mood").id
    agent.add("glad", key="mood")
    assert (memory.get(first) or {})["memory"] == "glad"
    memory.update(first, text="calm")
    assert (memory.get(first) or {})["memory"] == "calm"
    assert [row["new_memory"] for row in memory.history(first)] == ["sad", "glad", "calm"]


def test_a_pinned_memory_is_deleted_and_can_be_restored() -> None:
    memory = Memory()
    first = add(memory, "tea", metadata={"tier": "pinned"})
    memory.delete(first)
    assert memory.get_all(filters=ANN) == {"results": []}
    memory.bank.agent("ann").update(first, retention="active")
    assert texts(memory.get_all(filters=ANN)) == ["tea"]
    memory.delete_all(**ANN)
    assert memory.get(first) is None


# Days


def test_an_expired_memory_is_hidden_and_never_takes_a_place() -> None:
    today = datetime(2026, 5, 4, 12, tzinfo=UTC)
    memory = Memory(now=lambda: today)
    for number in range(80):
        add(memory, f"tea {number}", expiration_date="2026-05-03")
    add(memory, "tea today", expiration_date=date(2026, 5, 4))
    add(memory, "tea for ever")
    assert sorted(texts(memory.search("tea", filters=ANN, top_k=2))) == [
        "tea for ever",
        "tea today",
    ]
    assert len(texts(memory.get_all(filters=ANN))) == 2
    assert len(texts(memory.get_all(filters=ANN, top_k=100, show_expired=True))) == 82
    assert len(texts(memory.search("tea", filters=ANN, top_k=100, show_expired=True))) == 82


def test_a_date_can_be_set_and_cleared_later() -> None:
    memory = Memory()
    first = add(memory, "tea")
    assert texts(memory.search("tea", filters=ANN)) == ["tea"]
    memory.update(first, expiration_date="2000-01-01")
    assert texts(memory.search("tea", filters=ANN)) == []
    memory.update(first, expiration_date=None)
    assert texts(memory.search("tea", filters=ANN)) == ["tea"]


def test_a_memory_can_say_when_it_was_made() -> None:
    memory = Memory()
    first = add(memory, "tea", metadata={"created_at": "2020-01-01T00:00:00+00:00"})
    assert (memory.get(first) or {})["created_at"] == "2020-01-01T00:00:00+00:00"


# Errors


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "VALIDATION_001"),
        ({**ANN, "memory_type": "x"}, "VALIDATION_002"),
        ({**ANN, "messages": 3}, "VALIDATION_003"),
        ({**ANN, "messages": ["tea", "milk"]}, "VALIDATION_003"),
        ({**ANN, "messages": [{"role": "user", "content": "tea"}, "milk"]}, "VALIDATION_003"),
        ({**ANN, "messages": [None]}, "VALIDATION_003"),
    ],
)
def test_errors_are_mem0s_and_ours(arguments: dict[str, Any], code: str) -> None:
    theirs = import_mem0("mem0.exceptions").ValidationError
    for infer in (False, True):
        memory = Memory(infer=infer)
        with pytest.raises(InvalidInput) as ours:
            memory.add(**{"messages": "tea", **arguments})
        assert isinstance(ours.value, theirs)
        assert ours.value.error_code == code
        assert ours.value.suggestion
        assert memory.bank.agents() == []


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.search("tea", user_id="*"),
        lambda m: m.search("tea", user_id="bob", filters=ANN),
        lambda m: m.search("tea", user_id="a b"),
        lambda m: m.search("", filters={"tier": 0}),
        lambda m: m.search(3, filters=ANN),
        lambda m: m.search("tea", filters={}),
        lambda m: m.search("tea", filters=ANN, threshold=2),
        lambda m: m.search("tea", filters=ANN, top_k=-1),
        lambda m: m.search("tea", filters=ANN, top_k=True),
        lambda m: m.search("tea", filters=ANN, reference_date="2026-01-01"),
        lambda m: m.search("tea", filters={**ANN, "day": {"near": 3}}),
        lambda m: m.search("tea", filters={**ANN, "OR": []}),
        lambda m: m.search("tea", filters={**ANN, "NOT": "x"}),
        lambda m: m.search("tea", filters={**ANN, "$or": []}),
        lambda m: m.search("tea", filters={**ANN, "$nor": 1}),
        lambda m: m.search("tea", filters={**ANN, "AND": [{"$day": 1}]}),
        lambda m: m.search("tea", filters={**ANN, "or": [{"day": 1}]}),
        lambda m: m.search("tea", filters={**ANN, 5: 1}),
        lambda m: m.get_all(filters={"user_id": "a b"}),
        lambda m: m.get_all(run_id="*"),
        lambda m: m.add("tea", user_id=" "),
        lambda m: m.add("tea", timestamp=3, **ANN),
        lambda m: m.add("tea", expiration_date="soon", **ANN),
        lambda m: m.add("", infer=False, **ANN),
        lambda m: m.add({"role": "user", "content": {"type": "x"}}, infer=False, **ANN),
        lambda m: m.update("no-id", text="x"),
        lambda m: m.update("no-id"),
        lambda m: m.delete("no-id"),
        lambda m: m.delete_all(),
    ],
)
def test_what_mem0_refuses_is_a_value_error(call: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        call(Memory())


def test_nothing_of_mem0_is_imported_until_it_is_needed() -> None:
    code = (
        "import sys; from tiermem.mem0 import Memory; m = Memory(); "
        "m.add('tea', user_id='ann', infer=False); m.search('tea', filters={'user_id': 'ann'}); "
        "assert not {'mem0', 'chromadb'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# The LLM, and mem0's config


def config_of(server: OpenAIServer, folder: Path) -> dict[str, Any]:
    llm = {"model": "m", "api_key": "unused", "openai_base_url": server.url}
    store = {"path": str(folder / "db"), "collection_name": "mem0"}
    return {
        "llm": {"provider": "openai", "config": llm},
        "vector_store": {"provider": "chroma", "config": store},
        "history_db_path": str(folder / "history.db"),
        "version": "v1.1",
        "custom_instructions": "only facts about drinks",
    }


def facts(*found: str) -> str:
    return json.dumps({"memory": [{"id": str(i), "text": text} for i, text in enumerate(found)]})


@pytest.mark.slow
def test_facts_are_extracted_by_the_banks_llm(tmp_path: Path) -> None:
    with OpenAIServer(lambda _: facts("Ann likes tea", "Ann is a doctor")) as server:
        with Memory.from_config(config_of(server, tmp_path)) as memory:
            found = memory.add("I am Ann, a doctor. Tea!", metadata={"tier": "critical"}, **ANN)
            assert [row["memory"] for row in found["results"]] == [
                "Ann likes tea",
                "Ann is a doctor",
            ]
            assert all(row.keys() == {"id", "memory", "event"} for row in found["results"])
            assert (
                texts(memory.search("likes tea", filters={**ANN, "tier": 1}))[0] == "Ann likes tea"
            )
            assert len(memory.bank.agent("ann").all("critical")) == 2
        asked = json.dumps(server.requests)
    assert "only facts about drinks" in asked
    assert (tmp_path / "db.tiermem" / "journal.db").is_file()
    assert not (tmp_path / "db").exists()


def test_a_summary_of_what_was_done_is_a_procedural_memory(tmp_path: Path) -> None:
    with (
        OpenAIServer(lambda _: "step 1: boil water") as server,
        Memory.from_config(config_of(server, tmp_path), tmp_path / "bank") as memory,
    ):
        chat = [{"role": "assistant", "content": "I boiled water"}]
        found = memory.add(chat, agent_id="bot", memory_type="procedural_memory")
        assert [row["memory"] for row in found["results"]] == ["step 1: boil water"]
        (row,) = memory.get_all(filters={"agent_id": "bot"})["results"]
        assert row["metadata"] == {"memory_type": "procedural_memory"}


def test_an_llm_that_fails_or_is_missing_is_mem0s_error_too(tmp_path: Path) -> None:
    theirs = import_mem0("mem0.exceptions").LLMError
    with pytest.raises(ExtractionError, match="infer=False") as missing:
        Memory().add("tea", **ANN)
    assert isinstance(missing.value, theirs)

    def broken(_: object) -> str:
        raise RuntimeError("no tokens left")

    with (
        OpenAIServer(broken) as server,
        Memory.from_config(config_of(server, tmp_path)) as memory,
    ):
        with pytest.raises(theirs, match="no tokens left"):
            memory.add("tea", **ANN)
        server.reply = lambda _: "not json"
        with pytest.raises(theirs, match="can't be read as facts: 'not json'"):
            memory.add("tea", **ANN)
        assert memory.get_all(filters=ANN) == {"results": []}


def test_other_threads_use_the_memory_while_the_llm_is_asked(tmp_path: Path) -> None:
    added = threading.Event()

    def add() -> None:
        memory.add("Bob likes milk", user_id="bob", infer=False)
        added.set()

    def reply(_: object) -> str:
        threading.Thread(target=add, daemon=True).start()
        return facts("Ann likes tea") if added.wait(60) else "others wait"

    with (
        OpenAIServer(reply) as server,
        Memory.from_config(config_of(server, tmp_path)) as memory,
    ):
        assert len(memory.add("Tea!", **ANN)["results"]) == 1
        assert texts(memory.get_all(filters={"user_id": "bob"})) == ["Bob likes milk"]


def test_a_memory_of_a_config_can_infer_nothing_too(tmp_path: Path) -> None:
    with Memory.from_config({}, tmp_path / "bank", infer=False, seed=7) as memory:
        memory.add("tea", **ANN)
        assert texts(memory.get_all(filters=ANN)) == ["tea"]
        assert memory.bank.settings.seed == 7
    other = AsyncMemory.from_config({}, tmp_path / "other", infer=False)
    asyncio.run(other.add("tea", **ANN))
    other.close()
    with pytest.raises(ConfigError, match="infer=False"):
        Memory.from_config({"infer": False}, tmp_path / "bank")


def test_a_config_must_say_where_and_what() -> None:
    for config, why in (
        ({}, "where"),
        ({"colour": 1}, "colour"),
        ({"embedder": {"config": {}}}, "provider"),
        ({"reranker": {"provider": "cohere"}}, "reranker"),
    ):
        with pytest.raises(ConfigError, match=why):
            Memory.from_config(config)


# Async


def test_the_async_memory_has_the_same_calls(tmp_path: Path) -> None:
    async def story() -> None:
        async with AsyncMemory(tmp_path / "bank") as memory:
            rows = await asyncio.gather(
                *[memory.add(f"tea {i}", infer=False, **ANN) for i in range(5)]
            )
            ids = [row["results"][0]["id"] for row in rows]
            assert ids == sorted(ids)
            assert len((await memory.search("tea", filters=ANN))["results"]) == 5
            await memory.update(ids[0], text="coffee")
            assert ((await memory.get(ids[0])) or {})["memory"] == "coffee"
            assert len(await memory.history(ids[0])) == 2
            await memory.delete(ids[1])
            assert len((await memory.get_all(filters=ANN))["results"]) == 4
            with pytest.raises(ValueError, match="not found"):
                await memory.delete(ids[1])
            await memory.delete_all(**ANN)
            await memory.reset()
            assert await memory.get_all(filters=ANN) == {"results": []}

    asyncio.run(story())
    asyncio.run(story())  # in another event loop


def test_the_methods_of_an_async_memory_look_async() -> None:
    for name in ("add", "search", "get_all", "delete"):
        method = getattr(AsyncMemory, name)
        assert inspect.iscoroutinefunction(inspect.unwrap(method))
        assert inspect.signature(method) == inspect.signature(getattr(Memory, name))


def test_a_memory_that_infers_nothing_needs_no_llm() -> None:
    memory = AsyncMemory(infer=False)
    asyncio.run(memory.add("tea", **ANN))
    assert texts(asyncio.run(memory.get_all(filters=ANN))) == ["tea"]
    memory.close()


def test_an_async_memory_is_used_by_one_event_loop_after_the_other() -> None:
    memory = AsyncMemory()
    asyncio.run(memory.add("tea", infer=False, **ANN))
    found = asyncio.run(memory.search("tea", filters=ANN))
    assert texts(found) == ["tea"]
    memory.close()


def test_the_program_of_the_page_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/howto/mem0.md").read_text()
    code = page.partition("```python\n")[2].partition("```")[0]
    exec(compile(code, "docs/howto/mem0.md", "exec"), {})
    promised = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
    assert capsys.readouterr().out.splitlines() == promised
    assert len(promised) == 3
