"""Checks of every operation before it launches: operand kinds, devices, output arrays and overlap."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import DataType
from pygpukit.core.errors import DeviceMismatchError, DTypeError, ShapeError

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.elementwise.operations import Op

    Operand: TypeAlias = "GPUArray | promotion.Scalar"


class Deferred(ABC):
    """Stands for an array while a function is traced (ops/fusion/trace.py): operations on it are recorded, not run."""

    __slots__ = ()

    @abstractmethod
    def record(self, op: Op, operands: Sequence[Any], out: Any) -> Any:
        """The expression that stands for op(*operands)."""

    @abstractmethod
    def settle(self, number: Any) -> Any:
        """The value of a number that decides what is recorded; another value is traced anew."""


class NoOperandError(DTypeError):
    """An operand of a type that no operation knows. Operators leave it to that type."""


def is_array(value: object) -> TypeGuard[GPUArray]:
    """True for a GPUArray."""
    return isinstance(value, native.ArrayBase)


def check_operand(value: Any, what: str) -> Operand:
    """value as an array or Python number; a NumPy scalar becomes a 0-d array of its type.

    Raises DTypeError for anything else, and says how to bring it to the device.
    """
    if is_array(value):
        return value
    if isinstance(value, (bool, int, float, complex)) and type(value).__module__ != "numpy":
        return value
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):
        from pygpukit.array.factory import from_numpy

        return from_numpy(value)
    known = isinstance(value, (list, tuple)) or hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")
    raise (DTypeError if known else NoOperandError)(
        f"{what}: a {type(value).__name__} is not an operand; nothing is copied to the device implicitly, "
        "use gp.from_numpy(...) or gp.asarray(...)"
    )


def check_array(value: Any, what: str) -> GPUArray:
    """value, which must be a GPUArray. Raises DTypeError naming what was given."""
    if is_array(value):
        return value
    if isinstance(value, Deferred):
        raise DTypeError(f"{what}: works on whole arrays and cannot be fused; call it outside of the fused function")
    raise DTypeError(
        f"{what}: expected a GPUArray, got a {type(value).__name__}; "
        "nothing is copied to the device implicitly, use gp.from_numpy(...) or gp.asarray(...)"
    )


def check_input(value: Any, what: str) -> GPUArray:
    """check_array(), which also lets through what stands for an array in a fused function."""
    return value if isinstance(value, Deferred) else check_array(value, what)  # type: ignore[return-value]


def check_devices(what: str, *arrays: GPUArray) -> None:
    """Raises DeviceMismatchError unless all arrays live on the current device."""
    current = native.current_device()
    for position, array in enumerate(arrays):
        if array.device != current:
            raise DeviceMismatchError(
                f"{what}: array {position} is on device {array.device}, work goes to device {current}; "
                f"copy it by .to({current}), or work where it is: with gp.cuda.Device({array.device}):"
            )


def check_out(out: Any, shape: layout.Shape, dtype: DataType, what: str) -> GPUArray:
    """out, which must be an array of that shape whose type can take results of dtype (NumPy's same_kind rule)."""
    array = check_array(out, f"{what}: out")
    check_writable(array, f"{what}: out")
    if array.shape != shape:
        raise ShapeError(f"{what}: out has shape {array.shape}, the result has shape {shape}")
    if not promotion.can_store(dtype, array.dtype):
        raise DTypeError(
            f"{what}: a {dtype} result cannot be stored in an array of {array.dtype}; "
            f"drop out= (or the in-place form), or convert with .astype({array.dtype.name!r})"
        )
    return array


def check_writable(array: GPUArray, what: str) -> None:
    """Raises ShapeError for a broadcast view: several of its elements are one in memory."""
    if 0 in array.strides and any(
        extent > 1 and not step for extent, step in zip(array.shape, array.strides, strict=True)
    ):
        raise ShapeError(f"{what}: a broadcast view of shape {array.shape} cannot be written; use .clone() first")


def same_view(a: GPUArray, b: GPUArray) -> bool:
    """True when both see the same elements in the same order."""
    return _place(a) == _place(b) and (a.shape, a.strides, a.dtype) == (b.shape, b.strides, b.dtype)


def overlaps(a: GPUArray, b: GPUArray) -> bool:
    """True when the arrays may share bytes and are not the very same view (which elementwise work may overwrite)."""
    return may_share_memory(a, b) and not same_view(a, b)


def may_share_memory(a: GPUArray, b: GPUArray) -> bool:
    """True when the bytes from the first to the last of both meet, as numpy.may_share_memory()."""
    (a_block, a_start), (b_block, b_start) = _place(a), _place(b)
    if a_block != b_block or not a.size or not b.size:
        return False
    if a_start == b_start:
        return True
    a_low, a_high = layout.byte_span(a.shape, a.strides, a_start, a.itemsize)
    b_low, b_high = layout.byte_span(b.shape, b.strides, b_start, b.itemsize)
    return a_low < b_high and b_low < a_high


def _place(array: native.ArrayBase) -> tuple[int, int]:
    """Where the first element is: block and offset in it. Memory of other libraries is one block, 0, by address."""
    block = array.block
    return block, array.offset if block else array.device_ptr


def is_aligned(array: native.ArrayBase, boundary: int) -> bool:
    """True where the first element's address is a multiple of `boundary`, at most 256: the pool's blocks begin at such.

    For those it follows from the layout alone and no address is read, so that prepared calls may ask.
    """
    return _place(array)[1] % boundary == 0


def span(array: GPUArray) -> tuple[GPUArray, int]:
    """All storage that a strided array touches, as a dense 1-D array, and the first element's position in it.

    Kernels take dense arrays only; with this one and a by-value layout they walk any strides.
    """
    if array.is_contiguous():
        return array, 0
    low, high = layout.byte_span(array.shape, array.strides, array.offset, array.itemsize)
    size = array.itemsize
    return native.view(array, ((high - low) // size,), (size,), low), (array.offset - low) // size
