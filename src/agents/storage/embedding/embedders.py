"""Text to vectors, offline by default; and the vectors of single words."""

import functools
import importlib.util
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import EmbedderError

_MOST = 20_000
"""How many words are kept, a kilobyte each; when there are more, all are forgotten."""
_LETTERS = 20 * _MOST
"""How many letters the kept words have together."""
_LONGEST = 40
"""Letters of a word that may be remembered as met; a longer word hardly comes again."""
_AT_ONCE = 1 << 10
"""How many words are summed together: their vectors stay in the processor's cache."""


@runtime_checkable
class Embedder(Protocol):
    """What a bank needs of an embedder. Give your own to ``MemoryBank.open(embedder=…)``.

    An embedder that always gives the same vector for the same text may say so with an attribute
    ``reproducible = True``. The vectors of any other are kept in the bank, so that a text is
    embedded once and a later run sees the same numbers.

    A reproducible embedder may say ``additive = True`` if the vector of a text is the sum of its
    words' vectors, in whole numbers. Then words of a query that say little count less.

    An embedder may have a method ``embed_queries``, like ``embed``, for a model that embeds a query
    otherwise than the texts that answer it. Then searches ask it for the vectors of their queries.
    """

    @property
    def name(self) -> str:
        """Names model and version; a bank refuses to mix the vectors of two names."""

    @property
    def dims(self) -> int:
        """The length of its vectors."""

    def embed(self, texts: Sequence[str], /) -> ArrayLike:
        """One row per text; the scale does not matter."""


class OfflineEmbedder:
    """Static token embeddings from weights in a wheel: no network, no API key, no GPU.

    A text's vector is the sum of its tokens' vectors. The weights are rounded to whole numbers
    first, so the sum is exact and does not depend on how texts are batched.
    """

    name = "offline/wordllama-l2-supercat-256"
    reproducible = True
    additive = True
    dims = 256

    _CHUNK_TOKENS = 1 << 16
    """Texts are summed in chunks of about this many tokens, which bounds the memory used."""

    @staticmethod
    def words(text: str) -> list[str] | None:
        """The words between the spaces of a text, if their vectors sum to the text's."""
        # No token has a space behind a letter, so no token reaches from one word into the next.
        # Runs of spaces are tokens, and so is "<s>"; "\u2581" stands for a space.
        if "<" in text or "\u2581" in text:
            return None
        words = text.split(" ")
        return None if "" in words else words

    def embed(self, texts: Sequence[str], /) -> NDArray[np.int64]:
        """The sum of each text's token vectors; zeros for a text without tokens."""
        encode, table = _weights()
        sums = np.zeros((len(texts), self.dims), np.int64)
        encodings = encode(list(texts))
        vocabulary = len(table)
        tokens = [
            ids if max(ids, default=0) < vocabulary else [i for i in ids if i < vocabulary]
            for ids in (encoding.ids for encoding in encodings)
        ]
        by_length: dict[int, list[int]] = {}
        for index, ids in enumerate(tokens):
            by_length.setdefault(len(ids), []).append(index)
        for length, indices in by_length.items():
            step = max(1, self._CHUNK_TOKENS // max(1, length))
            for start in range(0, len(indices), step):
                chunk = indices[start : start + step]
                rows = np.array([tokens[i] for i in chunk], np.intp).reshape(len(chunk), length)
                sums[chunk] = table.of(rows).sum(axis=1, dtype=np.int32)
        return sums


class NoEmbedder:
    """Gives no text a vector, for banks that are searched by words alone."""

    name = "none"
    reproducible = True
    dims = 1

    def embed(self, texts: Sequence[str], /) -> NDArray[np.int64]:
        """Zeros."""
        return np.zeros((len(texts), self.dims), np.int64)


class _Encoding:
    """A model with ``encode``, as sentence-transformers has it, as an embedder."""

    def __init__(self, model: Any) -> None:
        self._model = model
        card = getattr(model, "model_card_data", None)
        known = getattr(model, "name", None) or getattr(card, "base_model", None)
        self.name = f"encode/{known or type(model).__name__}"
        dims = getattr(model, "get_sentence_embedding_dimension", None)
        self.dims = int((dims and dims()) or len(self.embed(["dimensions"])[0]))

    def embed(self, texts: Sequence[str], /) -> Any:
        """One row per text."""
        return self._model.encode(list(texts))


def as_embedder(given: object) -> Embedder:
    """A caller's object as an embedder: one that has ``embed``, or a model that has ``encode``."""
    if callable(getattr(given, "embed", None)):
        embedder: Embedder = given  # type: ignore[assignment]
        return embedder
    if callable(getattr(given, "encode", None)) and not isinstance(given, str):
        try:
            return _Encoding(given)
        except MemoryError:
            raise
        except Exception as error:  # a caller's own model may raise anything
            raise EmbedderError(f"the model {given!r:.60} failed: {error}") from error
    raise EmbedderError(
        f"an embedder has name, dims and embed(), or encode(); {given!r:.60} has not"
    )


@functools.cache
def _weights() -> tuple[Callable[[list[str]], Any], "_Table"]:
    """What turns texts into tokens, and a vector for each token; read when first needed."""
    # Found, not imported: the package's own code would set up logging for the whole process.
    try:
        spec = importlib.util.find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError("it is not installed", name="wordllama")
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        folder = Path(spec.origin).parent
        weights = load_file(folder / "weights" / "l2_supercat_256.safetensors")
        tokenizer: Any = Tokenizer.from_file(
            str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
        )
    except ImportError as error:
        package = (error.name or "wordllama").partition(".")[0]
        wanted = "wordllama==0.2.2.post0" if package == "wordllama" else package
        raise EmbedderError(
            f"the offline embedder needs the package {package}, which can't be used ({error})",
            hint=f"pip install {wanted}",
        ) from error
    except OSError as error:
        raise EmbedderError(
            f"the offline embedder's weights can't be read ({error})",
            hint="reinstall them with: pip install --force-reinstall wordllama==0.2.2.post0",
        ) from error
    return _encoder(tokenizer), _Table(weights["embedding.weight"])


def _encoder(tokenizer: Any) -> Callable[[list[str]], Any]:
    """Encodes whole texts. Version 1 of tokenizers takes as arguments what version 0 keeps.

    The tokenizer would keep the last 10,000 texts, which takes up to 100 MiB and saves no time:
    texts that come again are not embedded again.
    """
    model = getattr(tokenizer, "model", None)
    if keep_at_most := getattr(model, "_resize_cache", None):
        keep_at_most(0)
    plain = {"add_special_tokens": False}
    if not hasattr(tokenizer, "no_padding"):
        return functools.partial(tokenizer.encode_batch, **plain, padding=None, truncation=None)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return functools.partial(tokenizer.encode_batch_fast, **plain)


class _Table:
    """The vectors of tokens, in whole numbers.

    To round all of them takes a fifth of a second: a process that embeds a few texts does without.
    """

    _FEW_TOKENS = 20_000

    def __init__(self, vectors: NDArray[np.float16]) -> None:
        self._vectors = vectors
        self._rounded: NDArray[np.int16] | None = None
        self._wanted = 0

    def __len__(self) -> int:
        return len(self._vectors)

    def of(self, tokens: NDArray[np.intp]) -> NDArray[np.int16]:
        """The vectors of tokens, in the shape of these."""
        if self._rounded is not None:
            return self._rounded[tokens]
        self._wanted += tokens.size
        if self._wanted > self._FEW_TOKENS:
            self._rounded = _whole_numbers(self._vectors)
        return _whole_numbers(self._vectors[tokens])


def _whole_numbers(vectors: NDArray[np.float16]) -> NDArray[np.int16]:
    # The product of a half and a power of two is exact in a float.
    return np.rint(vectors.astype(np.float32) * 1024).astype(np.int16)


class WordVectors:
    """The vectors of single words, in whole numbers, for an additive embedder.

    Each word is embedded once.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._places: dict[str, int] = {}
        self._vectors = np.empty((0, embedder.dims), np.int32)
        self._used = 0
        """How many rows of the vectors were given to words."""
        self._free: list[int] = []
        """Those of them whose words were forgotten; they are zeros, and the next words get them."""
        self._letters = 0
        self._met: set[str] = set()
        """Words that came once, and are learned when they come again."""

    def of(self, texts: Sequence[Sequence[str]]) -> Iterator[NDArray[np.int32]]:
        """The vectors of the words of each text, a row each."""
        every = dict.fromkeys(word for words in texts for word in words)
        self._learn([word for word in every if word not in self._places], every)
        places, vectors = self._places, self._vectors
        for words in texts:
            yield vectors[[places[word] for word in words]]

    def sums(self, words: Sequence[str], counts: Sequence[int]) -> NDArray[np.int32] | None:
        """The sum of each text's words; ``counts`` says how many words each text has.

        None if it would take longer to learn the new words than to embed the texts.
        """
        places = list(map(self._places.get, words))
        if None in places:
            new = dict.fromkeys(w for w, place in zip(words, places, strict=True) if place is None)
            if not self._are_worth_it(new, len(counts)):
                return None
            self._learn(new, words)
            places = list(map(self._places.get, words))
        rows, lengths = np.array(places, np.intp), np.array(counts, np.intp)
        starts = np.cumsum(lengths) - lengths
        sums = np.empty((len(counts), self._vectors.shape[1]), np.int32)
        for length in np.unique(lengths).tolist():
            alike = np.flatnonzero(lengths == length)
            step = max(1, _AT_ONCE // length)
            for first in range(0, len(alike), step):
                some = alike[first : first + step]
                own = rows[starts[some, None] + np.arange(length)]
                sums[some] = self._vectors[own].sum(axis=1, dtype=np.int32)
        return sums

    def _are_worth_it(self, new: Collection[str], texts: int) -> bool:
        letters = sum(map(len, new))
        if len(new) > _MOST // 2 or letters > _LETTERS // 2:
            return False
        strange = [word for word in new if word not in self._met]
        if len(strange) <= 2 * texts:
            return True
        if len(self._met) + len(strange) > _MOST:
            self._met.clear()
        self._met.update(word for word in strange if len(word) <= _LONGEST)
        return False

    def forget(self, words: Iterable[str]) -> None:
        """Keep neither these words nor their vectors."""
        for word in words:
            self._met.discard(word)
            place = self._places.pop(word, None)
            if place is not None:
                self._vectors[place] = 0
                self._letters -= len(word)
                self._free.append(place)

    def _learn(self, new: Collection[str], every: Iterable[str]) -> None:
        """Embed the new words; if there is no room for them, forget all words but ``every``."""
        if not new:
            return
        letters = sum(map(len, new))
        if len(self._places) + len(new) > _MOST or self._letters + letters > _LETTERS:
            self._places.clear()
            self._free.clear()
            self._used = self._letters = 0  # first: an error must not leave more than there are
            self._vectors = np.empty((0, self._vectors.shape[1]), np.int32)
            new = dict.fromkeys(every)
            letters = sum(map(len, new))
        words = list(new)
        try:
            vectors = np.asarray(self._embedder.embed(words))
        except (EmbedderError, MemoryError):
            raise
        except Exception as error:  # a caller's own embedder may raise anything
            raise EmbedderError(f"the embedder {self._embedder.name} failed: {error}") from error
        if vectors.shape != (len(words), self._vectors.shape[1]):
            raise EmbedderError(
                f"the embedder {self._embedder.name} gave an array of shape {vectors.shape} for "
                f"{len(words)} words"
            )
        if not np.issubdtype(vectors.dtype, np.integer) or np.abs(vectors).max(initial=0) >= 2**31:
            raise EmbedderError(
                f"the embedder {self._embedder.name} says that it is additive, so its vectors have "
                "to be whole numbers below 2^31"
            )
        again = self._free[: len(words)]
        start, stop = self._used, self._used + len(words) - len(again)
        if stop > len(self._vectors):
            larger = np.empty((stop + stop // 2, vectors.shape[1]), np.int32)
            larger[:start] = self._vectors[:start]
            self._vectors = larger
        del self._free[: len(again)]
        self._used = stop
        rows = [*again, *range(start, stop)]
        self._vectors[rows] = vectors
        self._letters += letters
        self._met.difference_update(words)
        self._places.update(zip(words, rows, strict=True))
