"""Embedders whose vectors a test can choose, count or break."""

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counting", "Directions", "FromFunction", "Noise"]

_DIRECTION = re.compile(r"<([^<>]*)>")


def direction(text: str, dims: int) -> list[float]:
    """The numbers between < and > in ``text``, filled up with zeros; all zeros without any."""
    match = _DIRECTION.search(text)
    numbers = [float(part) for part in match[1].split()] if match else []
    return [*numbers, *[0.0] * (dims - len(numbers))]


class Directions:
    """A text says where it points: ``"cats <1 0 0>"``. One that doesn't is similar to nothing."""

    name = "test/directions"
    dims = 4
    reproducible = True

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        return [direction(text, self.dims) for text in texts]


class Counting(Directions):
    """Directions that keep the batches they were asked for."""

    def __init__(self, *, reproducible: bool = True) -> None:
        self.reproducible = reproducible
        self.batches: list[list[str]] = []

    @property
    def texts(self) -> list[str]:
        return [text for batch in self.batches for text in batch]

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        self.batches.append(list(texts))
        return super().embed(texts)


class Noise:
    """A vector for each text that looks random and never changes."""

    reproducible = True

    def __init__(self, dims: int = 32) -> None:
        self.name = f"test/noise-{dims}"
        self.dims = dims

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        return np.array([self._vector(text) for text in texts]).reshape(len(texts), self.dims)

    def _vector(self, text: str) -> NDArray[np.float64]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        # Shifted, so that most similarities are above 0, as those of real embedders are.
        return np.random.default_rng(seed).normal(size=self.dims) + 0.6


class FromFunction:
    """Gives whatever ``function`` makes of the texts, right or wrong."""

    def __init__(
        self,
        function: Callable[[Sequence[str]], Any],
        dims: int = 4,
        *,
        name: str = "test/function",
        reproducible: bool = True,
    ) -> None:
        self.function = function
        self.name = name
        self.dims = dims
        self.reproducible = reproducible

    def embed(self, texts: Sequence[str], /) -> Any:
        return self.function(texts)
