"""The standard's extension `linalg`: the functions of gp.linalg that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.array_api.linear_algebra import vecdot
from pygpukit.ops.linalg import least_squares
from pygpukit.ops.linalg.eigen import eigh, eigvalsh
from pygpukit.ops.linalg.factors import cholesky, qr, svd, svdvals
from pygpukit.ops.linalg.norms import matrix_norm, vector_norm
from pygpukit.ops.linalg.products import cross, diagonal, matrix_power, matrix_transpose, outer, tensordot, trace
from pygpukit.ops.linalg.solving import det, inv, slogdet, solve
from pygpukit.ops.matmul import matmul

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def matrix_rank(x: GPUArray, /, *, rtol: Any = None) -> GPUArray:
    """gp.linalg.matrix_rank() of at least one matrix, with a tolerance relative to the largest singular value."""
    return least_squares.matrix_rank(x, rtol=rtol)


def pinv(x: GPUArray, /, *, rtol: Any = None) -> GPUArray:
    """gp.linalg.pinv(); rtol is by default max(m, n) times the type's epsilon."""
    return least_squares.pinv(x, rtol=rtol)
