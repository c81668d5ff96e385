"""What a bank keeps beside its memories has a bound, however long it is used."""

import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import MemoryBank
from agents.memory.requests import SharedMetadata
from agents.storage import embedding
from agents.storage.columns import agent_columns
from agents.storage.embedding import CachedEmbedder, OfflineEmbedder, WordVectors
from agents.storage.state.ledger import Ledger
from banks import MANUAL, ROOT, value

SOURCE = ROOT / "src" / "agents"

# Functions without arguments, or with arguments of which there are few: the package's own classes,
# languages and operations, and the folder of the user's key.
FIXED = {
    "config/load.py": {"types_in", "_defaults", "_schema", "_validator"},
    "config/packaged.py": {"_read"},
    "config/profiles.py": {"profile"},
    "simulation/policies/clients.py": {"_loaded"},
    "storage/embedding.py": {"_weights", "_tokenizer", "_known_words"},
    "storage/minilm.py": {"_model"},
    "storage/mem0/package.py": {"_both"},
    "storage/mem0/store.py": {"_modules_in"},
    "storage/columns/agent_columns.py": {"_function_terms"},
    "storage/trust.py": {"_key"},
    "tools/calling.py": {"_validator"},
    "tools/profiles.py": {"_compiled"},
}


class Learned:
    """An embedder that does not promise to give the same vector again."""

    name = "test/learned"
    dims = 8

    def embed(self, texts: Sequence[str], /) -> Any:
        return np.array([[len(text) % 7 + 1, *range(7)] for text in texts])


def test_the_embedding_cache_keeps_its_number_of_texts() -> None:
    cache = CachedEmbedder(OfflineEmbedder(), 50, lambda keys: {})
    for number in range(400):
        cache.encode([f"text {number}", f"other {number}"])
    assert len(cache._newest.rows) == 50
    assert len(cache._newest.vectors) == 50


def test_the_embedding_cache_keeps_few_long_texts() -> None:
    cache = CachedEmbedder(Learned(), 50, lambda keys: {})
    longest = 0
    for number in range(100):
        cache.unsaved.clear()
        cache.encode([f"{number} " + "x" * 3_000, f"{number}"])
        longest = max(longest, sum(map(len, cache._newest.rows)))
    assert 3_000 < longest <= 256 * 50
    cache.encode(["y" * 20_000])
    assert "y" * 20_000 not in cache._newest.rows


def test_a_text_that_is_not_kept_has_the_same_vector() -> None:
    small = CachedEmbedder(OfflineEmbedder(), 1, lambda keys: {})
    large = CachedEmbedder(OfflineEmbedder(), 100, lambda keys: {})
    texts = [f"the boat {number} of Ann " * number for number in range(1, 40)]
    for each in (*texts, *texts):
        assert (small.encode([each]) == large.encode([each])).all()


@pytest.mark.slow
def test_the_words_of_the_offline_embedder_are_bounded() -> None:
    words = WordVectors(OfflineEmbedder())
    for start in range(0, 3 * embedding._MOST_WORDS, 5_000):
        list(words.of([[f"w{number}" for number in range(start, start + 5_000)]]))
        assert len(words._places) <= embedding._MOST_WORDS
    assert len(words._vectors) <= 2 * embedding._MOST_WORDS


def test_a_word_gets_the_row_of_a_forgotten_word() -> None:
    words, fresh = WordVectors(OfflineEmbedder()), WordVectors(OfflineEmbedder())
    for number in range(50):
        some = ["boat", "red", f"w{number}", f"long{number}"]
        assert (next(words.of([some])) == next(fresh.of([some]))).all()
        words.forget(some[1:])
    assert len(words._vectors) <= 8
    assert words._letters == len("boat")


_EMBEDS_NEW_TEXTS = """
import ctypes
from pathlib import Path
from agents.storage.embedding import OfflineEmbedder

def kilobytes():
    ctypes.CDLL(None).malloc_trim(0)  # memory that was given back earlier would hide the growth
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

def embed(first, last):
    for number in range(first, last):
        embedder.embed([f"{number} " + "the quick brown fox jumps over the lazy dog " * 2])

embedder = OfflineEmbedder()
embed(0, 1_000)
before = kilobytes()
embed(1_000, 6_000)
print(kilobytes() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it asks Linux and glibc for memory")
def test_the_tokenizer_keeps_no_texts() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _EMBEDS_NEW_TEXTS], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 5_000  # all of them take 20,000


def test_words_of_purged_memories_leave_the_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_columns, "_FEW_TERMS", 500)
    with MemoryBank.ephemeral() as bank, MemoryBank.ephemeral() as plain:
        for each in (bank, plain):
            each.agent("bob").add("The mill of Tom is old")
            each.agent("alice").add("The boat of Ann is red")
        largest = 0
        for number in range(150):
            added = bank.agent("alice").add(" ".join(f"w{number}x{place}" for place in range(10)))
            bank.agent("alice").search(f"boat w{number}x3")
            bank.agent("alice").forget(added.id)
            largest = max(largest, len(bank.engine.search.reader._vocabulary.names()))
        assert largest <= 600  # 1,500 words came
        for name, query in (("alice", "red boat of Ann"), ("bob", "the old mill")):
            hits = [each.agent(name).search(query) for each in (bank, plain)]
            first, second = ([(hit.memory.content, hit.score) for hit in own] for own in hits)
            assert first == second


def test_many_words_of_memories_that_are_there_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_columns, "_FEW_TERMS", 100)
    with MemoryBank.ephemeral() as bank:
        alice = bank.agent("alice")
        alice.search("nothing yet")
        vocabulary = bank.engine.search.reader._vocabulary
        for number in range(50):
            alice.add(" ".join(f"w{number}x{place}" for place in range(10)))
            alice.search(f"w{number}x3")
        assert bank.engine.search.reader._vocabulary is not vocabulary  # function words alone
        assert len(bank.engine.search.reader._vocabulary.names()) >= 500


def test_uses_of_searches_without_end_are_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "MOST_OF_SEARCHES", 20)
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        alice = bank.agent("alice")
        alice.add("The boat is red")
        for number in range(100):
            alice.search(f"boat {number}")
            alice.recall(f"red {number}", auto_promote=False)
            assert len(bank.engine.ledger._pending) <= 22
        with MemoryBank.at(tmp_path / "bank") as copy:
            (there,) = copy.agent("alice").all()
        assert there.access_count >= 180
        (here,) = alice.all()
        assert here.access_count == 200


def test_uses_inside_a_transaction_wait_for_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "MOST_OF_SEARCHES", 20)
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        alice = bank.agent("alice")
        alice.add("The boat is red")
        commits = bank.engine.journal.head
        with bank.transaction():
            for number in range(100):
                alice.search(f"boat {number}")
            assert bank.engine.journal.head == commits
        assert bank.engine.journal.head == commits + 1


def test_vectors_of_queries_without_end_are_written_to_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "MOST_OF_SEARCHES", 20)
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, embedder=Learned()) as bank:
        alice = bank.agent("alice")
        alice.add("The boat is red")
        with bank.engine.observing():  # as a token that may only read
            for number in range(100):
                alice.search("boat " + "x" * number)
                assert len(bank.engine.embedder.unsaved) <= 21
        assert value(tmp_path / "bank", "SELECT count(*) FROM embeddings") >= 80


def test_shared_metadata_is_bounded() -> None:
    shared = SharedMetadata()
    for number in range(10_000):
        shared.check({"session": f"talk {number}"})
        shared.keep({"session": number})
    assert shared._checked.cache_info().currsize == 4096
    assert shared._kept.cache_info().currsize == 4096


def cached_without_a_bound(path: Path) -> set[str]:
    """The functions whose results are all kept."""
    found, source = set(), path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)) if "cache" in source else ():
        if isinstance(node, ast.FunctionDef):
            if any(ast.unparse(each) == "functools.cache" for each in node.decorator_list):
                found.add(node.name)
            assert "functools.lru_cache" not in map(ast.unparse, node.decorator_list), node.name
        elif isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("functools.cache"):
            found.update(map(ast.unparse, node.targets))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "lru_cache":
            assert ast.unparse(node.func) == "functools.lru_cache", path
            given = {each.arg: ast.unparse(each.value) for each in node.keywords}
            assert given.get("maxsize", "None") != "None", path
    return found


def test_only_functions_of_few_arguments_keep_all_their_results() -> None:
    found = {
        path.relative_to(SOURCE).as_posix(): names
        for path in SOURCE.rglob("*.py")
        if (names := cached_without_a_bound(path))
    }
    assert found == FIXED
