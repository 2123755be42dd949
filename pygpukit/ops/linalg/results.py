"""Results of functions that give several, with NumPy's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class EighResult(NamedTuple):
    """Of eigh()."""

    eigenvalues: GPUArray
    eigenvectors: GPUArray


class QRResult(NamedTuple):
    """Of qr()."""

    Q: GPUArray
    R: GPUArray


class SlogdetResult(NamedTuple):
    """Of slogdet()."""

    sign: GPUArray
    logabsdet: GPUArray


class SVDResult(NamedTuple):
    """Of svd()."""

    U: GPUArray
    S: GPUArray
    Vh: GPUArray
