"""Functions over the border to a worker: by name where it can import them, else their code with all that it uses.

The other way nothing of this is understood: a worker answers with data. The code is marshalled, which two processes of
one interpreter may do; it travels over a socket pair between a process and its own child.
"""

from __future__ import annotations

import base64
import dis
import functools
import importlib
import json
import marshal
import sys
from collections import OrderedDict
from collections.abc import Iterator
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

from ..jit.launch.kernel import JITKernel
from ..jit.launch.unit import Unit
from .remote import unit_arguments
from .travel import Receiver, Sender

_REMEDY = "put it into a module that the worker can import, or give numbers, strings, lists, arrays or kernels instead"
_GLOBALS = {"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"}
_ABSENT = {"absent": None}
_UNITS_KEPT = 64


class CodeSender(Sender):
    """Encodes functions, modules and kernels too. `functions` and `namespaces` go over beside the value."""

    def __init__(self) -> None:
        super().__init__(_REMEDY)
        self.functions: list[dict[str, Any]] = []
        self.namespaces: list[dict[str, Any]] = []  # one for the globals of each module that functions came from
        self._kept: list[Any] = []  # what places are known of by id, so that it stays

    def other(self, what: str, value: Any) -> Any:
        if isinstance(value, ModuleType):
            return {"module": [self._module(what, value), []]}
        if isinstance(value, functools.partial):
            parts = (value.func, value.args, value.keywords)
            return {"partial": [self.encode(f"a part of {what}", part) for part in parts]}
        if isinstance(value, JITKernel):
            return {"kernel": [value.source, value.name, value.block_size, unit_arguments(value.unit)]}
        if isinstance(value, (FunctionType, BuiltinFunctionType, type)):
            if name := _importable(value):
                return {"import": list(name)}
            if isinstance(value, FunctionType):
                return {"function": self._function(what, value)}
        if isinstance(value, type):
            text = f"{what} is the class {value.__name__} of {_home(value)}, and classes do not travel"
            raise TypeError(f"{text}; {_REMEDY}")
        return super().other(what, value)

    def _module(self, what: str, module: ModuleType) -> str:
        if module.__name__ == "__main__" or getattr(module, "__spec__", None) is None:
            raise TypeError(f"{what} is the module {module.__name__!r}, which the worker cannot import; {_REMEDY}")
        return module.__name__

    def _function(self, what: str, function: FunctionType) -> int:
        known = len(self.functions)
        place = self._place(function, self.functions, {})
        if place < known:
            return place
        self._kept.append(function)
        name = function.__qualname__.replace("<locals>.", "")
        code = function.__code__
        captured = zip(code.co_freevars, function.__closure__ or (), strict=True)
        self.functions[place].update(
            code=base64.b64encode(marshal.dumps(code)).decode(),
            name=[function.__name__, function.__qualname__],
            defaults=self.encode(f"a default of {name}()", function.__defaults__),
            kwdefaults=self.encode(f"a default of {name}()", function.__kwdefaults__),
            closure=[self._cell(f"{variable!r}, which {name}() captures,", cell) for variable, cell in captured],
            namespace=self._namespace(name, function),
        )
        return place

    def _cell(self, what: str, cell: CellType) -> Any:
        try:
            content = cell.cell_contents
        except ValueError:  # nothing was assigned yet
            return _ABSENT
        return self.encode(what, content)

    def _namespace(self, name: str, function: FunctionType) -> int:
        """The place of the namespace that gets the globals of this function too."""
        known = len(self.namespaces)
        place = self._place(function.__globals__, self.namespaces, {"__name__": function.__module__})
        if place == known:  # a new one
            self._kept.append(function.__globals__)
        namespace = self.namespaces[place]
        for variable in sorted(_names(function.__code__)):
            if variable not in function.__globals__:
                continue
            value = function.__globals__[variable]
            if variable not in namespace:
                namespace[variable] = _ABSENT  # while it is under way, for functions that use each other
                namespace[variable] = self.encode(f"{variable!r}, which {name}() uses,", value)
            if isinstance(value, ModuleType):
                namespace[variable]["module"][1] += _submodules(value, function.__code__)
        return place


def _names(code: CodeType) -> set[str]:
    """Global names that the code and the code within it uses."""
    return {str(one.argval) for part in _codes(code) for one in dis.get_instructions(part) if one.opname in _GLOBALS}


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _submodules(module: ModuleType, code: CodeType) -> list[str]:
    """Submodules that the code may reach by attribute, and that are there because somebody imported them."""
    names = {f"{module.__name__}.{name}" for part in _codes(code) for name in part.co_names}
    return sorted(name for name in names if name in sys.modules)


def _home(value: Any) -> str:
    return "the notebook or script" if value.__module__ == "__main__" else f"{value.__module__}, within a function"


def _importable(value: Any) -> tuple[str, str] | None:
    """(module, qualified name) where the worker finds the same thing; None where it does not."""
    module = sys.modules.get(value.__module__ or "")
    if module is None or module.__name__ == "__main__" or getattr(module, "__spec__", None) is None:
        return None
    attribute: Any = module
    for name in value.__qualname__.split("."):
        attribute = getattr(attribute, name, None)
    return (module.__name__, value.__qualname__) if attribute is value else None


class CodeReceiver(Receiver):
    """The worker's side: makes functions, modules and kernels of what a CodeSender said."""

    def open(self, functions: list[dict[str, Any]], namespaces: list[dict[str, Any]]) -> None:
        """Make the functions, before any value is decoded."""
        spaces: list[dict[str, Any]] = [{"__builtins__": __builtins__} for _ in namespaces]
        self._functions = [
            FunctionType(
                marshal.loads(base64.b64decode(one["code"])),
                spaces[one["namespace"]],
                one["name"][0],
                None,
                tuple(CellType() for _ in one["closure"]),
            )
            for one in functions
        ]
        for rebuilt, one in zip(self._functions, functions, strict=True):
            rebuilt.__qualname__ = one["name"][1]
            rebuilt.__module__ = namespaces[one["namespace"]]["__name__"]
            rebuilt.__defaults__ = self.decode(one["defaults"])
            rebuilt.__kwdefaults__ = self.decode(one["kwdefaults"])
            for cell, content in zip(rebuilt.__closure__ or (), one["closure"], strict=True):
                if content != _ABSENT:
                    cell.cell_contents = self.decode(content)
        for space, content in zip(spaces, namespaces, strict=True):
            space.update((name, self.decode(value)) for name, value in content.items() if value != _ABSENT)

    def other(self, kind: str, content: Any) -> Any:
        match kind:
            case "function":
                return self._functions[content]
            case "import":
                module = importlib.import_module(content[0])
                return functools.reduce(getattr, content[1].split("."), module)
            case "module":
                for name in content[1]:
                    importlib.import_module(name)
                return importlib.import_module(content[0])
            case "partial":
                function, args, kwargs = (self.decode(part) for part in content)
                return functools.partial(function, *args, **kwargs)
            case "kernel":
                source, name, block_size, arguments = content
                return _unit(source, arguments).kernel(name, block_size)
        return super().other(kind, content)


_units: OrderedDict[str, Unit] = OrderedDict()


def _unit(source: str, arguments: dict[str, Any]) -> Unit:
    """Compiled once in this process, and read from the cache on disk where another one has compiled it."""
    key = json.dumps([source, arguments], sort_keys=True)
    if key not in _units:
        _units[key] = Unit(source, **arguments)
    _units.move_to_end(key)
    while len(_units) > _UNITS_KEPT:
        _units.popitem(last=False)
    return _units[key]
