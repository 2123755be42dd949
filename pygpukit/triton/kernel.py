"""Kernel: a `@triton.jit` function that launches on arrays, on the current stream, as every other kernel does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pygpukit._core import native
from pygpukit.core.backend import is_sim
from pygpukit.core.device import device_facts
from pygpukit.core.errors import GPUError, KernelArgumentError
from pygpukit.jit.launch.written import Arguments, Extents, Grid, extents
from pygpukit.ops.operands import is_array, span
from pygpukit.triton.array import plain
from pygpukit.triton.available import get_triton
from pygpukit.triton.build import Build, build
from pygpukit.triton.specialise import Param, Specialisation, parameters, specialise

_MAX_BLOCKS = (1 << 31) - 1  # along x; the driver tells of y and z


class Kernel:
    """A function of Triton, launched by `kernel[grid](x, y, n, BLOCK=128, num_warps=4)`.

    Parameters
    ----------
    function : triton.JITFunction
        What `@triton.jit` gave. Not `@triton.autotune`: its benchmarks are PyTorch's.

    Notes
    -----
    Arguments are GPUArrays, TritonArrays, numbers and None, by position or name; grid is an int, a tuple of one to
    three, or a function of the arguments by name that gives one. Names that are no parameters are options of the
    compiler. It is compiled for each combination of types, constants and alignments by Triton itself, once, and kept by
    Triton on disk. It is launched through the same function as every other: streams, shares, records and graphs hold.
    A launch with the layouts and numbers of an earlier one repeats that one without working anything out.
    Views are taken by their first element: pass their strides.

    On the simulated device Triton's interpreter runs it, which needs no PyTorch either, but TRITON_INTERPRET=1 before
    triton is imported: `gp.triton.get_triton()` sets that.

    Raises
    ------
    TypeError
        For what is no function of Triton.
    KernelArgumentError
        At the launch, naming the parameter, before anything is launched.

    Examples
    --------
    >>> kernel = gp.triton.Kernel(scale)  # doctest: +SKIP
    >>> kernel[(x.size + 127) // 128](x, x.size, 0.5, BLOCK=128)  # doctest: +SKIP
    """

    def __init__(self, function: Any) -> None:
        get_triton()
        if not callable(getattr(function, "fn", None)) or not hasattr(function, "arg_names"):
            raise TypeError(f"Kernel: {function!r:.80} is no function of Triton; decorate it with @triton.jit")
        if hasattr(function, "configs"):
            raise TypeError(f"Kernel: {function!r:.80} is autotuned, by PyTorch; give the @triton.jit function itself")
        self.function, self.name = function, str(function.fn.__name__)
        self._arguments = Arguments(function.fn)
        self._parameters = frozenset(self._arguments.names)
        self._params = parameters(function.params) if hasattr(function, "params") else None
        self._kernels: dict[tuple[int, Specialisation], tuple[Build, native.Kernel]] = {}
        self._call = native.Prepared(self._launch)

    def __getitem__(self, grid: Grid) -> Callable[..., None]:
        """The launcher for a grid."""
        return partial(self._launch_by, grid) if callable(grid) else partial(self._call, grid)

    def build(self, sm: int, /, *args: Any, **kwargs: Any) -> Build:
        """Compile for an architecture, sm=90 for SM 9.0, and these arguments, without launching: no GPU is needed."""
        arguments, options = self._bound(args, kwargs)
        return build(self.function, specialise(self.name, self._compilable(), arguments, options), sm)

    def _launch_by(self, grid: Callable[[Mapping[str, Any]], Extents], /, *args: Any, **kwargs: Any) -> None:
        """Launch over the grid that a function of the arguments gives."""
        self._call(grid(self._named(args, kwargs)), *args, **kwargs)

    def _launch(self, grid: Extents, /, *args: Any, **kwargs: Any) -> None:
        """Launch, as written: a prepared call repeats what this does with arrays and numbers alike."""
        arguments, options = self._bound(args, kwargs)
        x, y, z = extents(self.name, grid, _MAX_BLOCKS)
        if 0 in (x, y, z):
            return
        if is_sim():
            from pygpukit.triton.interpret import interpret

            interpret(self.function, self.name, (x, y, z), arguments)
            return
        specialisation = specialise(self.name, self._compilable(), arguments, options)
        built, kernel = self._loaded(specialisation)
        passed = [self._operand(name, arguments[name]) for _, name, _ in specialisation.passed]
        bound = kernel.bind(
            (x * built.cluster, y, z),
            (32 * built.warps, 1, 1),
            built.shared_bytes,
            None,
            built.flags,
            (built.cluster, 1, 1),
        )
        bound(*passed, *(None,) * built.scratch)

    def _named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments by name, for a grid: several times faster than _bound() where none is left out."""
        names = self._arguments.names
        named = dict(zip(names, map(plain, args), strict=False))
        for name, value in kwargs.items():
            if name in self._parameters:
                named[name] = plain(value)
        return named if len(named) == len(names) >= len(args) else self._bound(args, kwargs)[0]

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The arguments by name, and the options of the compiler, which are no parameters."""
        names = self._arguments.names
        options = {name: value for name, value in kwargs.items() if name not in names}
        named = {name: plain(value) for name, value in kwargs.items() if name in names}
        return self._arguments.bind(tuple([plain(one) for one in args]), named), options

    def _compilable(self) -> tuple[Param, ...]:
        """The parameters, as the compiler has them. Raises GPUError where there is none."""
        if self._params is None:
            raise GPUError(
                f"{self.name} was made for Triton's interpreter: set TRITON_INTERPRET=0 before triton is imported to "
                "compile it"
            )
        return self._params

    def _operand(self, name: str, value: Any) -> Any:
        """The operand that the launch passes: of a view all that it spans, which begins at its first element."""
        if not is_array(value):
            return value
        storage, start = span(value)
        if start:
            raise KernelArgumentError(
                f"{self.name}(): parameter '{name}' is a view whose first element is not its first in memory; copy it",
                name,
            )
        return storage

    def _loaded(self, specialisation: Specialisation) -> tuple[Build, native.Kernel]:
        device = native.current_device()
        key = device, specialisation
        if key not in self._kernels:
            facts = device_facts(device)
            built = build(self.function, specialisation, 10 * int(facts["compute_major"]) + int(facts["compute_minor"]))
            scratch = [(f"scratch{number}", "pointer", -1, 8) for number in range(built.scratch)]
            function = native.Module(built.cubin).function(built.symbol)
            self._kernels[key] = built, native.Kernel(function, self.name, [*specialisation.plan, *scratch])
        return self._kernels[key]

    def __repr__(self) -> str:
        return f"<gp.triton.Kernel {self.name}{self._arguments.signature}>"
