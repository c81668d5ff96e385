"""Text to vectors of whole numbers, offline by default.

Vectors are whole numbers, so that a similarity has the same bits on every machine. A float32 matrix
product depends on the order in which it sums, and so on the BLAS, the machine and the batch.
Products of whole numbers in [-127, 127] sum to whole numbers; as long as these are below 2^24
(float32) or 2^53 (float64), every order gives the same result.
"""

import ctypes
import functools
import hashlib
import importlib.util
import math
import platform
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import simsimd
from numpy.typing import ArrayLike, NDArray

from ..errors import EmbedderError, Untrusted

Quantised = NDArray[np.int8]

_LIMIT = 127
_NUMBERS = (np.int32, np.float64, np.float32, np.int64)
"""The types of numbers that are quantised as they come."""
_CHUNK = 256
"""Rows are worked on in chunks that stay in the processor's cache."""
_MAX_DIMS = {np.float32: (1 << 24) // _LIMIT**2, np.float64: (1 << 53) // _LIMIT**2}
_HWCAP, _ASIMDDP = 16, 1 << 20
"""Where Linux says what an ARM processor can do, and the bit for products of bytes."""
_MOST_WORDS = 20_000
"""How many words are kept, a kilobyte each; when there are more, all are forgotten."""
_MOST_LETTERS = 20 * _MOST_WORDS
"""How many letters the kept words have together."""
_LONGEST_WORD = 40
"""Letters of a word that may be remembered as met; a longer word hardly comes again."""
_WORDS_AT_ONCE = 1 << 10
"""How many words are summed together: their vectors stay in the processor's cache."""
_SPACE = "\u2581"
"""Stands for a space in a token."""
QUERY = "\0"
"""Stands before a query where its vector is another one than that of a text: no text has it."""
_MOST_TOKENS = 100_000
"""How many vectors of tokens are kept, a third of a kilobyte each: those of some 3,000 texts."""
_LETTERS_EACH = 256
"""Letters that a kept text may have on average; when there are more, all texts are forgotten."""


# Embedders


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
        # Runs of spaces are tokens, and so is "<s>".
        if "<" in text or _SPACE in text:
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
    folder, tokenizer = _tokenizer()
    with _usable():
        from safetensors.numpy import load_file

        weights = load_file(folder / "weights" / "l2_supercat_256.safetensors")
    return encoder(tokenizer), _Table(weights["embedding.weight"])


@functools.cache
def _tokenizer() -> tuple[Path, Any]:
    """The folder of the offline embedder's package, and its tokenizer."""
    # Found, not imported: the package's own code would set up logging for the whole process.
    with _usable():
        spec = importlib.util.find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError("it is not installed", name="wordllama")
        from tokenizers import Tokenizer

        folder = Path(spec.origin).parent
        file = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
        return folder, Tokenizer.from_file(str(file))


@contextmanager
def _usable() -> Iterator[None]:
    """Inside, what the offline embedder lacks is an :class:`EmbedderError`."""
    try:
        yield
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


def is_known(word: str) -> bool:
    """Whether the offline embedder has one token for a word, as for well-known English ones."""
    known = _known_words()
    return word in known or word.lower() in known


@functools.cache
def _known_words() -> frozenset[str]:
    tokens = _tokenizer()[1].get_vocab()
    return frozenset([token[1:] for token in tokens if token[0] == _SPACE and token[1:].isalpha()])


def encoder(tokenizer: Any) -> Callable[[list[str]], Any]:
    """Encodes whole texts, and marks no ends.

    Version 1 of tokenizers takes as arguments what version 0 keeps.
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


@contextmanager
def _named_errors(embedder: Embedder) -> Iterator[None]:
    """Inside, an error of an embedder is an :class:`EmbedderError` with its name."""
    try:
        yield
    except (EmbedderError, Untrusted, MemoryError):
        raise
    except Exception as error:  # a caller's own embedder may raise anything
        raise EmbedderError(f"the embedder {embedder.name} failed: {error}") from error


# Whole numbers


def _multiply_bytes() -> None:
    """Let SimSIMD use what an ARM processor has for products of bytes: a quarter of the time.

    Its kernels for bytes need nothing else, but version 6.5 leaves them off on a processor without
    products of matrices of bytes, such as Graviton 2 and Altra.
    """
    if (sys.platform, platform.machine()) != ("linux", "aarch64"):
        return
    if not getattr(simsimd, "__version__", "").startswith("6.5."):  # its kernels were looked at
        return
    getauxval = getattr(ctypes.CDLL(None), "getauxval", None)
    if getauxval is None:
        return
    getauxval.argtypes, getauxval.restype = [ctypes.c_ulong], ctypes.c_ulong
    if getauxval(_HWCAP) & _ASIMDDP:
        simsimd.enable_capability("neon_i8")


_multiply_bytes()


def quantise(vectors: ArrayLike, dims: int, count: int) -> Quantised:
    """Rows of numbers as rows of whole numbers, each scaled so that its largest is ±127.

    A row of zeros stays zeros. Anything but ``count`` rows of ``dims`` finite numbers is an
    :class:`EmbedderError`.
    """
    try:
        rows = np.asarray(vectors)
        if rows.dtype.type not in _NUMBERS:
            rows = np.asarray(vectors, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise EmbedderError(f"the embedder gave no table of numbers: {error}") from None
    if count == 0 and rows.size == 0:
        return np.empty((0, dims), np.int8)
    if rows.shape != (count, dims):
        raise EmbedderError(
            f"the embedder gave an array of shape {rows.shape} for {count} texts; this bank's "
            f"vectors have {dims} dimensions, so ({count}, {dims}) was expected"
        )
    dtype, bits = (np.float32, np.int32) if rows.dtype == np.float32 else (np.float64, np.int64)
    if count == 1:  # as of most single calls: the same bits, in half the time
        row: NDArray[Any] = rows.astype(dtype)
        most = float(np.maximum.reduce(np.abs(row), axis=None, initial=0.0))
        if not math.isfinite(most):
            raise EmbedderError("the embedder gave a vector with NaN or infinity in it")
        row /= most or 1.0  # divide first, as below
        row *= _LIMIT
        result: Quantised = np.rint(row, out=row).astype(np.int8)
        return result
    result = np.empty(rows.shape, np.int8)
    for start in range(0, count, _CHUNK):
        chunk: NDArray[Any] = rows[start : start + _CHUNK].astype(dtype, copy=False)
        # Floats without a sign are in the order of their bits, which are compared in a third of
        # the time; NaN comes last.
        largest = np.abs(chunk).view(bits).max(axis=1).view(dtype)
        if rows.dtype.kind == "f" and not np.isfinite(largest).all():
            raise EmbedderError("the embedder gave a vector with NaN or infinity in it")
        largest[largest == 0.0] = 1.0
        # Divide first: the largest finite numbers would overflow times 127.
        part = chunk / largest[:, None]
        part *= _LIMIT
        result[start : start + _CHUNK] = np.rint(part, out=part)
    return result


def products(vectors: Quantised, query: Quantised) -> NDArray[np.float64]:
    """The product of each row with a query, in whole numbers."""
    # SimSIMD multiplies bytes in a third of the time of NumPy, which has to widen them.
    return np.asarray(simsimd.dot(query, vectors)) if len(vectors) else np.empty(0)


def row_products(vectors: Quantised, others: Quantised) -> NDArray[np.float64]:
    """The product of each row with the row of ``others`` at the same place."""
    return np.asarray(simsimd.dot(vectors, others)) if len(vectors) else np.empty(0)


def norms(vectors: Quantised) -> NDArray[np.float64]:
    """The length of each row, to divide by: 1 for a row of zeros.

    The squares sum exactly, and a root is rounded the same everywhere.
    """
    if len(vectors) == 1:
        return np.array([norm(vectors[0])])
    return np.sqrt(np.maximum(row_products(vectors, vectors), 1.0))


def norm(vector: Quantised) -> float:
    """The length of one row, to the bits of :func:`norms`, in a third of the time."""
    square = float(simsimd.dot(vector, vector))  # type: ignore[arg-type]  # of rows, it is one number
    return math.sqrt(max(square, 1.0))


def unit(vectors: Quantised) -> NDArray[np.float32]:
    """Rows of length 1, as mem0's stores want them; a row of zeros stays zeros."""
    return (vectors / norms(vectors)[:, None]).astype(np.float32)


def beside(vectors: Quantised, others: Quantised) -> NDArray[np.float64]:
    """Both rows side by side, each of length 1: the mean of two cosines is the cosine of these."""
    parts = [rows / norms(rows)[:, None] for rows in (vectors, others)]
    return np.concatenate(parts, axis=1)


def product_dtype(dims: int) -> type[np.float32] | type[np.float64]:
    """The narrowest float in which products of ``dims`` dimensions stay exact."""
    return np.float32 if dims <= _MAX_DIMS[np.float32] else np.float64


# Vectors of words and texts that were met before


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
        rows = np.array(places, np.intp)
        if len(counts) == 1:  # as of most single calls
            vectors = self._vectors.take(rows, axis=0)
            alone: NDArray[np.int32] = np.add.reduce(vectors, 0, np.int32, keepdims=True)
            return alone
        lengths = np.array(counts, np.intp)
        starts = np.cumsum(lengths) - lengths
        sums = np.empty((len(counts), self._vectors.shape[1]), np.int32)
        for length in np.unique(lengths).tolist():
            alike = np.flatnonzero(lengths == length)
            step = max(1, _WORDS_AT_ONCE // length)
            for first in range(0, len(alike), step):
                some = alike[first : first + step]
                places_of_words = rows[starts[some, None] + np.arange(length)]
                sums[some] = self._vectors[places_of_words].sum(axis=1, dtype=np.int32)
        return sums

    def _are_worth_it(self, new: Collection[str], texts: int) -> bool:
        letters = sum(map(len, new))
        if len(new) > _MOST_WORDS // 2 or letters > _MOST_LETTERS // 2:
            return False
        strange = [word for word in new if word not in self._met]
        if len(strange) <= 2 * texts:
            return True
        if len(self._met) + len(strange) > _MOST_WORDS:
            self._met.clear()
        self._met.update(word for word in strange if len(word) <= _LONGEST_WORD)
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
        if len(self._places) + len(new) > _MOST_WORDS or self._letters + letters > _MOST_LETTERS:
            self._places.clear()
            self._free.clear()
            self._used = self._letters = 0  # first: an error must not leave more than there are
            self._vectors = np.empty((0, self._vectors.shape[1]), np.int32)
            new = dict.fromkeys(every)
            letters = sum(map(len, new))
        words = list(new)
        with _named_errors(self._embedder):
            vectors = np.asarray(self._embedder.embed(words))
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


class TokenVectors:
    """The vectors of the tokens of the texts that were read last, in whole numbers."""

    def __init__(self, read: Callable[[Sequence[str]], list[Quantised]]) -> None:
        self._read = read
        self._of: dict[tuple[str, ...], list[Quantised]] = {}
        self._kept = 0
        """How many tokens the kept texts have, or more: an interrupt may come between two steps."""

    def of(self, *pieces: str) -> list[Quantised]:
        """A row for each token of a text, for each of its pieces; these are read together."""
        rows = self._of.pop(pieces, None)
        if rows is None:
            rows = self._read(pieces)
            self._kept += sum(map(len, rows))
        self._of[pieces] = rows  # as the newest
        while self._kept > _MOST_TOKENS and self._of:
            self.forget(*next(iter(self._of)))
        return rows

    def forget(self, *pieces: str) -> None:
        """Keep nothing of a text."""
        self._kept -= sum(map(len, self._of.pop(pieces, ())))


def key_of(text: str) -> bytes:
    """The key of the vector of a text, or of a query that begins with :data:`QUERY`."""
    return hashlib.sha256(text.encode()).digest()


def keys_of(text: str) -> tuple[bytes, bytes]:
    """The keys of a text's vector as a query, and as a text."""
    return key_of(QUERY + text), key_of(text)


class CachedEmbedder:
    """An embedder whose vectors come out quantised, each text embedded once.

    The newest ``size`` texts, or fewer if they are long, are kept in memory, and so are the words
    of the offline embedder, whose vectors sum to a text's. The vectors of an embedder that is not
    reproducible are also kept in the bank's journal; new ones wait in ``unsaved`` for the next
    commit.
    """

    def __init__(
        self,
        embedder: Embedder,
        size: int,
        stored: Callable[[Sequence[bytes]], Mapping[bytes, bytes]],
    ) -> None:
        self.embedder = embedder
        self.dims = embedder.dims
        self.unsaved: dict[bytes, bytes] = {}
        self._stored = stored
        self._persistent = not getattr(embedder, "reproducible", False)
        self._embed_queries = getattr(embedder, "embed_queries", None)
        is_additive = getattr(embedder, "additive", False) and self._embed_queries is None
        self.is_additive = bool(is_additive) and not self._persistent
        self._newest = _Newest(size, self.dims)
        part: Embedder | None = getattr(embedder, "word_part", None)
        self.words = WordVectors(part or embedder)
        """The vectors of words, of an embedder that has them."""
        self.word_dims = part.dims if part else self.dims * self.is_additive
        """How many of the first numbers of a text's vector are of the sum of its words."""
        read = getattr(embedder, "token_vectors", None)
        self.tokens = None if read is None else TokenVectors(read)
        """The vectors of the tokens of texts, of an embedder that has them."""

    def encode(self, texts: Sequence[str]) -> Quantised:
        """One row of whole numbers per text."""
        newest = self._newest
        rows = list(map(newest.rows.get, texts))
        if rows.count(None) == len(texts) == len(set(texts)):  # all are new, as in most calls
            fresh = self._embed(list(texts))
            newest.keep(list(texts), fresh)
            return fresh
        known = [row for row in rows if row is not None]
        if len(known) == len(rows):
            return newest.vectors[known]
        missing = [text for text, row in zip(texts, rows, strict=True) if row is None]
        distinct = dict(zip(dict.fromkeys(missing), range(len(missing)), strict=False))
        fresh = self._embed(list(distinct))
        result = np.empty((len(texts), self.dims), np.int8)
        is_new = np.array([row is None for row in rows])
        result[~is_new] = newest.vectors[known]
        result[is_new] = fresh[[distinct[text] for text in missing]]
        newest.keep(list(distinct), fresh)
        return result

    def encode_queries(self, texts: Sequence[str]) -> Quantised:
        """One row per query, of an embedder that tells queries from texts as of any other."""
        if self._embed_queries is None:
            return self.encode(texts)
        return self.encode([QUERY + text for text in texts])

    def kept(
        self, key: bytes, count: int, make: Callable[[], NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """``count`` numbers as they were first made, because another processor may make others.

        They are kept where vectors are, and are no more than a vector has room for: dims / 4.
        """
        known = self.unsaved.get(key) or self._stored([key]).get(key)
        if known is None:
            known = make().astype("<i4").tobytes().ljust(self.dims, b"\0")
            if self._persistent:
                self.unsaved[key] = known
        return np.frombuffer(known, "<i4", count).astype(np.int64)

    def forget(self, text: str) -> None:
        """Don't keep the vector of a text, nor of a query that is the same."""
        self._newest.forget(text)
        self._newest.forget(QUERY + text)
        if self.tokens is not None:
            self.tokens.forget(text)
        self.words.forget(text.split(" "))
        for key in keys_of(text):
            self.unsaved.pop(key, None)

    def units(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of length 1 per text, as mem0 wants them."""
        vectors: list[list[float]] = unit(self.encode(texts)).tolist()
        return vectors

    def _embed(self, texts: list[str]) -> Quantised:
        if type(self.embedder) is OfflineEmbedder and texts:  # a subclass may add up otherwise
            return self._sum(self.embedder, texts)
        if not self._persistent:
            return self._call(texts)
        keys = list(map(key_of, texts))
        known = {**self._stored(keys), **self.unsaved}
        missing = [place for place, key in enumerate(keys) if key not in known]
        for place, vector in zip(missing, self._call([texts[i] for i in missing]), strict=True):
            known[keys[place]] = self.unsaved[keys[place]] = vector.tobytes()
        data = b"".join([known[key] for key in keys])
        return np.frombuffer(data, np.int8).reshape(len(texts), self.dims)

    def _sum(self, embedder: OfflineEmbedder, texts: list[str]) -> Quantised:
        """What the embedder would give, in a quarter of the time if the words were met before."""
        words = embedder.words(" ".join(texts))
        if words is None:
            whole = [place for place, text in enumerate(texts) if embedder.words(text) is None]
            if len(whole) == len(texts):
                return self._call(texts)
            vectors = np.empty((len(texts), self.dims), np.int8)
            vectors[whole] = self._call([texts[place] for place in whole])
            others = np.setdiff1d(np.arange(len(texts)), whole)
            vectors[others] = self._sum(embedder, [texts[place] for place in others])
            return vectors
        sums = self.words.sums(words, [text.count(" ") + 1 for text in texts])
        return self._call(texts) if sums is None else quantise(sums, self.dims, len(texts))

    def _call(self, texts: list[str]) -> Quantised:
        if not texts:
            return np.empty((0, self.dims), np.int8)
        with _named_errors(self.embedder):
            if self._embed_queries is not None and texts[0].startswith(QUERY):
                rows = self._embed_queries([text.removeprefix(QUERY) for text in texts])
            else:
                rows = self.embedder.embed(texts)
        return quantise(rows, self.dims, len(texts))


class _Newest:
    """The vectors of the newest texts: rows of one array, which are written in turn.

    An interrupt or a MemoryError may come between any two steps. So a row is told of when its
    vector is there, ``_next`` moves when the row is done, and ``_letters`` may be too many, which
    makes the next texts be forgotten sooner, but never too few.
    """

    def __init__(self, size: int, dims: int) -> None:
        self.rows: dict[str, int] = {}
        self.vectors: Quantised = np.empty((0, dims), np.int8)
        self._size = size
        self._texts: list[str | None] = []
        """The text of each row; None if it was forgotten."""
        self._next = 0
        self._letters = 0
        """How many letters the texts have together."""

    def keep(self, texts: list[str], vectors: Quantised) -> None:
        """Keep the vectors of these texts; the oldest texts make room."""
        if not self._size:
            return
        texts, vectors = texts[-self._size :], vectors[-self._size :]
        letters, most = sum(map(len, texts)), _LETTERS_EACH * self._size
        if letters > most:
            return
        if self._letters + letters > most:
            self._forget_all()
        self._letters += letters
        self._grow(min(self._size, len(self._texts) + len(texts)))
        while texts:
            start, stop = self._next, min(self._next + len(texts), len(self.vectors))
            count = stop - start
            old = self._texts[start:stop]
            for row, text in enumerate(old, start):
                if text is not None and self.rows.get(text) == row:
                    del self.rows[text]
            self._texts[start:stop] = texts[:count]
            self._letters -= sum(map(len, filter(None, old)))
            self.vectors[start:stop] = vectors[:count]
            self.rows.update(zip(texts, range(start, stop), strict=False))
            self._next = stop % self._size
            texts, vectors = texts[count:], vectors[count:]

    def forget(self, text: str) -> None:
        """Keep the vector of a text no longer."""
        row = self.rows.pop(text, None)
        if row is not None:
            self._texts[row] = None
            self._letters -= len(text)
            self.vectors[row] = 0

    def _forget_all(self) -> None:
        self.rows.clear()
        self._next = 0
        self._texts.clear()
        self.vectors = self.vectors[:0]
        self._letters = 0

    def _grow(self, rows: int) -> None:
        if rows > len(self.vectors):
            larger = np.empty((min(self._size, 2 * rows), self.vectors.shape[1]), np.int8)
            larger[: len(self.vectors)] = self.vectors
            self.vectors = larger
