"""Running one reduction: the built-in kernels on cuda, NumPy on pool memory on sim.

Callers have checked devices, axes and types, and brought the input to a type that the operation reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array.layout import Shape
from pygpukit.core.dtypes import DataType, bfloat16, float16
from pygpukit.ops import host, raw
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.operands import span
from pygpukit.ops.reduce import plan as reduce_plan

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "reduce.cu", options=kernels.SAME_BITS)
_SETTING, _REDUCTION = SOURCE.structure("Setting"), SOURCE.structure("Reduction")
_ALL_BITS = 2**64 - 1
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")
_STATES = {"float16": "float32", "bfloat16": "float32"}  # what elements are added in, if not in their own type


@dataclass(frozen=True)
class Types:
    """One instantiation: the operation's C++ type, and that of the operation which merges its parts."""

    functor: str
    merged: str
    state_bytes: int


@dataclass(frozen=True, eq=False)
class Reducer:
    """An operation. types: by name of the input's type. ordered: an element's number along the axes matters."""

    name: str
    types: dict[str, Types]
    ordered: bool = False

    def expressions(self) -> Iterator[str]:
        """Name expressions of all its kernels."""
        for types in self.types.values():
            for form in ("rows", "columns"):
                yield f"pk::{form}<{types.functor}, true>"
                yield f"pk::{form}<{types.functor}, false>"
            yield f"pk::rows<pk::Merge<{types.merged}>, true>"


def _arithmetic(functor: str, inputs: tuple[str, ...], parts: int = 1) -> dict[str, Types]:
    """functor<input, state, output> with the state of the input's precision, integers in 64 bits."""
    by_dtype = {}
    for name in inputs:
        state = "int64" if name in _INTEGERS else _STATES.get(name, name)
        output = "int64" if name in _INTEGERS else name
        types = [CTYPES[kind] for kind in (name, state, output)]
        functors = [f"{functor}<{', '.join(each)}>" for each in (types, (types[1], types[1], types[2]))]
        by_dtype[name] = Types(functors[0], functors[1], parts * DataType.from_string(state).itemsize)
    return by_dtype


def _real(functor: str, inputs: tuple[str, ...], parts: int = 1) -> dict[str, Types]:
    """functor<input, state, output> with a real state, also of complex inputs."""
    by_dtype = {}
    for name in inputs:
        output = {"complex64": "float32", "complex128": "float64"}.get(name, name)
        state = _STATES.get(output, output)
        types = [CTYPES[kind] for kind in (name, state, output)]
        functors = [f"{functor}<{', '.join(each)}>" for each in (types, (types[1], types[1], types[2]))]
        by_dtype[name] = Types(functors[0], functors[1], parts * DataType.from_string(state).itemsize)
    return by_dtype


def _order(functor: str, state_bytes: int = 0) -> dict[str, Types]:
    by_dtype = {}
    for name in _INTEGERS + _FLOATS:
        kind = f"{functor}<{CTYPES[name]}>"
        own = DataType.from_string(_STATES.get(name, name)).itemsize
        by_dtype[name] = Types(kind, kind, state_bytes or own)
    return by_dtype


def _nonzero(output: str) -> dict[str, Types]:
    merged = f"pk::Nonzero<unsigned char, {output}>"
    widths = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}
    by_dtype = {}
    for name, ctype in CTYPES.items():
        raw = widths.get(DataType.from_string(name).itemsize, ctype)
        by_dtype[name] = Types(f"pk::Nonzero<{raw}, {output}>", merged, 8)
    return by_dtype


SUM = Reducer("sum", _arithmetic("pk::Sum", _INTEGERS + _FLOATS + _COMPLEX))
PRODUCT = Reducer("prod", _arithmetic("pk::Product", ("int64", *_FLOATS, *_COMPLEX)))
EXTREME = Reducer("max", _order("pk::Extreme"))
ARG_EXTREME = Reducer("argmax", _order("pk::ArgExtreme", 16), ordered=True)
COUNT = Reducer("count_nonzero", _nonzero("long long"))
REACHES = Reducer("any", _nonzero("bool"))
MOMENTS = Reducer("var", _real("pk::Moments", _FLOATS, parts=3))
NORM = Reducer("norm", _real("pk::Norm", _FLOATS + _COMPLEX))
LOG_SUM_EXP = Reducer("logsumexp", _real("pk::LogSumExp", _FLOATS, parts=2))
_ALL = (SUM, PRODUCT, EXTREME, ARG_EXTREME, COUNT, REACHES, MOMENTS, NORM, LOG_SUM_EXP)


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that reduce() can ask for."""
    for op in _ALL:
        expressions = list(dict.fromkeys(op.expressions()))
        for first in range(0, len(expressions), 12):
            yield tuple(expressions[first : first + 12])


def reduce(
    op: Reducer,
    name: str,
    a: GPUArray,
    axes: Shape,
    out: GPUArray,
    on_host: Callable[[np.ndarray[Any, Any]], Any],
    bits: int = 0,
    real: float = 1.0,
) -> None:
    """out = op of a over axes; out is dense, has an extent of 1 or none for each of them, and does not overlap a.

    a has elements. bits, real: reductions.cuh's Setting. on_host(values) computes the same with NumPy along
    the last axis, where all of axes come; float16 and bfloat16 come as float32.
    """
    if host.computes():
        _on_host(name, a, axes, out, on_host)
        return
    types = op.types["uint8" if a.dtype.name == "bool" and "bool" not in op.types else a.dtype.name]
    out_strides = tuple(step // out.itemsize for step in out.strides)
    if out.ndim == a.ndim:  # the reduced axes were kept
        out_strides = tuple(step for axis, step in enumerate(out_strides) if axis not in axes)
    elements, start = span(a)
    strides = tuple(step // a.itemsize for step in a.strides)
    aligned = raw.address(a) % 16 == 0
    walk = reduce_plan.plan(a.shape, strides, axes, out_strides, start, a.itemsize, aligned, op.ordered)
    setting = _SETTING.pack(bits=bits, real=real)
    partials = out
    if walk.merge:
        partials = native.empty((walk.parts * types.state_bytes,), "uint8")
    dense = "true" if walk.dense else "false"
    _launch(f"pk::{walk.form}<{types.functor}, {dense}>", walk, setting, elements, out, partials)
    if walk.merge:
        merge = f"pk::rows<pk::Merge<{types.merged}>, true>"
        _launch(merge, walk.merge, setting, partials, out, out, overlapping=True)


def _launch(
    expression: str,
    plan: reduce_plan.Plan,
    setting: bytes,
    source: GPUArray,
    out: GPUArray,
    partials: GPUArray,
    overlapping: bool = False,
) -> None:
    grid, block = (plan.blocks, 1, 1), (reduce_plan.THREADS, 1, 1)
    fields = _REDUCTION.pack(**plan.layout, setting=setting)
    kernels.launch(SOURCE.of(expression, overlapping=overlapping), grid, block, source, out, partials, fields)


def nonzero_bits(dtype: DataType) -> int:
    """The bits that make an element nonzero: all but the signs of floats."""
    if dtype.name in _FLOATS:
        return (1 << (8 * dtype.itemsize - 1)) - 1
    return 0x7FFFFFFF7FFFFFFF if dtype.name == "complex64" else _ALL_BITS


def _on_host(name: str, a: GPUArray, axes: Shape, out: GPUArray, on_host: Callable[..., Any]) -> None:
    import numpy as np

    def compute() -> None:
        values = host.values(a)
        if a.dtype in (float16, bfloat16):
            values = values.astype(np.float32)
        # Side by side, so that NumPy adds them pairwise.
        kept = [axis for axis in range(a.ndim) if axis not in axes]
        values = np.ascontiguousarray(values.transpose(*kept, *axes)).reshape(*(a.shape[axis] for axis in kept), -1)
        with np.errstate(all="ignore"):
            host.store(out, np.reshape(on_host(values), out.shape))

    native.host_launch(name, compute, [a, out])
