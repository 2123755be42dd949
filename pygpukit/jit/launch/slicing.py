"""Launching a kernel in slices: parts of its grid, one after another on one stream, with the bits of the whole launch.

Between two slices the device is free for more urgent work. On a device a slice runs a variant that is made from the
kernel's PTX (`_core.slice_ptx`); the simulated device runs any part of a grid.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.cached import cached_property
from pygpukit.core.errors import KernelArgumentError, UnsliceableError
from pygpukit.core.stream import Stream
from pygpukit.jit.launch import configuration
from pygpukit.jit.launch.configuration import Extent, is_index
from pygpukit.jit.launch.plan import parameter_plan
from pygpukit.jit.launch.variant import load_ptx

if TYPE_CHECKING:
    from pygpukit.jit.cache.image import Image
    from pygpukit.jit.launch.kernel import JITKernel
    from pygpukit.jit.launch.unit import Unit
    from pygpukit.jit.source.signature import KernelSignature

_SLICE = 8  # PK_LAUNCH_SLICE of native/include/pygpukit/driver.h
_PLACE = struct.Struct("6I")  # pk_slice
_PARAMETER = "pk_slice"
_NEWEST_PTX_12 = (0, 1, 2, 3, 4, 5, 5, 6, 7, 8)  # PTX 8.x by the minor version of CUDA 12
_BOUND_LIMIT = 512


class SlicedKernel:
    """A kernel that is launched in slices of at most `blocks` blocks: JITKernel.sliced() makes it.

    Call it, or `sliced[grid, block](...)`, as the kernel itself. The slices follow one another on one stream, in
    ascending order of their blocks; a slice is a part of a row of blocks, whole rows or whole planes. Every block sees
    its own place and the whole grid, so outputs are those of the whole launch, bit for bit, for every kernel whose
    result does not depend on the order in which the device runs blocks. A fault, or a task that is cancelled, ends the
    row between two slices. `blocks` is None for one wave: as many as the device runs at once.
    """

    def __init__(self, kernel: JITKernel, blocks: int | None = None) -> None:
        """Makes the variant. Raises UnsliceableError (reason and place), KernelArgumentError for bad `blocks`."""
        if blocks is not None and (not is_index(blocks) or int(blocks) < 1):
            raise KernelArgumentError(f"{kernel.name}: blocks is {blocks!r}; a slice has at least 1 block", "blocks")
        if kernel.signature.cluster_dims:
            raise UnsliceableError(f"{kernel.name} has __cluster_dims__: blocks of a cluster run together", "Cluster")
        self.kernel = kernel
        self.blocks = None if blocks is None else int(blocks)
        self.name = kernel.name
        self._function = sliced_function(kernel.unit, kernel.signature)
        plan = parameter_plan(kernel.signature, kernel.unit.function(kernel.signature))
        short = kernel.signature.short_name
        self._native = native.Kernel(self._function, short, [*plan, (_PARAMETER, "struct", -1, _PLACE.size)])
        self._launchers: dict[Any, SlicedLauncher] = {}

    def __getitem__(self, config: Any) -> SlicedLauncher:
        """The launcher for `grid, block`, optionally with shared bytes and a stream, as the kernel's own brackets."""
        key = configuration.parse(self.name, config)
        launcher = self._launchers.get(key)
        if launcher is None:
            if len(self._launchers) >= _BOUND_LIMIT:
                self._launchers.clear()
            launcher = self._launchers[key] = self._launcher(*key)
        return launcher

    def launcher(
        self,
        grid: Any,
        block: Any,
        *,
        shared_bytes: int = 0,
        stream: Stream | None = None,
        cooperative: bool = False,
        cluster: Any = None,
    ) -> SlicedLauncher:
        """As JITKernel.launcher(). Raises UnsliceableError for cooperative launches and clusters: their blocks run
        together."""
        if cooperative:
            raise UnsliceableError(f"{self.name}: a cooperative launch runs all blocks at once", "GridSync")
        if cluster is not None:
            raise UnsliceableError(f"{self.name}: the blocks of a cluster run together", "Cluster")
        extents = (configuration.extent(self.name, grid, "grid"), configuration.extent(self.name, block, "block"))
        shared_bytes = configuration.shared(self.name, shared_bytes)
        return self._launcher(*extents, shared_bytes, configuration.stream(self.name, stream))

    def __call__(self, *args: Any, grid_size: Any = None, **kwargs: Any) -> None:
        """Launch over the kernel's inferred 1-D grid, or over `grid_size` blocks."""
        names = (one.name for one in self.kernel.signature.parameters)
        grid, block = self.kernel.inferred({**dict(zip(names, args, strict=False)), **kwargs})
        self[grid if grid_size is None else grid_size, block](*args, **kwargs)

    def wave(self, block: int, shared_bytes: int = 0) -> int:
        """Blocks of `block` threads that the device runs at once."""
        device = native.device_info(native.current_device())
        return max(self._function.occupancy(block, shared_bytes), 1) * int(device["multiprocessor_count"])

    def _launcher(self, grid: Extent, block: Extent, shared_bytes: int, stream: native.Stream | None) -> SlicedLauncher:
        if shared_bytes > configuration.SHARED_ALWAYS_FITS:
            configuration.check_shared(self.name, self._function, shared_bytes)
        blocks = self.wave(prod(block), shared_bytes) if self.blocks is None else self.blocks
        return SlicedLauncher(self, grid, block, shared_bytes, stream, blocks)

    def __repr__(self) -> str:
        size = "one wave" if self.blocks is None else f"{self.blocks} blocks"
        return f"<SlicedKernel {self.kernel.signature}, slices of {size}>"


class SlicedLauncher:
    """A sliced kernel with its launch configuration: call it with the kernel's arguments.

    slices: ((first x, y, z), (extent x, y, z)) of every slice, in the order in which they are launched.
    """

    def __init__(
        self,
        sliced: SlicedKernel,
        grid: Extent,
        block: Extent,
        shared_bytes: int,
        stream: native.Stream | None,
        blocks: int,
    ) -> None:
        try:
            self.slices = _core.slice_plan(grid, blocks)
        except ValueError as error:
            raise KernelArgumentError(f"{sliced.name}: {error}", "blocks") from None
        self._sliced = sliced
        self._grid = grid
        self._count = len(sliced.kernel.signature.parameters)
        bound: dict[Extent, native.BoundKernel] = {}
        for extent in {extent for _, extent in self.slices}:
            bound[extent] = sliced._native.bind(extent, block, shared_bytes, stream, _SLICE)
        self._bound = bound

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Enqueues every slice. Raises KernelArgumentError before the first one is launched."""
        count = len(args) + len(kwargs)
        if count > self._count:
            raise KernelArgumentError(f"{self._sliced.name}(): takes {self._count} arguments, got {count}")
        for launch, place in self._steps:
            launch(*args, **kwargs, pk_slice=place)

    @cached_property
    def _steps(self) -> tuple[tuple[native.BoundKernel, bytes], ...]:
        return tuple(self._places())

    def _places(self) -> Iterator[tuple[native.BoundKernel, bytes]]:
        for first, extent in self.slices:
            yield self._bound[extent], _PLACE.pack(*first, *self._grid)

    def __len__(self) -> int:
        """The number of slices of a launch."""
        return len(self.slices)


def sliced_ptx(unit: Unit, signature: KernelSignature, newest: tuple[int, int] | None = None) -> str:
    """The PTX of a kernel's sliced variant; `newest`: the latest version of PTX that it may ask for.

    Raises UnsliceableError.
    """
    return _rewritten(unit.image, unit.symbol(signature), signature.name, unit.variable_symbols(), newest)


def _rewritten(
    image: Image, symbol: str, name: str, variables: list[str], newest: tuple[int, int] | None = None
) -> str:
    if not image.ptx:
        raise UnsliceableError(f"{name} has no PTX to make a sliced variant of", "NoPtx")
    return _core.slice_ptx(image.ptx, symbol, variables, newest)


def variant_of(image: Image, symbol: str, name: str, variables: list[str]) -> native.Function:
    """A new sliced variant of a kernel in an image with these variables that the host can write. Raises
    UnsliceableError."""
    text = _rewritten(image, symbol, name, variables, newest_ptx())
    return load_ptx(text).function(symbol)


@dataclass(frozen=True)
class Recipe:
    """The way to make the sliced variant of a kernel. make(): its handle, and what the caller keeps for as long as the
    variant is to live; raises UnsliceableError. Call it with the device current."""

    name: str
    device: int
    make: Callable[[], tuple[int, object]]


_KEPT = 4096  # kernels whose PTX is kept, some kilobytes each
_NAMED = 65536  # kernels that are known by name
_recipes: dict[int, Recipe] = {}  # by the kernel's handle
_with_ptx: dict[int, None] = {}  # handles, the oldest first
_lock = threading.Lock()


def remember(function: native.Function, name: str, make: Callable[[], tuple[int, object]]) -> None:
    """Keep how the sliced variant of a kernel is made, should a gate ask for it. `make` holds on to no module.

    A gate cuts launches into whole waves. So a kernel whose blocks wait for each other is safe: they must all be on the
    device at once, in a grid of one wave, which is never cut.
    """
    handle = function.handle
    with _lock:
        _with_ptx.pop(handle, None)
        _recipes.pop(handle, None)
        _with_ptx[handle] = None
        _recipes[handle] = Recipe(name, native.current_device(), make)
        if len(_with_ptx) > _KEPT:
            oldest = next(iter(_with_ptx))
            del _with_ptx[oldest]
            _recipes[oldest] = replace(_recipes[oldest], make=_forgotten)
        if len(_recipes) > _NAMED:
            del _recipes[next(iter(_recipes))]


def _forgotten() -> tuple[int, object]:
    raise UnsliceableError(f"its PTX is not kept any more: {_KEPT} kernels were loaded since; load it again", "NoPtx")


def recipe(handle: int) -> Recipe | None:
    """The recipe that was remembered of a kernel."""
    with _lock:
        return _recipes.get(handle)


def remember_unit(unit: Unit, signature: KernelSignature, function: native.Function) -> None:
    """remember() for a kernel of a unit. Launchers may outlive both, so that neither is needed to make the variant."""

    def refuse() -> None:
        if signature.cluster_dims:
            raise UnsliceableError("it has __cluster_dims__: blocks of a cluster run together", "Cluster")

    image, variables = unit.image, unit.variable_names
    remember_image(function, signature.name, image, unit.symbol(signature), variables, refuse)


def remember_image(
    function: native.Function,
    name: str,
    image: Image,
    symbol: str,
    variables: Callable[[], list[str]] = list,
    refuse: Callable[[], None] = lambda: None,
) -> None:
    """remember() for a kernel of an image. variables: those that the host can write. refuse: raises UnsliceableError
    when asked for a variant that must not be."""
    handle, without = function.handle, replace(image, image=b"", ptx="")
    ptx = zlib.compress(image.ptx.encode(), 1)

    def make() -> tuple[int, object]:
        refuse()
        if without.kind == "sim":  # runs any part of a grid
            return handle, None
        variant = variant_of(replace(without, ptx=zlib.decompress(ptx).decode()), symbol, name, variables())
        return variant.handle, variant

    remember(function, name, make)


def sliced_function(unit: Unit, signature: KernelSignature) -> native.Function:
    """The function that runs a kernel's slices. The first call for a kernel of a unit makes it; raises as
    load_ptx()."""
    if unit.image.kind == "sim":
        return unit.function(signature)
    symbol = unit.symbol(signature)
    module = unit.sliced.get(symbol)
    if module is None:  # made without a lock, which would hold up whoever loads a kernel: of two that race one stays
        module = unit.sliced.setdefault(symbol, load_ptx(sliced_ptx(unit, signature, newest_ptx())))
    return module.function(symbol)


def newest_ptx() -> tuple[int, int] | None:
    """The latest version of PTX that the current device's driver reads; None when it is not known."""
    version = int(native.device_info(native.current_device())["driver_version"])
    major, minor = version // 1000, version % 1000 // 10
    if major >= 13:
        return major - 4, minor
    if major == 12:
        return 8, _NEWEST_PTX_12[min(minor, len(_NEWEST_PTX_12) - 1)]
    return None
