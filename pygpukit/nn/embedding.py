"""Embedding: the rows of tokens, and of positions where they are learned, as the float32 that a model adds to."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.nn.batch import Batch
from pygpukit.nn.linear import in_blocks
from pygpukit.nn.linear.blocks import Blocks
from pygpukit.ops import host
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "embedding.cu")
_THREADS = 256


def embed(batch: Batch, table: GPUArray | Blocks, positions: GPUArray | None, out: GPUArray) -> None:
    """out[i] = table[token i] (+ positions[position i]) in float32. Numbers outside the table are never given."""
    if isinstance(table, Blocks):
        if host.computes():
            _by_host(batch, table, positions, out)
            return
        if table.dtype in in_blocks.TYPES:
            (part,) = table.parts  # all that a checkpoint gives
            in_blocks.rows_of(part, table.columns, batch.tokens, batch.positions, positions, table.dtype, out)
            return
        table = table.expanded()
    if host.computes():
        arrays = [batch.tokens, batch.positions, table, out, *([] if positions is None else [positions])]
        native.host_launch("embed", lambda: _on_host(batch, table, positions, out), arrays)
        return
    hidden = table.shape[1]
    call = struct.pack("<2q", hidden, positions is not None)  # embedding.cu: EmbedCall
    spec = SOURCE.of(f"pk::embed<{CTYPES[table.dtype.name]}>")
    grid = (-(-hidden // _THREADS), batch.count, 1)
    learned = table if positions is None else positions
    kernels.launch(spec, grid, (_THREADS, 1, 1), batch.tokens, batch.positions, table, learned, out, call)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that embed() can ask for."""
    yield tuple(f"pk::embed<{CTYPES[name]}>" for name in ("float32", "float16", "bfloat16"))


def _by_host(batch: Batch, table: Blocks, positions: GPUArray | None, out: GPUArray) -> None:
    """From a table in blocks, of which one part is all that a checkpoint gives."""
    (part,) = table.operands
    native.host_rows(batch.tokens, part, out)
    if positions is not None:
        learned = positions

        def add() -> None:
            host.store(out, host.values(out) + _picked(learned, batch.positions))

        native.host_launch("embed", add, [batch.positions, learned, out])


def _on_host(batch: Batch, table: GPUArray, positions: GPUArray | None, out: GPUArray) -> None:
    result = _picked(table, batch.tokens)
    if positions is not None:
        result = result + _picked(positions, batch.positions)
    host.store(out, result)


def _picked(table: GPUArray, numbers: GPUArray) -> Any:
    """Batch of a table as float32, without converting all of it."""
    import numpy as np

    chosen = host.memory(table)[host.memory(numbers)]
    if table.dtype.name == "bfloat16":
        return (chosen.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return chosen.astype(np.float32)
