"""Functions that compute the same at every call: they are known by what their code reads besides its arguments."""

from __future__ import annotations

import builtins
import dis
from types import CodeType, FunctionType, ModuleType
from typing import Any

_OURS = frozenset(["pygpukit", "numpy", "math", "cmath", "operator"])  # whose attributes nobody sets
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_READS_MORE = frozenset(["IMPORT_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_NAME", "STORE_GLOBAL", "STORE_ATTR"])
_ABSENT = object()


class Steady:
    """The globals that a function reads, where they are known modules, their functions, and builtins."""

    def __init__(self, function: Any) -> None:
        plain = isinstance(function, FunctionType) and not function.__code__.co_freevars
        self._globals: dict[str, Any] = function.__globals__ if plain else {}
        names = _read(function.__code__) if plain else None
        self._read = None if names is None else {name: self._globals.get(name, _ABSENT) for name in names}
        if self._read is not None and not all(_known(name, value) for name, value in self._read.items()):
            self._read = None

    def holds(self) -> bool:
        """False where the function reads anything else, or one of the names means something else by now."""
        return self._read is not None and all(
            self._globals.get(name, _ABSENT) is value for name, value in self._read.items()
        )


def is_constant(value: Any) -> bool:
    """True for an argument that is no array and no number and cannot change."""
    if isinstance(value, tuple):
        return all(map(is_constant, value))
    return isinstance(value, _PLAIN)


def _read(code: CodeType) -> set[str] | None:
    """Names of the globals that the code reads; None for code that reads other things, too."""
    names: set[str] = set()
    for one in dis.get_instructions(code):
        if one.opname in _READS_MORE:
            return None
        if one.opname == "LOAD_GLOBAL":
            names.add(str(one.argval))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more = _read(inner)
            if more is None:
                return None
            names |= more
    return names


def _known(name: str, value: Any) -> bool:
    if value is _ABSENT:
        return hasattr(builtins, name)
    if isinstance(value, ModuleType):
        module: Any = value.__name__
    elif callable(value) and not isinstance(value, type):
        module = getattr(value, "__module__", None)
    else:
        return False
    return isinstance(module, str) and module.partition(".")[0] in _OURS
