"""LSTM (Hochreiter and Schmidhuber 1997) over sequences, one layer, in one or both directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.dtypes import DataType, float32, float64
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, elementwise, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.operands import check_array, check_devices, span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    States = tuple[GPUArray, GPUArray, GPUArray]

__all__ = ["lstm_bidirectional", "lstm_forward"]

SOURCE = kernels.KernelSpec(__file__, "lstm.cu")
_STEP = SOURCE.structure("LstmStep")
_BLOCK = 256


def lstm_forward(
    x: GPUArray,
    W_ih: GPUArray | None,
    W_hh: GPUArray,
    b_ih: GPUArray,
    b_hh: GPUArray,
    h0: GPUArray | None = None,
    c0: GPUArray | None = None,
    reverse: bool = False,
) -> States:
    """(out, h, c): out (B, S, H) holds the hidden state at every step; h and c (B, H) are the last states.

    x: (B, S, I). W_ih: (4H, I), W_hh: (4H, H), b_ih and b_hh: (4H,), gates in the order i, f, g, o. W_ih None: x has
    the products with it already, (B, S, 4H); steps then have the same bits however a sequence is cut. h0, c0: (B, H),
    zeros when left out. reverse: from the last step to the first; out keeps the order of x. All of one float type;
    float16 and bfloat16 are computed in float32 throughout and rounded at the end. 2 launches a step, asynchronous; the
    order of additions is fixed. Raises ShapeError, DTypeError, DeviceMismatchError.
    """
    dtype = _check("lstm_forward", x, W_ih, W_hh, b_ih, b_hh, h0, c0)
    batch, steps, hidden = x.shape[0], x.shape[1], W_hh.shape[1]
    wide = float64 if dtype == float64 else float32
    out = native.empty((batch, steps, hidden), wide)
    weights = tuple(_as(array, wide) for array in (W_hh, b_ih, b_hh))
    h, c = _run(_products(_as(x, wide), _as(W_ih, wide)), weights, _as(h0, wide), _as(c0, wide), reverse, out)
    return _as(out, dtype), _as(h, dtype), _as(c, dtype)


def lstm_bidirectional(
    x: GPUArray,
    W_ih_fwd: GPUArray,
    W_hh_fwd: GPUArray,
    b_ih_fwd: GPUArray,
    b_hh_fwd: GPUArray,
    W_ih_bwd: GPUArray,
    W_hh_bwd: GPUArray,
    b_ih_bwd: GPUArray,
    b_hh_bwd: GPUArray,
) -> States:
    """(out, h, c) of lstm_forward() in both directions: out (B, S, 2H), forward first; h and c (2, B, H).

    Both directions have the same H and types. Errors as lstm_forward().
    """
    what = "lstm_bidirectional"
    forward, backward = (W_ih_fwd, W_hh_fwd, b_ih_fwd, b_hh_fwd), (W_ih_bwd, W_hh_bwd, b_ih_bwd, b_hh_bwd)
    dtype = _check(what, x, *forward, None, None)
    _check(what, x, *backward, None, None)
    batch, steps, hidden = x.shape[0], x.shape[1], W_hh_fwd.shape[1]
    if W_hh_bwd.shape[1] != hidden:
        raise ShapeError(f"{what}: W_hh_fwd has shape {W_hh_fwd.shape} and W_hh_bwd {W_hh_bwd.shape}; H must be equal")
    wide = float64 if dtype == float64 else float32
    out = native.empty((batch, steps, 2 * hidden), wide)
    h, c = (native.empty((2, batch, hidden), wide) for _ in range(2))
    source = _as(x, wide)
    for direction, weights in enumerate((forward, backward)):
        half = out[:, :, direction * hidden : (direction + 1) * hidden]
        W_ih, *others = (_as(array, wide) for array in weights)
        last = _run(_products(source, W_ih), tuple(others), None, None, bool(direction), half)
        for state, one in zip((h, c), last, strict=True):
            copying.copy_to(one, state[direction])
    return _as(out, dtype), _as(h, dtype), _as(c, dtype)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that the LSTM can ask for."""
    yield tuple(f"pk::lstm_cell<{CTYPES[dtype.name]}>" for dtype in (float32, float64))


Maybe = TypeVar("Maybe", "GPUArray", "GPUArray | None")


def _as(array: Maybe, dtype: DataType) -> Maybe:
    return array if array is None or array.dtype == dtype else copying.astype(array, dtype)


def _check(
    what: str,
    x: GPUArray,
    W_ih: GPUArray | None,
    W_hh: GPUArray,
    b_ih: GPUArray,
    b_hh: GPUArray,
    h0: GPUArray | None,
    c0: GPUArray | None,
) -> DataType:
    named = {"x": x, "W_hh": W_hh, "b_ih": b_ih, "b_hh": b_hh}
    named |= {name: array for name, array in (("W_ih", W_ih), ("h0", h0), ("c0", c0)) if array is not None}
    for name, array in named.items():
        check_array(array, f"{what}: {name}")
    if x.dtype not in promotion.FLOATS or any(array.dtype != x.dtype for array in named.values()):
        types = ", ".join(f"{name} {array.dtype}" for name, array in named.items())
        raise DTypeError(f"{what}: all arrays must have one float type; they have {types}")
    if x.ndim != 3 or W_hh.ndim != 2:
        raise ShapeError(f"{what}: x has shape {x.shape} and W_hh {W_hh.shape}; they must be (B, S, I) and (4H, H)")
    hidden = W_hh.shape[1]
    if W_ih is None and x.shape[2] != 4 * hidden:
        raise ShapeError(f"{what}: x has shape {x.shape}, must be (B, S, {4 * hidden}) where W_ih is None")
    wanted: dict[str, tuple[int, ...]] = {"W_ih": (4 * hidden, x.shape[2]), "W_hh": (4 * hidden, hidden)}
    wanted |= dict.fromkeys(("b_ih", "b_hh"), (4 * hidden,)) | dict.fromkeys(("h0", "c0"), (x.shape[0], hidden))
    for name, shape in wanted.items():
        if name in named and named[name].shape != shape:
            raise ShapeError(f"{what}: {name} has shape {named[name].shape}, must be {shape} for x of shape {x.shape}")
    check_devices(what, *named.values())
    return x.dtype


def _products(x: GPUArray, W_ih: GPUArray | None) -> GPUArray:
    """What the inputs bring to the gates, biases apart: (B, S, 4H)."""
    return copying.contiguous(x) if W_ih is None else matmul(x, W_ih.T)


def _run(
    from_input: GPUArray,
    weights: tuple[GPUArray, ...],
    h0: GPUArray | None,
    c0: GPUArray | None,
    reverse: bool,
    out: GPUArray,
) -> tuple[GPUArray, GPUArray]:
    """Fills out (B, S, H), float32 or float64 throughout; the last hidden and cell state, as new arrays."""
    batch, steps, hidden = out.shape
    W_hh, b_ih, b_hh = weights
    h = _zeros((batch, hidden), out.dtype) if h0 is None else h0
    c = _zeros((batch, hidden), out.dtype) if c0 is None else copying.clone(c0)
    if not out.size:
        return copying.clone(h), c
    bias = elementwise.add(b_ih, b_hh)
    order = range(steps - 1, -1, -1) if reverse else range(steps)
    if host.computes():
        first = h
        arrays = [from_input, W_hh, bias, first, c, out]
        native.host_launch("lstm", lambda: _on_host(from_input, W_hh, bias, first, c, out, order), arrays)
    else:
        for step in order:
            _cell(from_input[:, step], matmul(h, W_hh.T), bias, c, out[:, step])
            h = out[:, step]
    return copying.clone(out[:, order[-1]]), c


def _zeros(shape: tuple[int, int], dtype: DataType) -> GPUArray:
    array = native.empty(shape, dtype)
    if array.size:
        copying.fill(array, 0)
    return array


def _cell(from_input: GPUArray, from_state: GPUArray, bias: GPUArray, cell: GPUArray, out: GPUArray) -> None:
    batch, hidden = cell.shape
    (gates, gates_start), (states, states_start) = span(from_input), span(out)
    rows = [array.strides[0] // array.itemsize for array in (from_input, out)]
    packed = _STEP.pack(
        batch=batch,
        hidden=hidden,
        input_start=gates_start,
        input_row=rows[0],
        output_start=states_start,
        output_row=rows[1],
    )
    kernels.launch(
        SOURCE.of(f"pk::lstm_cell<{CTYPES[cell.dtype.name]}>"),
        (-(-batch * hidden // _BLOCK), 1, 1),
        (_BLOCK, 1, 1),
        gates,
        from_state,
        bias,
        cell,
        states,
        packed,
    )


def _on_host(
    from_input: GPUArray, W_hh: GPUArray, bias: GPUArray, h: GPUArray, cell: GPUArray, out: GPUArray, order: range
) -> None:
    """All steps: as the kernel and the products do them, one after the other."""
    import numpy as np

    given, states = host.memory(from_input), host.memory(out)
    weights, shift = np.ascontiguousarray(host.memory(W_hh).T), host.memory(bias)
    state, memory = host.memory(h), host.memory(cell)
    with np.errstate(all="ignore"):
        for step in order:
            gates = state @ weights
            gates += given[:, step]
            gates += shift
            i, f, g, o = np.split(gates, 4, axis=1)
            memory[...] = _sigmoid(f) * memory + _sigmoid(i) * np.tanh(g)
            state = _sigmoid(o) * np.tanh(memory)
            states[:, step] = state


def _sigmoid(x: Any) -> Any:
    import numpy as np

    return 1 / (1 + np.exp(-x))
