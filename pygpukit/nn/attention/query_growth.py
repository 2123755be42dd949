"""Growth of queries with their position, in layers that do not rotate them (Llama 4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.ops import host
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.attention.layer import Attention
    from pygpukit.nn.batch import Batch

SOURCE = kernels.KernelSpec(__file__, "query_growth.cu", options=kernels.SAME_BITS)
_CALL = SOURCE.structure("GrowthCall")
_THREADS = 256  # query_growth.cu


def grow_queries(layer: Attention, batch: Batch, qkv: GPUArray) -> None:
    """The queries of qkv times 1 + growth log(1 + floor((position + 1) / floor)), in place."""
    growth, floor = layer.query_growth, layer.config.query_floor
    if host.computes():
        native.host_launch("grow_queries", lambda: _on_host(layer, batch, qkv), [qkv, batch.positions])
        return
    kernels.launch(
        SOURCE.of(f"pk::grow_queries<{CTYPES[qkv.dtype.name]}>"),
        (-(-layer.q_dim // _THREADS), batch.count, 1),
        (_THREADS, 1, 1),
        *(qkv, batch.positions),
        _CALL.pack(queries=layer.q_dim, width=qkv.shape[1], growth=growth, floor=floor),
    )


def _on_host(layer: Attention, batch: Batch, qkv: GPUArray) -> None:
    import numpy as np

    positions = host.memory(batch.positions).astype(np.float32)
    steps = np.floor((positions + np.float32(1)) / np.float32(layer.config.query_floor))
    factors = np.log1p(steps) * np.float32(layer.query_growth) + np.float32(1)
    queries = qkv[:, : layer.q_dim]
    host.store(queries, host.values(queries).astype(np.float32) * factors[:, None])


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that grow_queries() can ask for."""
    yield tuple(f"pk::grow_queries<{CTYPES[name]}>" for name in ("float32", "float16", "bfloat16"))
