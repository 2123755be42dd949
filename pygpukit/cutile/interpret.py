"""Interpret: a kernel over NumPy, one block after the other, every access checked."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from pygpukit.core.dtypes import as_dtype
from pygpukit.core.errors import DTypeError, KernelArgumentError
from pygpukit.cutile.annotations import Marks, is_constant, marks_of
from pygpukit.cutile.block import Block, running
from pygpukit.cutile.dtypes import DTYPES, DType, named
from pygpukit.cutile.language import Language
from pygpukit.cutile.memory import Array, ArrayList, regions
from pygpukit.cutile.races import History
from pygpukit.cutile.rebind import Rebound, for_interpreter
from pygpukit.cutile.rounding import rounded
from pygpukit.cutile.signature import scalar_type
from pygpukit.cutile.tile import Tile, is_number, plain_number
from pygpukit.cutile.views import KernelArray
from pygpukit.ops.host import memory
from pygpukit.ops.operands import is_array

View = tuple["np.ndarray[Any, Any]", DType]


def interpret(
    function: FunctionType,
    ct: Language,
    extents: tuple[int, int, int],
    arguments: Mapping[str, Any],
) -> None:
    """Run every block of the grid, x first. arguments: by parameter, arrays of the simulated device or of NumPy.

    Raises KernelCheckError for the first access that a kernel must not do, GPUError and its kin for what cuTile's
    compiler refuses, each with the kernel's line, and KernelArgumentError before anything runs.
    """
    history = History(extents[0] * extents[1] * extents[2])
    rebound = for_interpreter(ct)
    values = _Arguments(function, rebound, history).bound(arguments)
    body = rebound.function(function)
    number = 0
    for z in range(extents[2]):
        for y in range(extents[1]):
            for x in range(extents[0]):
                history.enter(number, (x, y, z))
                with running(Block(function.__name__, (x, y, z), extents, number)):
                    body(*values)
                number += 1


class _Arguments:
    """The arguments of one launch, as its kernel gets them."""

    def __init__(self, function: FunctionType, rebound: Rebound, history: History) -> None:
        self._name, self._rebound, self._history = function.__name__, rebound, history
        self._marks = marks_of(function)
        self._views: list[tuple[np.ndarray[Any, Any], str]] = []
        self._dtypes: list[DType] = []

    def bound(self, arguments: Mapping[str, Any]) -> list[Any]:
        """A value for each parameter."""
        producers = [self._argument(name, value, self._marks.get(name, ())) for name, value in arguments.items()]
        areas = regions(self._views, self._history)
        arrays = [
            KernelArray(view, dtype, name, region)
            for (view, name), dtype, region in zip(self._views, self._dtypes, areas, strict=True)
        ]
        return [produce(arrays) for produce in producers]

    def _argument(self, name: str, value: Any, marks: Marks) -> Callable[[list[KernelArray]], Any]:
        if is_constant(marks):
            constant = self._rebound.value(plain_number(value))
            return lambda arrays: constant
        if is_array(value) or isinstance(value, np.ndarray):
            at = len(self._views)
            view, dtype = viewed(value, f"{self._name}(): parameter '{name}'")
            self._views.append((view, name))
            self._dtypes.append(dtype)
            return lambda arrays: arrays[at]
        if isinstance(value, tuple):
            parts = [self._argument(f"{name}[{at}]", one, marks) for at, one in enumerate(value)]
            return lambda arrays: tuple(part(arrays) for part in parts)
        if isinstance(value, list):
            parts = [self._argument(f"{name}[{at}]", one, marks) for at, one in enumerate(value)]
            return lambda arrays: ArrayList([typing.cast(Array, part(arrays)) for part in parts], name)
        if is_number(value):
            number = plain_number(value)
            dtype = scalar_type(self._name, name, number, marks)
            scalar = Tile(rounded(number, dtype), dtype)
            return lambda arrays: scalar
        raise KernelArgumentError(
            f"{self._name}(): parameter '{name}': {value!r:.60} is neither an array nor a number; annotate what is "
            "known when the kernel is compiled as ct.Constant",
            name,
        )


def viewed(array: Any, what: str) -> View:
    """The elements of an array, as memory has them, and their type. Raises DTypeError for one that tiles lack."""
    view = memory(array) if is_array(array) else array
    try:
        dtype = named(array.dtype if is_array(array) else as_dtype(array.dtype))
    except DTypeError:
        raise DTypeError(f"{what}: tiles have no {array.dtype}; there are: {', '.join(DTYPES)}") from None
    if dtype.bitwidth == 4:
        raise DTypeError(f"{what}: an array of {dtype}, of which the interpreter loads no halves of bytes")
    return view, dtype
