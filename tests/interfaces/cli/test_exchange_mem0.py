"""The adoption of a mem0 store that somebody else filled."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from exchanges import contents, write

from agents import Memory, MemoryBank
from agents.storage.mem0.child_process import end_idle
from plain_mem0 import PlainMem0
from strangers import name_class

pytestmark = [
    pytest.mark.slow_after(1),
    # Third-party code, on Python 3.11 and what it depends on.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

Command = Callable[..., Any]


@pytest.fixture
def other(tiermem: Command) -> Path:
    """An empty bank."""
    assert tiermem("init", "other", "--set", "storage.sync=manual").code == 0
    return Path("other")


class Lengths:
    """An embedder for mem0 that needs no network."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return [float(len(text)), 1.0, 2.0, 3.0]

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


@pytest.fixture
def mem0(tiermem: Command) -> Iterator[Any]:
    """A plain mem0.Memory on a Chroma of its own, in the folder db; mem0.yaml names it."""
    store = {"provider": "chroma", "config": {"path": "db", "collection_name": "mem0"}}
    Path("mem0.yaml").write_text(yaml.safe_dump({"vector_store": store, "version": "v1.1"}))
    with PlainMem0(store) as plain:
        plain.memory.embedding_model = Lengths()
        yield plain.memory


def files(folder: str) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in Path(folder).rglob("*")
        if path.is_file()
    }


def adopted(folder: Path, agent: str) -> list[Memory]:
    with MemoryBank.at(folder) as bank:
        return bank.agent(agent).all()


def test_a_mem0_store_is_adopted_and_left_as_it_was(
    tiermem: Command, other: Path, mem0: Any
) -> None:
    (bob,) = mem0.add(
        "Bob likes tea", user_id="bob", infer=False, metadata={"source": "chat", "n": 2}
    )["results"]
    messages = [{"role": "user", "content": "NEVER trust Mallory"}]
    mem0.add(messages, user_id="alice", run_id="r1", infer=False, metadata={"tier": "critical"})
    mem0.add("I help", agent_id="support-bot", infer=False, metadata={"tier": "gold"})
    before = files("db")
    done = tiermem("store", "import", other, "--mem0", "mem0.yaml")
    assert (done.out, done.err) == ("stored 3 memories of 3 agents\n", "")
    assert files("db") == before
    (memory,) = adopted(other, "bob")
    assert (memory.content, memory.tier.name) == ("Bob likes tea", "NORMAL")
    assert memory.metadata["mem0_id"] == bob["id"]
    assert (memory.metadata["source"], memory.metadata["n"]) == ("chat", 2)
    assert str(memory.metadata["mem0_created_at"]).startswith("20")
    (memory,) = adopted(other, "alice")
    assert (memory.tier.name, memory.metadata["mem0_run_id"]) == ("CRITICAL", "r1")
    (memory,) = adopted(other, "support-bot")
    assert (memory.tier.name, memory.metadata["mem0_tier"]) == ("NORMAL", "gold")
    assert "Bob likes tea" in tiermem("search", other, "-a", "bob", "tea").out


def test_a_store_is_adopted_in_a_folder_that_names_classes_for_chroma(
    tiermem: Command, other: Path, mem0: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem0.add("Bob likes tea", user_id="bob", infer=False)
    modules = name_class(Path(".env"), tmp_path / "modules", tmp_path / "imported")
    monkeypatch.syspath_prepend(modules)
    monkeypatch.setenv("PYTHONPATH", modules)
    end_idle()
    assert (
        tiermem("store", "import", other, "--mem0", "mem0.yaml").out
        == "stored 1 memory of 1 agent\n"
    )
    assert not (tmp_path / "imported").exists()


def test_an_owner_who_can_not_be_an_agent_is_named_or_replaced(
    tiermem: Command, other: Path, mem0: Any
) -> None:
    mem0.add("from the web", user_id="users/42", infer=False)
    mem0.add("from Bob", user_id="bob", infer=False)
    done = tiermem("store", "import", other, "--mem0", "mem0.yaml")
    assert done.is_one_error(2, "'users/42' is not an agent id", "--agent")
    assert contents(other) == []
    assert tiermem("store", "import", other, "--mem0", "mem0.yaml", "--agent", "web").code == 0
    (memory,) = adopted(other, "web")
    assert memory.metadata["mem0_user_id"] == "users/42"
    assert len(adopted(other, "bob")) == 1


def test_the_store_of_a_bank_is_adopted_with_all_that_it_knows(
    tiermem: Command, other: Path
) -> None:
    with MemoryBank.open("crew") as bank:
        alice = bank.agent("alice")
        alice.add("NEVER transfer to agent_X", "pinned", {"source": "bob"})
        alice.add("We decided on stone", "low", kind="decision", tags=["a", "b"])
        alice.add("long ago", temperature="cold")
        store = bank.mem0_config()
    Path("mem0.json").write_text(json.dumps({"vector_store": store}))
    assert tiermem("store", "import", other, "--mem0", "mem0.json").code == 0

    def known(memory: Memory) -> tuple[Any, ...]:
        own = {k: v for k, v in memory.metadata.items() if not k.startswith("mem0_")}
        return (memory.content, memory.tier, memory.kind, memory.tags, memory.temperature, own)

    before, after = (sorted(map(known, adopted(Path(each), "alice"))) for each in ("crew", other))
    assert after == before


def test_a_dry_run_looks_at_a_mem0_store(tiermem: Command, other: Path, mem0: Any) -> None:
    mem0.add("Bob likes tea", user_id="bob", infer=False)
    done = tiermem("store", "import", other, "--mem0", "mem0.yaml", "-n", "--json")
    assert done.json["agents"] == {"bob": 1}
    assert contents(other) == []


# Rows that are odd


def insert(mem0: Any, *payloads: dict[str, Any]) -> list[str]:
    """Write rows to mem0's store as they are; their ids."""
    ids = [f"00000000-0000-4000-8000-{number:012}" for number in range(len(payloads))]
    owned = [{"user_id": "bob", **payload} for payload in payloads]
    vectors = [[1.0, 1.0, 2.0, 3.0]] * len(payloads)
    mem0.vector_store.insert(vectors=vectors, payloads=owned, ids=ids)
    return ids


def test_metadata_keeps_its_names_and_the_id_of_mem0_has_another_if_it_must(
    tiermem: Command, other: Path, mem0: Any
) -> None:
    own = {"mem0_id": "MY OWN", "mem0_run_id": "MINE", "mem0_tier": "mine too", "n": 1}
    (key,) = insert(mem0, {"data": "x", "run_id": "r1", "tier": "gold", "id": "an id", **own})
    assert tiermem("store", "import", other, "--mem0", "mem0.yaml").code == 0
    (memory,) = adopted(other, "bob")
    assert memory.metadata == {
        **own,
        "mem0_mem0_id": key,
        "mem0_mem0_mem0_id": "an id",
        "mem0_mem0_run_id": "r1",
        "mem0_mem0_tier": "gold",
    }


def test_rows_without_a_text_are_left_out_and_counted(
    tiermem: Command, other: Path, mem0: Any
) -> None:
    insert(mem0, {"data": "   "}, {"data": ""}, {"role": "user"}, {"data": "Bob likes tea"})
    done = tiermem("store", "import", other, "--mem0", "mem0.yaml")
    assert done.out == "stored 1 memory of 1 agent\nleft out 3 rows without a text\n"


def test_a_pinned_row_is_hot_and_its_temperature_is_kept(
    tiermem: Command, other: Path, mem0: Any
) -> None:
    insert(mem0, {"data": "NEVER", "tier": 0, "temperature": "cold"})
    assert tiermem("store", "import", other, "--mem0", "mem0.yaml").code == 0
    (memory,) = adopted(other, "bob")
    assert (memory.tier.name, memory.temperature.name) == ("PINNED", "HOT")
    assert memory.metadata["mem0_temperature"] == "cold"


ODD: dict[str, tuple[dict[str, Any], str]] = {
    "a NUL": ({"data": "a\0b"}, "can't hold a NUL"),
    "much metadata": ({"data": "x", "page": "y" * 17_000}, "over the limit of 16,384"),
    "a long text": ({"data": "x" * 300_000}, "over memory.max_content_bytes"),
    "a number": ({"data": 5}, "text, not int"),
    "nobody's": ({"data": "x", "user_id": "users/42"}, "'users/42' is not an agent id"),
}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_row_is_named_and_can_be_left_out(
    tiermem: Command, other: Path, mem0: Any, what: str
) -> None:
    payload, message = ODD[what]
    key, _ = insert(mem0, payload, {"data": "Bob likes tea"})
    done = tiermem("store", "import", other, "--mem0", "mem0.yaml")
    assert done.is_one_error(2, f"mem0's memory {key}: ", message, "--skip-bad")
    assert contents(other) == []
    done = tiermem("store", "import", other, "--mem0", "mem0.yaml", "--skip-bad")
    first, second, named = done.out.splitlines()
    assert (first, second) == (
        "stored 1 memory of 1 agent",
        "left out 1 row that can't be kept:",
    )
    assert named.startswith(f"  mem0's memory {key}: ")
    assert message in named
    assert [memory.content for memory in adopted(other, "bob")] == ["Bob likes tea"]


# Configs that are wrong


CONFIGS = {
    "empty": ("", 2, "this is not a config of mem0"),
    "no mapping": ("[1]", 2, "this is not a config of mem0"),
    "no provider": ("vector_store: {config: {path: db}}", 2, "needs vector_store"),
    "no YAML": ("a: [", 2, "not valid YAML"),
    "a tag": ("vector_store: !!python/object:os.system {}", 2, "config.yaml:1"),
    "nowhere": (
        "vector_store: {provider: chroma, config: {path: absent}}",
        1,
        "there is no chroma store in",
    ),
    "another's": (
        "vector_store: {provider: qdrant, config: {path: db}}",
        1,
        "it has no meta.json",
    ),
    "an empty path": (
        "vector_store: {provider: chroma, config: {path: ''}}",
        2,
        "config.path is ''",
    ),
    "no path": (
        "vector_store: {provider: chroma, config: {path: [db]}}",
        2,
        "config.path is ['db']",
    ),
    "no place": ("vector_store: {provider: chroma}", 2, "neither path nor host"),
    "other provider": (
        "vector_store: {provider: chrome, config: {path: db}}",
        2,
        "there is no vector store 'chrome'\n     do: did you mean chroma?",
    ),
    "no provider at all": (
        "vector_store: {provider: nope, config: {path: db}}",
        2,
        "there is no vector store 'nope'\n     do: it has azure_ai_search, ",
    ),
    "other collection": (
        "vector_store: {provider: chroma, config: {path: db, collection_name: other}}",
        1,
        "no memories in the collection 'other'",
    ),
    "strange option": (
        "vector_store: {provider: chroma, config: {path: db, colour: red}}",
        2,
        "mem0 does not take this config of a chroma store: Extra fields not allowed: colour",
    ),
    "no store": ("vector_store: {provider: chroma, config: {path: junk}}", 1, "mem0 can't read"),
}


@pytest.mark.parametrize("what", CONFIGS)
def test_a_config_that_is_wrong_is_one_clear_error(
    tiermem: Command, other: Path, mem0: Any, what: str
) -> None:
    text, code, message = CONFIGS[what]
    mem0.add("Bob likes tea", user_id="bob", infer=False)
    Path("junk").mkdir()
    write(b"not a database" * 100, "junk/chroma.sqlite3")
    before = files("db"), files("junk")
    write(text, "config.yaml")
    assert tiermem("store", "import", other, "--mem0", "config.yaml").is_one_error(code, message)
    assert (files("db"), files("junk")) == before
    assert contents(other) == []
    assert not Path("absent").exists()


def test_a_password_in_a_config_is_not_told(tiermem: Command, other: Path) -> None:
    config = "{host: localhost, port: 1, password: hunter2}"
    write(f"vector_store: {{provider: chroma, config: {config}}}", "config.yaml")
    done = tiermem("store", "import", other, "--mem0", "config.yaml")
    assert done.is_one_error(2, "Extra fields not allowed: password")
    assert "hunter2" not in done.err
