"""Vectors as whole numbers, so that a similarity has the same bits on every machine.

A float32 matrix product depends on the order in which it sums, and so on the BLAS, the machine and
the batch. Products of whole numbers in [-127, 127] sum to whole numbers; as long as these are below
2^24 (float32) or 2^53 (float64), every order gives the same result.
"""

import ctypes
import platform
import sys
from typing import Any

import numpy as np
import simsimd
from numpy.typing import ArrayLike, NDArray

from ..errors import EmbedderError

Quantised = NDArray[np.int8]

_LIMIT = 127
_CHUNK = 256
"""Rows are worked on in chunks that stay in the processor's cache."""
_MAX_DIMS = {np.float32: (1 << 24) // _LIMIT**2, np.float64: (1 << 53) // _LIMIT**2}
_HWCAP, _ASIMDDP = 16, 1 << 20
"""Where Linux says what an ARM processor can do, and the bit for products of bytes."""


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
        if rows.dtype not in (np.float32, np.float64, np.int64, np.int32):
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
    result = np.empty(rows.shape, np.int8)
    dtype, bits = (np.float32, np.int32) if rows.dtype == np.float32 else (np.float64, np.int64)
    for start in range(0, count, _CHUNK):
        own: NDArray[Any] = rows[start : start + _CHUNK].astype(dtype, copy=False)
        # Floats without a sign are in the order of their bits, which are compared in a third of
        # the time; NaN comes last.
        largest = np.abs(own).view(bits).max(axis=1).view(dtype)
        if not np.isfinite(largest).all():
            raise EmbedderError("the embedder gave a vector with NaN or infinity in it")
        largest[largest == 0.0] = 1.0
        # Divide first: the largest finite numbers would overflow times 127.
        part = own / largest[:, None]
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
    return np.sqrt(np.maximum(row_products(vectors, vectors), 1.0))


def unit(vectors: Quantised) -> NDArray[np.float32]:
    """Rows of length 1, as mem0's stores want them; a row of zeros stays zeros."""
    return (vectors / norms(vectors)[:, None]).astype(np.float32)


def product_dtype(dims: int) -> type[np.float32] | type[np.float64]:
    """The narrowest float in which products of ``dims`` dimensions stay exact."""
    return np.float32 if dims <= _MAX_DIMS[np.float32] else np.float64
