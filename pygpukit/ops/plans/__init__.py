"""Measurements of a device, so that plans choose by them: one JSON file a device, named as the device.

`pygpukit tune` and `python -m pygpukit.benchmark.plans` write such a file. One in the folder $PYGPUKIT_PLANS, or in
that of `tune`, comes before the one beside this module; where there is none, a plan follows its family's rule.
docs/convolution.md has the format.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.core.choices import by_device

VARIABLE = "PYGPUKIT_PLANS"
SHIPPED = Path(__file__).parent
REMEDY = "measure again with python -m pygpukit.benchmark.plans, or remove the file"


class Tiled(Protocol):
    """A tile of a family's kernels."""

    @property
    def kernel(self) -> tuple[int, ...]:
        """The name that the kernel is compiled for."""


_Result = TypeVar("_Result")
_Tile = TypeVar("_Tile", bound=Tiled)
_followers: list[Any] = []  # caches of what follows from the table
_tables: dict[str, dict[str, Any]] | None = None
_version = 0


def follows(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Decorator of a function whose results follow from its arguments and the table: they are kept."""
    kept = by_device(function)
    _followers.append(kept)
    return kept


@contextmanager
def using(tables: dict[str, dict[str, Any]]) -> Iterator[None]:
    """Within it these are the tables, by family, whatever the device: for measuring and tests. For all threads."""
    global _tables
    before = _tables
    _tables = tables
    _forget()
    try:
        yield
    finally:
        _tables = before
        _forget()


def version() -> int:
    """Another number whenever using() has changed the tables: an argument of prepared calls that follow from them."""
    return _version


def _forget() -> None:
    global _version
    _version += 1
    for kept in _followers:
        kept.cache_clear()


def file_name(name: str) -> str:
    """Of the table of a device: "NVIDIA H200" has nvidia-h200.json."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".json"


def own_folder() -> Path:
    """Where `pygpukit tune` writes tables: $PYGPUKIT_PLANS, else beside the kernel cache's entries."""
    from pygpukit.jit.locate import cache_directory

    named = os.environ.get(VARIABLE)
    return Path(named) if named else cache_directory() / "plans"


def find(name: str) -> Path | None:
    """The table of a device, None where there is none. Raises FileNotFoundError where $PYGPUKIT_PLANS is no folder."""
    if (named := os.environ.get(VARIABLE)) and not Path(named).is_dir():
        raise FileNotFoundError(f"{VARIABLE} is {named!r}: there is no such folder; make it, or unset {VARIABLE}")
    paths = (folder / file_name(name) for folder in (own_folder(), SHIPPED))
    return next((path for path in paths if path.is_file()), None)


def table(family: str) -> dict[str, Any]:
    """The measurements of a family of operations on the current device, {} where nothing was. Reads a file: ask within
    what follows() keeps.

    Raises FileNotFoundError as find(), ValueError for a file that is no table.
    """
    if _tables is not None:
        return _tables.get(family, {})
    if is_sim():
        return {}
    path = find(device.current().name)
    return {} if path is None else read(path, family)


def read(path: Path, family: str) -> dict[str, Any]:
    """A family's part of a table, {} where it has none. Raises ValueError for a file that is no table."""
    try:
        tables = json.loads(path.read_text(encoding="utf-8"))
        part = tables.get(family, {})
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path} is no table of plans ({error}); {REMEDY}") from None
    if not isinstance(part, dict):
        raise ValueError(f"{path}: {family!r} is {part!r}, must be an object; {REMEDY}")
    return part


def tiles(build: Callable[..., _Tile], listed: Any, known: tuple[_Tile, ...], what: str) -> tuple[_Tile, ...]:
    """A table's tiles. build: makes one from the names and numbers of one; known: those that kernels are compiled for.

    Raises ValueError for what is no tile, and for one that there is no kernel for.
    """
    try:
        listed_tiles = tuple(build(**{name: number(value, name) for name, value in one.items()}) for one in listed)
    except (TypeError, AttributeError) as error:
        raise ValueError(f"the table of plans lists what is no tile of {what} ({error}); {REMEDY}") from None
    kernels = sorted({one.kernel for one in known})
    for one in listed_tiles:
        if one.kernel not in kernels:
            raise ValueError(
                f"the table of plans has the tile {one.kernel} of {what}; "
                f"there are kernels for {', '.join(map(str, kernels))} alone; {REMEDY}"
            )
    return listed_tiles


def number(value: Any, name: str) -> float:
    """A number of a table as it is. Raises ValueError for what is none, or below 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise ValueError(f"the table of plans has {name} {value!r}, must be a number from 0 on; {REMEDY}")
    return value
