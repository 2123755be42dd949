"""Parts that kernels for SM 9.0 share: constants of their launches, and operands with the maps of their copies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pygpukit.ops.matmul.layout.operand import Stack
from pygpukit.ops.matmul.sm90 import tensor_maps
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SM = 90
SHARED_BYTES = 232448  # of a block: kHopperShared, kTurnsShared, kGroupsShared
THREADS = (384, 1, 1)  # two groups of four warps that make products, and one that has operands copied
CLUSTER = 2  # blocks of a cluster
CHUNK = 64  # hopper.cuh: kChunk
HALVES = {"bfloat16": "pk::bfloat16_t", "float16": "pk::half_t"}


def mapped(
    stacks: Iterable[Stack], tma_boxes: Iterable[int], lines: Iterable[int], transposed: Iterable[bool], k: int
) -> list[GPUArray | bytes]:
    """Parameters of a kernel: each operand, followed by the tail of its map.

    tma_boxes: lines that are copied at a time. lines: rows of a, columns of b. transposed: the operand lies along
    them, not along k.
    """
    parameters: list[GPUArray | bytes] = []
    for stack, box, extent, across in zip(stacks, tma_boxes, lines, transposed, strict=True):
        extents = (extent, k) if across else (k, extent)
        tail = tensor_maps.tail(stack.array.itemsize, box, *extents, stack.lead, stack.matrices, stack.step)
        parameters += [span(stack.array)[0], tail]
    return parameters
