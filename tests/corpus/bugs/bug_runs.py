"""Launches a kernel of the table on whatever device is open and brings back what it wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
from bugs import Addresses, Bug

import pygpukit as gp
from pygpukit.jit.launch.kernel import JITKernel
from pygpukit.jit.launch.unit import Unit


def kernel(bug: Bug, *, fixed: bool, check: bool | str = False) -> JITKernel:
    """The faulty kernel, or the corrected one; compiled under the bug's name."""
    unit = Unit(bug.source, name=bug.name, defines={"FIXED": 1} if fixed else None, check=check)
    return JITKernel(bug.source, bug.kernel, unit=unit)


def launch(made: JITKernel, bug: Bug) -> dict[int, np.ndarray]:
    """The parameters of bug.result after the launch. Raises what the launch raised."""
    kept: list[Any] = []
    arguments = [_upload(argument, kept) for argument in bug.arguments]
    made[bug.grid, bug.block_size, bug.shared_bytes](*arguments)
    return {position: arguments[position].to_numpy() for position in bug.result}


def _upload(argument: Any, kept: list[Any]) -> Any:
    """An argument as the kernel takes it; `kept` holds the arrays that only their addresses are passed of."""
    if isinstance(argument, np.ndarray):
        return gp.from_numpy(np.ascontiguousarray(argument))
    if isinstance(argument, Addresses):
        rows = [gp.from_numpy(row) for row in argument.rows]
        addresses = np.uint64([row.device_ptr for row in rows])
        kept += [row for position, row in enumerate(rows) if position not in argument.freed]
        return gp.from_numpy(addresses)
    return argument


def agrees(bug: Bug, got: dict[int, np.ndarray]) -> None:
    """Raises AssertionError with the first difference from bug.result."""
    for position, expected in bug.result.items():
        given = got[position].reshape(np.shape(expected))
        if bug.tolerance:
            np.testing.assert_allclose(given, expected, rtol=bug.tolerance, atol=bug.tolerance)
        else:
            np.testing.assert_array_equal(given, expected)
