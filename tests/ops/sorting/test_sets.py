"""Sets, partitions and the order by several keys, against NumPy's functions; on both backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from tests.support.backends import WITHOUT_KERNELS

NAN = np.nan
PAIRS = [
    (np.array([3, 1, 2, 3]), np.array([2, 5, 3, 3])),
    (np.array([[1.5, NAN], [2, 2]]), np.array([NAN, 2.0, 7])),
    (np.array([1, 200], np.uint8), np.array([1, -56], np.int8)),
    (np.array([], np.float32), np.array([1])),
    (np.array([1j, 2]), np.array([2.0, 3])),
]
SETS: dict[str, Callable[..., Any]] = {
    "isin": lambda m, a, b: m.isin(a, b),
    "isin, the opposite": lambda m, a, b: m.isin(a, b, invert=True),
    "intersect1d": lambda m, a, b: m.intersect1d(a, b, return_indices=True),
    "union1d": lambda m, a, b: m.union1d(a, b),
    "setdiff1d": lambda m, a, b: m.setdiff1d(a, b),
    "setxor1d": lambda m, a, b: m.setxor1d(a, b),
}


def check(ours: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(ours, expected, strict=True):
            check(one, other)
        return
    assert ours.dtype == expected.dtype and ours.shape == expected.shape
    np.testing.assert_array_equal(ours.to_numpy(), expected)


@WITHOUT_KERNELS
@pytest.mark.parametrize("name", SETS)
def test_sets(operation_backend: str, name: str) -> None:
    for a, b in PAIRS:
        check(SETS[name](gp, gp.from_numpy(a), gp.from_numpy(b)), SETS[name](np, a, b))


@WITHOUT_KERNELS
def test_keys_and_partitions(operation_backend: str) -> None:
    keys = np.random.default_rng().integers(0, 3, (3, 4, 50))
    check(gp.lexsort(gp.from_numpy(keys)), np.lexsort(keys))
    check(gp.lexsort(list(gp.from_numpy(keys)), axis=0), np.lexsort(list(keys), axis=0))
    values = np.random.default_rng().permutation(50)
    ours = gp.from_numpy(values)
    sorted_parts = gp.partition(ours, (7, -3)).to_numpy()
    assert sorted_parts[7] == 7 and sorted_parts[-3] == 47 and set(sorted_parts[:7]) == set(range(7))
    assert values[gp.argpartition(ours, 7).to_numpy()[:7]].max() < 7
    ours.partition(7)
    assert ours.to_numpy()[7] == 7
    with pytest.raises(ValueError, match="kth is 50"):
        gp.partition(ours, 50)
    with pytest.raises(ValueError, match="kind"):
        gp.isin(ours, ours, kind="tree")
    with pytest.raises(gp.DTypeError, match="list"):
        gp.isin(ours, [1, 2])  # type: ignore[arg-type]
