"""A cell compiled: its unit, and its kernels by the names that the notebook gets."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from IPython.core.error import UsageError

from pygpukit.core.backend import backend
from pygpukit.core.errors import CompileError
from pygpukit.jit.launch.kernel import JITKernel
from pygpukit.jit.launch.unit import Unit
from pygpukit.jit.source.lines import Lines
from pygpukit.jupyter.cells import Source
from pygpukit.jupyter.errors import CudaCompileError, shown_without_frames
from pygpukit.jupyter.isolated import isolate
from pygpukit.jupyter.options import Options


@dataclass(frozen=True)
class Compiled:
    """kernels: those of the cell itself, not of cells that it includes. compile_ms: wall time, of a look-up too."""

    unit: Unit
    kernels: Mapping[str, JITKernel]
    compile_ms: float


def compile_cell(source: Source, options: Options, macros: Mapping[str, str], context: str = "") -> Compiled:
    """Compile a cell with its options and more macros; load its kernels unless --no-launch is given.

    Raises CudaCompileError (`context` says of which configuration), UsageError for options that do not fit the cell.
    """
    begin = time.perf_counter()
    try:
        unit = Unit(
            source.text,
            name=source.name,
            defines={**options.defines, **macros},
            arch=options.arch,
            name_expressions=options.instantiate,
            check=options.check,
        )
        with shown_without_frames():
            image = unit.image  # compiles
    except CompileError as error:
        raise CudaCompileError(error, source.name, source.files, context) from None
    except ValueError as error:
        raise UsageError(f"%%cuda: {error}") from None
    compile_ms = 1000 * (time.perf_counter() - begin)
    if not (options.no_launch or unit.loadable):
        raise UsageError(f"kernels for {image.arch} cannot run on the {backend()} backend: add --no-launch")
    lines = Lines(source.text, source.name)
    kernels: dict[str, JITKernel] = {
        python_name(name): JITKernel(
            source.text, name, block_size=options.default_block, unit=unit, load=not options.no_launch
        )
        for name, signature in unit.signatures.items()
        if lines.origin(signature.line)[0] == source.name
    }
    if options.isolated and not options.no_launch:
        kernels = isolate(unit, kernels)
    return Compiled(unit, kernels, compile_ms)


def python_name(name: str) -> str:
    """The name a kernel is bound to: without namespaces, an instantiation as softmax_float."""
    head, bracket, rest = name.partition("<")
    return re.sub(r"\W+", "_", head.rpartition("::")[2] + bracket + rest).strip("_")
