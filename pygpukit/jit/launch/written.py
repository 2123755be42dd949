"""Calls of kernels that are written in Python, Triton's and cuTile's: arguments by name, and grids."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from pygpukit.core.errors import KernelArgumentError

Extents = int | tuple[int, ...]
Grid = Extents | Callable[[Mapping[str, Any]], Extents]


class Arguments:
    """Binds arguments to the parameters of a function, as a call of it would, several times faster than inspect does.

    names: the parameters. signature: the function's.
    """

    def __init__(self, function: FunctionType) -> None:
        self._kernel = function.__name__
        self.signature = inspect.signature(function)
        parameters = self.signature.parameters.values()
        self.names = tuple(one.name for one in parameters)
        self._defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
        kinds = {one.kind for one in parameters}
        self._plain = kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments by name, in the order of the parameters. Raises KernelArgumentError."""
        names = self.names
        if self._plain and len(args) == len(names) and not kwargs:
            return dict(zip(names, args, strict=True))
        named = dict(zip(names, args, strict=False)) | {**kwargs}
        fits = len(args) <= len(names) and len(named) == len(args) + len(kwargs)
        whole = self._defaults | named if len(named) < len(names) else named
        if self._plain and fits and len(whole) == len(names) and whole.keys() == self.signature.parameters.keys():
            return {name: whole[name] for name in names}
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise KernelArgumentError(f"{self._kernel}(): {error}", "") from None
        bound.apply_defaults()
        return bound.arguments


def extents(kernel: str, grid: Extents, max_blocks: int) -> tuple[int, int, int]:
    """A grid as three numbers. Raises KernelArgumentError for what is no grid of at most max_blocks along an axis."""
    entries = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
    if not 1 <= len(entries) <= 3 or not all(type(one) is int and 0 <= one <= max_blocks for one in entries):
        raise KernelArgumentError(
            f"{kernel}(): grid={grid!r}; give one to three whole numbers of at most {max_blocks}", "grid"
        )
    x, y, z = (*entries, 1, 1, 1)[:3]
    return x, y, z
