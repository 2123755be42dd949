"""The convolution and the scan of a Mamba-2 layer on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.nn.mamba.state_space import CHUNK
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.batch import Batch
    from pygpukit.nn.mamba.cache import LayerState
    from pygpukit.nn.mamba.mixer import Mamba2


def scan_on_host(layer: Mamba2, batch: Batch, cache: LayerState, projected: GPUArray, out: GPUArray) -> None:
    """As device.scan(). Products have sums of one length whatever the rows: their bits depend on the sequence alone."""
    arrays = [projected, out, batch.positions, batch.slots, *cache.arrays, *layer.arrays]
    native.host_launch("mamba", lambda: _scan(layer, batch, cache, projected, out), arrays)


def norm_on_host(layer: Mamba2, scanned: GPUArray, out: GPUArray) -> None:
    """As device.norm_groups()."""
    import numpy as np

    norm, groups = layer.norm, layer.space.groups

    def compute() -> None:
        x = host.values(scanned).reshape(-1, groups, layer.inner // groups)
        factors = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True, dtype=np.float32) + np.float32(norm.eps))
        host.store(out, (x * factors).reshape(out.shape) * host.values(norm.weight))

    native.host_launch("mamba_norm", compute, [scanned, out, norm.weight])


def _scan(layer: Mamba2, batch: Batch, cache: LayerState, projected: GPUArray, out: GPUArray) -> None:
    import numpy as np

    positions, slots = host.memory(batch.positions), host.memory(batch.slots).reshape(batch.count, -1)[:, 0]
    values, result = host.values(projected).astype(np.float32), host.memory(out)
    parts = [(span.first, span.end) for span in batch.spans] or [(row, row + 1) for row in range(batch.count)]
    for first, end in parts:
        start, slot = int(positions[first]), int(slots[first])
        if start >= 0:
            own = values[first:end]
            y = _scanned(layer, cache, slot, start, *_convolved(layer, cache, slot, start, own))
            z = own[:, : layer.inner]
            with np.errstate(over="ignore"):
                result[first:end] = y * (z / (1 + np.exp(-z)))


def _convolved(layer: Mamba2, cache: LayerState, slot: int, start: int, own: Any) -> tuple[Any, Any]:
    """x, B and C (rows, channels) and the lengths of steps (rows, heads) of a part of a sequence."""
    import numpy as np

    count, before, dtype = len(own), layer.space.conv - 1, cache.rows.dtype
    raw = own[:, layer.inner : layer.inner + layer.channels]
    places = np.arange(start - before, start)
    tail = np.where(places[:, None] < 0, np.float32(0), host.values(cache.tail[slot])[places % (before + 1)])
    seen = np.concatenate([tail, raw])
    weight = host.values(layer.conv).astype(np.float32)
    sums = np.zeros(raw.shape, np.float32)
    if layer.conv_bias is not None:
        sums += host.values(layer.conv_bias)
    for place in range(before + 1):
        sums += weight[:, place] * seen[place : place + count]
    for row in range(max(count - before - 1, 0), count):
        host.store(cache.tail[slot, (start + row) % (before + 1)], raw[row])
    steps = own[:, layer.inner + layer.channels :] + host.values(layer.step_bias)
    with np.errstate(over="ignore"):
        rows = host.converted(sums / (1 + np.exp(-sums)), dtype)
        steps = np.where(steps > 20, steps, np.log1p(np.exp(steps)))
    bounds = np.float32(layer.space.min_step), np.float32(layer.space.max_step)
    return np.asarray(rows, np.float32), np.clip(steps, *bounds).astype(np.float32)


def _scanned(layer: Mamba2, cache: LayerState, slot: int, start: int, own: Any, lengths: Any) -> Any:
    """The part's rows, (rows, inner); the cache has its states and rows behind them afterwards."""
    import numpy as np

    result = np.empty((len(own), layer.inner), np.float32)
    end = start + len(own)
    for begin in range(start // CHUNK * CHUNK, end, CHUNK):
        first, last = max(start, begin) - begin, min(end, begin + CHUNK) - begin
        rows, steps = np.zeros((CHUNK, layer.channels), np.float32), np.zeros((CHUNK, layer.heads), np.float32)
        if first:
            rows[:first], steps[:first] = host.values(cache.rows[slot, :first]), host.values(cache.steps[slot, :first])
        these = slice(begin + first - start, begin + last - start)
        rows[first:last], steps[first:last] = own[these], lengths[these]
        states = host.memory(cache.state[slot])
        if not begin:
            states[:] = 0
        totals = np.cumsum(steps * -np.exp(host.values(layer.rate_logs)), axis=0, dtype=np.float64)
        for head in range(layer.heads):
            result[these, head * layer.head_dim : (head + 1) * layer.head_dim] = _of_head(
                layer, head, rows, steps[:, head], totals[:, head], states[head], slice(first, last)
            )
        if last < CHUNK:
            host.store(cache.rows[slot, first:last], rows[first:last])
            host.store(cache.steps[slot, first:last], steps[first:last])
    return result


def _of_head(layer: Mamba2, head: int, rows: Any, steps: Any, totals: Any, state: Any, some: slice) -> Any:
    """Some rows of a chunk, (rows, head_dim); at the chunk's end its state, (head_dim, state), is brought forward."""
    import numpy as np

    space, inner = layer.space, layer.inner
    group = head // (layer.heads // space.groups)
    x = rows[:, head * layer.head_dim : (head + 1) * layer.head_dim]
    b = rows[:, inner + group * space.state :][:, : space.state]
    c = rows[some, inner + (space.groups + group) * space.state :][:, : space.state]
    places = np.arange(CHUNK)
    sees = places <= places[some, None]
    falls = np.exp(np.where(sees, totals[some, None] - totals, 0).astype(np.float32))
    weights = np.where(sees, _product(c, b) * falls * steps, 0)
    result = np.exp(totals[some, None].astype(np.float32)) * _product(c, state) + _product(weights, x.T)
    result += host.values(layer.skip)[head] * x[some]
    if some.stop == CHUNK:
        kept = steps * np.exp((totals[-1] - totals).astype(np.float32))
        state[:] = np.exp(np.float32(totals[-1])) * state + _product(x.T * kept, b.T)
    return result


def _product(x: Any, w: Any) -> Any:
    """x w^T in float32, each element's bits by its own row and column alone."""
    import numpy as np

    out = np.empty((len(x), len(w)), np.float32)
    native.host_products(np.ascontiguousarray(x, np.float32), np.ascontiguousarray(w, np.float32), out)
    return out
