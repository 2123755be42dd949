"""Results of products in another type: cast to a float, or divided by a scale and quantised to fp8 or int8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.dtypes import as_dtype, float8_e4m3, float8_e5m2, float32, int8
from pygpukit.core.errors import DTypeError
from pygpukit.core.sizes import factor
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.operands import check_array, check_devices, check_out, is_array, span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType, DTypeLike

LOW_LEVEL = ["quantize"]

SOURCE = kernels.KernelSpec(__file__, "quantise.cu")
_CALL = SOURCE.structure("Quantised")
_SMALL = {float8_e4m3: "pk::e4m3_t", float8_e5m2: "pk::e5m2_t", int8: "signed char"}
_LARGEST = {float8_e4m3: 448.0, float8_e5m2: 57344.0}
_THREADS = 256


class Conversion(NamedTuple):
    """The conversion of a result. scale: of fp8 and int8, an array of one float32 or a number."""

    dtype: DataType
    scale: GPUArray | float

    def reason(self, in_product: bool) -> str:
        """For a plan. in_product: in the launch that makes the product."""
        how = "divided by its scale and quantised" if self.dtype in _SMALL else "cast"
        return f"; then {how} to {self.dtype} {'in that' if in_product else 'by another'} launch"

    def of(self, x: GPUArray, out: GPUArray | None = None) -> GPUArray:
        """x converted; into out, where it is given and checked."""
        if self.dtype not in _SMALL:
            if out is None:
                return copying.astype(x, self.dtype)
            copying.copy_to(x, out)
            return out
        free = out is not None and out.is_contiguous() and out.block != x.block and out.dtype == self.dtype
        target = out if out is not None and free else native.empty(x.shape, self.dtype)
        if target.size:
            _quantise(copying.contiguous(x), target, self.scale)
        if out is None or target is out:
            return target
        copying.copy_to(target, out)
        return out


def quantize(x: GPUArray, dtype: DTypeLike, scale: GPUArray | float = 1.0, *, out: GPUArray | None = None) -> GPUArray:
    """x / scale in float8_e4m3, float8_e5m2 or int8, rounded to nearest even; what is too large becomes the largest
    number, infinities too. NaN stays NaN in fp8 and becomes 0 in int8.

    x: float16, bfloat16, float32 or float64, any shape and strides, divided in float32. scale: a positive number, or
    one element of float32 on the device, which is not looked at. Asynchronous, one launch. Raises DTypeError,
    ShapeError, ValueError, DeviceMismatchError.
    """
    what = "quantize"
    array = check_array(x, what)
    asked = as_dtype(dtype)
    if asked not in _SMALL:
        raise DTypeError(f"{what}: dtype={asked}; it is {', '.join(map(str, _SMALL))}: .astype() converts to others")
    asked_for = conversion(what, array, array.shape, asked, _checked_scale(f"{what}: scale", scale), out)
    assert asked_for is not None  # no float is of such a type
    return asked_for.of(array, out)


def conversion(
    what: str,
    result: Any,
    shape: tuple[int, ...],
    out_dtype: DTypeLike | None,
    out_scale: GPUArray | float | None,
    out: GPUArray | None = None,
) -> Conversion | None:
    """The requested conversion, checked; None where the result is of that type. result: an array of
    the result's type before, or the type. Raises DTypeError, ShapeError, ValueError, DeviceMismatchError."""
    if out_dtype is None:
        raise ValueError(f"{what}: out_scale={out_scale} without out_dtype=: it is the scale of float8 or int8 results")
    source, target = result.dtype if is_array(result) else result, as_dtype(out_dtype)
    if source not in promotion.FLOATS or target not in (*_SMALL, *promotion.FLOATS):
        raise DTypeError(
            f"{what}: a result of {source} cannot become out_dtype={target}; floats become "
            f"{', '.join(map(str, (*promotion.FLOATS, *_SMALL)))}"
        )
    if target not in _SMALL and out_scale is not None:
        raise ValueError(f"{what}: out_scale={out_scale} with out_dtype={target}; only float8 and int8 have a scale")
    scale = 1.0 if out_scale is None else _checked_scale(f"{what}: out_scale", out_scale)
    if out is not None and check_out(out, shape, target, what).dtype != target:
        raise DTypeError(f"{what}: out is {out.dtype} and out_dtype={target}; they must be alike")
    return None if target == source else Conversion(target, scale)


def _checked_scale(field: str, scale: Any) -> GPUArray | float:
    if not is_array(scale):
        return factor(scale, field, positive=True)
    if scale.dtype != float32 or scale.size != 1:
        raise DTypeError(f"{field} is {scale.dtype} of shape {scale.shape}; it is one element of float32")
    check_devices(field, scale)
    return scale


def _quantise(x: GPUArray, out: GPUArray, scale: GPUArray | float) -> None:
    """out = x / scale, both dense."""
    arrays = [scale] if is_array(scale) else []
    if host.computes():
        native.host_launch("quantize", lambda: _on_host(x, out, scale), [x, *arrays, out])
        return
    number = 1.0 if is_array(scale) else float(scale)
    call = _CALL.pack(size=x.size, scale=number, scaled=bool(arrays))
    blocks = -(-x.size // (_THREADS * (16 // x.itemsize)))
    scales = span(arrays[0])[0] if arrays else x
    kernels.launch(SOURCE.of(_expression(x.dtype, out.dtype)), (blocks, 1, 1), (_THREADS, 1, 1), x, scales, out, call)


def _on_host(x: GPUArray, out: GPUArray, scale: GPUArray | float) -> None:
    import numpy as np

    divisor = host.values(scale).reshape(())[()] if is_array(scale) else np.float32(scale)
    with np.errstate(all="ignore"):
        values = host.values(x).astype(np.float32) / divisor
        if out.dtype == int8:
            host.store(out, np.nan_to_num(np.clip(np.rint(values), -128, 127)))
        else:
            host.store(out, np.clip(values, -_LARGEST[out.dtype], _LARGEST[out.dtype]))


def _expression(source: DataType, target: DataType) -> str:
    return f"pk::quantised<{CTYPES[source.name]}, {_SMALL[target]}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    yield tuple(_expression(source, target) for source in promotion.FLOATS for target in _SMALL)
