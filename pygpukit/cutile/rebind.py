"""Rebind: a kernel's function with the stand-in in the place of `cuda.tile`, and so every function that it calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import Enum
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

from pygpukit.cutile.language import BUILTINS, NAMES, Language

_CUTILE = "cuda.tile"


class Rebound:
    """The functions of one launch, each rebound once. names: of the stand-in."""

    def __init__(self, ct: Language) -> None:
        self._ct = ct
        self._functions: dict[int, FunctionType] = {}
        self._kept: list[Any] = []  # ids stay true while this lives

    def function(self, original: FunctionType) -> FunctionType:
        """A function with the same code, whose names mean the stand-in's."""
        if id(original) not in self._functions:
            scope: dict[str, Any] = {"__builtins__": BUILTINS, "__name__": original.__globals__.get("__name__")}
            cells = tuple(CellType() for _ in original.__closure__ or ())
            out = FunctionType(original.__code__, scope, original.__name__, None, cells)
            self._functions[id(original)] = out
            self._kept.append(original)
            for name in _global_names(original.__code__):
                if name in original.__globals__:
                    scope[name] = self.value(original.__globals__[name])
            for cell, source in zip(cells, original.__closure__ or (), strict=True):
                with contextlib.suppress(ValueError):  # one that is not filled yet
                    cell.cell_contents = self.value(source.cell_contents)
            out.__defaults__ = None if original.__defaults__ is None else tuple(map(self.value, original.__defaults__))
            keywords = original.__kwdefaults__
            out.__kwdefaults__ = None if keywords is None else {key: self.value(one) for key, one in keywords.items()}
        return self._functions[id(original)]

    def value(self, value: Any) -> Any:
        """A value that a kernel names, as the interpreter has it."""
        if isinstance(value, Language):
            return self._ct
        if isinstance(value, ModuleType):
            if value.__name__ == _CUTILE:
                return self._ct
            return SimpleNamespace(tile=self._ct) if value.__name__ == "cuda" else value
        if type(value) is tuple:
            return tuple(map(self.value, value))
        if isinstance(value, Enum) and _is_cutile(type(value)):
            return NAMES[type(value).__name__][value.name]
        if type(value).__module__.startswith(_CUTILE) and getattr(value, "name", None) in NAMES:
            return NAMES[value.name]
        if _is_cutile(value) and getattr(value, "__name__", None):
            return getattr(self._ct, value.__name__)
        if isinstance(value, FunctionType) and not value.__module__.startswith("pygpukit.cutile."):
            wrapped = getattr(value, "__wrapped__", None) if hasattr(value, "_cutile_function_wrapper") else None
            return self.function(value if wrapped is None else wrapped)
        return value


def _is_cutile(value: Any) -> bool:
    """True for a function or class that cuTile defines."""
    return isinstance(value, (FunctionType, type)) and str(getattr(value, "__module__", "")).startswith(_CUTILE)


def _global_names(code: CodeType) -> Iterator[str]:
    """The names that a function, and those defined in it, may look up in their module."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)
