"""The LSTM by NumPy, on the simulated device, inside a host launch."""

from __future__ import annotations

from typing import Any

from pygpukit.ops import host
from pygpukit.ops.nn.lstm.work import Work


def run(work: Work) -> None:
    """All steps, one after the other; h is what it was before the first and, at the end, after the last."""
    directions, _, hidden = work.h.shape
    rows = work.out.shape[0] * work.out.shape[1]
    out = host.memory(work.out).reshape(rows, directions * hidden)
    products = host.memory(work.products).reshape(directions, rows, 4 * hidden)
    lengths = {length for _, length in work.pairs}
    # Those of one length together, as a batch without spans is; spans one by one, so that each has its bits alone.
    groups = [slice(None)] if work.spans is None else [slice(n, n + 1) for n in range(len(work.pairs))]
    for number in range(directions):
        back = bool(number) or work.reverse
        for group in groups if lengths else ():
            pairs = work.pairs[group]
            _directed(
                work, products[number], out[:, number * hidden : (number + 1) * hidden], number, group, pairs, back
            )


def _directed(work: Work, products: Any, out: Any, number: int, group: slice, pairs: Any, back: bool) -> None:
    """Some sequences of one length, in one direction."""
    import numpy as np

    weights, shift = np.ascontiguousarray(host.memory(work.matrices[number]).T), host.memory(work.bias)[number]
    h, memory = host.memory(work.h)[number][group], host.memory(work.c)[number][group]
    state = h.copy()
    starts = np.array([start for start, _ in pairs])
    order = range(pairs[0][1])
    with np.errstate(all="ignore"):
        for step in reversed(order) if back else order:
            gates = state @ weights
            gates += products[starts + step]
            gates += shift
            i, f, g, o = np.split(gates, 4, axis=1)
            memory[...] = _sigmoid(f) * memory + _sigmoid(i) * np.tanh(g)
            state = _sigmoid(o) * np.tanh(memory)
            out[starts + step] = state
    h[...] = state


def _sigmoid(x: Any) -> Any:
    import numpy as np

    return 1 / (1 + np.exp(-x))
