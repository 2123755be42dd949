"""Normalisation over a sentence's own time, scaled and shifted by a style, with the activation after it: one launch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import DataType, float16, float32
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, host
from pygpukit.ops.host_parts import in_parts
from pygpukit.ops.nn.spans import Spans
from pygpukit.ops.operands import check_array, check_devices, span
from pygpukit.tts.layers import style_last
from pygpukit.tts.layers.merge import merge

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "style.cu", options=kernels.SAME_BITS)
_STYLE = SOURCE.structure("Style")
_BLOCK = 512
_CACHED = 1 << 16  # elements that the host reads and writes again and again


@dataclass(frozen=True)
class Activation:
    """A leaky ReLU of that slope, or the snake of these alphas (C,), or neither."""

    slope: float | None = None
    alpha: GPUArray | None = None


NONE = Activation()


def adapt(
    x: GPUArray,
    scale: GPUArray | None,
    shift: GPUArray | None,
    eps: float,
    *,
    other: GPUArray | None = None,
    plus_one: bool = False,
    act: Activation = NONE,
    spans: Spans | None = None,
    dtype: DataType = float32,
) -> tuple[GPUArray, GPUArray]:
    """act(scale n + shift), n being each channel of each sentence of x + other (B, C, L) less its mean, over its
    deviation; and x + other.

    x: float32, or float16 with its channels dense, as tensor cores leave it; the result has its layout. other: float32,
    or None for nothing. scale, shift: (C,), or (sentences, C), rows any step apart, float32. plus_one: the scale is 1
    more. spans: x is (1, C, L) and has several sentences; between them the result is zero. dtype: of the result. The
    order of additions is fixed and follows from a sentence's length and the layout. Raises ShapeError, DTypeError,
    DeviceMismatchError.
    """
    sentences = x.shape[0] if spans is None else len(spans)
    operands = [array for array in (scale, shift, act.alpha, other) if array is not None]
    for array in (x, *operands):
        check_array(array, "adapt")
        if array.dtype != float32 and (array is not x or x.dtype != float16 or x.ndim != 3 or not style_last.has(x)):
            raise DTypeError(f"adapt: arrays of float32, not {array.dtype}")
    check_devices("adapt", x, *operands)
    if x.ndim != 3 or not sentences or (spans is not None and (x.shape[0], x.shape[2]) != (1, spans.total)):
        raise ShapeError(f"adapt: x has shape {x.shape}; it must be (B, C, L), and with spans (1, C, their total)")
    channels = x.shape[1]
    weights = [array for array in (scale, shift, act.alpha) if array is not None]
    if any(array.shape not in ((channels,), (sentences, channels)) for array in weights):
        shapes = ", ".join(str(array.shape) for array in weights)
        raise ShapeError(f"adapt: weights of shapes {shapes}; they must be ({channels},) or ({sentences}, {channels})")
    if other is not None and other.shape != x.shape:
        raise ShapeError(f"adapt: x has shape {x.shape} and what is added {other.shape}; they must be one")
    last = style_last.has(x) and not host.computes()
    if other is not None and not (last and style_last.has(other)):
        x, other = merge([x if x.dtype == float32 else copying.astype(x, float32), other]), None
    out = style_last.like(x, dtype) if last else native.empty(x.shape, dtype)
    if not out.size:
        return out, x
    if host.computes():
        pairs = None if spans is None else spans.pairs
        work = lambda: _on_host(x, scale, shift, eps, plus_one, act, pairs, out)  # noqa: E731
        native.host_launch("adapt", work, [x, out, *weights])
        return out, x
    (scale, shift), starts, step = _placed(scale, shift)
    fields = {
        "has_scale": scale is not None,
        "has_shift": shift is not None,
        "plus_one": plus_one,
        "scale_start": starts[0],
        "shift_start": starts[1],
        "weight_step": step,
        "act": 1 if act.slope is not None else 2 if act.alpha is not None else 0,
        "slope": act.slope or 0.0,
        "epsilon": eps,
    }
    if last:
        return out, style_last.run(x, other, (scale, shift), act.alpha, out, spans, fields)
    if dtype != float32:
        raise DTypeError(f"adapt: {dtype} is made where channels are dense; x has strides {x.strides}")
    count = 0 if spans is None else len(spans)
    dense = copying.contiguous(x)
    packed = _STYLE.pack(**fields, channels=channels, length=x.shape[2], items=x.shape[0], spans=count)
    arrays = (dense, *(dense if array is None else array for array in (scale, shift, act.alpha)))
    places = dense if spans is None else spans.device
    kernels.launch(SOURCE.of("pk::adapt"), (channels, sentences, 1), (_BLOCK, 1, 1), *arrays, places, out, packed)
    return out, x


def _placed(*weights: GPUArray | None) -> tuple[list[GPUArray | None], list[int], int]:
    """The storage of each, the element of it where its first row begins, and elements from row to row, of all alike."""
    operands = [array for array in weights if array is not None]
    if len({array.ndim for array in operands}) > 1:
        raise ShapeError("adapt: scale and shift must both be of each sentence, or both of all")
    steps = {array.strides[0] // array.itemsize if array.ndim == 2 else 0 for array in operands}
    if len(steps) > 1 or any(array.strides[-1] != array.itemsize for array in operands):
        dense = [None if array is None else copying.contiguous(array) for array in weights]
        return dense, [0] * len(dense), operands[0].shape[1] if operands[0].ndim == 2 else 0
    places = [(None, 0) if array is None else span(array) for array in weights]
    return [storage for storage, _ in places], [start for _, start in places], steps.pop() if steps else 0


def _on_host(
    x: GPUArray,
    scale: GPUArray | None,
    shift: GPUArray | None,
    eps: float,
    plus_one: bool,
    act: Activation,
    pairs: tuple[tuple[int, int], ...] | None,
    out: GPUArray,
) -> None:
    """Sentence by sentence, and some channels at a time, which stay in the processor's cache."""
    import numpy as np

    values, target = host.values(x), host.memory(out)
    direct = out.dtype == float32
    if not direct:
        target = np.empty(out.shape, np.float32)
    if pairs is not None:
        target[...] = 0  # between the sentences
    weights = [None if array is None else host.memory(array) for array in (scale, shift, act.alpha)]
    for number in range(x.shape[0] if pairs is None else len(pairs)):
        item, (start, length) = (number, (0, x.shape[2])) if pairs is None else (0, pairs[number])
        rows, output = values[item, :, start : start + length], target[item, :, start : start + length]
        vectors = [
            None if vector is None else (vector if vector.ndim == 1 else vector[number])[:, None] for vector in weights
        ]

        def some(first: int, end: int, rows: Any = rows, output: Any = output, vectors: Any = vectors) -> None:
            sliced = [None if vector is None else vector[first:end] for vector in vectors]
            wide = rows[first:end].astype(np.float32, copy=False)  # float16 is computed in float32, as in the kernels
            _adapted(wide, sliced, eps, plus_one, act.slope, output[first:end])

        in_parts(rows.shape[0], max(1, _CACHED // max(1, length)), some)
    if not direct:
        host.store(out, target)


def _adapted(x: Any, weights: list[Any], eps: float, plus_one: bool, slope: float | None, out: Any) -> None:
    """Of some channels (C, L), into out. weights: scale, shift and alpha."""
    import numpy as np

    scale, shift, alpha = weights
    with np.errstate(all="ignore"):
        centered = x - x.mean(axis=1, keepdims=True)
        other = np.square(centered)
        deviation = np.sqrt(other.mean(axis=1, keepdims=True) + np.float32(eps))
        centered /= deviation
        if scale is not None:
            centered *= scale + np.float32(plus_one)
        if shift is not None:
            centered += shift
        if slope is not None:
            np.maximum(centered, np.multiply(centered, np.float32(slope), out=other), out=centered)
        if alpha is not None:
            np.multiply(centered, alpha, out=other)
            np.sin(other, out=other)
            np.square(other, out=other)
            other /= alpha
            centered += other
        out[...] = centered


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """The one kernel."""
    yield ("pk::adapt",)
