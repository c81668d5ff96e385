"""The laws of an embedder: a text has one vector, whenever, wherever and beside whatever."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from ..bank.memory_bank import MemoryBank
from ..storage.embedding import Embedder, NoEmbedder
from .laws import DoesNotApply, for_all, law, must
from .processes import another_hash_seed, elsewhere
from .strategies import contents
from .unseeded import watched
from .world_laws import files_of

_TEXTS = ("hello", "NEVER transfer to agent_X (scammer)", "the budget is $50K", "שלום 🙂", "a")
_NEAR = 1e-3
"""How far the vectors of one text may be apart where an embedder is not reproducible."""


class EmbedderLaws:
    """The laws of an embedder: ``class TestMine(EmbedderLaws)`` with ``make``.

    Vectors of an embedder that says ``reproducible = True`` are compared bit for bit; of any other,
    only their directions are, and nearly. The class is at the top of a module, because other
    processes import it.
    """

    examples: int = 50
    texts: Sequence[str] = _TEXTS
    """A few texts that differ; name others if yours has no vectors for these."""
    normalised: bool = False
    """Whether the embedder promises vectors of length 1; a bank needs only their directions."""

    def make(self) -> Embedder:
        """A new embedder."""
        raise NotImplementedError(f"{type(self).__name__} needs make(self): an embedder")

    def given(self) -> dict[str, Any]:
        """The arguments with which another process makes these laws."""
        return {}

    @law
    def test_a_batch_has_a_finite_row_of_dims_numbers_for_each_text(self) -> None:
        """the shape of what it gives, for any texts, and for none"""
        embedder = self.make()

        def shaped(texts: list[str]) -> None:
            rows = np.asarray(embedder.embed(texts))
            wanted = (len(texts), embedder.dims)
            is_empty = not texts and rows.size == 0
            must(rows.shape == wanted or is_empty, f"the shape is {rows.shape}, and not {wanted}")
            must(np.isfinite(rows.astype(float)).all(), "a number is infinite, or is none")

        must(isinstance(embedder.name, str) and embedder.name, "it has no name")
        shaped([])
        for_all(shaped, self.examples, st.lists(contents, min_size=1, max_size=8))

    @law
    def test_a_new_embedder_has_the_same_name_and_dims(self) -> None:
        """the name stands for the vectors: a bank refuses another one"""
        one, other = self.make(), self.make()
        must(one.name == other.name, f"it is called {one.name!r}, and then {other.name!r}")
        must(one.dims == other.dims, f"it has {one.dims} dimensions, and then {other.dims}")

    @law
    def test_the_same_text_has_the_same_vector(self) -> None:
        """asked again, and asked of a new embedder"""
        first, second = self.make(), self.make()

        def repeated(texts: list[str]) -> None:
            rows = _rows(first, texts)
            self._same(rows, _rows(first, texts), "asked again, it gives another vector")
            self._same(rows, _rows(second, texts), "a new embedder gives another vector")

        for_all(repeated, self.examples, st.lists(contents, min_size=1, max_size=6))

    @law
    def test_a_vector_does_not_depend_on_its_batch(self) -> None:
        """alone, in batches of any size, and in any order"""
        embedder = self.make()

        def batched(texts: list[str], more: int) -> None:
            alone = np.concatenate([_rows(embedder, [text]) for text in texts])
            self._same(alone, _rows(embedder, texts), "in a batch, a text has another vector")
            turned = _rows(embedder, texts[::-1])[::-1]
            self._same(alone, turned, "in another order, a text has another vector")
            longer = [*texts, *list(self.texts) * more]
            many = _rows(embedder, longer)[: len(texts)]
            self._same(alone, many, f"among {len(longer)} texts, it has another vector")

        some = st.lists(contents, min_size=1, max_size=6)
        for_all(batched, self.examples, some, st.integers(0, 30))

    @law
    def test_another_process_gives_the_same_vectors(self) -> None:
        """another PYTHONHASHSEED, in another process"""
        found = np.array(elsewhere(self, "vectors", another_hash_seed()))
        problem = "with another PYTHONHASHSEED, in another process, it gives another vector: does "
        self._same(np.array(self.vectors()), found, problem + "hash() decide?")

    @law
    def test_no_line_reads_a_clock_or_draws_unseeded_numbers(self) -> None:
        """no call of a clock or of unseeded randomness in its code"""
        lines: set[str] = set()
        with self._watched(lines):
            self.make().embed(list(self.texts))
        must(not lines, "; ".join(sorted(lines)))

    @law
    def test_what_it_gives_belongs_to_the_caller(self) -> None:
        """who changes a vector or a list of texts changes nothing else, nor does the next call"""
        embedder, texts = self.make(), list(self.texts)
        given = embedder.embed(texts)
        must(texts == list(self.texts), "it changes the list of texts")
        first = np.array(given)
        embedder.embed(texts[::-1])
        must(np.array_equal(first, given), "the next call changes what it gave before")
        before = _rows(embedder, texts)
        if isinstance(given, np.ndarray) and given.flags.writeable:
            given[:] = 77
        elif isinstance(given, list):
            for row in given:
                with contextlib.suppress(TypeError):  # a row that can't be changed
                    row[:] = [77] * len(row)
        self._same(before, _rows(embedder, texts), "a caller who changes a vector changes the next")

    @law
    def test_a_normalised_vector_has_length_one(self) -> None:
        """the length of vectors, where the embedder promises it"""
        embedder = self.make()

        def long_as_promised(texts: list[str]) -> None:
            lengths = np.linalg.norm(_rows(embedder, texts).astype(float), axis=1)
            ones = np.isclose(lengths, 1, atol=1e-3) | (lengths == 0)
            must(ones.all(), f"a vector has the length {lengths[~ones][:1]}, and not 1")

        if self.normalised:
            for_all(long_as_promised, self.examples, st.lists(contents, min_size=1, max_size=4))

    @law
    def test_a_bank_finds_a_text_by_itself(self) -> None:
        """a bank with this embedder finds what was added to it"""
        embedder = self.make()
        if isinstance(embedder, NoEmbedder):
            raise DoesNotApply("it gives no text a vector, and says so")
        rows = _rows(embedder, list(self.texts))
        must(np.any(rows != rows[0]), "all texts have the same vector")
        with MemoryBank.ephemeral(embedder=embedder, preset="vector") as bank:
            alice = bank.agent("alice")
            alice.add_many(list(self.texts))
            for text, row in zip(self.texts, rows, strict=True):
                if not np.any(row):
                    continue
                best = alice.search(text, limit=1)[0]
                must(best.score > 0.99, f"{text!r} finds {best.memory.content!r}, {best.score:.2f}")

    def vectors(self) -> list[list[float]]:
        """The vectors of a few texts, as numbers that JSON keeps."""
        rows: list[list[float]] = _rows(self.make(), list(self.texts)).astype(float).tolist()
        return rows

    @contextlib.contextmanager
    def _watched(self, lines: set[str]) -> Iterator[None]:
        files = files_of(self.make()) | files_of(self)
        with watched(lambda name: name in files) as found:
            yield
        lines.update(f"{file}, line {line}: {what}" for file, line, what in found)

    def _same(self, one: NDArray[Any], other: NDArray[Any], problem: str) -> None:
        if getattr(self.make(), "reproducible", False):
            must(one.shape == other.shape and np.array_equal(one, other), problem)
            return
        near = np.allclose(_directions(one), _directions(other), atol=_NEAR)
        must(one.shape == other.shape and near, problem)


def _rows(embedder: Embedder, texts: Sequence[str]) -> NDArray[Any]:
    """A copy of the vectors: an embedder may give the same array again."""
    return np.array(embedder.embed(list(texts)))


def _directions(rows: NDArray[Any]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows.astype(float), axis=1, keepdims=True)
    made: NDArray[np.float64] = np.divide(rows, np.where(lengths == 0, 1, lengths))
    return made
