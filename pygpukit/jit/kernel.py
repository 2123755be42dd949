"""jit() and the kernel object it returns: a typed signature, launch configurations, an inferred grid."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from pygpukit._core import native
from pygpukit.core.errors import KernelArgumentError
from pygpukit.core.stream import Stream
from pygpukit.jit.image import Image
from pygpukit.jit.inspect import Occupancy, occupancy
from pygpukit.jit.plan import SIZE_NAMES, document, parameter_plan, size_parameter
from pygpukit.jit.signature import KernelSignature
from pygpukit.jit.unit import Unit

_BOUND_LIMIT = 512
_AXES = "xyz"
_CONFIG_FORMS = (
    "[grid, block], [grid, block, stream], [grid, block, shared_bytes] or [grid, block, shared_bytes, stream]"
)


def jit(
    source: str,
    func: str | None = None,
    options: Sequence[str] | None = None,
    block_size: int = 256,
    name: str | None = None,
    name_expressions: Sequence[str] = (),
    *,
    defines: Mapping[str, object] | None = None,
    arch: str | None = None,
) -> JITKernel:
    """Compile CUDA C++ and return the kernel `func`, ready to launch.

    `func` may be left out when the source has one kernel; "softmax<float>" instantiates a template. `options` are
    NVRTC's; `defines` are macros; `name` is the file name in diagnostics; `arch` as for compile_source().

    Raises ValueError (function not found), CompileError with diagnostics, NvrtcError (no compiler: what to install).
    """
    wanted = [*name_expressions, *([func] if func and "<" in func and func not in name_expressions else [])]
    unit = Unit(
        source, name=name or "kernel", options=options or (), defines=defines, arch=arch, name_expressions=wanted
    )
    return JITKernel(source, _chosen(unit, func, name_expressions), options, block_size, unit=unit)


def _chosen(unit: Unit, func: str | None, expressions: Sequence[str]) -> str:
    if func is not None:
        return func
    names = list(expressions) or list(unit.signatures)
    if len(names) == 1:
        return names[0]
    if names:
        raise ValueError(f"the source has {len(names)} kernels; give func=, one of {', '.join(names)}")
    hint = "".join(f"; instantiate the template: func='{one.name}<...>'" for one in unit.templates[:1])
    raise ValueError(f"Function not found: the source has no kernel that can be launched{hint}")


class JITKernel:
    """A compiled CUDA kernel.

    Launch it with `kernel(x, 0.5, n)` or `kernel(x, factor=0.5, n=x.size)`: the 1-D grid covers the parameter named n,
    size, count, length, numel or N, else the largest array, in blocks of block_size threads (fewer where the kernel's
    launch bounds say so; at least one block). Or give the grid: `kernel[grid, block](...)`, with ints or tuples, and
    optionally dynamic shared bytes and a stream: `kernel[grid, block, shared_bytes, stream]`. `kernel[grid, block]` is
    a launcher: keep it for the fastest calls. Launches are asynchronous, on the current stream unless one is given.

    Arguments are checked against the signature before anything is launched (KernelArgumentError names the parameter):
    arrays must have the declared element type and be contiguous, numbers must fit the declared type, None is a null
    pointer.
    """

    def __init__(
        self,
        source: str,
        func_name: str,
        options: Sequence[str] | None = None,
        block_size: int = 256,
        *,
        unit: Unit | None = None,
        load: bool = True,
    ) -> None:
        """Compile `source` (or take the `unit` it was compiled to) and load the kernel, unless `load` is False."""
        if block_size < 1:
            raise ValueError(f"block_size is {block_size}; it must be at least 1")
        expressions = [func_name] if "<" in func_name else []
        self._unit = unit or Unit(source, options=options or (), name_expressions=expressions)
        self.signature: KernelSignature = _find(self._unit, func_name)
        self.source = source
        self.name = func_name
        self.options = list(options or ())
        self.block_size = block_size
        self._bound: dict[Any, native.BoundKernel] = {}
        self._inferred: dict[int, native.BoundKernel] = {}
        self._size_at = size_parameter(self.signature.parameters)
        self._inspectable = self._unit.loadable and load  # the first half compiles
        if self._inspectable:
            _ = self._kernel  # loads the module now, so that its faults show here
        self.__name__ = self.signature.short_name
        self.__doc__ = document(self.signature)

    # ---- launching ----

    def __getitem__(self, config: Any) -> native.BoundKernel:
        """The launcher for a grid and block: see the class. Kept, so that the same configuration costs one look-up."""
        try:
            return self._bound[config]
        except (KeyError, TypeError):  # new, or lists instead of tuples
            grid, block, shared_bytes, stream = self._configuration(config)
        bound = self._kernel.bind(grid, block, shared_bytes, stream)
        if len(self._bound) >= _BOUND_LIMIT:
            self._bound.clear()
        key = (grid, block, shared_bytes, stream)
        self._bound[key] = bound
        if _hashable(config):
            self._bound[config] = bound
        return bound

    def __call__(self, *args: Any, grid_size: Any = None, **kwargs: Any) -> None:
        """Launch over an inferred 1-D grid, or over `grid_size` blocks of block_size threads."""
        if grid_size is not None:
            self[grid_size, self._block](*args, **kwargs)
            return
        blocks = -(-self._threads(args, kwargs) // self._block) or 1
        bound = self._inferred.get(blocks)
        if bound is None:
            if len(self._inferred) >= _BOUND_LIMIT:
                self._inferred.clear()
            bound = self._inferred[blocks] = self._kernel.bind((blocks, 1, 1), (self._block, 1, 1))
        bound(*args, **kwargs)

    def _configuration(
        self, config: Any
    ) -> tuple[tuple[int, int, int], tuple[int, int, int], int, native.Stream | None]:
        parts = config if isinstance(config, tuple) else (config,)
        if not 2 <= len(parts) <= 4:
            raise KernelArgumentError(f"{self.name}: write {self.name}{_CONFIG_FORMS}, not {len(parts)} entries")
        rest = list(parts[2:])
        shared_bytes = 0
        if rest and (len(rest) == 2 or _is_index(rest[0])):
            shared_bytes = self._shared(rest.pop(0))
        stream = rest[0] if rest else None
        if isinstance(stream, Stream):
            stream = stream.native
        if stream is not None and not isinstance(stream, native.Stream):
            raise KernelArgumentError(
                f"{self.name}: the stream is a {type(stream).__name__}; give a pygpukit Stream", "stream"
            )
        return self._extent(parts[0], "grid"), self._extent(parts[1], "block"), shared_bytes, stream

    def _extent(self, value: Any, what: str) -> tuple[int, int, int]:
        entries = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        if not 1 <= len(entries) <= 3 or not all(_is_index(entry) for entry in entries):
            raise KernelArgumentError(
                f"{self.name}: {what} is {value!r}; give an int or a tuple of one to three ints", what
            )
        numbers = [operator.index(entry) for entry in entries]
        if min(numbers) < 1:
            raise KernelArgumentError(f"{self.name}: {what} is {value!r}; every extent must be at least 1", what)
        x, y, z = numbers + [1] * (3 - len(numbers))
        return x, y, z

    def _shared(self, value: Any) -> int:
        if not _is_index(value) or operator.index(value) < 0:
            raise KernelArgumentError(f"{self.name}: shared_bytes is {value!r}; give a number of bytes", "shared_bytes")
        return operator.index(value)

    def _threads(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """How many threads the inferred grid needs."""
        signature = self.signature
        if signature.dimensions > 1:
            axis = _AXES[signature.dimensions - 1]
            raise self._needs_grid(f"it reads the {axis} index, so a 1-D grid does not fit")
        if signature.dynamic_shared:
            raise self._needs_grid("it uses dynamic shared memory", ", shared_bytes")
        if self._size_at is not None:
            parameter = signature.parameters[self._size_at]
            value = args[self._size_at] if self._size_at < len(args) else kwargs.get(parameter.name)
            return 0 if value is None else self._size(value, parameter.name)  # a missing one is refused by the launcher
        arrays = [value.size for value in (*args, *kwargs.values()) if isinstance(value, native.ArrayBase)]
        if not arrays:
            raise self._needs_grid(
                f"no parameter is called {', '.join(SIZE_NAMES[:-1])} or {SIZE_NAMES[-1]} and no array is given"
            )
        return max(arrays)

    def _size(self, value: Any, name: str) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not _is_index(value) or operator.index(value) < 0:
            raise KernelArgumentError(f"{self.name}(): parameter '{name}': the grid cannot follow from {value!r}", name)
        return operator.index(value)

    def _needs_grid(self, reason: str, extra: str = "") -> KernelArgumentError:
        return KernelArgumentError(
            f"{self.name}(): the grid cannot be inferred: {reason}; write {self.name}[grid, block{extra}](...)", "grid"
        )

    @cached_property
    def _block(self) -> int:
        """Threads of an inferred launch's block."""
        return min(self.block_size, self._function.info["max_threads_per_block"] or self.block_size)

    @cached_property
    def _function(self) -> native.Function:
        return self._unit.function(self.signature)

    @cached_property
    def _kernel(self) -> native.Kernel:
        return native.Kernel(self._function, self.signature.short_name, parameter_plan(self.signature, self._function))

    # ---- inspection; None where nothing is loaded ----

    @property
    def compiled(self) -> Image:
        """The image: architecture, log, origin ("compiled", "memory" or "disk") and cache key."""
        return self._unit.image

    @property
    def is_compiled(self) -> bool:
        """True: an object exists only after a successful compile."""
        return bool(self._unit.image.image)

    @property
    def ptx(self) -> str | None:
        """The PTX of the whole unit; None on the simulation."""
        return self._unit.image.ptx or None

    @property
    def registers(self) -> int | None:
        """Registers of one thread; 0 on the simulation."""
        return self._info("registers")

    @property
    def shared_bytes(self) -> int | None:
        """Static shared memory of one block."""
        return self._info("static_shared_bytes")

    @property
    def local_bytes(self) -> int | None:
        """Local memory of one thread: spills and arrays that did not fit into registers."""
        return self._info("local_bytes")

    def occupancy(self, block: int | None = None, shared_bytes: int = 0) -> Occupancy:
        """How many blocks of `block` threads (default block_size) one multiprocessor holds, and what limits them."""
        return occupancy(self._function, self._block if block is None else block, shared_bytes)

    def _info(self, field: str) -> int | None:
        return int(self._function.info[field]) if self._inspectable else None

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature(
            [inspect.Parameter(p.name, kind, annotation=p.type) for p in self.signature.parameters]
        )

    def __repr__(self) -> str:
        return f"<JITKernel {self.signature}>"


def _find(unit: Unit, func: str) -> KernelSignature:
    found = unit.signatures.get(func)
    if found is not None:
        return found
    for signature in unit.signatures.values():
        if signature.short_name == func:
            return signature
    if any(func in (one.name, one.short_name) for one in unit.templates):
        raise ValueError(f"Function {func!r} is a template: instantiate it, func='{func}<...>'")
    raise ValueError(f"Function {func!r} not found in the source; it has: {', '.join(unit.signatures) or 'no kernel'}")


def _is_index(value: Any) -> bool:
    return hasattr(value, "__index__")


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
