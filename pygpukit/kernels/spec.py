"""KernelSpec: all that a built-in kernel is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pygpukit.kernels import registry, sources
from pygpukit.kernels.structure import Structure

if TYPE_CHECKING:
    from pygpukit.jit.compile.headers import HeaderSet

Extent = tuple[int, int, int]
# (name, "pointer" or "struct", dtype code, bytes), as native.Kernel takes them.
Parameter = tuple[str, str, int, int]
# Name expressions of a source, in groups that are compiled together.
Listing = Callable[[], Iterable[tuple[str, ...]]]

_COOPERATIVE, _CLUSTER = 1, 2  # driver.h: PK_LAUNCH_COOPERATIVE, PK_LAUNCH_CLUSTER
FRONT_ENDS = ("simt", "tile")
# Options of sources whose kernels give the same bits for every layout of their input: what a compiler contracts to a
# fused multiply-add differs between the forms of a kernel.
SAME_BITS = ("--fmad=false",)
# Options of sources with generic lambdas in templates: NVRTC 13.0 takes those for functions of the host.
GENERIC_LAMBDAS = ("-default-device",)


@dataclass(frozen=True, eq=False)
class KernelSpec:
    """One kernel of the package; without an expression, all kernels of one source.

    module: `__file__` of the Python module that has the source beside it. file: the source's name there.
    expression: a name expression, "pk::softmax<float>". options: of the compiler. headers: sets that the source
    includes from, beside the package's own. parameters: as native.Kernel takes them; without, as the arguments of the
    first launch say: arrays are pointers, bytes values. shared_bytes: dynamic shared memory of a block. cluster: blocks
    of a cluster. overlapping: begun while the launch before it on the stream ends, where the device can; the kernel
    waits itself for what it needs of that launch (overlap.cuh). cooperative: all blocks run at once. front_end: "simt",
    or "tile" for CUDA Tile C++. ahead: architectures that it is compiled for ahead of time, None for all. instead:
    where it cannot be compiled, the operation that launches it takes another kernel (lost.py). wants: says what that is
    not of the package this machine lacks to compile it, "" for nothing.

    One with an expression is registered where it is made. Raises ValueError for another front end.
    """

    module: str = field(repr=False)
    file: str
    expression: str = ""
    options: tuple[str, ...] = ()
    headers: tuple[HeaderSet, ...] = ()
    parameters: tuple[Parameter, ...] | None = None
    shared_bytes: int = 0
    cluster: Extent = (1, 1, 1)
    overlapping: bool = False
    cooperative: bool = False
    front_end: str = "simt"
    ahead: tuple[str, ...] | None = None
    instead: bool = False
    wants: Callable[[], str] | None = field(default=None, repr=False)
    family: KernelSpec | None = field(default=None, repr=False)  # the spec that of() made this one from

    flags: int = field(init=False, repr=False)  # PK_LAUNCH_*, but for overlapping: not every device can
    source: str = field(init=False, repr=False)  # the source's key: sources.text() has its text
    _variants: dict[Any, KernelSpec] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.front_end not in FRONT_ENDS:
            raise ValueError(f"{self.file}: front_end is {self.front_end!r}; it is one of {', '.join(FRONT_ENDS)}")
        flags = (_COOPERATIVE if self.cooperative else 0) | (_CLUSTER if self.cluster != (1, 1, 1) else 0)
        object.__setattr__(self, "flags", flags)
        object.__setattr__(self, "source", sources.locate(self.module, self.file))
        if self.family is None and self.expression:
            registry.add(self, lambda: [(self.expression,)])

    def of(self, expression: str, **attributes: Any) -> KernelSpec:
        """The kernel of this source with that name expression, and other attributes where some are given: the same
        object each time."""
        key = (expression, *attributes.items()) if attributes else expression
        variant = self._variants.get(key)
        if variant is None:
            variant = self._variants[key] = replace(self, expression=expression, family=self, **attributes)
        return variant

    def structure(self, name: str, **arguments: int) -> Structure:
        """A structure that the source, or a header of the package that it reaches, declares: what packs it. arguments:
        of its template, by their names; of a type its size in bytes."""
        return Structure(name, lambda: sources.texts(self.source).values(), arguments)

    def lists(self, listing: Listing) -> Listing:
        """Decorator of a function that gives every name expression that the source's launches can ask for, in groups to
        compile together. Kernels that none lists cannot be compiled ahead of time."""
        registry.add(self, listing)
        return listing
