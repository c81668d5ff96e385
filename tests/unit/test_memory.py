"""agent_ecology2's classes of memory: its calls, dictionaries and errors, over a bank."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import agents.memory
from tiermem import BankClosed, InvalidInput, MemoryBank, agent_ecology
from tiermem.agent_ecology import (
    TIER_NAMES,
    TIER_VALUES,
    AgentMemory,
    ArtifactMemory,
    get_memory,
)

NOTHING = "(No relevant memories)"


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with AgentMemory(MemoryBank.ephemeral()) as made:
        yield made


@pytest.fixture
def history() -> Iterator[ArtifactMemory]:
    with ArtifactMemory(MemoryBank.ephemeral()) as made:
        yield made


# Names


@pytest.mark.parametrize("name", agent_ecology.__all__)
def test_the_document_imports_it_from_agents_memory(name: str) -> None:
    assert getattr(agents.memory, name) is getattr(agent_ecology, name)


def test_what_agents_memory_does_not_have_is_missing() -> None:
    with pytest.raises(ImportError, match="Qdrant"):
        exec("from agents.memory import Qdrant")


def test_tiers_have_the_documents_numbers_and_names() -> None:
    assert dict(enumerate(["pinned", "critical", "important", "normal", "low"])) == TIER_NAMES
    assert {TIER_VALUES[name]: name for name in TIER_VALUES} == TIER_NAMES


# AgentMemory


def test_a_result_is_a_dictionary(memory: AgentMemory) -> None:
    (added,) = memory.add("alice", "Bob sells fish", tier=1, tick=42)["results"]
    assert added == {"id": added["id"], "memory": "Bob sells fish", "event": "ADD"}
    (found,) = memory.search("alice", "Bob sells fish")
    score = found["score"]
    assert found == {
        "id": added["id"],
        "memory": "Bob sells fish",
        "score": score,
        "boosted_score": score + 0.3,
        "tier": 1,
        "metadata": {"tier": 1, "created_tick": 42},
    }
    assert json.loads(json.dumps(found)) == found


def test_a_tick_moves_the_clock_and_an_earlier_one_is_kept(memory: AgentMemory) -> None:
    memory.add("alice", "noon", tick=12)
    memory.add("alice", "dawn", tick=6)
    memory.add("alice", "now")
    ticks = {
        each["memory"]: each["metadata"]["created_tick"] for each in memory.search("alice", "")
    }
    assert ticks == {"noon": 12, "dawn": 6, "now": 12}
    assert memory.bank.tick == 12


def test_what_is_refused_moves_no_clock(memory: AgentMemory) -> None:
    assert "error" in memory.add("alice", " ", tick=9)
    assert memory.bank.tick == 0


def test_agents_have_memories_of_their_own(memory: AgentMemory) -> None:
    (of_bob,) = memory.add("bob", "my secret", tier=0)["results"]
    for other in ("alice", "Bob", "bob ", "*", "../bob", "bob\n", ""):
        assert memory.search(other, "my secret") == []
        assert memory.get_pinned_memories(other) == []
        assert memory.get_relevant_memories(other, "my secret") == NOTHING
        assert memory.set_memory_tier(other, of_bob["id"], 4) is False
        assert memory.unpin_memory(other, of_bob["id"]) is False
        assert "error" not in memory.add(other, f"of {other!r}")
    assert [each["memory"] for each in memory.get_pinned_memories("bob")] == ["my secret"]
    assert [each["memory"] for each in memory.search("bob", "")] == ["my secret"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"agent_id": 7}, "a name is text"),
        ({"agent_id": "a\0"}, "NUL"),
        ({"content": None}, "a memory is text"),
        ({"content": " "}, "blank"),
        ({"tier": 5}, "5 is not a tier"),
        ({"tier": "hot"}, "'hot' is not a tier"),
        ({"tick": -1}, "tick -1"),
        ({"tick": "noon"}, "tick 'noon'"),
    ],
)
def test_what_is_refused_is_an_error_in_the_result(
    memory: AgentMemory, arguments: dict[str, Any], says: str
) -> None:
    (name, why), *_ = memory.add(**{"agent_id": "alice", "content": "x", **arguments}).items()
    assert name == "error"
    assert says in why
    assert memory.bank.agents() == []


READS: list[tuple[Callable[[Any], object], object]] = [
    (lambda m: m.search(None, "x"), []),
    (lambda m: m.search("alice", None), []),
    (lambda m: m.search("alice", "x", -1), []),
    (lambda m: m.get_pinned_memories(3), []),
    (lambda m: m.get_relevant_memories("alice", "x", "many"), NOTHING),
    (lambda m: m.set_memory_tier("alice", "no id", 1), False),
    (lambda m: m.pin_memory("alice", None), False),
]


@pytest.mark.parametrize(("call", "answer"), READS)
@pytest.mark.parametrize("kind", [AgentMemory, ArtifactMemory])
def test_a_question_that_is_refused_finds_nothing_and_says_why(
    kind: type[Any], call: Callable[[Any], object], answer: object, caplog: Any
) -> None:
    memory = kind(MemoryBank.ephemeral())
    memory.add("alice", "x")
    if kind is ArtifactMemory and call is READS[1][0]:  # no query matters there
        answer = memory.search("alice", "x")
    else:
        assert call(memory) == answer
        assert caplog.text
    assert call(memory) == answer


def test_a_bank_that_is_closed_is_never_an_empty_result(memory: AgentMemory) -> None:
    memory.add("alice", "x")
    memory.close()
    assert memory.add("alice", "y") == {"error": "this bank was closed; open it again"}
    for call in (
        lambda: memory.search("alice", "x"),
        lambda: memory.get_relevant_memories("alice", "x"),
        lambda: memory.pin_memory("alice", "x"),
    ):
        with pytest.raises(BankClosed):
            call()


@pytest.mark.parametrize(
    ("action", "success", "text"),
    [
        ("write_artifact", True, "I created an artifact with details: tool.py"),
        ("read_artifact", True, "I read an artifact: tool.py"),
        ("transfer", True, "I transferred credits: tool.py"),
        ("dance", True, "I performed dance: tool.py"),
        ("transfer", False, "I tried to transfer but failed: tool.py"),
    ],
)
@pytest.mark.parametrize("kind", [AgentMemory, ArtifactMemory])
def test_actions_are_told_as_agent_ecology2_tells_them(
    kind: type[Any], action: str, success: bool, text: str
) -> None:
    memory = kind(MemoryBank.ephemeral())
    memory.record_action("alice", action, "tool.py", success, tick=3, tier=2)
    (kept,) = memory.bank.agent("alice").all()
    assert (kept.content, kept.kind, kept.created_tick, kept.tier) == (text, "action", 3, 2)


# Folders


def test_a_new_bank_rejects_and_an_existing_one_does_as_it_was_told(tmp_path: Path) -> None:
    MemoryBank.open(tmp_path / "mine", memory={"max_pinned": 1}).close()
    with AgentMemory(tmp_path / "mine") as mine, AgentMemory(tmp_path / "new", max_pinned=1) as new:
        for number in range(2):
            mine.add("alice", f"pin {number}", 0)
            told = new.add("alice", f"pin {number}", 0)
        assert [each["memory"] for each in mine.get_pinned_memories("alice")] == ["pin 1"]
        assert told == {"error": "Maximum pinned memories (1) reached"}


def test_get_memory_is_one_for_the_process_and_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    memory = get_memory()
    assert get_memory() is memory
    assert AgentMemory().bank is ArtifactMemory(None).bank is memory.bank
    memory.add("alice", "Bob sells fish", tier=1)
    memory.close()
    assert get_memory().get_relevant_memories("alice", "fish") == "- [critical] Bob sells fish"
    get_memory().close()
    assert (tmp_path / "agent_memories").is_dir()


@pytest.mark.parametrize(
    "make",
    [
        lambda: AgentMemory(3),  # type: ignore[arg-type]
        lambda: AgentMemory(MemoryBank.ephemeral(), max_pinned=3),
        lambda: ArtifactMemory(3),
        lambda: ArtifactMemory(MemoryBank.ephemeral(), 0),
    ],
)
def test_what_memories_can_not_be_in_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        make()


# ArtifactMemory


def test_the_most_recent_come_first_whatever_is_asked(history: ArtifactMemory) -> None:
    for number in range(10):
        history.add("alice", f"memory {number}")
    assert [each["memory"] for each in history.search("alice", "memory 1", limit=3)] == [
        "memory 9", "memory 8", "memory 7",
    ]  # fmt: skip


def test_recency_and_the_boost_of_the_tier_are_added(history: ArtifactMemory) -> None:
    for tier in (3, 4, 1, 0):
        history.add("alice", f"of tier {tier}", tier=tier)
    found = [(each["tier"], each["boosted_score"]) for each in history.search("alice", "")]
    assert found == [(0, 1.75), (1, 0.8), (4, 0.15), (3, 0.0)]


def test_what_an_agent_should_have_in_mind_begins_with_its_pins(history: ArtifactMemory) -> None:
    for text, tier in (("first", 0), ("second", 3), ("third", 2), ("fourth", 3)):
        history.add("alice", text, tier=tier)
    assert history.get_relevant_memories("alice", "", limit=3).splitlines() == [
        "- [pinned] first", "- fourth", "- [important] third",
    ]  # fmt: skip
    assert history.get_relevant_memories("alice", "", limit=0) == "- [pinned] first"


def test_a_tier_is_set_by_place_or_by_id(history: ArtifactMemory) -> None:
    (first,) = history.add("alice", "first")["results"]
    history.add("alice", "second")
    assert history.set_memory_tier("alice", first["id"], 1) is True
    assert history.set_memory_tier("alice", 1, 4) is True
    assert [each["tier"] for each in history.get_all_memories("alice")] == [1, 4]
    for nowhere in (2, -1, True, None):
        assert history.set_memory_tier("alice", nowhere, 1) is False  # type: ignore[arg-type]


def test_a_history_is_entries_as_agent_ecology2_has_them(history: ArtifactMemory) -> None:
    history.add("alice", "hello", tick=1)
    history.record_observation("alice", "rain", tick=2, tier=2)
    assert history.get_all_memories("alice") == [
        {"tick": 1, "content": "hello", "memory_type": "custom", "tier": 3},
        {"tick": 2, "content": "I observed: rain", "memory_type": "observation", "tier": 2},
    ]


def test_of_a_history_that_is_too_long_the_oldest_go_and_pins_stay() -> None:
    with ArtifactMemory(MemoryBank.ephemeral(), max_history=3) as history:
        for number in range(6):
            history.add("alice", f"memory {number}", tier=0 if number == 1 else 3)
        kept = [each["content"] for each in history.get_all_memories("alice")]
        assert kept == ["memory 1", "memory 4", "memory 5"]


def test_what_an_agent_knows_by_name_is_no_part_of_its_history(history: ArtifactMemory) -> None:
    history.add("alice", "hello")
    for value in ("blue", {"shades": [1, 2.5, None]}, None):
        assert history.set_knowledge("alice", "colour", value) is True
        assert history.get_knowledge("alice", "colour", "unknown") == value
    assert history.get_knowledge("bob", "colour", "unknown") == "unknown"
    assert history.set_knowledge("alice", "colour", {1, 2}) is False
    assert history.clear_memories("alice") is True
    assert history.get_all_memories("alice") == history.search("alice", "") == []
    assert history.get_knowledge("alice", "colour", "unknown") is None


# Artifacts


class Artifacts:
    """agent_ecology2's store of artifacts, as far as memories go."""

    def __init__(self) -> None:
        self.artifacts: dict[str, Any] = {}

    def get(self, artifact_id: str) -> Any:
        return self.artifacts.get(artifact_id)

    def write(self, artifact_id: str, **artifact: Any) -> None:
        self.artifacts[artifact_id] = SimpleNamespace(memory_artifact_id=None, **artifact)

    def copy(self) -> "Artifacts":
        """The store as one of its checkpoints brings it back."""
        restored = Artifacts()
        for name, artifact in self.artifacts.items():
            restored.artifacts[name] = SimpleNamespace(**vars(artifact))
        return restored


def test_an_artifact_has_the_memories_and_only_its_owner_may_read_it() -> None:
    store = Artifacts()
    ArtifactMemory(store).add("alice", "hello", tick=2, tier=1)
    artifact = store.get("alice_memory")
    assert json.loads(artifact.content) == {
        "history": [{"tick": 2, "content": "hello", "memory_type": "custom", "tier": 1}],
        "knowledge": {},
    }
    assert (artifact.type, artifact.created_by) == ("memory", "alice")
    assert artifact.policy == {"allow_read": [], "allow_write": [], "allow_invoke": []}


def test_the_artifact_that_an_agent_names_has_its_memories() -> None:
    store = Artifacts()
    store.write("alice", content="")
    store.get("alice").memory_artifact_id = "diary"
    store.write("diary", content="")
    ArtifactMemory(store).add("alice", "hello")
    assert "hello" in store.get("diary").content
    assert store.get("alice_memory") is None


def test_artifacts_that_are_restored_bring_the_memories_back() -> None:
    store = Artifacts()
    memory = ArtifactMemory(store)
    memory.record_action("alice", "dance", "well", True, tick=5, tier=2)
    memory.add("bob", "hello", tick=3)
    memory.set_knowledge("alice", "skill", ["trade"])
    then = store.copy()
    memory.add("alice", "later", tick=9)
    restored = ArtifactMemory(then)
    for name, artifact in then.copy().artifacts.items():
        agent = name.removesuffix("_memory")
        assert restored.get_all_memories(agent) == json.loads(artifact.content)["history"]
        assert restored.set_memory_tier(agent, 0, 1) is True
        entries = json.loads(then.get(name).content)["history"]
        assert [entry["tick"] for entry in entries] == [5 if agent == "alice" else 3]
    assert restored.get_knowledge("alice", "skill") == ["trade"]


def test_an_artifact_that_others_write_is_read_again() -> None:
    store = Artifacts()
    memory = ArtifactMemory(store)
    memory.add("alice", "mine")
    entry = {"tick": 7, "timestamp": "2026-01-25T10:00:00", "content": "theirs", "tier": 0}
    store.get("alice_memory").content = json.dumps({"history": [entry]})
    assert [each["memory"] for each in memory.get_pinned_memories("alice")] == ["theirs"]
    memory.add("alice", "mine again")
    first, second = memory.get_all_memories("alice")
    assert first == {**entry, "memory_type": "custom"}
    assert second["content"] == "mine again"


def test_what_is_undone_loses_nothing_of_an_artifact() -> None:
    store = Artifacts()
    ArtifactMemory(store).add("alice", "hello")
    memory = ArtifactMemory(store.copy())
    assert "error" in memory.add("alice", " ")
    assert [each["content"] for each in memory.get_all_memories("alice")] == ["hello"]
    with suppress(KeyError), memory.bank.transaction():
        memory.add("alice", "again")
        raise KeyError
    memory.add("alice", "later")
    told = [each["content"] for each in memory.get_all_memories("alice")]
    assert told == ["hello", "again", "later"]  # the artifact had it


@pytest.mark.parametrize("content", ["{", "[]", '{"history": 3}', '{"history": [{"tier": 1}]}'])
def test_an_artifact_that_can_not_be_read_is_left_as_it_is(content: str) -> None:
    store = Artifacts()
    store.write("alice_memory", content=content)
    memory = ArtifactMemory(store)
    assert list(memory.add("alice", "hello")) == ["error"]
    assert memory.search("alice", "hello") == []
    assert memory.clear_memories("alice") is False
    assert store.get("alice_memory").content == content
