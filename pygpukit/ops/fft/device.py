"""Transforms on the device: the kernels of fft.cu, and what longer and other lengths are put together from.

A length whose prime factors are at most 13 takes one kernel while a block's shared memory holds it, and more beyond:
D. H. Bailey, "FFTs in external or hierarchical memory" (1990). Any other length is a convolution with a chirp, of two
transforms of a smooth length: L. Bluestein (1970). Real numbers of even length are transformed two at a time as complex
ones, where one kernel does it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.core.dtypes import DataType, complex64, complex128, float32
from pygpukit.ops.elementwise.pointwise import CTYPES, packed_layout
from pygpukit.ops.fft import tables
from pygpukit.ops.fft.plan import Plan, halves, held, longest_held, padded, plan, smooth
from pygpukit.ops.operands import span
from pygpukit.ops.shape import moveaxis

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "fft.cu", options=(*kernels.SAME_BITS, *kernels.GENERIC_LAMBDAS))
_CALL = SOURCE.structure("FftCall")
# fft.cu: the forms
_PACKED, _MIRRORED, _BEFORE, _AFTER, _TWIDDLED, _WHOLE, _DENSE, _CONVOLVED, _LONG = (1 << bit for bit in range(9))
_MAX_TWIDDLES = 1 << 16  # of a table of all of them; two tables and a product were measured to be faster for 1 << 20
# Lengths whose kernels are compiled ahead of time; others are compiled when they are first used.
AHEAD = {
    "complex64": (*(1 << bits for bits in range(4, 13)), 400, 480, 1000, 1536, 3000),
    "complex128": (256, 1024),
}


@dataclass(frozen=True)
class _Job:
    """Transforms along the last axis, as fft.cu's FftCall tells them; limits of positions, not of elements."""

    source: GPUArray
    target: GPUArray
    length: int
    limit: tuple[int, int]
    mirror: int = 0
    factor: float = 1.0
    exchange: tuple[int, int, int] = (0, 0, 0)
    before: GPUArray | None = None
    after: GPUArray | None = None
    chirp: int = 0  # the length of the one that a kernel convolves with; 0: none
    period: int = 1
    element: tuple[int, int] = (1, 1)
    line: tuple[int, int] = (0, 0)
    fine: int = 0  # bits of the indices of the first of two tables of turns in `after`; 0: `after` goes by position


def transform(name: str, a: GPUArray, n: int, axis: int, factor: float, out: GPUArray) -> None:
    """out = factor * the transform with NumPy's name, unscaled. Neither array is empty."""
    dtype = complex64 if out.dtype in (float32, complex64) else complex128
    inverse, to_real = name.startswith("i"), name == "irfft"
    source, target = moveaxis(a, axis, -1), moveaxis(out, axis, -1)
    bins = n // 2 + 1 if to_real else n
    job = _Job(
        source,
        target,
        n,
        (min(source.shape[-1], bins), target.shape[-1]),
        mirror=n if to_real else 0,
        factor=factor,
        exchange=(inverse, 0, inverse),
    )
    if not smooth(n):
        _convolve(job, dtype)
    elif name in ("rfft", "irfft") and n % 2 == 0 and held(n // 2, dtype.itemsize, at_once=True):
        _launch(replace(job, length=n // 2), dtype, _PACKED)
    else:
        _transform(job, dtype)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of kernels for common lengths, of transforms that lie one after the other."""
    for name, lengths in AHEAD.items():
        value, number = CTYPES[name], CTYPES["float32" if name == "complex64" else "float64"]
        itemsize = DataType.from_string(name).itemsize
        for n in lengths:
            whole, half = plan(n, itemsize), plan(n // 2, itemsize)
            yield tuple(
                _expression(source, target, form | dense, chosen.lines(False), chosen)
                for source, target, form, chosen in (
                    (value, value, 0, whole),
                    (number, value, _PACKED, half),
                    (value, number, _PACKED | _MIRRORED, half),
                )
                for dense in (0, _DENSE)
            )


def _transform(job: _Job, dtype: DataType) -> None:
    """A smooth length, in one kernel, in two, or in as many as it takes."""
    n, size = job.length, dtype.itemsize
    if held(n, size):
        _launch(job, dtype)
        return
    rows, columns = halves(n)
    between = native.empty((*job.target.shape[:-1], n), dtype)
    if held(rows, size):
        _columns_first(job, rows, between, dtype)
        second = replace(job, source=between, length=columns, period=rows, element=(1, rows), line=(columns, 1))
        _launch(_ending(second), dtype)
        return
    rows = longest_held(n, size)
    columns = n // rows
    _columns_first(job, rows, between, dtype)
    whole = native.empty(between.shape, dtype)
    batch = job.target.shape[:-1]
    inner = _Job(
        between.reshape(*batch, rows, columns),
        whole.reshape(*batch, columns, rows).swapaxes(-1, -2),
        columns,
        (columns, columns),
    )
    _transform(inner, dtype)
    # What is done to each value, by transforms of one element.
    _launch(_ending(replace(job, source=whole, length=1, period=n, line=(1, 1))), dtype)


def _columns_first(job: _Job, rows: int, between: GPUArray, dtype: DataType) -> None:
    """The work on each element, then transforms over a of elements (n / rows) a + b, each value c turned by b c."""
    n = job.length
    columns = n // rows
    fine = 0 if n <= _MAX_TWIDDLES else (n.bit_length() + 1) // 2
    first = replace(
        job,
        target=between,
        length=rows,
        limit=(job.limit[0], n),
        factor=1.0,
        exchange=(job.exchange[0], 0, 0),
        after=tables.split_roots(n, 1 << fine, dtype) if fine else tables.whole_roots(rows, columns, dtype),
        period=columns,
        element=(columns, columns),
        line=(1, 1),
        fine=fine,
    )
    _launch(first, dtype)


def _ending(job: _Job) -> _Job:
    """The last kernel of a job: it has nothing to do to what it reads."""
    whole = job.source.shape[-1]
    return replace(job, limit=(whole, job.limit[1]), mirror=0, exchange=(0, *job.exchange[1:]), before=None)


def _convolve(job: _Job, dtype: DataType) -> None:
    """Any length: the numbers times a chirp, convolved with its conjugate, times the chirp; in one kernel or more."""
    n = job.length
    length = padded(n, dtype.itemsize)
    chirp = tables.chirp(n, dtype)
    if held(length, dtype.itemsize):
        exchange = (job.exchange[0], 1, job.exchange[2])
        one = replace(job, length=length, exchange=exchange, before=chirp, after=chirp, chirp=n)
        _launch(one, dtype)
        return
    between = native.empty((*job.target.shape[:-1], length), dtype)
    first = replace(
        job,
        target=between,
        length=length,
        limit=(job.limit[0], length),
        factor=1.0,
        exchange=(job.exchange[0], 0, 1),  # the next one is the inverse transform
        before=chirp,
        after=tables.chirp_spectrum(n, length, dtype),
    )
    _transform(first, dtype)
    second = replace(job, source=between, length=length, exchange=(0, 1, job.exchange[2]), after=chirp)
    _transform(_ending(second), dtype)


def _launch(job: _Job, dtype: DataType, form: int = 0) -> None:
    source, target = job.source, job.target
    form |= _MIRRORED if job.mirror else 0
    form |= _CONVOLVED if job.chirp else 0
    form |= _BEFORE if job.before is not None else 0
    form |= 0 if job.after is None else _TWIDDLED if job.fine else _AFTER
    chosen = plan(job.length, dtype.itemsize)
    table = tables.steps(chosen.radices, dtype, bool(form & _PACKED), job.chirp)
    extents, strides = layout.collapse(target.shape[:-1], [x.strides[:-1] for x in (source, target)])
    batch = [[step // x.itemsize for step in own] for x, own in zip((source, target), strides, strict=True)]
    step = (source.strides[-1] // source.itemsize, target.strides[-1] // target.itemsize)
    # From a transform to the next: within a place of the batch, or to the next place.
    apart = [job.line[i] * step[i] if job.period > 1 else (batch[i] or [0])[-1] for i in (0, 1)]
    lines_first = [0 < abs(apart[i]) < abs(job.element[i] * step[i]) for i in (0, 1)]
    together, lines = chosen.lines(any(lines_first)), prod(extents) * job.period
    (read, read_start), (written, written_start) = span(source), span(target)
    if _long(job, step, lines):
        form |= _LONG
    elif _dense(job, form, step, batch):
        form |= _DENSE
    elif any(lines_first) and _whole(job, form):
        form |= _WHOLE
    call = _CALL.pack(
        batch=packed_layout(prod(extents), extents, (read_start, written_start), batch),
        lines=lines,
        period=job.period,
        element=job.element,
        line=job.line,
        step=step,
        stride=[job.element[i] * step[i] for i in (0, 1)],
        limit=job.limit,
        mirror=job.mirror,
        factor=job.factor,
        single=job.factor,
        exchange=job.exchange,
        lines_first=lines_first,
        fine=job.fine,
    )
    types = CTYPES[source.dtype.name], CTYPES[target.dtype.name]
    spec = SOURCE.of(_expression(*types, form, together, chosen), shared_bytes=chosen.shared_bytes(together))
    kernels.launch(
        spec,
        (-(-lines // together), 1, 1),
        (together * chosen.threads, 1, 1),
        read,
        written,
        table,
        table if job.before is None else job.before,
        table if job.after is None else job.after,
        call,
    )


def _long(job: _Job, step: tuple[int, int], lines: int) -> bool:
    """True where fft.cu needs 64 bits for positions: their double, and the number of a transform, else fit into 32."""
    last = [job.element[i] * job.length + job.line[i] * job.period for i in (0, 1)]
    strides = (abs(job.element[i] * step[i]) for i in (0, 1))
    return max(2 * max(last), 2 * job.mirror, *job.limit, *map(abs, step), *strides, lines) >= 1 << 30


def _whole(job: _Job, form: int) -> bool:
    """True where fft.cu's form does it that neither tests positions nor mirrors them."""
    ends = (job.element[i] * (job.length - 1) + job.line[i] * (job.period - 1) for i in (0, 1))
    return not form & (_PACKED | _MIRRORED) and all(end < limit for end, limit in zip(ends, job.limit, strict=True))


def _dense(job: _Job, form: int, step: tuple[int, int], batch: list[list[int]]) -> bool:
    """True where fft.cu's dense form does it: of real numbers, two are read and written as one complex number."""
    packed, to_real = form & _PACKED, job.mirror
    if form & ~(_PACKED | _MIRRORED) or (to_real and not packed) or step != (1, 1) or max(map(len, batch)) > 1:
        return False
    whole = job.length * (2 if packed else 1)
    extents = (job.length + 1, whole) if to_real else (whole, job.length + 1) if packed else (whole, whole)
    if job.period > 1 or job.limit[0] < extents[0] or job.limit[1] < extents[1]:
        return False
    if not packed:
        return True
    side = 1 if to_real else 0
    real = (job.source, job.target)[side]
    start = real.offset if real.block else real.device_ptr
    return start % (2 * real.itemsize) == 0 and not any(apart % 2 for apart in batch[side])


def _expression(source: str, target: str, form: int, lines: int, chosen: Plan) -> str:
    return f"pk::fft<{source}, {target}, {form}, {lines}, {', '.join(map(str, chosen.radices))}>"
