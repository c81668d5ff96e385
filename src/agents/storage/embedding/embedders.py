"""Text to vectors, offline by default."""

import functools
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import EmbedderError

__all__ = ["Embedder", "NoEmbedder", "OfflineEmbedder"]


@runtime_checkable
class Embedder(Protocol):
    """What a bank needs of an embedder. Give your own to ``MemoryBank.open(embedder=…)``.

    An embedder that always gives the same vector for the same text may say so with an attribute
    ``reproducible = True``. The vectors of any other are kept in the bank, so that a text is
    embedded once and a later run sees the same numbers.

    One whose vector of a text is the sum of its words' vectors, in whole numbers, may say so with
    ``additive = True``, if it is reproducible; then words of a query that say little count less.
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
        """Words whose vectors sum to the text's, if cutting it at its spaces gives such."""
        # No token has a space behind a letter, so none reaches from one word into the next. Runs
        # of spaces are tokens, and so are "<s>" and the like; "\u2581" stands for a space.
        if "<" in text or "\u2581" in text:
            return None
        words = text.split(" ")
        return None if "" in words else words

    def embed(self, texts: Sequence[str], /) -> NDArray[np.int64]:
        """The sum of each text's token vectors; zeros for a text without tokens."""
        tokenizer, table = _weights()
        sums = np.zeros((len(texts), self.dims), np.int64)
        encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
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
                sums[chunk] = table[rows].sum(axis=1, dtype=np.int32)
        return sums


class NoEmbedder:
    """For banks that are searched by words alone: no text has a vector."""

    name = "none"
    reproducible = True
    dims = 1

    def embed(self, texts: Sequence[str], /) -> NDArray[np.int64]:
        """Zeros."""
        return np.zeros((len(texts), self.dims), np.int64)


@functools.cache
def _weights() -> tuple[Any, NDArray[np.int16]]:
    """The tokenizer, and a vector of whole numbers for each token; read when first needed."""
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
    tokenizer.no_padding()
    tokenizer.no_truncation()
    table = weights["embedding.weight"].astype(np.float64)
    return tokenizer, np.rint(table * 1024).astype(np.int16)
