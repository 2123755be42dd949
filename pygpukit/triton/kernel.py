"""Kernel: a `@triton.jit` function that launches on arrays, on the current stream, as every other kernel does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pygpukit._core import native
from pygpukit.core.backend import is_sim
from pygpukit.core.device import device_facts
from pygpukit.core.errors import GPUError, KernelArgumentError
from pygpukit.ops.operands import is_array, span
from pygpukit.triton.array import plain
from pygpukit.triton.available import get_triton
from pygpukit.triton.build import Build, build
from pygpukit.triton.specialise import Specialisation, specialise

Grid = int | tuple[int, ...] | Callable[[Mapping[str, Any]], tuple[int, ...]]


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
    Triton on disk. The launch goes through the same function as every other: streams, shares, records and graphs hold.
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
        self._signature = inspect.signature(function.fn)
        self._kernels: dict[tuple[int, Specialisation], tuple[Build, native.Kernel]] = {}

    def __getitem__(self, grid: Grid) -> Callable[..., None]:
        """The launcher for a grid."""

        def launch(*args: Any, **kwargs: Any) -> None:
            options = {name: kwargs.pop(name) for name in [*kwargs] if name not in self._signature.parameters}
            try:
                bound = self._signature.bind(*map(plain, args), **{name: plain(one) for name, one in kwargs.items()})
            except TypeError as error:
                raise KernelArgumentError(f"{self.name}(): {error}", "") from None
            bound.apply_defaults()
            self._launch(self._extents(grid, bound.arguments), bound.arguments, options)

        return launch

    def build(self, sm: int, /, *args: Any, **kwargs: Any) -> Build:
        """Compile for an architecture, sm=90 for SM 9.0, and these arguments, without launching: no GPU is needed."""
        self._check_compiles()
        options = {name: kwargs.pop(name) for name in [*kwargs] if name not in self._signature.parameters}
        bound = self._signature.bind(*map(plain, args), **{name: plain(one) for name, one in kwargs.items()})
        bound.apply_defaults()
        return build(self.function, specialise(self.name, self.function.params, bound.arguments, options), sm)

    def _extents(self, grid: Grid, arguments: Mapping[str, Any]) -> tuple[int, int, int]:
        value = grid(arguments) if callable(grid) else grid
        extents = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        whole = all(type(one) is int and one >= 0 for one in extents)
        if not whole or not 1 <= len(extents) <= 3:
            raise KernelArgumentError(f"{self.name}(): grid={value!r}; give one to three whole numbers", "grid")
        x, y, z = (*extents, 1, 1, 1)[:3]
        return x, y, z

    def _launch(self, extents: tuple[int, int, int], arguments: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        if 0 in extents:
            return
        if is_sim():
            from pygpukit.triton.interpret import interpret

            interpret(self.function, self.name, extents, arguments)
            return
        self._check_compiles()
        specialisation = specialise(self.name, self.function.params, arguments, options)
        built, kernel = self._loaded(specialisation)
        values = list(arguments.values())
        passed = [self._operand(name, values[at]) for at, name, _ in specialisation.passed]
        x, y, z = extents
        bound = kernel.bind(
            (x * built.cluster, y, z),
            (32 * built.warps, 1, 1),
            built.shared_bytes,
            None,
            built.flags,
            (built.cluster, 1, 1),
        )
        bound(*passed, *(None,) * built.scratch)

    def _check_compiles(self) -> None:
        if not hasattr(self.function, "params"):
            raise GPUError(
                f"{self.name} was made for Triton's interpreter: set TRITON_INTERPRET=0 before triton is imported to "
                "compile it"
            )

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
        return f"<gp.triton.Kernel {self.name}{self._signature}>"
