"""Snake, the periodic activation of vocoders: x + sin(a x)^2 / a (Ziyin, Hartwig and Ueda 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["snake"]

SOURCE = kernels.KernelSpec(__file__, "snake.cu")
_SNAKE = SOURCE.structure("Snake")
_BLOCK = 256


def snake(input: GPUArray, alpha: GPUArray) -> GPUArray:
    """x + sin(a x)^2 / a: input (B, C, L), alpha (C,), the a of each channel, no element of it zero.

    Both of one float type; float16 and bfloat16 are computed in float32 and rounded once. Asynchronous. Raises
    ShapeError, DTypeError, DeviceMismatchError.
    """
    check_array(input, "snake: input")
    check_array(alpha, "snake: alpha")
    if input.dtype not in promotion.FLOATS or alpha.dtype != input.dtype:
        raise DTypeError(f"snake: both must have one float type; they have {input.dtype} and {alpha.dtype}")
    if input.ndim != 3 or alpha.shape != input.shape[1:2]:
        raise ShapeError(f"snake: shapes {input.shape} and {alpha.shape}; they must be (B, C, L) and (C,)")
    check_devices("snake", input, alpha)
    out = native.empty(input.shape, input.dtype)
    if not out.size:
        return out
    input, alpha = copying.contiguous(input), copying.contiguous(alpha)
    if host.computes():
        native.host_launch("snake", lambda: _on_host(input, alpha, out), [input, alpha, out])
        return out
    packed = _SNAKE.pack(size=out.size, channels=out.shape[1], length=out.shape[2])
    kernels.launch(
        SOURCE.of(f"pk::snake<{CTYPES[out.dtype.name]}>"),
        (-(-out.size // _BLOCK), 1, 1),
        (_BLOCK, 1, 1),
        *(input, alpha, out, packed),
    )
    return out


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that snake() can ask for."""
    yield tuple(f"pk::snake<{CTYPES[dtype.name]}>" for dtype in promotion.FLOATS)


def _on_host(input: GPUArray, alpha: GPUArray, out: GPUArray) -> None:
    import numpy as np

    wide = np.float64 if input.dtype == "float64" else np.float32
    x, a = (host.values(array).astype(wide, copy=False) for array in (input, alpha))
    a = a[:, None]
    with np.errstate(all="ignore"):
        result = x * a
        np.sin(result, out=result)
        result *= result
        result /= a
        result += x
    host.store(out, result)
