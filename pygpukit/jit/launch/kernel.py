"""jit() and the kernel object it returns: a typed signature, launch configurations, an inferred grid."""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.cached import cached_property
from pygpukit.core.errors import GPUError, KernelArgumentError
from pygpukit.core.stream import Stream
from pygpukit.jit.cache.image import Image
from pygpukit.jit.compile.types import resolved
from pygpukit.jit.launch import configuration
from pygpukit.jit.launch.assumptions import CheckedLauncher, Launcher
from pygpukit.jit.launch.configuration import is_index
from pygpukit.jit.launch.misfit import misfit
from pygpukit.jit.launch.plan import SIZE_NAMES, document, parameter_plan, size_parameter
from pygpukit.jit.launch.unit import Unit
from pygpukit.jit.source.parameters import Parameter
from pygpukit.jit.source.signature import KernelSignature

if TYPE_CHECKING:
    from pygpukit.jit.inspect.occupancy import Occupancy
    from pygpukit.jit.launch.globals import Globals
    from pygpukit.jit.launch.slicing import SlicedKernel

_BOUND_LIMIT = 512
_AXES = "xyz"


def jit(
    source: str,
    func: str | None = None,
    options: Sequence[str] | None = None,
    block_size: int = 256,
    name: str | None = None,
    name_expressions: Sequence[str] = (),
    *,
    defines: Mapping[str, object] | None = None,
    include: Sequence[str | os.PathLike[str]] = (),
    arch: str | None = None,
    check: bool | str | None = None,
) -> JITKernel:
    """Compile CUDA C++ and return the kernel `func`, ready to launch.

    `func` may be left out when the source has one kernel; "softmax<float>" instantiates a template. `options` are
    NVRTC's; `defines` are macros; `include` are folders for #include; `name` is the file name in diagnostics; `arch` as
    for compile_source(). `check`: True or "memory" for checked mode, on the simulation: a fault of the kernel is raised
    at the next wait as KernelCheckError with its line, thread and array. None: as PYGPUKIT_CHECK says.

    Raises ValueError (function not found), CompileError with diagnostics, NvrtcError (no compiler: what to install).
    """
    expressions = [*name_expressions, *([func] if func and "<" in func and func not in name_expressions else [])]
    unit = Unit(
        source,
        name=name or "kernel",
        options=options or (),
        defines=defines,
        include=include,
        arch=arch,
        name_expressions=expressions,
        check=check,
        func=func,
    )
    return JITKernel(source, chosen(unit, func, name_expressions), options, block_size, unit=unit)


def chosen(unit: Unit, func: str | None, expressions: Sequence[str] = ()) -> str:
    """The name of the kernel that is meant. Raises ValueError when `func` is left out and there is more than one."""
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
    optionally dynamic shared bytes and a stream: `kernel[grid, block, shared_bytes, stream]`. A tile kernel has a grid
    only: `kernel[grid](...)`. `kernel[grid, block]` is a launcher: keep it for the fastest calls. Launches are
    asynchronous, on the current stream unless one is given.

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
        self._unit = unit or Unit(source, options=options or (), name_expressions=expressions, func=func_name)
        self.signature: KernelSignature = _find(self._unit, func_name)
        self.source = source
        self.name = func_name
        self.options = list(options or ())
        self.block_size = block_size
        self._bound: dict[Any, Launcher] = {}
        self._inferred: dict[int, native.BoundKernel] = {}
        self._inspectable = load and self._unit.loadable  # which compiles; --no-launch needs no device
        if self._inspectable:
            self.signature = resolved(self._unit, self.signature)
        self._size_at = size_parameter(self.signature.parameters)
        if self._inspectable:
            _ = self._kernel  # loads the module now, so that its faults show here
        self.__name__ = self.signature.short_name
        self.__doc__ = document(self.signature, self._usage())

    # ---- launching ----

    def __getitem__(self, config: Any) -> Launcher:
        """The launcher for a grid and block: see the class. Kept, so that the same configuration costs one look-up."""
        try:
            return self._bound[config]
        except (KeyError, TypeError):  # new, or lists instead of tuples
            pass
        key = (configuration.parse_tile if self.signature.tile else configuration.parse)(self.name, config)
        bound = self._bound.get(key)
        if bound is None:
            bound = self._bind(*key)
            if len(self._bound) >= _BOUND_LIMIT:
                self._bound.clear()
            self._bound[key] = bound
        if _hashable(config):
            self._bound[config] = bound
        return bound

    def launcher(
        self,
        grid: Any,
        block: Any,
        *,
        shared_bytes: int = 0,
        stream: Stream | None = None,
        cooperative: bool = False,
        cluster: Any = None,
    ) -> Launcher:
        """A launcher with every setting: call it with the kernel's arguments, as often as you like.

        grid, block, cluster: an int or a tuple of one to three. shared_bytes: dynamic shared memory of a block, above
        48 KB too. cooperative: all blocks run at once, so that they may wait for each other (grid.sync()). cluster:
        blocks that share a cluster, each extent a divisor of the grid's; needs SM 9.0.
        Raises KernelArgumentError, naming the setting, for what the kernel or the device cannot do.
        """
        name = self.name
        numbers = configuration.extent(name, grid, "grid"), configuration.extent(name, block, "block")
        shared_bytes = configuration.shared(name, shared_bytes)
        flags, shape = 0, (1, 1, 1)
        if cluster is not None:
            shape = configuration.cluster(name, cluster, numbers[0])
            flags |= configuration.CLUSTER
        if cooperative:
            flags |= configuration.COOPERATIVE
        bound = self._bind(*numbers, shared_bytes, configuration.stream(name, stream), flags, shape)
        if cooperative and cluster is None:
            configuration.check_resident(name, self._function, *numbers, shared_bytes)
        return bound

    def __call__(self, *args: Any, grid_size: Any = None, **kwargs: Any) -> None:
        """Launch over an inferred 1-D grid, or over `grid_size` blocks of block_size threads."""
        if grid_size is not None:
            self[grid_size, 1 if self.signature.tile else self._block](*args, **kwargs)
            return
        blocks = self._blocks(args, kwargs, self._block)
        bound = self._inferred.get(blocks)
        if bound is None:
            if len(self._inferred) >= _BOUND_LIMIT:
                self._inferred.clear()
            bound = self._inferred[blocks] = self._kernel.bind((blocks, 1, 1), (self._block, 1, 1))
        bound(*args, **kwargs)

    def sliced(self, blocks: int | None = None) -> SlicedKernel:
        """The same kernel, launched in slices of at most `blocks` blocks (None: as many as run at once), with the same
        outputs bit for bit: other work gets onto the device between them.

        Raises UnsliceableError (reason, function, line of the PTX) for a kernel that cannot be sliced safely.
        """
        from pygpukit.jit.launch.slicing import SlicedKernel

        return SlicedKernel(self, blocks)

    def inferred(self, arguments: Mapping[str, Any], block: int | None = None) -> tuple[int, int]:
        """(blocks, threads of a block) of the 1-D launch that these arguments, by parameter name, ask for.

        block: threads of a block, by default those of a plain call. Raises KernelArgumentError as a plain call does.
        """
        threads = self._block if block is None else block
        return self._blocks((), dict(arguments), threads), threads

    def _blocks(self, args: tuple[Any, ...], kwargs: dict[str, Any], threads: int) -> int:
        blocks = -(-self._threads(args, kwargs) // threads) or 1
        if blocks > configuration.MAX_BLOCKS:
            max_blocks = configuration.MAX_BLOCKS
            raise self._needs_grid(
                f"it has {blocks} blocks of {threads} threads, and a grid at most {max_blocks} blocks"
            )
        return blocks

    def _threads(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """The number of threads that the inferred grid needs."""
        signature = self.signature
        if signature.tile:
            raise KernelArgumentError(
                f"{self.name}(): a tile kernel has no threads that could cover the arrays; write "
                f"{self.name}[grid](...), with one block for each tile of the result",
                "grid",
            )
        if signature.dimensions > 1:
            axis = _AXES[signature.dimensions - 1]
            raise self._needs_grid(f"it reads the {axis} index, so a 1-D grid does not fit")
        if signature.dynamic_shared:
            raise self._needs_grid("it uses dynamic shared memory", ", shared_bytes")
        if self._size_at is not None:
            parameter = signature.parameters[self._size_at]
            value = args[self._size_at] if self._size_at < len(args) else kwargs.get(parameter.name)
            if value is None:
                return 0  # a missing one is refused by the launcher
            size = self._size(value, parameter)
            if size is None:
                raise misfit(self.name, signature.parameters, args, kwargs) or KernelArgumentError(
                    f"{self.name}(): parameter '{parameter.name}': the grid cannot follow from {value!r:.60}; it must "
                    f"be a whole number that fits {parameter.dtype}",
                    parameter.name,
                )
            return size
        arrays = [value.size for value in (*args, *kwargs.values()) if isinstance(value, native.ArrayBase)]
        if not arrays:
            raise misfit(self.name, signature.parameters, args, kwargs) or self._needs_grid(
                f"no parameter is called {', '.join(SIZE_NAMES[:-1])} or {SIZE_NAMES[-1]} and no array is given"
            )
        return max(arrays)

    def _size(self, value: Any, parameter: Parameter) -> int | None:
        """The number of elements that a value says, where it is one that the parameter takes."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, native.ArrayBase) or not is_index(value):
            return None
        size = operator.index(value)
        bits = int(parameter.dtype.lstrip("uint")) - (not parameter.dtype.startswith("u"))
        return size if 0 <= size < 1 << bits else None

    def _needs_grid(self, reason: str, extra: str = "") -> KernelArgumentError:
        return KernelArgumentError(
            f"{self.name}(): the grid cannot be inferred: {reason}; write {self.name}[grid, block{extra}](...)", "grid"
        )

    def _bind(
        self,
        grid: configuration.Extent,
        block: configuration.Extent,
        shared_bytes: int,
        stream: native.Stream | None,
        flags: int = 0,
        cluster: configuration.Extent = (1, 1, 1),
    ) -> Launcher:
        if shared_bytes > configuration.SHARED_ALWAYS_FITS:
            configuration.check_shared(self.name, self._function, shared_bytes)
        bound = self._kernel.bind(grid, block, shared_bytes, stream, flags, cluster)
        return CheckedLauncher(bound, self.signature) if self.signature.assumptions else bound

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

    def simulated(self, check: bool | str) -> JITKernel:
        """The same kernel compiled for the simulation, in a checked mode. Raises what jit() raises."""
        return JITKernel(self.source, self.name, block_size=self.block_size, unit=self._unit.simulated(check))

    # ---- inspection ----

    @property
    def unit(self) -> Unit:
        """The compiled source that the kernel is part of."""
        return self._unit

    @property
    def globals(self) -> Globals:
        """The source's __device__ and __constant__ variables by name: .read(), .write(value), .array()."""
        return self._unit.globals

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

    @cached_property
    def sass(self) -> str | None:
        """The kernel's machine code as text; None on the simulation. Raises GPUError that says what to install."""
        from pygpukit.jit.inspect.disassembly import sass

        return sass(self) if self._unit.image.kind == "nvrtc" else None

    @property
    def registers(self) -> int | None:
        """Registers of one thread; 0 on the simulation."""
        return self._resources["registers"]

    @property
    def shared_bytes(self) -> int | None:
        """Static shared memory of one block."""
        return self._resources["static_shared_bytes"]

    @property
    def local_bytes(self) -> int | None:
        """Local memory of one thread: spills and arrays that did not fit into registers."""
        return self._resources["local_bytes"]

    def occupancy(self, block: int | None = None, shared_bytes: int = 0) -> Occupancy:
        """The number of blocks of `block` threads (default block_size) that one multiprocessor holds, and the limit.

        The driver's figure; computed for the architecture where the kernel is not loaded (GPUError for one unknown).
        """
        from pygpukit.jit.inspect.occupancy import occupancy, occupancy_of

        if self._inspectable:
            return occupancy(self._function, self._block if block is None else block, shared_bytes)
        resources = self._unit.resources(self.signature)
        if resources is None:
            raise GPUError(f"{self.name} is not loaded, and its image tells nothing about registers")
        return occupancy_of(self._unit.image.arch, resources, block or self.block_size, shared_bytes)

    def _usage(self) -> str:
        """One sentence on what the kernel takes of a multiprocessor; "" where that is not known."""
        if not self.registers:  # the simulation has none
            return f"{self.shared_bytes} bytes of static shared memory a block" if self.shared_bytes else ""
        return (
            f"{self.registers} registers and {self.local_bytes} bytes of local memory a thread, {self.shared_bytes} "
            f"bytes of static shared memory a block; compiled for {self._unit.image.arch}"
        )

    @cached_property
    def _resources(self) -> dict[str, int | None]:
        """By the driver; from the image where the kernel is not loaded."""
        names = ("registers", "static_shared_bytes", "local_bytes")
        if self._inspectable:
            info = self._function.info
            return {name: int(info[name]) for name in names}
        resources = self._unit.resources(self.signature)
        values = (
            (None,) * 3 if resources is None else (resources.registers, resources.shared_bytes, resources.local_bytes)
        )
        return dict(zip(names, values, strict=True))

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature(
            [inspect.Parameter(p.name, kind, annotation=p.type) for p in self.signature.parameters]
        )

    def __repr__(self) -> str:
        return f"<JITKernel {self.signature}>"


def _find(unit: Unit, func: str) -> KernelSignature:
    known = unit.signatures.get(func)
    if known is not None:
        return known
    for signature in unit.signatures.values():
        if signature.short_name == func:
            return signature
    if any(func in (one.name, one.short_name) for one in unit.templates):
        raise ValueError(f"Function {func!r} is a template: instantiate it, func='{func}<...>'")
    raise ValueError(f"Function {func!r} not found in the source; it has: {', '.join(unit.signatures) or 'no kernel'}")


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
