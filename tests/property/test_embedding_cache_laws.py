"""Laws of the cache of embeddings: whatever it keeps and drops, a text has its own vector."""

from collections.abc import Sequence

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from agents.storage.embedding import CachedEmbedder, OfflineEmbedder, quantise

_TEXTS = [f"text {n}" for n in range(9)]
_BATCHES = st.lists(st.sampled_from(_TEXTS), max_size=14)
_CALLS = st.lists(st.tuples(st.sampled_from(["encode", "forget"]), _BATCHES), max_size=14)


class _Counting:
    """Gives each text a vector of its own, and says which it was asked for."""

    name = "test/counting"
    dims = 3
    reproducible = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        self.asked += texts
        return np.array([[len(_TEXTS), _TEXTS.index(text), -1.0] for text in texts])


@given(st.integers(0, 12), _CALLS)
def test_texts_have_their_vectors_and_the_newest_are_embedded_once(
    size: int, calls: list[tuple[str, list[str]]]
) -> None:
    embedder = _Counting()
    cached = CachedEmbedder(embedder, size, lambda keys: {})
    newest: list[str] = []
    """The rows that the cache uses in turn; a forgotten text leaves its row empty."""
    for name, texts in calls:
        embedder.asked.clear()
        if name == "forget":
            for text in texts:
                cached.forget(text)
                newest = ["" if each == text else each for each in newest]
            continue
        rows = cached.encode(texts)
        missing = list(dict.fromkeys(text for text in texts if text not in newest))
        assert rows.tolist() == quantise(embedder.embed(texts), 3, len(texts)).tolist()
        assert embedder.asked == missing + texts
        newest = [*newest, *missing][-size:] if size else []


_WORDS = st.sampled_from(
    ["a", "Wheat", "coins:", "agent_0042", "", "\n", "a\tb", "<s>", "a</s>", "<", "unk>", "\u2581b",
     "a\u2581", "\u00a0", "\u00e9", "e\u0301", "\u6f22\u5b57", "\U0001f44d", "x" * 70]
)  # fmt: skip
_TEXT = st.lists(_WORDS | st.text(max_size=3), max_size=5).map(" ".join)
_WRITTEN = st.lists(_TEXT, max_size=5)


@example([(["a\u2581 \u2581b"], False)])
@given(st.lists(st.tuples(_WRITTEN, st.booleans()), max_size=4))
def test_of_words_that_were_met_before_a_text_has_the_same_vector(
    calls: list[tuple[list[str], bool]],
) -> None:
    plain = OfflineEmbedder()
    cached = CachedEmbedder(plain, 0, lambda keys: {})
    for texts, forgotten in calls:
        expected = quantise(plain.embed(texts), plain.dims, len(texts))
        assert np.array_equal(cached.encode(texts), expected)
        assert np.array_equal(cached.encode(texts[::-1]), expected[::-1])
        for text in texts[::2] if forgotten else ():
            cached.forget(text)
