"""gp.linalg: linear algebra with NumPy's names, arguments and results, on the device."""

from typing import TYPE_CHECKING, Any

from pygpukit.ops.linalg.eigen import eigh, eigvalsh
from pygpukit.ops.linalg.factors import cholesky, qr, svd, svdvals
from pygpukit.ops.linalg.failures import unchecked
from pygpukit.ops.linalg.least_squares import lstsq, matrix_rank, pinv
from pygpukit.ops.linalg.norms import cond, matrix_norm, norm, vector_norm
from pygpukit.ops.linalg.products import (
    cross,
    diagonal,
    matrix_power,
    matrix_transpose,
    multi_dot,
    outer,
    tensordot,
    trace,
    vecdot,
)
from pygpukit.ops.linalg.solving import det, inv, slogdet, solve
from pygpukit.ops.matmul import matmul

if TYPE_CHECKING:
    from pygpukit.ops.linalg.errors import LinAlgError

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "unchecked",
    "vecdot",
    "vector_norm",
]


def __getattr__(name: str) -> Any:
    if name != "LinAlgError":
        raise AttributeError(f"module 'pygpukit.linalg' has no attribute {name!r}")
    from pygpukit.ops.linalg.errors import LinAlgError

    return LinAlgError


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
