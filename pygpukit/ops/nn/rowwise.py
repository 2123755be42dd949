"""Launching kernels that turn rows into rows: held in registers, read several times, or lying side by side.

How many threads a row gets follows from its length and type alone, so a row's bits do not depend on the other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.array.layout import Shape
from pygpukit.core.choices import by_device
from pygpukit.core.dtypes import DataType
from pygpukit.core.errors import DTypeError
from pygpukit.kernels.structure import in_header
from pygpukit.ops.elementwise.pointwise import packed_layout
from pygpukit.ops.operands import check_array, check_devices, check_out, may_share_memory, overlaps

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_WORK = in_header("row_work.cuh", "RowWork")
FLOATS = ("float16", "bfloat16", "float32", "float64")
_LOAD_BYTES = 16
_WARP = 32
_HELD = 8  # row_work.cuh: kHeld
_LONG_ROW = 256  # row_work.cuh: kLongRow
_BLOCK = 128  # threads of a block, unless a row needs more
_PAIRED = 256  # at most, of a block whose groups have two rows
_SHORT = 4  # rows of a group whose threads have a load of each: row_work.cuh, packs_held()
TOGETHER = (2, _SHORT)  # rows of a group of threads, of several
_PAIR_LOADS = _WARP * _HELD // 2  # of a row of which a warp has two
_SIDE = 256  # of a block with rows side by side


@dataclass(frozen=True)
class Work:
    """One launch. form: rows (held in registers), long or columns; layout: row_work.cuh's RowWork.

    together: rows of a group of threads, where the form is rows. columns: neighbours are `lanes` rows, and a block has
    one such group.
    """

    form: str
    dense: bool
    blocks: int
    threads: int
    layout: bytes
    together: int = 1
    lanes: int = 0

    def kernel(self, family: str, types: str, last: str = "") -> str:
        """The name expression of the kernel. last: further arguments of the template."""
        flag = "true" if self.dense else "false"
        if self.form == "long":
            return f"pk::{family}_long<{types}, {flag}{last}>"
        return f"pk::{family}_rows<{types}, {flag}, {self.threads}, {self.together}{last}>"


@by_device
def plan(
    shape: Shape,
    strides: Shape,
    out_strides: Shape,
    axis: int,
    start: int,
    itemsize: int,
    aligned: bool,
    side: bool = False,
    pairs: bool | None = None,
) -> Work:
    """The launch for rows along an axis of a non-empty array.

    strides, out_strides, start: in elements. aligned: all pointers lie at multiples of 16 bytes. side: the kernel can
    take rows that lie side by side. pairs: it takes two rows at a time where it can; False: of such a kernel only the
    form with one row and the largest block may be used; None: it takes two of those that a warp can hold so, and blocks
    no larger than a row needs. Short rows are taken four at a time, but dense ones of pairs.
    """
    size, step, out_step = shape[axis], strides[axis], out_strides[axis]
    kept, (steps, out_steps) = layout.collapse(
        *((shape[:axis] + shape[axis + 1 :]), [s[:axis] + s[axis + 1 :] for s in (strides, out_strides)])
    )
    columns, together = (1, 0, 0), 1
    nearest = [i for i, each in enumerate(steps) if 0 < abs(each) < abs(step)] if side and size > 1 else []
    if nearest:
        i = min(nearest, key=lambda i: abs(steps[i]))
        columns = (kept[i], steps[i], out_steps[i])
        kept, steps, out_steps = (values[:i] + values[i + 1 :] for values in (kept, steps, out_steps))
    rows = prod(kept)
    per_load = _LOAD_BYTES // itemsize
    dense = aligned and step == out_step == 1
    dense = dense and all(each % per_load == 0 for each in (size, *steps, *out_steps))
    if nearest:
        form, threads, lanes = "columns", _SIDE, min(32, _power_of_two(columns[0]))
        blocks = rows * -(-columns[0] // lanes)
    elif pairs is not False and -(-size // per_load) <= _WARP and not (pairs and dense):
        form, threads, together, lanes = "rows", _BLOCK, _SHORT, _lanes(-(-size // per_load))
        blocks = -(-rows // (threads // lanes * together))
    elif pairs and (lanes := _lanes(-(-size // per_load), _HELD // 2)) <= _PAIRED:
        form, threads, together = "rows", _BLOCK if lanes <= _BLOCK else _PAIRED, 2
        blocks = -(-rows // (threads // lanes * together))
    elif pairs is None and -(-size // per_load) <= _PAIR_LOADS:  # the same threads as one at a time
        form, threads, together, lanes = "rows", _BLOCK, 2, _WARP
        blocks = -(-rows // (threads // lanes * together))
    elif (lanes := _lanes(-(-size // per_load))) <= (max_threads := _max_threads(itemsize)):
        form, threads = "rows", max_threads if pairs is not None else max(_BLOCK, lanes)
        blocks = -(-rows // (threads // lanes))
    else:
        form, threads, lanes, blocks = "long", _LONG_ROW, _LONG_ROW, rows
    wide, column_step, column_out_step = columns
    packed = _WORK.pack(
        kept=packed_layout(rows, kept, (start, 0), (steps, out_steps)),
        size=size,
        step=step,
        out_step=out_step,
        columns=wide,
        column_step=column_step,
        column_out_step=column_out_step,
        lanes=lanes,
    )
    return Work(form, dense, blocks, threads, packed, together, lanes)


def kernels(
    family: str,
    types: str,
    itemsize: int,
    pairs: bool = False,
    last: Callable[[bool], Iterable[str]] = lambda _: ("",),
    long: tuple[str, ...] = ("long",),
) -> list[str]:
    """Name expressions of all kernels along rows of a family. last: further arguments of dense and of other ones. long:
    what the kernels of rows that are too long to be held are called."""
    max_threads = _max_threads(itemsize)
    alone = dict.fromkeys((_BLOCK, 2 * _BLOCK, max_threads))
    sizes = (
        (f"{_BLOCK}, 2", f"{_PAIRED}, 2", f"{max_threads}, 1")
        if pairs
        else (f"{_BLOCK}, 2", *(f"{threads}, 1" for threads in alone))
    )
    expressions = []
    for dense, flag in ((True, "true"), (False, "false")):
        for more in last(dense):
            expressions += [f"pk::{family}_{form}<{types}, {flag}{more}>" for form in long]
            own = sizes if dense and pairs else (f"{_BLOCK}, {_SHORT}", *sizes)
            expressions += [f"pk::{family}_rows<{types}, {flag}, {size}{more}>" for size in own]
    return expressions


def _max_threads(itemsize: int) -> int:
    """Of a block whose threads hold elements of that size in registers: 16384 columns, of float64 8192."""
    return 256 if itemsize == 2 else 512


def _lanes(loads: int, held: int = _HELD) -> int:
    """Threads for a row of so many loads: one each up to a warp, then as few warps as can hold the row."""
    return _power_of_two(loads) if loads <= _WARP else max(_WARP, _power_of_two(-(-loads // held)))


def _power_of_two(value: int) -> int:
    return 1 << max(0, value - 1).bit_length()


def check_rows(name: str, a: GPUArray) -> GPUArray:
    """a, an array of floats on the current device. Raises DTypeError and DeviceMismatchError."""
    a = check_array(a, name)
    check_devices(name, a)
    if a.dtype.name not in FLOATS:
        raise DTypeError(f"{name}: {a.dtype} has no {name}; convert with .astype('float32') first")
    return a


def target(name: str, a: GPUArray, dtype: DataType, out: GPUArray | None, *others: GPUArray) -> GPUArray:
    """Where the kernel writes: out itself where it can, which may be a itself, else a new dense array."""
    if out is None:
        return native.empty(a.shape, dtype)
    check_devices(f"{name}: out", out)
    check_out(out, a.shape, dtype, name)
    fits = out.dtype == dtype and out.is_contiguous() and not overlaps(out, a)
    if fits and not any(may_share_memory(out, other) for other in others):
        return out
    return native.empty(a.shape, dtype)
