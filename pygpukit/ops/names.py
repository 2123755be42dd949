"""Which operations there are, and the module of each. Nothing lists the modules: each says itself what it gives.

A module below ops/ has its public names in `__all__`: they are in pygpukit and in pygpukit.ops. Names in `LOW_LEVEL`
are in pygpukit.ops only, and those of the folders APART in their own package only. All are lists of plain strings,
since they are read without importing the module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from pygpukit.compat.paths import MOVED, PATHS

_LIST = re.compile(r"^(__all__|LOW_LEVEL) = \[([^\]]*)\]", re.MULTILINE)
_NAME = re.compile(r'"(\w+)"')
COMPAT = "pygpukit.compat"  # has, in folders named as here, operations under the older project's names
APART = ("pygpukit.ops.audio",)  # gp.ops.audio.trim is neither gp.trim nor gp.ops.trim


@cache
def public() -> dict[str, str]:
    """The modules of the operations that are in pygpukit, by their names."""
    return _lists()["__all__"]


@cache
def every() -> dict[str, str]:
    """The modules of all operations, by their names."""
    return _lists()["__all__"] | _lists()["LOW_LEVEL"]


def _mirror(package: str) -> str:
    """Where the older project's names for a package's operations are: pygpukit.compat.ops.nn for pygpukit.ops.nn."""
    return package.replace("pygpukit", COMPAT, 1)


def _modules(package: str) -> Iterator[tuple[Path, str]]:
    for root in import_module(package).__path__:
        for path in sorted(Path(root).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield path, ".".join((package, *(part for part in parts if part != "__init__")))


@cache
def _lists(package: str = "pygpukit.ops") -> dict[str, dict[str, str]]:
    lists: dict[str, dict[str, str]] = {"__all__": {}, "LOW_LEVEL": {}}
    elsewhere = () if package in APART else tuple(f"{base}." for name in APART for base in (name, _mirror(name)))
    for path, module in (*_modules(package), *_modules(_mirror(package))):
        if f"{module}.".startswith(elsewhere):
            continue
        for kind, text in _LIST.findall(path.read_text(encoding="utf-8")):
            for name in _NAME.findall(text):
                first = lists[kind].setdefault(name, module)
                assert first == module, f"{name} is in {first} and in {module}: one of them has to go"
    return lists


class Package(ModuleType):
    """The module type of a package of operations: their names are fetched on first use.

    Of a folder and a function of one name the function is what `ops.matmul` means, whichever was imported first.
    """

    def homes(self) -> dict[str, str]:
        """The modules of the operations below this package, by their names."""
        if self.__name__ in APART:
            return _lists(self.__name__)["__all__"]
        below = (f"{self.__name__}.", f"{_mirror(self.__name__)}.")
        return {name: home for name, home in every().items() if home.startswith(below)}

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return sorted(self.homes())
        if f"{self.__name__}.{name}" in (*APART, *PATHS):
            module = import_module(f"{self.__name__}.{name}")
            return vars(self).get(name, module)  # of a module and an operation of one name, the operation
        homes = every() if name in MOVED.get(self.__name__, ()) else self.homes()
        home = None if name.startswith("_") else homes.get(name)
        if home is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
        from pygpukit.ops.sections import add_to

        add_to(value, name)
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and name in value.__dict__.get("__all__", ()):
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        below = f"{self.__name__}."
        loaded = {n for n, one in vars(self).items() if isinstance(one, ModuleType) and one.__name__.startswith(below)}
        return sorted({*self.homes(), *loaded} | ({"audio"} if f"{below}audio" in APART else set()))
