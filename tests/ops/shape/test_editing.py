"""Putting in, taking out, blocks and index arrays of a shape, against NumPy's functions; on both backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from tests.support.backends import WITHOUT_KERNELS

ROW, TABLE, BLOCK = np.array([4, 5, 6]), np.arange(6.0).reshape(2, 3), np.arange(24).reshape(2, 3, 4)
CALLS: list[Callable[[Any, Any], Any]] = [
    lambda m, a: m.append(a(ROW), a(TABLE)),
    lambda m, a: m.append(a(ROW), 1.5),
    lambda m, a: m.append(a(TABLE), a(TABLE)[:, :1], axis=1),
    lambda m, a: m.insert(a(ROW), 1, 9),
    lambda m, a: m.insert(a(ROW), -1, a(ROW)),
    lambda m, a: m.insert(a(ROW), [2, 0, 2], a(ROW)),
    lambda m, a: m.insert(a(ROW), slice(0, 3, 2), 9.7),
    lambda m, a: m.insert(a(TABLE), 1, a(ROW), axis=0),
    lambda m, a: m.insert(a(TABLE), 1, a(ROW)[:2], axis=1),
    lambda m, a: m.insert(a(TABLE), [3, 0], a(TABLE)[:, :2], axis=1),
    lambda m, a: m.insert(a(TABLE), [], 5),
    lambda m, a: m.delete(a(ROW), -1),
    lambda m, a: m.delete(a(TABLE), [0, 0, 2], axis=1),
    lambda m, a: m.delete(a(TABLE), slice(None, None, 2)),
    lambda m, a: m.delete(a(ROW), [True, False, True]),
    lambda m, a: m.delete(a(BLOCK).T, a(np.array([1, 2])), axis=0),
    lambda m, a: m.resize(a(TABLE), (3, 5)),
    lambda m, a: m.resize(a(TABLE)[:0], (2, 2)),
    lambda m, a: m.block([[a(TABLE), a(TABLE)[:, ::-1]], [a(TABLE), a(TABLE)]]),
    lambda m, a: m.block([a(ROW), 7]),
    lambda m, a: m.block([[a(BLOCK)], [a(BLOCK)]]),
    lambda m, a: m.column_stack([a(ROW), a(ROW)]),
    lambda m, a: m.atleast_3d(a(ROW)),
    lambda m, a: m.atleast_3d(a(TABLE)),
    lambda m, a: m.diagflat(a(TABLE), -1),
    lambda m, a: m.hsplit(a(TABLE), 3),
    lambda m, a: m.vsplit(a(TABLE), [1]),
    lambda m, a: m.dsplit(a(BLOCK), 2),
    lambda m, a: m.indices((2, 3)),
    lambda m, a: m.indices((2, 3), sparse=True),
    lambda m, a: m.tril_indices(3, 1, 4),
    lambda m, a: m.triu_indices(3),
    lambda m, a: m.diag_indices(3),
    lambda m, a: m.logspace(0, 2, 5, base=2.0, endpoint=False),
    lambda m, a: m.geomspace(-1, -8, 4),
]


def check(ours: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        for one, other in zip(ours, expected, strict=True):
            check(one, other)
        return
    assert ours.dtype == expected.dtype and ours.shape == expected.shape
    np.testing.assert_array_equal(ours.to_numpy(), expected)


@WITHOUT_KERNELS
def test_as_numpy(operation_backend: str) -> None:
    for call in CALLS:
        check(call(gp, gp.from_numpy), call(np, lambda array: array))


@WITHOUT_KERNELS
def test_what_does_not_fit_is_refused(operation_backend: str) -> None:
    row, table = gp.from_numpy(ROW), gp.from_numpy(TABLE)
    for call in (lambda: gp.delete(row, 3), lambda: gp.insert(row, 4, 1), lambda: gp.delete(row, 1.5)):
        with pytest.raises(IndexError):
            call()
    for call in (lambda: gp.block([[row], row]), lambda: gp.resize(row, (2, -1)), lambda: gp.vsplit(row, 1)):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(gp.ShapeError, match="negative"):
        gp.logspace(0, 1, -1)
    assert gp.identity(2, "int8").tolist() == [[1, 0], [0, 1]] and table.trace().item() == 4.0
    assert table.T.tobytes() == TABLE.T.tobytes() and table.T.tobytes("F") == TABLE.T.tobytes("F")
    assert (table * 1j).conj().imag.tolist() == (-TABLE).tolist()
