"""LSTM (Hochreiter and Schmidhuber 1997) over sequences, one layer, in one or both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.dtypes import DataType, float32, float64
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, elementwise, host
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.nn.lstm import launch, leaf
from pygpukit.ops.nn.lstm.work import Work
from pygpukit.ops.nn.spans import Spans
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    States = tuple[GPUArray, GPUArray, GPUArray]
    Weights = tuple[GPUArray | None, GPUArray, GPUArray, GPUArray]

__all__ = ["lstm_bidirectional", "lstm_forward"]


def lstm_forward(
    x: GPUArray,
    W_ih: GPUArray | None,
    W_hh: GPUArray,
    b_ih: GPUArray,
    b_hh: GPUArray,
    h0: GPUArray | None = None,
    c0: GPUArray | None = None,
    reverse: bool = False,
    spans: Spans | None = None,
) -> States:
    """(out, h, c): out (B, S, H) holds the hidden state at every step; h and c (B, H) are the last states.

    x: (B, S, I). W_ih: (4H, I), W_hh: (4H, H), b_ih and b_hh: (4H,), gates in the order i, f, g, o. W_ih None: x has
    the products with it already, (B, S, 4H); steps then have the same bits however a sequence is cut. h0, c0: (B, H),
    zeros when left out. reverse: from the last step to the first; out keeps the order of x. All of one float type;
    float16 and bfloat16 are computed in float32 throughout and rounded at the end. spans: x (1, S, I) holds sequences
    of different lengths there; h0, c0, h and c have one row a sequence, and out is zero between them. Asynchronous: one
    launch for all steps up to H = 256 in float32 from SM 9.0 on, else in one a step; the order of additions is fixed,
    the same in both: a sequence's bits do not depend on the others. Raises ShapeError, DTypeError, DeviceMismatchError.
    """
    dtype = _check("lstm_forward", x, W_ih, W_hh, b_ih, b_hh, h0, c0, spans)
    out, h, c = _run(x, [(W_ih, W_hh, b_ih, b_hh)], h0, c0, reverse, spans)
    return _as(out, dtype), _as(h[0], dtype), _as(c[0], dtype)


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
    spans: Spans | None = None,
) -> States:
    """(out, h, c) of lstm_forward() in both directions: out (B, S, 2H), forward first; h and c (2, B, H).

    Both directions have the same H and types. spans and errors as lstm_forward() has them.
    """
    what = "lstm_bidirectional"
    forward, backward = (W_ih_fwd, W_hh_fwd, b_ih_fwd, b_hh_fwd), (W_ih_bwd, W_hh_bwd, b_ih_bwd, b_hh_bwd)
    dtype = _check(what, x, *forward, None, None, spans)
    _check(what, x, *backward, None, None, spans)
    if W_hh_bwd.shape[1] != W_hh_fwd.shape[1]:
        raise ShapeError(f"{what}: W_hh_fwd has shape {W_hh_fwd.shape} and W_hh_bwd {W_hh_bwd.shape}; H must be equal")
    out, h, c = _run(x, [forward, backward], None, None, False, spans)
    return _as(out, dtype), _as(h, dtype), _as(c, dtype)


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
    spans: Spans | None,
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
    if spans is not None and (x.shape[0] != 1 or x.shape[1] != spans.total):
        raise ShapeError(f"{what}: x has shape {x.shape}, must be (1, {spans.total}, I) for these spans")
    sequences = x.shape[0] if spans is None else len(spans)
    expected: dict[str, tuple[int, ...]] = {"W_ih": (4 * hidden, x.shape[2]), "W_hh": (4 * hidden, hidden)}
    expected |= dict.fromkeys(("b_ih", "b_hh"), (4 * hidden,)) | dict.fromkeys(("h0", "c0"), (sequences, hidden))
    for name, shape in expected.items():
        if name in named and named[name].shape != shape:
            raise ShapeError(f"{what}: {name} has shape {named[name].shape}, must be {shape} for x of shape {x.shape}")
    check_devices(what, *named.values())
    return x.dtype


def _run(
    x: GPUArray,
    weights: Sequence[Weights],
    h0: GPUArray | None,
    c0: GPUArray | None,
    reverse: bool,
    spans: Spans | None,
) -> States:
    """All steps of each direction, in float32 or float64: out (B, S, D H), the last hidden states and cells
    (D, sequences, H)."""
    wide = float64 if x.dtype == float64 else float32
    source, first = _as(x, wide), weights[0][1]
    batch, steps, hidden, directions = x.shape[0], x.shape[1], first.shape[1], len(weights)
    sequences = batch if spans is None else len(spans)
    out = native.empty((batch, steps, directions * hidden), wide)
    products, bias = (native.empty((directions, *shape), wide) for shape in ((batch, steps, 4 * hidden), (4 * hidden,)))
    h, c = (native.empty((directions, sequences, hidden), wide) for _ in range(2))
    for target, start in ((h, h0), (c, c0)):
        if start is not None:
            copying.copy_to(_as(start, wide), target[0])
        elif target.size:
            copying.fill(target, 0)
    if out.size and spans is not None and not spans.gapless:
        copying.fill(out, 0)
    if not out.size or not h.size:
        return out, h, c
    matrices = []
    for number, (W_ih, W_hh, b_ih, b_hh) in enumerate(weights):
        if W_ih is None:
            copying.copy_to(source, products[number])
        else:
            matmul(source, _as(W_ih, wide).T, out=products[number])
        elementwise.add(_as(b_ih, wide), _as(b_hh, wide), out=bias[number])
        matrices.append(copying.contiguous(_as(W_hh, wide)))
    work = Work(products, h, matrices, bias, c, out, reverse, spans)
    if host.computes():
        native.host_launch("lstm", lambda: leaf.run(work), [products, h, bias, c, out, *matrices])
        return out, h, c
    return out, launch.run(work), c
