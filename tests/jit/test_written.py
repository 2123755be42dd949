"""Calls of kernels that are written in Python: arguments are bound as Python itself binds them, grids are checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.jit.launch.written import Arguments, extents

FUNCTIONS: list[Callable[..., Any]] = [
    lambda: None,
    lambda a, b, c: None,
    lambda a, b=2, c=(3,): None,
    lambda a, /, b, *, c=1: None,
    lambda *a, b=1: None,
    lambda a, **b: None,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: str(inspect.signature(one)))
def test_arguments_are_bound_as_python_binds_them(function: Any) -> None:
    rng = np.random.default_rng()
    arguments = Arguments(function)
    for _ in range(300):
        args = tuple(rng.integers(0, 9, rng.integers(0, 4)).tolist())
        kwargs = {name: int(rng.integers(9)) for name in rng.permutation([*"abcd"])[: rng.integers(0, 4)].tolist()}
        try:
            bound = inspect.signature(function).bind(*args, **kwargs)
        except TypeError as error:
            with pytest.raises(gp.KernelArgumentError) as refused:
                arguments.bind(args, kwargs)
            assert str(error) in str(refused.value)
            continue
        bound.apply_defaults()
        assert list(arguments.bind(args, kwargs).items()) == list(bound.arguments.items())


@pytest.mark.parametrize(
    ("grid", "expected"), [(3, (3, 1, 1)), ((3,), (3, 1, 1)), ([2, 0], (2, 0, 1)), ((1, 2, 3),) * 2]
)
def test_a_grid_is_three_numbers(grid: Any, expected: tuple[int, int, int]) -> None:
    assert extents("k", grid, 3) == expected


@pytest.mark.parametrize("grid", [(), (1, 1, 1, 1), -1, 4, True, 1.0, "1", None, (1, None), np.int32(1)])
def test_another_grid_is_refused_by_name(grid: Any) -> None:
    with pytest.raises(gp.KernelArgumentError, match=r"k\(\): grid=.*whole numbers of at most 3") as refused:
        extents("k", grid, 3)
    assert refused.value.parameter == "grid"
