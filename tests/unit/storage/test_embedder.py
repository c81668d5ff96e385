"""Text to vectors: the offline embedder's meaning, the cache, and embedders that misbehave."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import EmbedderError, MemoryBank
from agents.storage.embedding import Embedder, OfflineEmbedder
from embedders import Counting, Directions, FromFunction, Noise

MakeBank = Callable[..., MemoryBank]

PEOPLE = ["Anna", "Ben", "Carla", "Dmitri", "Elena", "Farid", "Grace", "Hiro", "Ines", "Jonas"]
DEEDS = [
    "fed the cat before breakfast", "painted the fence green", "lost an umbrella on the train",
    "learned to play the violin", "planted tomatoes behind the shed", "ran ten kilometres uphill",
    "watched a film about whales", "repaired the old bicycle", "baked bread with too much salt",
    "slept through the thunderstorm", "wrote a letter to a cousin", "dreamed of a purple elephant",
    "swam across the lake", "forgot the name of the street", "collected stamps from Peru",
    "photographed a lighthouse", "sang in the choir on Sunday", "climbed the church tower",
    "found a coin in the sand", "tasted a strange cheese",
]  # fmt: skip
UNRELATED = [f"{person} {deed}" for person in PEOPLE for deed in DEEDS]

LABELLED = [
    ("what was the budget?", "The budget is $50K"),
    ("who can I not trust with money?", "NEVER transfer to agent_X (scammer)"),
    ("when does the meeting start?", "The meeting begins at 9 o'clock on Monday"),
    ("is anyone allergic to something?", "Omar gets a rash from peanuts and other nuts"),
    ("which language is the server written in?", "The backend was implemented in Python and Rust"),
    ("where is the office?", "Our headquarters are located in Berlin, near the station"),
    ("how do I reset my password?", "To change a login, click on 'forgot password'"),
    ("who is the boss?", "Priya is the chief executive of the company"),
    ("what should I do in a fire?", "In an emergency leave the building by the stairs"),
    ("what does the customer want?", "The client asked for faster delivery"),
    ("price of wheat", "Grain costs 12 coins a sack at the market"),
    ("what is the weather like tomorrow?", "The forecast says rain and strong wind"),
]


# The offline embedder


def test_the_same_text_gives_the_same_vector() -> None:
    first, second = OfflineEmbedder().embed(["The budget is $50K", "The budget is $50K"])
    (third,) = OfflineEmbedder().embed(["The budget is $50K"])
    assert first.tolist() == second.tolist() == third.tolist()
    assert any(first)


def test_a_vector_does_not_depend_on_its_batch() -> None:
    texts = [*UNRELATED[:60], "x", "a" * 5000, "👍", "word " * 900, "שלום", "The budget is $50K"]
    batched = OfflineEmbedder().embed(texts)
    assert batched.shape == (len(texts), OfflineEmbedder.dims)
    assert np.array_equal(batched, np.concatenate([OfflineEmbedder().embed([t]) for t in texts]))
    assert np.array_equal(batched[::-1], OfflineEmbedder().embed(texts[::-1]))


def test_vectors_are_whole_numbers() -> None:
    assert np.issubdtype(OfflineEmbedder().embed(["hello world"]).dtype, np.integer)


def test_no_texts_give_no_vectors() -> None:
    assert OfflineEmbedder().embed([]).shape == (0, OfflineEmbedder.dims)


@pytest.mark.parametrize("text", ["👍", "\u200b", "\x01", "  x", "~~~~", "a" * 16_384, "€" * 5000])
def test_any_text_can_be_stored_and_searched(text: str) -> None:
    with MemoryBank.ephemeral() as bank:
        memory = bank.agent("alice").add(text)
        (hit,) = bank.agent("alice").search(text)
        assert hit.memory == memory
        assert 0.0 <= hit.score <= 1.0


def test_a_question_finds_its_answer_among_two_hundred_unrelated_memories() -> None:
    with MemoryBank.ephemeral() as bank:
        alice = bank.agent("alice")
        alice.add_many([*UNRELATED[:100], "The budget is $50K", *UNRELATED[100:]])
        assert alice.count() == 201
        assert alice.search("what was the budget?")[0].memory.content == "The budget is $50K"


@pytest.mark.parametrize(("preset", "first", "in_five"), [("vector", 11, 12), ("hybrid", 11, 11)])
def test_recall_over_a_labelled_set(preset: str, first: int, in_five: int) -> None:
    """As measured. The one that hybrid misses has no word in common with its question."""
    with MemoryBank.ephemeral(preset=preset) as bank:
        alice = bank.agent("alice")
        alice.add_many([*UNRELATED, *(answer for _, answer in LABELLED)])
        found = bank.search_many([("alice", question) for question, _ in LABELLED], 5)
    places = [
        next((place for place, hit in enumerate(hits) if hit.memory.content == answer), 99)
        for hits, (_, answer) in zip(found, LABELLED, strict=True)
    ]
    assert sum(place < 1 for place in places) >= first
    assert sum(place < 5 for place in places) >= in_five


def test_the_default_embedder_is_the_offline_one() -> None:
    with MemoryBank.ephemeral() as bank:
        bank.agent("alice").add("a cat sat on the mat")
        (related,) = bank.agent("alice").search("kitten on the rug")
        (unrelated,) = bank.agent("alice").search("quarterly tax report")
        assert related.score > unrelated.score + 0.1


@pytest.mark.parametrize("embedder", [OfflineEmbedder(), Directions(), Noise(8)])
def test_an_embedder_is_anything_with_name_dims_and_embed(embedder: object) -> None:
    assert isinstance(embedder, Embedder)


# The cache


def test_the_same_text_is_embedded_once(make_bank: MakeBank) -> None:
    embedder = Counting()
    bank = make_bank(embedder=embedder)
    bank.agent("alice").add_many(["x", "y", "x"])
    bank.agent("bob").add("x")
    bank.agent("alice").search("x")
    bank.agent("alice").explain("y")
    bank.search_many([("alice", "z"), ("bob", "z"), ("bob", "x")])
    assert embedder.batches == [["x", "y"], ["z"]]


def test_a_change_of_tier_embeds_nothing(make_bank: MakeBank) -> None:
    embedder = Counting()
    alice = make_bank(embedder=embedder).agent("alice")
    memory = alice.add("x")
    alice.pin(memory.id)
    alice.unpin(memory.id)
    alice.delete(memory.id)
    assert embedder.texts == ["x"]


def test_cached_and_fresh_vectors_give_the_same_scores() -> None:
    scores = []
    for size in (0, 1, 1000):
        config = {"embedder": {"cache_size": size}}
        with MemoryBank.ephemeral(config, embedder=Noise(16)) as bank:
            bank.agent("a").add_many([f"m{n}" for n in range(30)])
            found = bank.search_many([("a", f"m{n % 7}") for n in range(20)], 30)
            scores.append([[hit.score.hex() for hit in hits] for hits in found])
    assert scores[0] == scores[1] == scores[2]


def test_reopening_embeds_nothing_again_to_have_the_memories(open_bank: MakeBank) -> None:
    open_bank(embedder=Counting()).agent("alice").add_many(["x <1 0>", "y <0 1>"])
    embedder = Counting()
    alice = open_bank(embedder=embedder).agent("alice")
    assert alice.search("")[0].memory.content == "y <0 1>"
    assert embedder.batches == []


def test_words_that_were_met_before_are_not_embedded_again(monkeypatch: Any) -> None:
    asked: list[str] = []
    embed = OfflineEmbedder.embed
    monkeypatch.setattr(
        OfflineEmbedder, "embed", lambda self, texts: asked.extend(texts) or embed(self, texts)
    )
    with MemoryBank.ephemeral(preset="vector") as bank:
        alice = bank.agent("alice")
        alice.add("the red fox")  # three new words: to learn them takes longer
        assert asked == ["the red fox"]
        alice.add("red the fox")
        assert asked[1:] == ["red", "the", "fox"]
        alice.add("the fox sleeps")
        assert asked[4:] == ["sleeps"]
        alice.add_many(["a fox", "the fox", "fox a"])
        assert asked[5:] == ["a"]
        alice.add("the  fox")  # two spaces are more than their words
        assert asked[6:] == ["the  fox"]


def test_an_embedder_that_is_made_of_the_offline_one_gets_its_texts_whole() -> None:
    asked: list[str] = []

    class Loud(OfflineEmbedder):
        name = "test/loud"

        def embed(self, texts: Sequence[str], /) -> Any:
            asked.extend(texts)
            return super().embed([text.upper() for text in texts])

    with MemoryBank.ephemeral(preset="vector", embedder=Loud()) as bank:
        for text in ["the red fox", "fox the red", "red fox the"]:
            bank.agent("alice").add(text)
    assert asked == ["the red fox", "fox the red", "red fox the"]


def test_nothing_is_kept_of_the_words_of_a_memory_that_is_forgotten() -> None:
    with MemoryBank.ephemeral(preset="vector") as bank:
        alice = bank.agent("alice")
        secret = alice.add("the key is hunter2")
        words = bank.engine.embedder.words
        assert "hunter2" in words._met
        again = alice.add("hunter2 is the key")
        row = words._places["hunter2"]
        other = alice.add("hunter3 they say is new here")
        for memory in (secret, again, other):
            alice.forget(memory.id)
        assert not {"hunter2", "hunter3"} & {*words._places, *words._met}
        assert not words._vectors[row].any()


def test_words_that_are_kept_are_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr("agents.storage.embedding._MOST_WORDS", 8)
    monkeypatch.setattr("agents.storage.embedding._MOST_LETTERS", 40)
    with MemoryBank.ephemeral(preset="vector") as bank:
        alice, words = bank.agent("alice"), bank.engine.embedder.words
        plain = OfflineEmbedder()
        for text in ["a b c", "d e f", "a g h", "i j k l m n", "o " + "p" * 30, "a" * 25 + " b"]:
            vector = np.array(plain.embed([text])[0], np.float64)
            alice.add(text)
            (found,) = bank.engine.embedder.encode([text])
            assert found.tolist() == np.rint(vector / np.abs(vector).max() * 127).tolist()
            alice.add(" ".join(reversed(text.split())))
            assert len(words._places) <= 8
            assert len(words._met) <= 8
            assert sum(map(len, words._places)) <= 40


# Embedders that are not reproducible


class Fickle:
    """Gives another vector each time it is asked, as a remote model may."""

    name = "test/fickle"
    dims = 8

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], /) -> Any:
        self.texts += texts
        return self._random.normal(size=(len(texts), self.dims)) + 1.0


def test_vectors_of_a_fickle_embedder_persist_across_reopening(open_bank: MakeBank) -> None:
    bank = open_bank(embedder=Fickle(1))
    bank.agent("alice").search("query")
    bank.agent("alice").add_many([f"m{n}" for n in range(10)])
    before = bank.agent("alice").search("query", 10)
    embedder = Fickle(2)
    again = open_bank(embedder=embedder).agent("alice")
    assert again.search("query", 10) == before
    again.add("m3")
    assert embedder.texts == []


def test_query_vectors_of_a_fickle_embedder_persist_without_a_later_write(
    open_bank: MakeBank,
) -> None:
    open_bank(embedder=Fickle(1)).agent("alice").add_many([f"m{n}" for n in range(10)])
    before = open_bank(embedder=Fickle(2)).agent("alice").search("query", 10)
    embedder = Fickle(3)
    assert open_bank(embedder=embedder).agent("alice").search("query", 10) == before
    assert embedder.texts == []


def test_many_kept_vectors_are_found_at_once(open_bank: MakeBank) -> None:
    texts = [f"m{n}" for n in range(1300)]
    open_bank(embedder=Fickle(1)).agent("alice").add_many(texts)
    embedder = Fickle(2)
    open_bank(embedder=embedder).agent("bob").add_many(texts)
    assert embedder.texts == []


def test_vectors_of_a_failed_transaction_are_used_when_it_is_tried_again(
    open_bank: MakeBank,
) -> None:
    embedder = Fickle(1)
    bank = open_bank(embedder=embedder)
    with suppress(KeyError), bank.transaction():
        bank.agent("alice").add("x")
        raise KeyError
    assert bank.agents() == []
    bank.agent("alice").add("x")
    assert embedder.texts == ["x"]


def test_vectors_of_a_reproducible_embedder_are_not_kept_twice(
    open_bank: MakeBank, tmp_path: Path
) -> None:
    open_bank(embedder=Counting(reproducible=True)).agent("alice").add("x <1 0>")
    database = sqlite3.connect(tmp_path / "bank" / "journal.db")
    assert database.execute("SELECT count(*) FROM embeddings").fetchone() == (0,)
    database.close()


# Mismatches


def test_another_embedder_than_the_banks_is_refused_by_name(open_bank: MakeBank) -> None:
    open_bank(embedder=Noise(8)).agent("alice").add("x")
    other = FromFunction(lambda texts: np.ones((len(texts), 8)), 8, name="test/other")
    with pytest.raises(EmbedderError, match=r"test/noise-8 .*test/other"):
        open_bank(embedder=other)


def test_other_dimensions_than_the_banks_are_refused(open_bank: MakeBank) -> None:
    def ones(dims: int) -> FromFunction:
        return FromFunction(lambda texts: np.ones((len(texts), dims)), dims)

    open_bank(embedder=ones(8)).agent("alice").add("x")
    with pytest.raises(EmbedderError, match=r"8 dimensions.*16"):
        open_bank(embedder=ones(16))


def test_the_default_embedder_does_not_open_a_bank_of_another(open_bank: MakeBank) -> None:
    open_bank().agent("alice").add("x")
    with pytest.raises(EmbedderError, match="test/directions"):
        open_bank(embedder=None)


def test_a_refused_embedder_leaves_the_bank_usable(open_bank: MakeBank) -> None:
    state = open_bank(embedder=Noise(8)).state_hash()
    with pytest.raises(EmbedderError):
        open_bank(embedder=Noise(9))
    assert open_bank(embedder=Noise(8)).state_hash() == state


# Embedders that misbehave

NAN, INFINITY = float("nan"), float("inf")
WRONG: dict[str, Callable[[Sequence[str]], Any]] = {
    "NaN": lambda texts: [[1.0, NAN, 0.0, 0.0]] * len(texts),
    "infinity": lambda texts: [[1.0, -INFINITY, 0.0, 0.0]] * len(texts),
    "too few dimensions": lambda texts: [[1.0, 2.0]] * len(texts),
    "too many dimensions": lambda texts: [[1.0] * 5] * len(texts),
    "too few rows": lambda texts: [[1.0] * 4] * (len(texts) - 1),
    "too many rows": lambda texts: [[1.0] * 4] * (len(texts) + 1),
    "flat": lambda texts: [1.0] * 4 * len(texts),
    "nested": lambda texts: [[[1.0] * 4]] * len(texts),
    "ragged": lambda texts: [[1.0] * (3 + n % 2) for n in range(len(texts))],
    "nothing": lambda texts: None,
    "no numbers": lambda texts: [["a", "b", "c", "d"]] * len(texts),
    "a text": lambda texts: "vectors",
    "complex numbers": lambda texts: [[1j, 0, 0, 0]] * len(texts),
    "numbers beyond floats": lambda texts: [[10**400, 0, 0, 0]] * len(texts),
}
wrong = pytest.mark.parametrize("function", WRONG.values(), ids=WRONG.keys())


@wrong
def test_a_wrong_vector_is_an_embedder_error_and_stores_nothing(
    make_bank: MakeBank, function: Callable[[Sequence[str]], Any]
) -> None:
    bank = make_bank(embedder=FromFunction(function))
    before = bank.state_hash()
    with pytest.raises(EmbedderError, match="embedder"):
        bank.add_many([("alice", "x"), ("bob", "y"), ("bob", "z")])
    assert bank.state_hash() == before
    assert bank.agents() == []


@wrong
def test_a_wrong_query_vector_is_an_embedder_error(
    make_bank: MakeBank, function: Callable[[Sequence[str]], Any]
) -> None:
    def only_queries(texts: Sequence[str]) -> Any:
        return function(texts) if "query" in texts else [[1.0] * 4] * len(texts)

    alice = make_bank(embedder=FromFunction(only_queries)).agent("alice")
    alice.add("x")
    with pytest.raises(EmbedderError):
        alice.search("query")
    assert len(alice.search("fine")) == 1


def test_an_embedder_that_raises_stores_nothing(make_bank: MakeBank) -> None:
    class ModelDown(Exception):
        pass

    def down(texts: Sequence[str]) -> Any:
        raise ModelDown("no answer")

    bank = make_bank(embedder=FromFunction(down))
    before = bank.state_hash()
    with pytest.raises((EmbedderError, ModelDown), match="no answer"):
        bank.add_many([("alice", "x"), ("bob", "y")])
    assert bank.state_hash() == before
    assert bank.agents() == []


def _no_memory(texts: Sequence[str]) -> Any:
    raise MemoryError


class _Model:
    name = "small"

    def get_sentence_embedding_dimension(self) -> int:
        return 4

    def encode(self, texts: Sequence[str]) -> Any:
        raise MemoryError


class _Additive(Directions):
    additive = True

    def embed(self, texts: Sequence[str], /) -> Any:
        raise MemoryError


@pytest.mark.parametrize(
    "embedder",
    [FromFunction(_no_memory), _Model(), _Additive(), type("Sub", (OfflineEmbedder,), {})()],
    ids=["embed", "encode", "additive", "offline"],
)
@pytest.mark.parametrize("call", ["add", "search"])
def test_a_memory_error_of_an_embedder_stays_one(
    make_bank: MakeBank, monkeypatch: pytest.MonkeyPatch, embedder: Any, call: str
) -> None:
    if isinstance(embedder, OfflineEmbedder):
        monkeypatch.setattr(OfflineEmbedder, "embed", lambda *_: _no_memory([]))
    alice = make_bank(embedder=embedder).agent("alice")
    with pytest.raises(MemoryError):
        getattr(alice, call)("rope and tar")


def test_an_embedder_that_recovers_is_asked_again(make_bank: MakeBank) -> None:
    answers: list[Any] = [[[NAN] * 4], [[1.0] * 4]]
    bank = make_bank(embedder=FromFunction(lambda texts: answers.pop(0)))
    with pytest.raises(EmbedderError):
        bank.agent("alice").add("x")
    assert bank.agent("alice").add("x").sequence == 1


def test_an_embedder_that_fails_inside_a_transaction_leaves_the_rest_of_it(
    make_bank: MakeBank,
) -> None:
    def picky(texts: Sequence[str]) -> Any:
        return [[NAN if text == "bad" else 1.0] * 4 for text in texts]

    bank = make_bank(embedder=FromFunction(picky))
    with bank.transaction():
        bank.agent("alice").add("good")
        with pytest.raises(EmbedderError):
            bank.agent("alice").add("bad")
    assert [memory.content for memory in bank.agent("alice").all()] == ["good"]


def test_an_embedder_of_ones_own_is_asked_once_for_many(make_bank: MakeBank) -> None:
    embedder = Counting()
    bank = make_bank(embedder=embedder)
    bank.add_many([("alice", f"text {n}") for n in range(3000)])
    assert [len(batch) for batch in embedder.batches] == [3000]
