"""A %%cuda cell that is a whole program: it has main(), and runs in a process of its own."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

from IPython.core.error import UsageError

from pygpukit.core.backend import is_sim
from pygpukit.core.errors import CompileError
from pygpukit.jit.source.program import refusal
from pygpukit.jupyter.card_program import ProgramResult
from pygpukit.jupyter.cells import Source
from pygpukit.jupyter.errors import CudaCompileError, shown_without_frames
from pygpukit.jupyter.options import Options
from pygpukit.profiling.limits import known_limits, limits
from pygpukit.program.build import Source as ProgramSource
from pygpukit.program.build import build
from pygpukit.program.process import TIMES, Process


def is_program(source: Source, options: Options) -> bool:
    """True where the cell is to run as a program. Raises UsageError for options that say otherwise."""
    program = options.program or bool(refusal(source.text, source.name, options.defines))
    if not program and (options.arguments or options.timeout_s is not None):
        raise UsageError("%%cuda: --args and --timeout are about a program: the cell has no main()")
    if options.count and not (program or options.bench or options.sweep):
        raise UsageError("%%cuda: --count is about a measurement: add --bench")
    if program and (options.launches or options.name or options.no_launch or options.isolated):
        raise UsageError(
            "%%cuda: the cell is a program, as it has main(): it launches its kernels itself, in a process of its own; "
            "leave -i, -o, --grid, --name, --no-launch and --isolated out, or main()"
        )
    return program


def run_program(source: Source, options: Options) -> ProgramResult:
    """Compile the cell's program and run it; its output is the cell's.

    Raises CudaCompileError, and UsageError for options that do not fit.
    """
    start = time.perf_counter()
    defines = [f"-D{name}={value}" for name, value in options.defines.items()]
    check = options.check or ("count" if options.count else None)
    with Process(_show) as process:
        try:
            with shown_without_frames():
                program = build([ProgramSource(source.text, source.name, Path.cwd())], [], defines, check, options.arch)
        except CompileError as error:
            raise CudaCompileError(error, source.name, source.files) from None
        except ValueError as error:
            raise UsageError(f"%%cuda: {error}") from None
        compile_s = time.perf_counter() - start
        words = [source.name, *shlex.split(options.arguments or "")]
        result = process.run(program, words, options.timeout_s, TIMES)
    roof = known_limits() if is_sim() else limits()
    return ProgramResult(result, compile_s, time.perf_counter() - start, roof, is_sim())


def _show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
