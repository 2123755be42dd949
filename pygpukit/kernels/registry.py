"""The catalogue of built-in kernels. Specs register themselves; nothing lists the modules that make them.

A source is found by its file: the modules of its folder make specs for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pygpukit.kernels.spec import KernelSpec

_PACKAGE = Path(__file__).parent.parent
_listings: dict[str, list[tuple[KernelSpec, Callable[[], Iterable[tuple[str, ...]]]]]] = {}  # by source


class Unit(NamedTuple):
    """Kernels of one source that are compiled together."""

    spec: KernelSpec
    expressions: tuple[str, ...]

    @property
    def source(self) -> str:
        """The source's key."""
        return self.spec.source

    def is_ahead(self, arch: str) -> bool:
        """It is compiled ahead of time for that architecture, on this machine."""
        if self.spec.wants is not None and self.spec.wants():
            return False
        return self.spec.ahead is None or arch in self.spec.ahead

    def __str__(self) -> str:
        return f"{self.source} ({len(self.expressions)} kernels)"


def add(spec: KernelSpec, listing: Callable[[], Iterable[tuple[str, ...]]]) -> None:
    """Make the kernels that listing() names known. KernelSpec calls it."""
    _listings.setdefault(spec.source, []).append((spec, listing))


def units(source: str) -> Iterator[Unit]:
    """The listed kernels of one source, as the modules that are imported list them."""
    for spec, listing in _listings.get(source, ()):
        for expressions in listing():
            yield Unit(spec, expressions)


def catalogue() -> Iterator[Unit]:
    """Every listed kernel, by the order of sources: of those in the package and in further folders of pygpukit.ops, and
    of any other whose module is imported."""
    roots = {_PACKAGE: _PACKAGE.name}
    roots |= {Path(root): "pygpukit.ops" for root in import_module("pygpukit.ops").__path__}
    for root, name in roots.items():
        for folder in sorted({path.parent for path in root.rglob("*.cu")}):
            package = ".".join((name, *folder.relative_to(root).parts))
            import_module(package)
            for module in iter_modules([str(folder)]):
                import_module(f"{package}.{module.name}")
    for source in sorted(_listings):
        yield from units(source)
