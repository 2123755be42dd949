"""@gp.fuse: a Python function of arrays as one kernel on a device, and as one pass over host memory on the simulation.

The function is called with stand-ins (ops/fusion/trace.py), once where its code reads nothing that may be another thing
at the next call (ops/fusion/steady.py), else at every call; its steps become CUDA C++ over the functors of
kernels/include/operations.cuh, so that each step has the bits that the operation alone would give: 16-bit floats are
rounded after every step, and nothing is contracted into fused multiply-adds across steps.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any

from pygpukit._core import native
from pygpukit.array import layout, scalars
from pygpukit.core.dtypes import DataType
from pygpukit.core.errors import ShapeError
from pygpukit.ops import host
from pygpukit.ops.elementwise import operations, pointwise
from pygpukit.ops.fusion.steady import Steady, is_constant
from pygpukit.ops.fusion.trace import Expression, FuseError, Number, Step, Trace
from pygpukit.ops.operands import check_devices, is_array

__all__ = ["FuseError", "fuse"]

__all__ = ["FuseError", "Fused", "fuse"]

_MAX_SOURCES = 256
_NUMBER_BYTES = 16  # of each number in the kernel's parameter


@dataclass(frozen=True, eq=False)
class _Program:
    """One trace made ready to run: what to compute, for inputs of certain shapes and types."""

    trace: Trace
    outputs: tuple[int, ...]  # positions among the trace's values
    single: bool  # the function returned one array, not a tuple
    shape: layout.Shape
    source: str

    @property
    def output_types(self) -> list[DataType]:
        return [self.trace.values[position].dtype for position in self.outputs]


class Fused:
    """A function whose array operations run as one kernel. Call it like the function; `source` is its CUDA C++."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._signature = inspect.signature(function)
        self._steady = Steady(function)
        self._programs: dict[Any, _Program] = {}
        self._sources: dict[Any, str] = {}  # by all that a trace consists of
        self._last: _Program | None = None
        update_wrapper(self, function)

    @property
    def source(self) -> str:
        """The CUDA C++ of the latest call. Raises FuseError before the first one, which settles the types."""
        if self._last is None:
            raise FuseError(f"fuse: {self._function.__name__}() was not called yet, so its types are not known")
        return self._last.source

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = list(bound.arguments.values())
        arrays = [value for value in arguments if is_array(value)]
        if not arrays:
            raise FuseError(f"fuse: {self._function.__name__}() needs at least one GPUArray among its arguments")
        check_devices(self._function.__name__, *arrays)
        key = tuple(_signature(value) for value in arguments)
        steady = self._steady.holds() and all(is_array(one) or is_constant(one) for one in arguments)
        program = self._programs.get(key) if steady else None
        if program is None or not program.trace.fits(arguments):
            program = self._programs[key] = self._traced(list(bound.arguments), arguments)
        self._last = program
        numbers = [(number.evaluate(arguments), dtype) for number, dtype in program.trace.numbers]
        packed = b"".join(scalars.encode(value, dtype).ljust(_NUMBER_BYTES, b"\0") for value, dtype in numbers)
        results = [native.empty(program.shape, dtype) for dtype in program.output_types]
        if results[0].size:
            if host.computes():
                _on_host(program, arrays, numbers, results)
            else:
                _launch(program, arrays, packed, results)
        return results[0] if program.single else tuple(results)

    def _traced(self, names: Sequence[str], values: Sequence[Any]) -> _Program:
        trace = Trace(self._function.__name__)
        stand_ins: dict[str, Any] = {}
        for position, (name, value) in enumerate(zip(names, values, strict=True)):
            if is_array(value):
                stand_ins[name] = trace.input(value.shape, value.dtype)
            elif isinstance(value, (bool, int, float, complex)):
                stand_ins[name] = Number(value, lambda arguments, position=position: arguments[position])  # type: ignore[misc]
            else:
                stand_ins[name] = value
        bound = self._signature.bind_partial()
        bound.arguments.update(stand_ins)
        returned = self._function(*bound.args, **bound.kwargs)
        single = not isinstance(returned, tuple)
        outputs = (returned,) if single else returned
        if not outputs or not all(isinstance(one, Expression) and one.trace is trace for one in outputs):
            raise FuseError(f"fuse: {trace.name}() must return arrays that it computed, one or a tuple of them")
        shapes = {one.shape for one in outputs}
        if len(shapes) > 1:
            raise ShapeError(
                f"fuse: {trace.name}() returns arrays of shapes {', '.join(map(str, sorted(shapes)))}; "
                "one kernel walks one shape, fuse them apart"
            )
        positions = tuple(one.position for one in outputs)
        # 0-d inputs are read once by every thread, whatever the layout of the others.
        repeated = frozenset(i for i, one in enumerate(trace.inputs) if not one.shape and outputs[0].shape)
        content = (
            tuple((one.shape, one.dtype.name) for one in trace.inputs),
            tuple(trace.steps),
            tuple(dtype.name for _, dtype in trace.numbers),
            positions,
        )
        source = self._sources.get(content)
        if source is None:
            if len(self._sources) >= _MAX_SOURCES:
                self._sources.clear()
            source = self._sources[content] = _source(trace, positions, repeated)
        return _Program(trace, positions, single, outputs[0].shape, source)


def fuse(function: Callable[..., Any]) -> Fused:
    """Decorator: the function's element-wise operations run as one kernel, without arrays in between.

    The function takes GPUArrays and numbers (other arguments must be hashable and are constants) and returns one array
    or a tuple of arrays of one shape. Inside, operators, element-wise functions of this package, astype(), shape and
    dtype work as outside: they broadcast and promote alike, and the results have the same bits. Numbers may change from
    call to call without another compilation, among the arguments and outside: globals, attributes and elements of lists
    count as they are at each call.

    Raises FuseError, at the call, where the function branches on values, writes to an array, uses an array that is no
    argument, or calls what is not element-wise; ShapeError and DTypeError as the operations themselves.
    """
    return Fused(function)


def _signature(value: Any) -> Any:
    if is_array(value):
        return value.shape, value.dtype.name
    if isinstance(value, (bool, int, float, complex)):
        return type(value)
    return "constant", value


# ---- the kernel ----


def _source(trace: Trace, outputs: Sequence[int], repeated: frozenset[int]) -> str:
    """The CUDA C++ of a trace: extern "C" kernel `fused`."""
    ctype = pointwise.CTYPES
    inputs = [ctype[one.dtype.name] for one in trace.inputs]
    results = [ctype[trace.values[position].dtype.name] for position in outputs]
    walked = [i for i in range(len(inputs)) if i not in repeated]
    numbers = "".join(f"  alignas(16) {ctype[dtype.name]} n{i};\n" for i, (_, dtype) in enumerate(trace.numbers))
    steps = "".join(_line(trace, i, step) for i, step in enumerate(trace.steps))
    stores = "".join(f"  y{i} = v{position};\n" for i, position in enumerate(outputs))
    takes = [f"const {t} v{i}" for i, t in enumerate(inputs)] + [f"{t} &y{i}" for i, t in enumerate(results)]
    pointers = [f"const {t} *x{i}" for i, t in enumerate(inputs)] + [f"{t} *z{i}" for i, t in enumerate(results)]
    pointers.append(f"const __grid_constant__ pk::Layout<{len(inputs) + len(results)}> layout")
    if numbers:
        takes.append("const Numbers &numbers")
        pointers.append("const __grid_constant__ Numbers numbers")
    pack = 16 // max(trace.values[i].dtype.itemsize for i in (*walked, *outputs))
    every = [*(f"x{i}" for i in walked), *(f"z{i}" for i in range(len(results)))]
    last = ["numbers"] if numbers else []

    def call(of_input: str, of_output: str) -> str:
        first = [f"x{i}[0]" if i in repeated else of_input.format(i=i) for i in range(len(inputs))]
        return f"compute({', '.join([*first, *(of_output.format(i=i) for i in range(len(results))), *last])});"

    at = len(inputs)
    strided_inputs = [f"x{i}[0]" if i in repeated else f"x{i}[at[{i}]]" for i in range(len(inputs))]
    strided = ", ".join([*strided_inputs, *(f"z{i}[at[{at + i}]]" for i in range(len(results))), *last])
    loads = "".join(f"      const pk::Pack<{inputs[i]}, N> p{i} = pk::load<N>(x{i} + i);\n" for i in walked)
    packs = "".join(f"      pk::Pack<{t}, N> q{i};\n" for i, t in enumerate(results))
    stored = "".join(f"      pk::store<N>(z{i} + i, q{i});\n" for i in range(len(results)))
    return (
        f"// {trace.name}: generated\n"
        '#include "operations.cuh"\n#include "pack.cuh"\n\n'
        + (f"struct Numbers {{\n{numbers}}};\n\n" if numbers else "")
        + f"__device__ __forceinline__ void compute({', '.join(takes)}) {{\n{steps}{stores}}}\n\n"
        f'extern "C" __global__ void __launch_bounds__({pointwise.BLOCK}) fused({", ".join(pointers)}) {{\n'
        "  const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;\n"
        "  if (layout.ndim < 0) {\n"
        f"    constexpr int N = {pack};\n"
        "    const long long i = thread * N;\n"
        f"    if (i + N <= layout.size && {' && '.join(f'pk::aligned<N>({name})' for name in every)}) {{\n"
        f"{loads}{packs}"
        f"      for (int k = 0; k < N; ++k) {call('p{i}.v[k]', 'q{i}.v[k]')}\n"
        f"{stored}"
        "    } else {\n"
        f"      for (long long k = i; k < i + N && k < layout.size; ++k) {call('x{i}[k]', 'z{i}[k]')}\n"
        "    }\n"
        "  } else if (thread < layout.size) {\n"
        f"    long long at[{at + len(results)}];\n"
        "    pk::locate(layout, thread, at);\n"
        f"    compute({strided});\n"
        "  }\n}\n"
    )


def _line(trace: Trace, index: int, step: Step) -> str:
    result = pointwise.CTYPES[step.result.name]
    names = [f"v{at}" if kind == "value" else f"numbers.n{at}" for kind, at in step.operands]
    return f"  const {result} v{len(trace.inputs) + index} = {step.op.functor}::apply<{result}>({', '.join(names)});\n"


_kernels: dict[tuple[int, str], native.Kernel] = {}  # by device and source


def _kernel(program: _Program, parameters: Sequence[native.ArrayBase | bytes]) -> native.Kernel:
    from pygpukit.jit.compile.compiler import compile_source
    from pygpukit.jit.launch import slicing
    from pygpukit.kernels.builder import parameter

    key = (native.current_device(), program.source)
    cached = _kernels.get(key)
    if cached is None:
        image = compile_source(program.source, name=f"{program.trace.name}.fused.cu")
        function = native.Module(image.image).function("fused")
        params = [parameter(i, value) for i, value in enumerate(parameters)]
        cached = _kernels[key] = native.Kernel(function, program.trace.name, params)
        slicing.remember_image(function, program.trace.name, image, "fused")
    return cached


def _launch(program: _Program, arrays: Sequence[Any], numbers: bytes, results: Sequence[Any]) -> None:
    repeated = [not array.shape and bool(program.shape) for array in arrays]
    if any(repeated):
        # A stand-in of the output's layout, so that the walk is as dense as the other arrays are.
        walked = [results[0] if skip else array for array, skip in zip(arrays, repeated, strict=True)]
    else:
        walked = list(arrays)
    pointers, packed, blocks = pointwise.walk([*walked, *results])
    passed = [array if skip else pointer for array, pointer, skip in zip(arrays, pointers, repeated, strict=False)]
    parameters = [*passed, *pointers[len(arrays) :], packed, *([numbers] if numbers else [])]
    _kernel(program, parameters).bind((blocks, 1, 1), (pointwise.BLOCK, 1, 1))(*parameters)


# ---- the host ----


def _on_host(program: _Program, arrays: Sequence[Any], numbers: Sequence[tuple[Any, DataType]], results: Any) -> None:
    import numpy as np

    def compute() -> None:
        values: list[Any] = [host.values(array) for array in arrays]
        constants = [host.rounded(value, dtype) for value, dtype in numbers]
        with np.errstate(all="ignore"):
            for step in program.trace.steps:
                operands = [values[at] if kind == "value" else constants[at] for kind, at in step.operands]
                if step.op is operations.COPY:
                    values.append(host.converted(operands[0], step.result))
                else:
                    function = pointwise.host_function(step.op, step.dtype)
                    values.append(host.converted(function(*operands), step.result))
            for position, result in zip(program.outputs, results, strict=True):
                host.store(result, values[position])

    native.host_launch(program.trace.name, compute, [*arrays, *results])
