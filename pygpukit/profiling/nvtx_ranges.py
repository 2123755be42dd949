"""nvtx_ranges(): cells, tasks, requests and operations as ranges of NVTX, for NVIDIA's own profilers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from pygpukit.core import ranges
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.extras import need
from pygpukit.ops.methods.bind import GPUArray, Methods
from pygpukit.ops.names import public

_DOMAIN = "pygpukit"
_COLORS = {"cell": "green", "task": "blue", "request": "purple", "operation": "orange"}
_active: NvtxRanges | None = None


class NvtxRanges:
    """Ranges that are told to NVTX, until close(). It is a context manager, too."""

    def __init__(self, library: Any) -> None:
        global _active
        if _active is not None:
            raise InvalidSpecError("nvtx_ranges(): ranges are told to NVTX already; close() the object that does")
        self._library = library
        package = sys.modules["pygpukit"]
        # Where a name is, and what stands there; absent ones are fetched when they are first used.
        self._before: list[tuple[Any, str, Any]] = []
        for name in public():
            self._replace(package, name, getattr(package, name), f"gp.{name}")
        for owner in Methods.__mro__[:-1]:
            for name, method in vars(owner).items():
                if isinstance(method, FunctionType) and (name[0] != "_" or name in _OPERATORS):
                    self._replace(GPUArray, name, vars(GPUArray)[name], f"GPUArray.{name}")
        ranges.listen(self._begin)
        _active = self

    def close(self) -> None:
        """Tell no more; the functions are what they were. Again does no harm."""
        global _active
        if _active is not self:
            return
        ranges.unlisten(self._begin)
        for owner, name, value in reversed(self._before):
            setattr(owner, name, value)
        self._before.clear()
        _active = None

    def __enter__(self) -> NvtxRanges:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, kind: str, name: str, known: dict[str, Any]) -> ranges.End:
        under_way = self._library.start_range(message=f"{kind} {name}", color=_COLORS[kind], domain=_DOMAIN)
        return lambda known, error: self._library.end_range(under_way)

    def _replace(self, owner: Any, name: str, value: Any, title: str) -> None:
        if isinstance(value, FunctionType) and not any(place is owner and at == name for place, at, _ in self._before):
            self._before.append((owner, name, value))
            setattr(owner, name, self._within(value, title))

    def _within(self, operation: Callable[..., Any], title: str) -> Callable[..., Any]:
        push, pop = self._library.push_range, self._library.pop_range

        @functools.wraps(operation)
        def ranged(*args: Any, **kwargs: Any) -> Any:
            push(message=title, color=_COLORS["operation"], domain=_DOMAIN)
            try:
                return operation(*args, **kwargs)
            finally:
                pop(domain=_DOMAIN)

        return ranged


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
_OTHER = ("neg", "abs", "invert", "eq", "ne", "lt", "le", "gt", "ge", "getitem", "setitem")
_OPERATORS = frozenset(f"__{way}{name}__" for name in _BINARY for way in ("", "r", "i")) | frozenset(
    f"__{name}__" for name in _OTHER
)


def nvtx_ranges() -> NvtxRanges:
    """Tell NVTX of every cell, task, request and operation from now on.

    Returns
    -------
    NvtxRanges
        With `close()`; it is a context manager, too. Ranges are in the domain "pygpukit". Operations are those that
        are called as `gp.name(...)`, as an operator or as a method of an array. Before and after, an operation is the
        function that it always was, so that ranges cost nothing while they are off.

    Raises
    ------
    ModuleNotFoundError
        nvtx is not there; it names the command that installs it.
    InvalidSpecError
        They are told already.

    Examples
    --------
    >>> with gp.profiling.nvtx_ranges():  # doctest: +SKIP
    ...     y = gp.matmul(x, w)
    """
    return NvtxRanges(need("nvtx", "nvtx", "ranges of NVTX"))
