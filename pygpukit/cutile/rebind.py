"""Rebind: a kernel's function, and every function it calls, with other values in the place of some that they name."""

from __future__ import annotations

import contextlib
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Annotated, Any

from pygpukit.cutile.dtypes import DType
from pygpukit.cutile.language import BUILTINS, NAMES, Language, ScalarAnnotation

_CUTILE = "cuda.tile"
_OURS = {id(value): name for name, value in NAMES.items()}


class Rebound:
    """Functions rebound by one replacement, each once. builtins: Python's own functions as they are to be."""

    def __init__(self, replaced: Callable[[Any], Any], builtins: dict[str, Any] | None = None) -> None:
        self._replaced, self._builtins = replaced, builtins
        self._functions: dict[int, FunctionType] = {}
        self._kept: list[Any] = []  # ids stay true while this lives

    def function(self, original: FunctionType) -> FunctionType:
        """A function with the same code, whose names mean the replacements."""
        if id(original) in self._functions:
            return self._functions[id(original)]
        scope: dict[str, Any] = {"__name__": original.__globals__.get("__name__")}
        if self._builtins is not None:
            scope["__builtins__"] = self._builtins
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
        return out

    def value(self, value: Any) -> Any:
        """A value that a kernel names, replaced; functions of the user's are rebound."""
        if type(value) is tuple:
            return tuple(map(self.value, value))
        new = self._replaced(value)
        if new is not value:
            return new
        if isinstance(value, FunctionType) and not value.__module__.startswith("pygpukit.cutile."):
            wrapped = getattr(value, "__wrapped__", None) if hasattr(value, "_cutile_function_wrapper") else None
            return self.function(value if wrapped is None else wrapped)
        return value


def for_interpreter(ct: Language) -> Rebound:
    """Functions with the stand-in in the place of `cuda.tile`, and Python's own functions as they are in kernels."""

    def replaced(value: Any) -> Any:
        if isinstance(value, ModuleType):
            if value.__name__ == _CUTILE or isinstance(value, Language):
                return ct
            return SimpleNamespace(tile=ct) if value.__name__ == "cuda" else value
        if isinstance(value, Enum) and _is_cutile(type(value)):
            return NAMES[type(value).__name__][value.name]
        if type(value).__module__.startswith(_CUTILE) and getattr(value, "name", None) in NAMES:
            return NAMES[value.name]
        return getattr(ct, value.__name__) if _is_cutile(value) else value

    return Rebound(replaced, BUILTINS)


def for_compiler(cutile: ModuleType, function: FunctionType) -> FunctionType:
    """A function that names the stand-in, with `cuda.tile` in its place, as cuTile's compiler reads it."""

    def replaced(value: Any) -> Any:
        if isinstance(value, Language):
            return cutile
        if isinstance(value, DType):
            return getattr(cutile, value.name)
        if isinstance(value, Enum) and NAMES.get(type(value).__name__) is type(value):
            return getattr(getattr(cutile, type(value).__name__), value.name)
        if typing.get_origin(value) is Annotated:
            inner, *marks = typing.get_args(value)
            parts: Any = (inner, *map(annotation, marks))
            return typing.cast(Any, Annotated)[parts]
        name = _OURS.get(id(value))
        return value if name is None else getattr(cutile, name)

    def annotation(mark: Any) -> Any:
        if isinstance(mark, ScalarAnnotation):
            return typing.get_args(cutile.ScalarInt64)[1]
        kind = type(mark).__name__
        if NAMES.get(kind) is not type(mark):
            return mark
        return getattr(cutile, kind)(**{key: replaced(one) for key, one in vars(mark).items()})

    out = Rebound(replaced).function(function)
    hints = typing.get_type_hints(function, include_extras=True)
    out.__annotations__ = {name: replaced(hint) for name, hint in hints.items()}
    return out


def _is_cutile(value: Any) -> bool:
    """True for a function or class that cuTile defines."""
    return isinstance(value, (FunctionType, type)) and str(getattr(value, "__module__", "")).startswith(_CUTILE)


def _global_names(code: CodeType) -> Iterator[str]:
    """The names that a function, and those defined in it, may look up in their module."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)
