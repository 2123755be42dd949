"""%%cutile: run a Python cell with kernels in cuTile and, when asked, launch one, compare and measure it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class, no_var_expand

from pygpukit.core.backend import is_sim
from pygpukit.core.output import emit
from pygpukit.core.stream import Stream, current_stream
from pygpukit.cutile import Kernel
from pygpukit.jit.source.parameters import Parameter
from pygpukit.jit.source.signature import KernelSignature
from pygpukit.jupyter.bind import Arguments, Item, bind, parse_items
from pygpukit.jupyter.card_cutile import CutileResult
from pygpukit.jupyter.errors import shown_without_frames
from pygpukit.jupyter.ledger import Ledger
from pygpukit.jupyter.names import Names, callers_variables
from pygpukit.jupyter.options import Defaults, Options, parse, some_arguments
from pygpukit.jupyter.run import run_call
from pygpukit.profiling.bench import BenchResult, bench

_arguments = some_arguments(
    "--input",
    "--output",
    "--kernel",
    "--grid",
    "--stream",
    "--verify",
    "--rtol",
    "--atol",
    "--bench",
    "--bytes",
    "--flops",
)


@magics_class
class CutileMagics(Magics):  # type: ignore[misc]
    """%%cutile of one shell; defaults: of the options, which are %%cuda's."""

    def __init__(self, shell: Any, ledger: Ledger, defaults: Defaults) -> None:
        super().__init__(shell)
        self._ledger, self._defaults = ledger, defaults

    @_arguments
    @no_var_expand
    @cell_magic
    def cutile(self, line: str, cell: str) -> CutileResult | None:
        """Run the cell, Python with `@ct.kernel` functions; what it defines stays defined.

        With --grid, and -i and -o for the arguments, the cell also launches a kernel, waits for it and shows what came
        of it. On the simulated device every access is checked. An error of the cell shows as ever; an output that
        differs from its --verify reference is a VerificationError.
        """
        with _named():
            options = replace(parse(line, self.cutile.parser, self._defaults), count=False)
            launches = bool(options.inputs or options.outputs or options.grid)
            if launches and options.grid is None:
                raise UsageError("%%cuda: a launch needs --grid: how many blocks there are along each axis")
        if not self._run(cell):
            return None
        with _named():
            kernels = self._kernels(cell)
            if not launches:
                return CutileResult(kernels)
            names = Names(self.shell.user_ns, callers_variables())
            call = _call(_chosen(kernels, options.kernel), options, names)
            verified, measured = run_call(call, options, self.shell.user_ns.update)
        return CutileResult(kernels, launch=str(call), checked=is_sim(), verify=verified, bench=measured)

    def _run(self, cell: str) -> bool:
        """Run the cell as one whose lines count from the magic; False where it failed, which has been shown."""
        outer = self.shell.displayhook.exec_result
        above = self._ledger.blank_lines_above()
        done = self.shell.run_cell("#\n" * (above.count("\n") + 1) + cell)
        self.shell.displayhook.exec_result = outer  # which the inner cell has taken
        return bool(done.success)

    def _kernels(self, cell: str) -> dict[str, Kernel]:
        """The kernels that the cell defines, by name."""
        tree = ast.parse(self.shell.transform_cell(cell))
        names = [one.name for one in tree.body if isinstance(one, ast.FunctionDef)]
        kernels = {}
        for name in names:
            value = self.shell.user_ns.get(name)
            if value is not None and not isinstance(value, FunctionType) and _is_kernel(value):
                kernels[name] = Kernel(value)
        return kernels


@dataclass(frozen=True)
class Call:
    """A kernel with everything that a launch needs; names: what expressions about it see."""

    kernel: Kernel
    arguments: Arguments
    grid: tuple[int, ...]
    stream: Stream | None
    names: Names

    def __str__(self) -> str:
        return f"{self.kernel.name}[{', '.join(map(str, self.grid))}]"

    def start(self) -> None:
        """Queue the kernel, after the work that the current stream has."""
        with shown_without_frames():
            if self.stream is None:
                self._launch()
                return
            self.stream.wait_event(current_stream().record_event())
            with self.stream:
                self._launch()

    def finish(self) -> None:
        """Wait for the kernel. Ctrl-C interrupts; a fault is raised."""
        with shown_without_frames():
            (current_stream() if self.stream is None else self.stream).synchronize()
        emit()

    def bench(self, bytes: float | None, flops: float | None, budget_ms: float) -> BenchResult:
        """bench() of the launch."""
        return bench(self._launch, bytes=bytes, flops=flops, stream=self.stream, budget_ms=budget_ms)

    def _launch(self) -> None:
        self.kernel[self.grid](**self.arguments.values)


def _call(kernel: Kernel, options: Options, names: Names) -> Call:
    """The call that the magic line says. --grid sees the notebook's names, and over them the kernel's arguments."""
    items = parse_items(options.inputs, False) + parse_items(options.outputs, True)
    arguments = bind(_signature(kernel, items), items, names)
    scope = names.over(arguments.values)
    grid = scope.evaluate(options.grid or "1", "--grid")
    stream = None if options.stream is None else scope.evaluate(options.stream, "--stream")
    if stream is not None and not isinstance(stream, Stream):
        raise UsageError(f"%%cuda: --stream {options.stream} is a {type(stream).__name__}; give a pygpukit Stream")
    return Call(kernel, arguments, tuple(grid) if isinstance(grid, (tuple, list)) else (grid,), stream, scope)


def _signature(kernel: Kernel, items: Sequence[Item]) -> KernelSignature:
    """The parameters that need an argument, or get one; each takes what it is given."""
    named = {item.parameter for item in items} | {item.hint for item in items}
    parameters = tuple(
        Parameter(name, "a parameter", "any", "", 0)
        for name, one in inspect.signature(kernel.function).parameters.items()
        if one.default is inspect.Parameter.empty or name in named
    )
    return KernelSignature(kernel.name, 1, parameters)


def _chosen(kernels: Mapping[str, Kernel], requested: str | None) -> Kernel:
    known = ", ".join(kernels) or "none"
    if requested is None and len(kernels) != 1:
        raise UsageError(f"%%cuda: the cell has {len(kernels)} kernels: choose with --kernel, one of: {known}")
    if requested is not None and requested not in kernels:
        raise UsageError(f"%%cuda: --kernel {requested}: the cell has no such kernel; there are: {known}")
    return next(iter(kernels.values())) if requested is None else kernels[requested]


def _is_kernel(value: Any) -> bool:
    return isinstance(value, Kernel) or isinstance(getattr(value, "_pyfunc", None), FunctionType)


@contextmanager
def _named() -> Iterator[None]:
    """Refusals of the machinery that %%cuda has, too, name this magic."""
    try:
        yield
    except UsageError as error:
        raise UsageError(str(error).replace("%%cuda", "%%cutile")) from None
