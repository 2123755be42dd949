"""Kernel: a `@ct.kernel` function that launches on arrays; on the simulated device the interpreter runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType
from typing import Any

from pygpukit._core import native
from pygpukit.core.backend import is_sim
from pygpukit.core.device import device_facts
from pygpukit.core.errors import KernelArgumentError
from pygpukit.cutile.available import get_cutile
from pygpukit.cutile.language import Language, module
from pygpukit.cutile.rebind import for_compiler
from pygpukit.cutile.signature import Fact, facts_of, passed
from pygpukit.jit.cache.image import Image
from pygpukit.jit.launch.written import Arguments, Extents, Grid, extents
from pygpukit.ops.operands import is_array

_MAX_BLOCKS = (1 << 24) - 1  # along each axis, as cuTile has it


class Kernel:
    """A function of cuTile, launched by `kernel[grid](x, y, 16)`.

    Parameters
    ----------
    function : cuda.tile.kernel or function
        What `@ct.kernel` gave, or the function itself.
    num_ctas, occupancy, opt_level, num_worker_warps : optional
        The compiler's options where a function is passed; cuTile's own kernels have theirs.

    Notes
    -----
    Arguments are GPUArrays, numbers, tuples and lists of arrays, by position or name; grid is an int, a tuple of one
    to three, or a function of the arguments by name that gives one. On the simulated device the interpreter runs the
    blocks one after the other over NumPy, in stream order: every load and store is checked, and races between blocks
    are told. cuTile itself need not be installed for that. A launch with the layouts and numbers of an earlier one
    repeats it without working them out.

    Raises
    ------
    TypeError
        For what is no function.
    KernelArgumentError
        At the launch, naming the parameter, before anything runs.
    KernelCheckError
        For the first access that the kernel must not do, on the simulated device; findings has its line.
    GPUError
        For what cuTile's compiler refuses (DTypeError, ShapeError), with the line.

    Examples
    --------
    >>> kernel = gp.cutile.Kernel(add)  # doctest: +SKIP
    >>> kernel[ct.cdiv(x.size, 16)](x, y, z, 16)  # doctest: +SKIP
    """

    def __init__(self, function: Any = None, /, **options: Any) -> None:
        own = _function_of(function)
        unknown = set(options) - {"num_ctas", "occupancy", "opt_level", "num_worker_warps"}
        if unknown:
            raise TypeError(f"Kernel: no option {', '.join(sorted(unknown))}; cuTile has num_ctas, occupancy, "
                            "opt_level and num_worker_warps")  # fmt: skip
        if options and own is not function:
            raise TypeError("Kernel: a kernel of cuTile has its options; use its replace_hints()")
        self.name = own.__name__
        self.function, self.options = own, options
        self._own = function if hasattr(function, "_pyfunc") else None
        self._kernels: dict[tuple[int, tuple[Fact, ...]], native.Kernel] = {}
        self._arguments = Arguments(own)
        self._call = native.Prepared(self._launch)

    def __getitem__(self, grid: Grid) -> Callable[..., None]:
        """The launcher for a grid."""
        return partial(self._launch_by, grid) if callable(grid) else partial(self._call, grid)

    def check(self, grid: Grid, /, *args: Any, **kwargs: Any) -> None:
        """Run by the interpreter, on any machine: on arrays of NumPy, which are written in place.

        Raises as the launch does on the simulated device, and KernelArgumentError for an array of a GPU.
        """
        arguments = self._arguments.bind(args, kwargs)
        for one in _leaves(arguments.values()):
            if is_array(one) and not is_sim():
                raise KernelArgumentError(f"{self.name}.check() is for arrays of NumPy; pass x.to_numpy()", "")
        blocks = extents(self.name, grid(arguments) if callable(grid) else grid, _MAX_BLOCKS)
        native.synchronize()
        self._interpret(blocks, arguments)

    def build(self, arch: str, /, *args: Any, **kwargs: Any) -> Image:
        """Compile for an architecture, "sm_90", and these arguments, without launching: no GPU is needed."""
        from pygpukit.cutile.build import build

        return build(self._compiled(), self.name, facts_of(self.function, self._arguments.bind(args, kwargs)), arch)

    def _launch_by(self, grid: Callable[[Mapping[str, Any]], Extents], /, *args: Any, **kwargs: Any) -> None:
        """Launch over the grid that a function of the arguments gives."""
        self._call(grid(self._arguments.bind(args, kwargs)), *args, **kwargs)

    def _launch(self, grid: Extents, /, *args: Any, **kwargs: Any) -> None:
        """Launch, as written: a prepared call repeats what this does with arrays and numbers alike."""
        arguments = self._arguments.bind(args, kwargs)
        blocks = extents(self.name, grid, _MAX_BLOCKS)
        if 0 in blocks:
            return
        if is_sim():
            arrays = [one for one in _leaves(arguments.values()) if is_array(one)]
            native.host_launch(self.name, lambda: self._interpret(blocks, arguments), arrays)
            return
        facts = facts_of(self.function, arguments)
        plan, operands = passed(facts, arguments)
        device = native.current_device()
        key = device, facts
        if key not in self._kernels:
            from pygpukit.cutile.build import build

            known = device_facts(device)
            arch = f"sm_{known['compute_major']}{known['compute_minor']}"
            image = build(self._compiled(), self.name, facts, arch)
            self._kernels[key] = native.Kernel(native.Module(image.image).function(self.name), self.name, plan)
        self._kernels[key].bind(blocks, (1, 1, 1))(*operands)

    def _compiled(self) -> Any:
        """The kernel as cuTile's compiler takes it: one that names the stand-in is rebound."""
        cutile = get_cutile()
        if self._own is None:
            self._own = cutile.kernel(for_compiler(cutile, self.function), **self.options)
        return self._own

    def _interpret(self, blocks: tuple[int, int, int], arguments: Mapping[str, Any]) -> None:
        from pygpukit.cutile.interpret import interpret

        interpret(self.function, ct, blocks, arguments)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Refused: a kernel is launched over a grid."""
        raise TypeError(f"{self.name} is a kernel: launch it over a grid by kernel[grid](...)")

    def __repr__(self) -> str:
        return f"<gp.cutile.Kernel {self.name}{self._arguments.signature}>"


def kernel(function: Any = None, /, **options: Any) -> Any:
    """The stand-in's decorator: `@ct.kernel`, or `@ct.kernel(occupancy=2)`."""
    return Kernel(function, **options) if function is not None else lambda one: Kernel(one, **options)


def launch(stream: Any, grid: Grid, kernel: Any, arguments: tuple[Any, ...], /) -> None:
    """cuTile's own way to launch: ct.launch(stream, grid, kernel, (x, y, 16)); stream: a Stream, None for the current.

    Raises as a Kernel's launch does.
    """
    one = kernel if isinstance(kernel, Kernel) else Kernel(kernel)
    if stream is None:
        one[grid](*arguments)
        return
    with stream:
        one[grid](*arguments)


def _function_of(value: Any) -> FunctionType:
    """The Python function of a kernel. Raises TypeError."""
    own = value.function if isinstance(value, Kernel) else getattr(value, "_pyfunc", value)  # cuTile's keep it there
    if not isinstance(own, FunctionType):
        raise TypeError(f"Kernel: {value!r:.80} is no kernel of cuTile; decorate a function with @ct.kernel")
    return own


def _leaves(values: Any) -> list[Any]:
    out: list[Any] = []
    for one in values:
        out += _leaves(one) if isinstance(one, (tuple, list)) else [one]
    return out


ct: Language = module(kernel, launch)
