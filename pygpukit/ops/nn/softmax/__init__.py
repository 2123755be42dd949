"""softmax and log_softmax along any axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.core.dtypes import DataType, bfloat16, float16
from pygpukit.ops import copying, host, raw
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.nn import rowwise
from pygpukit.ops.nn.softmax import across
from pygpukit.ops.operands import span
from pygpukit.ops.prepared import prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["log_softmax", "softmax"]

SOURCE = kernels.KernelSpec(__file__, "softmax.cu", options=(*kernels.SAME_BITS, *kernels.GENERIC_LAMBDAS))
_WORK = SOURCE.structure("SoftmaxWork")
_PART_BYTES = 32768  # of a long row, at least: eight packs of each of softmax.cu's threads
_MAX_PARTS = 1024
_STAGED = ("bfloat16", "float16")  # rows of odd lengths; of whole words, and in float32, measured slower on an H200


@prepared
def softmax(input: GPUArray, axis: int = -1, *, out: GPUArray | None = None) -> GPUArray:
    """exp(x - max) / sum(exp(x - max)) along an axis, in any shape with at least one axis.

    Floats; 16-bit types are computed in float32 and rounded once. out: written and returned instead of a new array; it
    may be the input. A row with nan or inf, or only -inf, gives nan. A row's bits depend on that row and its length
    only. Raises ShapeError (axis, out), DTypeError (integers), DeviceMismatchError.
    """
    return _softmax("softmax", input, axis, out)


@prepared
def log_softmax(input: GPUArray, axis: int = -1, *, out: GPUArray | None = None) -> GPUArray:
    """x - max - log(sum(exp(x - max))) along an axis: log(softmax(x)) without underflow. Otherwise as softmax()."""
    return _softmax("log_softmax", input, axis, out)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that softmax() and log_softmax() can ask for."""
    for name in rowwise.FLOATS:
        ctype, itemsize = CTYPES[name], DataType.from_string(name).itemsize
        yield tuple(rowwise.kernels("softmax", ctype, itemsize, long=("parts", "apply")))
        if name in _STAGED:
            yield tuple(_staged(ctype, together) for together in rowwise.TOGETHER)


def _softmax(name: str, a: GPUArray, axis: int, out: GPUArray | None) -> GPUArray:
    a = rowwise.check_rows(name, a)
    axis = layout.normalize_axis(axis, a.ndim, name)
    result = rowwise.target(name, a, a.dtype, out)
    if a.size:
        (_on_host if host.computes() else _on_device)(name, a, axis, result)
    if out is None or result is out:
        return result
    copying.copy_to(result, out)
    return out


def _on_device(name: str, a: GPUArray, axis: int, out: GPUArray) -> None:
    elements, start = span(a)
    strides, out_strides = (tuple(step // a.itemsize for step in x.strides) for x in (a, out))
    aligned = (raw.address(a) | raw.address(out)) % 16 == 0
    work = rowwise.plan(a.shape, strides, out_strides, axis, start, a.itemsize, aligned, True)
    if work.form == "columns":
        across.launch(work, a.shape[axis], name == "log_softmax", a, elements, out)
        return
    chunk, chunks = _parts(a.shape[axis], a.itemsize) if work.form == "long" else (0, 1)
    log = name == "log_softmax"
    parameters = _WORK.pack(row=work.layout, log=log, span=elements.size, chunk=chunk, chunks=chunks)
    grid, block = (work.blocks * chunks, 1, 1), (work.threads, 1, 1)
    ctype = CTYPES[a.dtype.name]
    if work.form != "long":
        follow = axis == a.ndim - 1 and a.is_contiguous() and out.is_contiguous()  # rows follow each other in memory
        unaligned = a.dtype.name in _STAGED and a.shape[axis] % 2 == 1
        staged = follow and unaligned and not work.dense and work.together in rowwise.TOGETHER
        expression = _staged(ctype, work.together) if staged else work.kernel("softmax", ctype)
        kernels.launch(SOURCE.of(expression), grid, block, elements, out, parameters)
        return
    states = native.empty((work.blocks * chunks * 2,), "float64" if a.itemsize == 8 else "float32")
    flag = "true" if work.dense else "false"
    kernels.launch(SOURCE.of(f"pk::softmax_parts<{ctype}, {flag}>"), grid, block, elements, states, parameters)
    kernels.launch(SOURCE.of(f"pk::softmax_apply<{ctype}, {flag}>"), grid, block, elements, out, states, parameters)


def _staged(ctype: str, together: int) -> str:
    return f"pk::softmax_staged<{ctype}, {together}>"


def _parts(size: int, itemsize: int) -> tuple[int, int]:
    """Elements of a part of a row, and how many parts it has: they follow from its length and type alone."""
    min_length = _PART_BYTES // itemsize
    chunk = min_length * -(-size // (min_length * _MAX_PARTS))
    return chunk, -(-size // chunk)


def _on_host(name: str, a: GPUArray, axis: int, out: GPUArray) -> None:
    import numpy as np

    def compute() -> None:
        values = host.values(a)
        if a.dtype in (float16, bfloat16):
            values = values.astype(np.float32)
        with np.errstate(all="ignore"):
            values = values - values.max(axis=axis, keepdims=True)
            exponentials = np.exp(values)
            total = exponentials.sum(axis=axis, keepdims=True)
            host.store(out, values - np.log(total) if name == "log_softmax" else exponentials / total)

    native.host_launch(name, compute, [a, out])
