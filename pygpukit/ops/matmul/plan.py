"""Which kernel makes a matrix product, and why: a choice that follows from shapes, types and device alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import bfloat16, float16
from pygpukit.ops.matmul import tile
from pygpukit.ops.matmul.tiles import MEASURED, Tile

if TYPE_CHECKING:
    from pygpukit.core.dtypes import DataType

__all__ = ["MatmulPlan"]

TENSOR_TYPES = (bfloat16, float16)
MAX_BATCH = 65535  # a grid's second extent


@dataclass(frozen=True)
class MatmulPlan:
    """How a product is computed.

    backend: "tile" (tensor cores), "plain" (CUDA cores) or "numpy" (the simulated device). It decides the result's
    bits. reason: why, in one sentence. tile: of a tile kernel; it decides speed alone.
    """

    backend: str
    reason: str
    tile: Tile | None = None

    def __str__(self) -> str:
        return f"{self.backend}{f' {self.tile}' if self.tile else ''}: {self.reason}"


@lru_cache(maxsize=4096)
def backend(dtype: DataType, batches: int, m: int, n: int, k: int) -> tuple[str, str]:
    """(backend, reason) of a product of that type and these extents on the open device."""
    if is_sim():
        return "numpy", "the simulated device computes with NumPy"
    if dtype not in TENSOR_TYPES:
        return "plain", f"{dtype} is computed as it is, on CUDA cores"
    if not batches * m * n * k:
        return "plain", "the product is empty"
    if batches > MAX_BATCH or max(m * k, k * n, m * n) * batches > 2**31 - 1:
        return "plain", "an operand has more elements than a tile kernel counts"
    if missing := tile.missing():
        _warn(missing)
        return "plain", missing
    return "tile", f"{dtype} on tensor cores, summed in float32; the fastest tile by {MEASURED.name}"


def _warn(missing: str) -> None:
    import warnings

    warnings.warn(
        f"half-precision matrix products run without tensor cores, many times slower and with other bits: {missing}",
        RuntimeWarning,
        stacklevel=2,
    )
