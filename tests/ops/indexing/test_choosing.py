"""Choosing among arrays, places of a shape, and writing by masks, against NumPy's functions; on both backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from tests.support.backends import WITHOUT_KERNELS

ROW, TABLE = np.array([4, 5, 6]), np.arange(12.0).reshape(3, 4)
CALLS: list[Callable[[Any, Any], Any]] = [
    lambda m, a: m.select([a(ROW) > 5, a(ROW) > 4], [a(ROW), a(ROW) * 0.5], -1),
    lambda m, a: m.select([a(ROW) > 5], [7], 1),
    lambda m, a: m.choose(a(ROW) - 4, [a(ROW), a(ROW) * 2, a(ROW) * 0.5]),
    lambda m, a: m.choose(a(ROW), a(TABLE)[:2, :3], mode="wrap"),
    lambda m, a: m.choose(a(ROW), [a(ROW), a(TABLE)[:, :3]], mode="clip"),
    lambda m, a: m.extract(a(TABLE) % 2 == 0, a(TABLE)),
    lambda m, a: m.unravel_index(a(np.array([[5, 7]])), (3, 4)),
    lambda m, a: m.unravel_index(a(np.array([5, 7])), (3, 4), order="F"),
    lambda m, a: m.ravel_multi_index((a(ROW), a(ROW) - 4), (7, 3)),
    lambda m, a: m.ravel_multi_index((a(ROW), a(ROW)), (7, 3), mode="wrap", order="F"),
    lambda m, a: m.ravel_multi_index((a(ROW), -a(ROW)), (5, 3), mode="clip"),
]
WRITES: list[tuple[np.ndarray[Any, Any], Callable[[Any, Any, Any], Any]]] = [
    (ROW, lambda m, a, x: m.copyto(x, a(np.array([7, 8, 9], np.int8)), where=x > 4)),
    (ROW, lambda m, a, x: m.copyto(x, a(np.array([7.7, 8, 9])), casting="unsafe")),
    (TABLE, lambda m, a, x: m.putmask(x, x > 4, a(ROW))),
    (TABLE.T, lambda m, a, x: m.fill_diagonal(x, a(ROW))),
    (TABLE.reshape(6, 2), lambda m, a, x: m.fill_diagonal(x, 7, wrap=True)),
    (np.zeros((3, 3, 3)), lambda m, a, x: m.fill_diagonal(x, 7)),
]


def check(ours: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(ours, expected, strict=True):
            check(one, other)
        return
    assert ours.dtype == expected.dtype
    np.testing.assert_array_equal(ours.to_numpy(), expected)


@WITHOUT_KERNELS
def test_as_numpy(operation_backend: str) -> None:
    for call in CALLS:
        check(call(gp, gp.from_numpy), call(np, lambda array: array))
    for values, write in WRITES:
        ours, theirs = gp.from_numpy(values), values.copy()
        write(gp, gp.from_numpy, ours)
        write(np, lambda array: array, theirs)
        check(ours, theirs)


@WITHOUT_KERNELS
def test_what_does_not_fit_is_refused(operation_backend: str) -> None:
    row = gp.from_numpy(ROW)
    for call in (
        lambda: gp.unravel_index(row, (2, 3)),
        lambda: gp.unravel_index(-row, (7, 3)),
        lambda: gp.ravel_multi_index((row, row), (7, 3)),
        lambda: gp.ravel_multi_index((row,), (7, 3)),
        lambda: gp.select([], []),
        lambda: gp.fill_diagonal(row, 1),
    ):
        with pytest.raises(ValueError):
            call()
    for call in (lambda: gp.select([row], [row]), lambda: gp.copyto(row, row * 0.5), lambda: gp.choose(row / 2, [row])):
        with pytest.raises(gp.DTypeError):
            call()
