"""The profile openclaw: the tools, results, settings and flush of openclaw 2026.2.3."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents import AgentMemory, MemoryBank, tools
from agents.config.load import load_settings
from agents.config.settings import Settings
from agents.errors import ConfigError, EmbedderError
from agents.notes.flush import FlushMonitor
from agents.tools.profiles import table_of
from banks import MANUAL
from embedders import Directions

DEPLOYMENT = "# Deployment\n\nThe deployment process is: build, test, push to the hub.\n"
STRING, NUMBER = {"type": "string"}, {"type": "number"}


@pytest.fixture
def main(tmp_path: Path) -> Iterator[AgentMemory]:
    """The agent main, which wrote two files."""
    with MemoryBank.open(tmp_path / "bank", profile="openclaw", storage=MANUAL) as bank:
        agent = bank.agent("main")
        agent.notes.write("MEMORY.md", DEPLOYMENT)
        agent.notes.write("memory/2026-01-20.md", "Bob likes tea.\nRain all day.\n")
        yield agent


# Tools


def test_models_get_its_two_tools_as_it_has_them() -> None:
    schemas = [each["function"] for each in tools.openai_schemas(profile="openclaw")]
    assert {each["name"]: each["parameters"] for each in schemas} == {
        "memory_search": {
            "type": "object",
            "properties": {"query": STRING, "maxResults": NUMBER, "minScore": NUMBER},
            "required": ["query"],
        },
        "memory_get": {
            "type": "object",
            "properties": {"path": STRING, "from": NUMBER, "lines": NUMBER},
            "required": ["path"],
        },
    }


def test_a_search_answers_with_its_keys(main: AgentMemory) -> None:
    found = main.call("memory_search", query="deployment process")
    score = found["results"][0].pop("score")
    assert found == {
        "results": [
            {
                "path": "MEMORY.md",
                "startLine": 1,
                "endLine": 3,
                "snippet": DEPLOYMENT,
                "source": "memory",
                "citation": "MEMORY.md#L1-L3",
            }
        ],
        "provider": "offline",
        "model": "wordllama-l2-supercat-256",
        "citations": "auto",
    }
    (told,) = [each for each in main.explain("deployment process") if each.score == score]
    assert score == pytest.approx(0.7 * told.vector + 0.3 * told.keyword)


def test_files_alone_are_searched(main: AgentMemory) -> None:
    main.add("The deployment process is secret")
    paths = [each["path"] for each in main.call("memory_search", query="deployment", minScore=0)[
        "results"
    ]]  # fmt: skip
    assert sorted(paths) == ["MEMORY.md", "memory/2026-01-20.md"]


def test_there_are_six_results_of_035_or_more_unless_the_call_says(main: AgentMemory) -> None:
    for day in range(1, 10):
        main.notes.write(f"memory/2026-02-0{day}.md", f"The ferry {day} leaves at noon\n")
    main.notes.write("memory/2026-02-10.md", "The ferry was late; and much else that day, " * 20)

    def scores(**given: float) -> list[float]:
        found = main.call("memory_search", query="ferry at noon", **given)["results"]
        return [each["score"] for each in found]

    every = scores(maxResults=50, minScore=0)
    assert every[-1] < 0.35
    assert scores() == every[:6]
    assert scores(maxResults=50) == [score for score in every if score >= 0.35]
    assert scores(minScore=0.6) == [score for score in every[:6] if score >= 0.6]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"maxResults": 2.9}, 2),
        ({"maxResults": 0}, 1),
        ({"maxResults": -3}, 1),
        ({"maxResults": 10**9}, 2),
        ({"minScore": 7}, 0),
        ({"minScore": None, "maxResults": None}, 1),
    ],
)
def test_any_number_is_taken(main: AgentMemory, given: dict[str, Any], found: int) -> None:
    arguments = {"query": "deployment process", "minScore": -1, **given}
    assert len(main.call("memory_search", **arguments)["results"]) == found


@pytest.mark.parametrize(
    ("mode", "session", "is_cited"),
    [
        ("auto", None, True),
        ("auto", "agent:main:main", True),
        ("auto", "agent:main:discord:dm:u123", True),
        ("auto", "agent:main:discord:group:c123", False),
        ("auto", "agent:main:Slack:Channel:c123", False),
        ("on", "agent:main:discord:group:c123", True),
        ("off", None, False),
    ],
)
def test_citations_are_shown_in_direct_chats_and_hidden_in_groups(
    mode: str, session: str | None, is_cited: bool
) -> None:
    with MemoryBank.ephemeral(profile="openclaw", notes={"citations": mode}) as bank:
        main = bank.agent("main")
        main.notes.write("MEMORY.md", DEPLOYMENT)
        found = main.call("memory_search", query="deployment", sessionKey=session)
        assert found["citations"] == mode
        (row,) = found["results"]
        assert (row["path"], row["startLine"], row["endLine"]) == ("MEMORY.md", 1, 3)
        assert ("citation" in row) is is_cited


def test_transcripts_are_the_source_sessions(tmp_path: Path) -> None:
    file = tmp_path / "bank" / "notes" / "main" / "sessions" / "monday.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"role": "user", "content": "When does the ferry leave?"}) + "\n")
    block = {"profile": "openclaw", "experimental": {"sessionMemory": True}}
    with MemoryBank.open(tmp_path / "bank", block, storage=MANUAL) as bank:
        (row,) = bank.agent("main").call("memory_search", query="ferry")["results"]
    assert (row["source"], row["citation"]) == ("sessions", "sessions/monday.jsonl#L1")


def test_a_search_without_vectors_says_so() -> None:
    class Broken(Directions):
        def embed(self, texts: Sequence[str], /) -> list[list[float]]:
            if list(texts) == ["deployment"]:
                raise EmbedderError("late")
            return super().embed(texts)

    with MemoryBank.ephemeral(profile="openclaw", embedder=Broken()) as bank:
        other = bank.agent("main")
        other.notes.write("MEMORY.md", DEPLOYMENT)
        found = other.call("memory_search", query="deployment", minScore=0)
    assert found["fallback"]["from"] == "offline"
    assert "late" in found["fallback"]["reason"]
    assert len(found["results"]) == 1


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, DEPLOYMENT),
        ({"from": 3}, "The deployment process is: build, test, push to the hub.\n"),
        ({"from": 1, "lines": 2}, "# Deployment\n\n"),
        ({"from": -4, "lines": 1.9}, "# Deployment\n"),
        ({"from": 40, "lines": 30}, ""),
    ],
)
def test_lines_are_read(main: AgentMemory, given: dict[str, Any], text: str) -> None:
    read = main.call("memory_get", path="MEMORY.md", **given)
    assert read == {"path": "MEMORY.md", "text": text}


def test_a_file_that_is_missing_is_empty(main: AgentMemory) -> None:
    path = "memory/2031-01-01.md"
    assert main.call("memory_get", path=path) == {"path": path, "text": ""}


@pytest.mark.parametrize("path", ["../other/MEMORY.md", "/etc/passwd", "notes.txt"])
def test_what_is_no_memory_file_is_a_result_that_says_so(main: AgentMemory, path: str) -> None:
    told = main.call("memory_get", path=path)
    assert told.pop("error")
    assert told == {"path": path, "text": "", "disabled": True}


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("memory_search", {}, "'query' is a required property"),
        ("memory_search", {"query": "x", "max_results": 1}, "did you mean maxResults?"),
        ("memory_search", {"query": "x", "minScore": "high"}, "minScore 'high' is not"),
        ("memory_search", {"query": "x", "maxResults": float("inf")}, "maxResults inf is not"),
        ("memory_get", {"path": "MEMORY.md", "to": 3}, "takes no argument 'to'"),
        ("memory_get", {"path": ""}, "path '' should be"),
        ("memory_add", {"content": "x"}, "there is no operation 'memory_add'"),
    ],
)
def test_a_call_that_it_does_not_know_is_refused(
    main: AgentMemory, name: str, given: dict[str, Any], message: str
) -> None:
    failure = tools.call(main, name, given).failure
    assert failure is not None
    assert message in failure.message


def test_results_fit_their_schemas(main: AgentMemory) -> None:
    from jsonschema import Draft202012Validator

    table = table_of("openclaw")
    calls = [
        ("memory_search", {"query": "deployment"}),
        ("memory_search", {"query": "deployment", "sessionKey": "agent:a:x:group:1"}),
        ("memory_get", {"path": "MEMORY.md"}),
        ("memory_get", {"path": "../x"}),
    ]
    for name, given in calls:
        Draft202012Validator(table[name].result).validate(main.call(name, **given))


def test_the_call_of_python_takes_its_names(main: AgentMemory) -> None:
    other: Any = main
    assert len(other.memory_search("deployment", maxResults=1, minScore=0)) == 1
    assert other.memory_search("deployment", sessionKey="agent:a:x:group:1")[0].citation is None


# Settings

BLOCK = """
chunking: {tokens: 300, overlap: 60}
sync: {onSessionStart: false, onSearch: false, watch: false, watchDebounceMs: 250}
query:
  maxResults: 4
  minScore: 0.5
  hybrid: {enabled: true, vectorWeight: 0.6, textWeight: 0.4, candidateMultiplier: 8}
experimental: {sessionMemory: true}
"""


def chosen(settings: Settings) -> list[Any]:
    notes, retrieval = settings.notes, settings.retrieval
    return [
        notes.chunk_tokens, notes.chunk_overlap,
        notes.sync_on_open, notes.sync_on_search, notes.watch, notes.watch_debounce,
        notes.max_results, notes.min_score,
        retrieval.mode, retrieval.vector_weight, retrieval.text_weight,
        settings.memory.candidate_multiplier, notes.transcripts,
    ]  # fmt: skip


def test_its_defaults_are_those_of_the_document() -> None:
    loaded = load_settings({"profile": "openclaw"})
    assert chosen(loaded) == [
        400, 80, True, True, True, 1.5, 6, 0.35, "hybrid", 0.7, 0.3, 4, False,
    ]  # fmt: skip


@pytest.mark.parametrize("around", ["", "memorySearch", "agents.defaults.memorySearch"])
def test_its_block_is_taken_as_it_is_written(around: str, tmp_path: Path) -> None:
    text = BLOCK
    for section in reversed(around.split(".") if around else []):
        text = f"{section}:\n" + "".join(f"  {line}\n" for line in text.splitlines())
    file = tmp_path / "openclaw.yaml"
    file.write_text(f"profile: openclaw\n{text}")
    assert chosen(load_settings(file)) == [
        300, 60, False, False, False, 0.25, 4, 0.5, "hybrid", 0.6, 0.4, 8, True,
    ]  # fmt: skip


def test_its_other_settings_are_taken_where_its_own_file_has_them() -> None:
    own = {
        "profile": "openclaw",
        "memory": {"citations": "off", "max_pinned": 2},
        "agents": {
            "defaults": {
                "contextTokens": 1000,
                "compaction": {
                    "reserveTokensFloor": 100,
                    "memoryFlush": {"enabled": True, "softThresholdTokens": 50},
                },
                "memorySearch": {
                    "provider": "local",
                    "query": {"hybrid": {"enabled": False}},
                    "extraPaths": ["../shared"],
                },
            }
        },
    }
    loaded = load_settings(own)
    assert (loaded.notes.citations, loaded.memory.max_pinned) == ("off", 2)
    assert (loaded.embedder.provider, loaded.retrieval.mode) == ("offline", "vector")
    assert loaded.notes.extra_paths == ("../shared",)
    flush = loaded.flush
    assert (flush.context_window, flush.reserve_tokens, flush.soft_threshold) == (1000, 100, 50)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "chunking: {tokns: 3}",
            "my.yaml:2: unknown key chunking.tokns; did you mean chunking.tok",
        ),
        ("chunkin: {tokens: 3}", "my.yaml:2: unknown key chunkin; did you mean chunking?"),
        ("vectorWeight: 0.7", "unknown key vectorWeight; did you mean query.hybrid.vectorWeight?"),
        (
            "sync:\n  often: 1",
            "my.yaml:3: unknown key sync.often; the profile openclaw has sync.on",
        ),
        ("channels: {}", "my.yaml:2: unknown key channels; known here: seed"),
        ("chunking: 3", "my.yaml:2: unknown key chunking"),
        (
            "chunking: {tokens: many}",
            "my.yaml:2: chunking.tokens (notes.chunk_tokens) must be a whole number from 20 to",
        ),
        (
            "sync: {watchDebounceMs: -500}",
            "sync.watchDebounceMs (notes.watch_debounce) must be a number from 0 to 3600, not -0.5",
        ),
        ("notes: 3\nchunking: {tokens: 3}", "my.yaml:2: notes must be a mapping"),
        (
            "chunking: {tokens: 300}\nmemorySearch: {chunking: {tokens: 301}}",
            "my.yaml:3: memorySearch.chunking.tokens and notes.chunk_tokens mean the same",
        ),
    ],
)
def test_a_wrong_key_is_named_with_the_nearest(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text(f"profile: openclaw\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        load_settings(file)
    assert message in str(caught.value)


def test_a_flush_is_due_once_in_a_cycle_when_tokens_exceed_its_threshold() -> None:
    flush = load_settings({"profile": "openclaw"}).flush
    assert flush.enabled
    monitor = FlushMonitor(flush.context_window, flush.reserve_tokens, flush.soft_threshold)
    assert not monitor.due(176_000, 0)
    assert monitor.due(176_001, 0)
    monitor.flushed()
    assert not monitor.due(179_000, 0)
    monitor.compacted()
    assert monitor.due(176_001, 1)
