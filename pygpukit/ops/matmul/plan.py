"""Which kernel makes a matrix product, and why: a choice that follows from shapes, types and device alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.core.choices import by_device
from pygpukit.core.dtypes import bfloat16, float16, float32, int8, int32
from pygpukit.kernels import lost
from pygpukit.ops.matmul import times
from pygpukit.ops.matmul.mma import unaligned
from pygpukit.ops.matmul.sm90 import cluster
from pygpukit.ops.matmul.tile import gemv as tile_gemv
from pygpukit.ops.matmul.tile import half
from pygpukit.ops.matmul.tile.tiling import Tile

if TYPE_CHECKING:
    from pygpukit.core.dtypes import DataType

__all__ = ["MatmulPlan"]

# What a family of tile kernels does, for a plan's reason.
_FAMILIES = {
    "half": "{} on tensor cores, summed in float32",
    "int8": "{} on tensor cores, summed in int32, exactly",
    "tf32": "{} rounded to tf32 on tensor cores, summed in float32",
    "fp8": "{} on tensor cores, every 128 of k summed anew and added in float32",
    "decoded": "fp8 decoded to {} on tensor cores, every 128 of k summed anew and added in float32",
}
_CALLED = {
    "half": "products of half precision",
    "int8": "products of int8",
    "tf32": "products in tf32",
    "fp8": "products of fp8",
    "decoded": "products with weights of fp8",
}
_FP8 = ("fp8", "decoded")
MAX_BATCH = 65535  # a grid's second extent
_FP8_SINCE = 89  # compute capability 8.9
_FILLED = 15  # elements that a row is filled up with, at most


@dataclass(frozen=True)
class MatmulPlan:
    """How a product is computed.

    backend: "tile" (tensor cores), "hopper" (those of SM 9.0, with the bits of "tile"), "mma" (tensor cores, where
    there are no tile kernels), "plain" (CUDA cores; for float64 on SM 9.0 tensor cores), "numpy" (the simulated
    device), and of products that need not be invariant "cublaslt". It decides the result's bits. reason: why, in one
    sentence. tile: what one block makes, or a pair of blocks of "hopper"; it decides speed alone.
    """

    backend: str
    reason: str
    tile: Tile | tile_gemv.Block | unaligned.Block | None = None

    def __str__(self) -> str:
        return f"{self.backend}{f' {self.tile}' if self.tile else ''}: {self.reason}"


def family(operands: DataType, result: DataType, tf32: bool) -> str | None:
    """The tile kernels for operands of one type and a result of another, None where there are none. tf32: allowed."""
    if operands == result and operands in (bfloat16, float16):
        return "half"
    if operands == int8 and result == int32:
        return "int8"
    return "tf32" if tf32 and operands == result == float32 else None


@by_device
def backend(kind: str | None, dtype: DataType, batches: int, m: int, n: int, k: int) -> tuple[str, str]:
    """(backend, reason) of a product of operands of that type and these extents on the open device. kind: a key of
    _FAMILIES, None for "plain"."""
    if is_sim():
        return "numpy", "the simulated device computes with NumPy"
    if kind is None:
        return "plain", f"{dtype} is computed as it is, by multiply-adds in ascending order"
    if not batches * m * n * k:
        return "plain", "the product is empty"
    width, depth = n + _FILLED, k + _FILLED
    if batches > MAX_BATCH or max(m * depth, depth * width, m * width) * batches > 2**31 - 1:
        return "plain", "an operand has more elements than a tile kernel counts"
    if kind in _FP8 and device.current().capability < _FP8_SINCE:
        return "plain", "the device's tile kernels know no fp8; decoded to float32, on CUDA cores"
    if missing := half.missing():
        return _instead(kind, dtype, (batches, m, n, k), missing)
    by = "" if kind in _FP8 else f"; the fastest tile by {times.source()}"
    return "tile", f"{_FAMILIES[kind].format(dtype)}{by}"


def _instead(kind: str, dtype: DataType, shape: tuple[int, int, int, int], missing: str) -> tuple[str, str]:
    """What makes a product where there are no tile kernels, and why there are none."""
    if not (cluster.refusal(kind, dtype, shape) or cluster.missing()):
        return cluster.NAME, f"{cluster.done(kind, dtype)}, with the bits of the tile kernels: {missing}"
    if kind == "half" and not unaligned.refusal():
        lost.tell("products of half precision take mma.sync, at about half the speed of tile kernels", missing)
        return "mma", f"{_FAMILIES[kind].format(dtype)}, by mma.sync: {missing}"
    lost.tell(f"{_CALLED[kind]} run without tensor cores, many times slower and with other bits", missing)
    return "plain", missing
