"""The stub of the methods of GPUArray that are operations, array/methods.pyi: name_stubs.py writes it.

Operations name GPUArray in their annotations. Were GPUArray to name the classes of its methods in turn, which call
the operations, every module of ops/ would hang together with every other; so it names a stub with their signatures.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pygpukit as gp

FOLDER = Path(gp.__file__).parent / "ops" / "methods"
MODULES = ("operators", "reducing", "ordering", "habits", "bind")
HEAD = '''"""Stub of the methods that ops/methods/bind.py gives to GPUArray; there is no file of this name at run time.

Written by tools/name_stubs.py from the classes in ops/methods/.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pygpukit.array.array import GPUArray
from pygpukit.array.promotion import Scalar
from pygpukit.core.dtypes import DTypeLike

Axis: TypeAlias = int | tuple[int, ...] | None
Operand: TypeAlias = GPUArray | Scalar

class Methods:
'''
_WORDS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
_BINARY = [f"{prefix}{word}" for word in _WORDS for prefix in ("", "r", "i")] + ["lt", "le", "gt", "ge"]
_ASSIGNED = {"__hash__": "(self) -> int"} | {f"__{name}__": "(self: Any, other: Any) -> Any" for name in _BINARY}


def text() -> str:
    """The stub: each method's signature and docstring as its class has them."""
    lines = [line for name in MODULES for line in _methods((FOLDER / f"{name}.py").read_text(encoding="utf-8"))]
    return HEAD + "\n".join(lines).rstrip() + "\n"


def _methods(source: str) -> Iterator[str]:
    """The lines of the methods of a module's public class."""
    lines = source.splitlines()
    (methods,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name[0] != "_")
    for node in methods.body:
        if isinstance(node, ast.Assign):  # __add__, __radd__ = _forward(...), _reflected(...)
            for name in (one.id for one in ast.walk(node.targets[0]) if isinstance(one, ast.Name)):
                if name in _ASSIGNED:
                    yield f"    def {name}{_ASSIGNED[name]}: ..."
        elif isinstance(node, ast.FunctionDef):
            first, body = min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.body[0]
            signature = lines[first - 1 : body.lineno - 1]
            if ast.get_docstring(node) is None:
                yield from (*signature[:-1], f"{signature[-1]} ...")
            else:
                yield from (*signature, *lines[body.lineno - 1 : body.end_lineno], "")
