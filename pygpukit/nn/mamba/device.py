"""The convolution and the scan of a Mamba-2 layer as kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import float32
from pygpukit.nn.mamba.state_space import CHUNK
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.batch import Batch, Span
    from pygpukit.nn.mamba.cache import LayerState
    from pygpukit.nn.mamba.mixer import Mamba2

SOURCE = kernels.KernelSpec(__file__, "mamba.cu", options=kernels.SAME_BITS)
STEP = kernels.KernelSpec(__file__, "scan_step.cu")
CHUNKS = kernels.KernelSpec(__file__, "scan_chunks.cu")
_CALL = SOURCE.structure("MambaCall")
_THREADS, _ROWS, _TILE = 256, 16, 64  # mamba.cuh: kThreads; mamba.cu: kRows; scan_chunks.cu: kTile


def scan(layer: Mamba2, batch: Batch, cache: LayerState, projected: GPUArray, out: GPUArray) -> None:
    """out, float32 (R, inner), of projected (R, z and x and B and C and dt): a row of each sequence in a step, parts of
    prompts one after the other in a prefill."""
    if not batch.spans:
        _step(layer, batch, cache, projected, out)
        return
    rows = native.empty((batch.count, layer.channels), projected.dtype)
    steps = native.empty((batch.count, layer.heads), float32)
    for span in batch.spans:
        _prefill(layer, batch, span, cache, projected, rows, steps, out)


def _step(layer: Mamba2, batch: Batch, cache: LayerState, projected: GPUArray, out: GPUArray) -> None:
    spec = STEP.of(f"pk::scan_step<{CTYPES[projected.dtype.name]}>", overlapping=True)
    kernels.launch(
        spec, (layer.heads, batch.count, 1), (_THREADS, 1, 1),
        projected, batch.positions, batch.slots, *_convolution(layer), *cache.arrays, layer.rate_logs, layer.skip, out,
        _call(layer),
    )  # fmt: skip


def _prefill(
    layer: Mamba2, batch: Batch, span: Span, cache: LayerState, projected: GPUArray, rows: GPUArray, steps: GPUArray,
    out: GPUArray,
) -> None:  # fmt: skip
    space, heads, count = layer.space, layer.heads, span.end - span.first
    where, call = (batch.positions, batch.slots), _call(layer, span.first, count)
    ctype, threads = CTYPES[projected.dtype.name], (_THREADS, 1, 1)
    begin, end = span.start // CHUNK, span.start + count
    ended, chunks = end // CHUNK - begin, -(-end // CHUNK) - begin  # those that end in the part, and all
    tiles, of_state = -(-layer.head_dim // _TILE), -(-space.state // _TILE)
    known = rows, steps, cache.rows, cache.steps
    columns = -(-(layer.channels + heads) // _THREADS)
    kernels.launch(
        SOURCE.of(f"pk::convolve<{ctype}>"), (columns, -(-count // _ROWS), 1), threads, projected, *where,
        *_convolution(layer), cache.tail, rows, steps, call,
    )  # fmt: skip
    begun = cache.state  # which nothing reads where no chunk ends
    if ended:
        begun = native.empty((ended, heads, layer.head_dim, space.state), float32)
        falls = native.empty((ended, heads), float32)
        kernels.launch(
            CHUNKS.of(f"pk::chunk_states<{ctype}>"), (heads, ended, tiles * of_state), threads, *where, *known,
            layer.rate_logs, begun, falls, call,
        )  # fmt: skip
        numbers = -(-layer.inner * space.state // _THREADS)
        kernels.launch(CHUNKS.of("pk::pass_states"), (numbers, 1, 1), threads, *where, falls, begun, cache.state, call)
    kernels.launch(
        CHUNKS.of(f"pk::scan_chunks<{ctype}>"), (heads, chunks, tiles), threads, projected, *where, *known, begun,
        cache.state, layer.rate_logs, layer.skip, out, call,
    )  # fmt: skip
    kernels.launch(
        SOURCE.of(f"pk::keep_rows<{ctype}>"), (columns, CHUNK, 1), threads, projected, *where, rows, steps,
        cache.tail, cache.rows, cache.steps, call,
    )  # fmt: skip


def _convolution(layer: Mamba2) -> tuple[GPUArray, GPUArray, GPUArray]:
    """Weights of convolution and steps; something in the place of a bias that there is not."""
    return layer.conv, layer.conv if layer.conv_bias is None else layer.conv_bias, layer.step_bias


def norm_groups(layer: Mamba2, scanned: GPUArray, out: GPUArray) -> None:
    """out (R, inner) of the weights' type: the norm of each group of the elements of scanned, float32 (R, inner)."""
    spec = SOURCE.of(f"pk::norm_groups<{CTYPES[out.dtype.name]}>", overlapping=True)
    call = _call(layer)
    grid = layer.space.groups, scanned.shape[0], 1
    kernels.launch(spec, grid, (_THREADS, 1, 1), scanned, layer.norm.weight, out, call)


def _call(layer: Mamba2, first: int = 0, count: int = 0) -> bytes:
    """MambaCall of mamba.cuh."""
    space = layer.space
    return _CALL.pack(
        heads=layer.heads,
        dim=layer.head_dim,
        state=space.state,
        groups=space.groups,
        inner=layer.inner,
        channels=layer.channels,
        width=layer.in_proj.out_features,
        first=first,
        conv=space.conv,
        has_bias=layer.conv_bias is not None,
        count=count,
        min_step=space.min_step,
        max_step=space.max_step,
        epsilon=layer.norm.eps,
    )


def _of_types(*names: str) -> Iterator[tuple[str, ...]]:
    for dtype in ("float32", "float16", "bfloat16"):
        yield tuple(f"pk::{name}<{CTYPES[dtype]}>" for name in names)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel beside the scan."""
    yield from _of_types("convolve", "keep_rows", "norm_groups")


@STEP.lists
def step_instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of the scan of a step."""
    yield from _of_types("scan_step")


@CHUNKS.lists
def chunk_instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of the scan of prompts."""
    yield from _of_types("chunk_states", "scan_chunks")
    yield ("pk::pass_states",)
