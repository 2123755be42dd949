"""The leaves of filters that feed back: the linear difference equation, and the decaying peak.

States and sums are kept in float64 whatever the samples' type. On the device a line is cut into chunks whose length the
line's gives; on the simulated one SciPy walks it. Both give the same bits on every run, and for a line in any batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array.factory import from_numpy
from pygpukit.core.dtypes import float32, float64
from pygpukit.core.extras import need
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    Coefficients = np.ndarray[Any, np.dtype[np.float64]]

SOURCE = kernels.KernelSpec(__file__, "recursive.cu")
_WORK = SOURCE.structure("RecursiveWork")
_BLOCK = 128
_LANES = 32  # of a block of chain_states, each with one number of a line's state
_SHORTEST = 256  # samples of a chunk
ORDERS = (1, 2, 4, 8, 16, 32)  # for which there are kernels; others take the next one, with zeros


@dataclass(frozen=True)
class _Kind:
    functor: str
    states: int
    table: Coefficients
    decay: float = 0.0


def linear(x: GPUArray, b: Coefficients, a: Coefficients, zi: GPUArray) -> tuple[GPUArray, GPUArray]:
    """(y, zf) of a[0] y[n] + a[1] y[n-1] + ... = b[0] x[n] + b[1] x[n-1] + ... along the last axis.

    b, a: of one length, order + 1, a[0] = 1, order at least 1. zi, zf: (..., order), float64, SciPy's states.
    """
    y, zf = native.empty(x.shape, x.dtype), native.empty(zi.shape, "float64")
    order = len(b) - 1
    if not x.size:
        copying.copy_to(zi, zf)
        return y, zf
    x, zi = copying.contiguous(x), copying.contiguous(zi)
    if host.computes():
        signal = need("scipy.signal", "audio", "a filter on the simulated device")

        def compute() -> None:
            values, last = signal.lfilter(b, a, host.memory(x).astype(np.float64), zi=host.memory(zi))
            host.store(y, values)
            host.store(zf, last)

        native.host_launch("lfilter", compute, [x, zi, y, zf])
        return y, zf
    states = next(known for known in ORDERS if known >= order)
    b, a = (np.concatenate((c, np.zeros(states - order))) for c in (b, a))
    power = np.linalg.matrix_power(_companion(a), _chunk(x.shape[-1]))
    table = np.concatenate((b, a[1:], power.ravel()))
    if states > order:
        padded = native.empty((*zi.shape[:-1], states), "float64")
        copying.fill(padded, 0)
        copying.copy_to(zi, padded[..., :order])
        zi = padded
    last = _launched(_Kind(f"pk::Linear<{states}>", states, table), x, zi, y)
    copying.copy_to(last[..., :order], zf)
    return y, zf


def decaying_peak(x: GPUArray, decay: float) -> GPUArray:
    """y[n] = max(x[n], decay * y[n-1]) along the last axis, from y[-1] = 0, for x of no negative numbers; 0 <= decay <
    1."""
    y = native.empty(x.shape, x.dtype)
    if not x.size:
        return y
    x = copying.contiguous(x)
    if host.computes():

        def compute() -> None:
            values = host.memory(x).astype(np.float64)
            held, result = np.zeros(values.shape[:-1]), np.empty_like(values)
            for n in range(values.shape[-1]):
                result[..., n] = held = np.maximum(values[..., n], decay * held)
            host.store(y, result)

        native.host_launch("decaying_peak", compute, [x, y])
        return y
    kind = _Kind("pk::DecayingPeak", 1, np.zeros(1), decay)
    zeros = native.empty((*x.shape[:-1], 1), "float64")
    copying.fill(zeros, 0)
    _launched(kind, x, zeros, y)
    return y


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the functions above can ask for."""
    for functor in (*(f"pk::Linear<{order}>" for order in ORDERS), "pk::DecayingPeak"):
        names = [f"pk::chain_states<{functor}>"]
        for dtype in (float32, float64):
            types = f"{CTYPES[dtype.name]}, {functor}"
            names += [f"pk::chunk_states<{types}>", f"pk::filter_chunks<{types}>"]
        yield tuple(names)


def _chunk(length: int) -> int:
    """Samples of a chunk: as many as there are chunks, in long lines."""
    return max(_SHORTEST, isqrt(length))


def _companion(a: Coefficients) -> Coefficients:
    """The states of the transposed direct form II after a sample of zero, as a matrix."""
    matrix = np.eye(len(a) - 1, k=1)
    matrix[:, 0] -= a[1:]
    return matrix


def _launched(kind: _Kind, x: GPUArray, initial: GPUArray, y: GPUArray) -> GPUArray:
    """Fills y; the states that the lines leave behind."""
    lines, length = prod(x.shape[:-1]), x.shape[-1]
    chunk = _chunk(length)
    chunks = -(-length // chunk)
    work = _WORK.pack(
        lines=lines, length=length, chunk=chunk, chunks=chunks, decay=kind.decay, decay_chunk=kind.decay**chunk
    )
    table = from_numpy(kind.table)
    states = native.empty((lines, chunks, kind.states), "float64")
    final = native.empty((*x.shape[:-1], kind.states), "float64")
    types = f"{CTYPES[x.dtype.name]}, {kind.functor}"
    blocks = -(-lines * chunks // _BLOCK)
    _launch(f"pk::chunk_states<{types}>", blocks, _BLOCK, x, table, states, work)
    chains = -(-lines * kind.states // _LANES)
    _launch(f"pk::chain_states<{kind.functor}>", chains, _LANES, initial, table, states, work)
    _launch(f"pk::filter_chunks<{types}>", blocks, _BLOCK, x, table, states, y, final, work)
    return final


def _launch(kernel: str, blocks: int, threads: int, *args: GPUArray | bytes) -> None:
    kernels.launch(SOURCE.of(kernel), (blocks, 1, 1), (threads, 1, 1), *args)
