"""The launch that a %%cuda cell makes itself: its kernel, arguments and configuration, and how it is waited for."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError

from pygpukit.core.output import emit
from pygpukit.core.stream import Stream, current_stream
from pygpukit.jit.launch.assumptions import Launcher
from pygpukit.jit.launch.kernel import JITKernel
from pygpukit.jupyter.bind import Arguments, bind, parse_items
from pygpukit.jupyter.errors import shown_without_frames
from pygpukit.jupyter.isolated import IsolatedLauncher
from pygpukit.jupyter.names import Names
from pygpukit.jupyter.options import Options
from pygpukit.profiling.bench import BenchResult, bench


@dataclass(frozen=True)
class Call:
    """A kernel with everything that a launch needs. name: what the kernel is bound to in the notebook. names: what
    expressions about this launch see."""

    name: str
    kernel: JITKernel
    arguments: Arguments
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    stream: Stream | None
    names: Names

    @property
    def queue(self) -> Stream:
        """The stream of the launch."""
        return current_stream() if self.stream is None else self.stream

    def _bound(self) -> Launcher | IsolatedLauncher:
        """Raises where the configuration does not fit."""
        config = (self.grid, self.block, self.shared_bytes)
        return self.kernel[config if self.stream is None else (*config, self.stream)]

    def bench(self, bytes: float | None, flops: float | None, budget_ms: float) -> BenchResult:
        """bench() of the launch, in the worker for an isolated kernel."""
        bound = self._bound()
        values = tuple(self.arguments.values.values())
        if isinstance(bound, IsolatedLauncher):
            with shown_without_frames():
                return bound.bench(values, bytes, flops, budget_ms)
        return bench(lambda: bound(*values), bytes=bytes, flops=flops, stream=self.stream, budget_ms=budget_ms)

    def start(self) -> None:
        """Queue the kernel, after the work that the current stream has."""
        with shown_without_frames():
            launch = self._bound()
            if self.stream is not None:
                self.stream.wait_event(current_stream().record_event())
            launch(*self.arguments.values.values())

    def finish(self) -> None:
        """Wait for the kernel. Ctrl-C interrupts; a fault is raised."""
        with shown_without_frames():
            self.queue.synchronize()
        emit()


def choose(kernels: Mapping[str, JITKernel], requested: str | None) -> str:
    """The name of the kernel to launch. Raises UsageError when it is not clear which one is meant."""
    known = ", ".join(kernels) or "none"
    if requested is None:
        if len(kernels) == 1:
            return next(iter(kernels))
        raise UsageError(f"%%cuda: the cell has {len(kernels)} kernels: choose with --kernel, one of: {known}")
    names = [name for name, kernel in kernels.items() if requested in (name, kernel.signature.name)]
    if not names:
        raise UsageError(f"%%cuda: --kernel {requested}: the cell has no such kernel; there are: {known}")
    return names[0]


def bound_arguments(kernel: JITKernel, options: Options, names: Names) -> Arguments:
    """The -i and -o of the magic line as the kernel's arguments."""
    items = parse_items(options.inputs, False) + parse_items(options.outputs, True)
    return bind(kernel.signature, items, names)


def configured(
    name: str,
    kernel: JITKernel,
    arguments: Arguments,
    options: Options,
    names: Names,
    settings: Mapping[str, Any] | None = None,
) -> Call:
    """The call with its grid, block, shared bytes and stream evaluated; `settings` replace options of the same name.

    Expressions see the notebook's names, over them the kernel's arguments by parameter name, over these the cell's
    macros that are numbers; --grid, --shared also `block`.
    """
    settings = settings or {}
    scope = names.over(arguments.values).over(numbers(options.defines)).over(settings)
    block = 1 if kernel.signature.tile else settings.get("block")
    if block is None and options.block is not None:
        block = scope.evaluate(options.block, "--block")
    scope = scope.over({"block": options.default_block if block is None else block})
    grid = settings.get("grid")
    if grid is None and options.grid is not None:
        grid = scope.evaluate(options.grid, "--grid")
    shared = settings.get("shared")
    if shared is None:
        shared = 0 if options.shared is None else scope.integer(options.shared, "--shared")
    if grid is None:
        grid, block = _inferred(kernel, arguments, block)
        if shared:
            raise UsageError("%%cuda: --shared needs --grid: how much memory a block needs depends on it")
    elif block is None:
        block = options.default_block
    scope = scope.over({"block": block})
    return Call(name, kernel, arguments, _extent(grid), _extent(block), shared, _stream(options, scope), scope)


def numbers(macros: Mapping[str, str]) -> dict[str, int]:
    """The macros that are plain whole numbers."""
    out = {}
    for name, text in macros.items():
        with contextlib.suppress(ValueError):
            out[name] = int(text, 0)
    return out


def _inferred(kernel: JITKernel, arguments: Arguments, block: Any) -> tuple[int, int]:
    threads = block[0] if isinstance(block, (tuple, list)) and len(block) == 1 else block
    if threads is not None and not isinstance(threads, int):
        raise UsageError(f"%%cuda: block is {block!r}: a grid for it cannot be inferred; give --grid")
    with shown_without_frames():
        return kernel.inferred(arguments.values, threads)


def _extent(value: Any) -> Any:
    """As the kernel takes it, which also refuses what is wrong."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _stream(options: Options, names: Names) -> Stream | None:
    if options.stream is None:
        return None
    value = names.evaluate(options.stream, "--stream")
    if not isinstance(value, Stream):
        raise UsageError(f"%%cuda: --stream {options.stream} is a {type(value).__name__}; give a pygpukit Stream")
    return value
