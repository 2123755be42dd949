"""Products of tiles: mma() and matmul(), in the types that tensor cores take and give."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.cutile.arithmetic import astype, common_type
from pygpukit.cutile.block import plain, refused
from pygpukit.cutile.dtypes import DTYPES, DType
from pygpukit.cutile.rounding import rounded
from pygpukit.cutile.tile import Tile, of

Array: TypeAlias = "np.ndarray[Any, Any]"

# The types of the accumulator by the operands', the usual one first.
_ACCUMULATORS = {
    "float8_e4m3fn": ("float16", "float32"),
    "float8_e5m2": ("float16", "float32"),
    "float16": ("float16", "float32"),
    "bfloat16": ("float32",),
    "float32": ("float32",),
    "tfloat32": ("float32",),
    "float64": ("float64",),
    "int8": ("int32",),
    "uint8": ("int32",),
}


def mma(x: Any, y: Any, /, acc: Any, *, use_fast_acc: Any = False) -> Tile:
    """x @ y + acc in the accumulator's type. Raises DTypeError, ShapeError for what tensor cores do not take."""
    left, right, total = of(x, "mma: x"), of(y, "mma: y"), of(acc, "mma: acc")
    if min(left.ndim, right.ndim) < 2:
        raise refused(ShapeError(f"mma: x has shape {left.shape} and y {right.shape}; they need two axes or more"))
    dtypes = _accumulators("mma", left.dtype, right.dtype)
    if total.dtype.name not in dtypes:
        raise refused(DTypeError(f"mma: acc is {total.dtype}; of {left.dtype} it must be {' or '.join(dtypes)}"))
    if plain(use_fast_acc, "mma: use_fast_acc") and left.dtype.bitwidth != 8:
        raise refused(DTypeError(f"mma: use_fast_acc is for float8, not {left.dtype}"))
    shape = _shape("mma", left, right)
    if total.shape != shape:
        raise refused(ShapeError(f"mma: acc has shape {total.shape}; x {left.shape} times y {right.shape} is {shape}"))
    return _product(left, right, total, total.dtype)


def matmul(x: Any, y: Any, /) -> Tile:
    """x @ y in the operands' common type."""
    left, right = of(x, "matmul: x"), of(y, "matmul: y")
    if not (left.ndim and right.ndim):
        raise refused(ShapeError(f"matmul: x has shape {left.shape} and y {right.shape}; a scalar has no rows"))
    dtype = common_type("matmul", left, right)
    accumulator = DTYPES[_accumulators("matmul", dtype, dtype)[0]]
    _shape("matmul", left, right)
    return astype(_product(astype(left, dtype), astype(right, dtype), None, accumulator), dtype)


def _accumulators(what: str, left: DType, right: DType) -> tuple[str, ...]:
    bytes_alone = {left.name, right.name} <= {"int8", "uint8"}
    if left != right and not bytes_alone:
        raise refused(DTypeError(f"{what}: x is {left} and y {right}; they must have one type"))
    if left.name not in _ACCUMULATORS:
        raise refused(DTypeError(f"{what}: {left} is no type of products; there are: {', '.join(_ACCUMULATORS)}"))
    return _ACCUMULATORS[left.name]


def _shape(what: str, left: Tile, right: Tile) -> tuple[int, ...]:
    k = right.shape[-2] if right.ndim > 1 else right.shape[0]
    try:
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ValueError:
        batch, k = (), -1
    if left.shape[-1] != k:
        raise refused(ShapeError(f"{what}: tiles of shapes {left.shape} and {right.shape} have no product"))
    return (*batch, *left.shape[-2:-1], *(right.shape[-1:] if right.ndim > 1 else ()))


def _product(left: Tile, right: Tile, total: Tile | None, dtype: DType) -> Tile:
    """Sums in float32, float64 of float64, and whole numbers exactly, which then wrap."""
    wide = np.float64 if dtype.name in ("float64", "int32") else np.float32
    with np.errstate(all="ignore"):
        result = np.matmul(left.data.astype(wide), right.data.astype(wide))
        if dtype.name == "int32":
            result = result.astype(np.int64)
        if total is not None:
            result = result + total.data
    unknown = None
    if left.undetermined is not None or right.undetermined is not None:
        masks = [np.zeros(one.shape, np.float32) if one.undetermined is None else one.undetermined.astype(np.float32)
                 for one in (left, right)]  # fmt: skip
        ones = [np.ones(one.shape, np.float32) for one in (left, right)]
        unknown = (np.matmul(masks[0], ones[1]) + np.matmul(ones[0], masks[1])) > 0
    if total is not None and total.undetermined is not None:
        unknown = total.undetermined if unknown is None else unknown | total.undetermined
    return Tile(np.asarray(rounded(result, dtype)), dtype, None if unknown is None else np.asarray(unknown))
