"""The CUDA kernels of sorting and searching, run by the simulator in checked mode: no findings, NumPy's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.kernels import launcher
from pygpukit.ops import sorting

pytestmark = pytest.mark.usefixtures("kernels_on_sim")

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan]


def sample(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng()
    if np.dtype(dtype).kind in "biu":
        return rng.integers(-90, 90, shape).astype(dtype)

    def reals() -> np.ndarray[Any, Any]:
        return np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL, shape), np.round(rng.standard_normal(shape) * 9))

    if np.dtype(dtype).kind == "f":
        return reals().astype(dtype)
    both = np.empty(shape, dtype)
    both.real, both.imag = reals(), reals()
    return both


def sorts(a: np.ndarray[Any, Any], x: gp.GPUArray, axis: int = -1) -> None:
    assert gp.sort(x, axis).to_numpy().tobytes() == np.sort(a, axis, kind="stable").tobytes()
    np.testing.assert_array_equal(gp.argsort(x, axis).to_numpy(), np.argsort(a, axis, kind="stable"))


@pytest.mark.parametrize("dtype", ["bool", "float16", "int64", "complex64"])
def test_rows_in_a_block(dtype: str) -> None:
    for shape, view in (((7, 33), np.s_[:]), ((3, 40), np.s_[::-1, 1::3]), ((1, 1), np.s_[:]), ((2, 0), np.s_[:])):
        a = sample(shape, dtype)
        sorts(a[view], gp.from_numpy(a)[view])
    a = sample((300, 3), dtype)  # more rows than a block takes
    sorts(a, gp.from_numpy(a))
    down = gp.argsort(gp.from_numpy(a), 0, descending=True).to_numpy()
    np.testing.assert_array_equal(down, len(a) - 1 - np.argsort(a[::-1], 0, kind="stable")[::-1])


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_rows_of_several_tiles(dtype: str) -> None:
    a = sample((2, 8300 if dtype == "float32" else 2100), dtype)
    sorts(a, gp.from_numpy(a))


def test_a_row_that_fills_a_block() -> None:
    a = sample((1, 8192), "int16")
    sorts(a, gp.from_numpy(a))


def test_a_row_of_wide_elements_has_threads_enough() -> None:
    a = sample((1, 1000), "complex128")  # a thread holds 4 of them, of narrow ones up to 16
    sorts(a, gp.from_numpy(a))


def test_blocks_that_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_CHECK", "0")
    a = np.random.default_rng().standard_normal((2, 50_000), np.float32)
    sorts(a, gp.from_numpy(a))


def test_topk() -> None:
    a = sample((3, 50), "float32")
    values, indices = gp.topk(gp.from_numpy(a), 5, largest=False)
    order = np.argsort(a, kind="stable")[:, :5]
    np.testing.assert_array_equal(indices.to_numpy(), order)
    np.testing.assert_array_equal(values.to_numpy(), np.take_along_axis(a, order, -1))


@pytest.mark.parametrize("dtype", ["int32", "float16"])
def test_search_and_unique(dtype: str) -> None:
    a = sample((300,), dtype)
    x = gp.from_numpy(a)
    in_order, v = np.sort(a), sample((7, 5), dtype)
    for side in ("left", "right"):
        found = gp.searchsorted(gp.from_numpy(in_order), gp.from_numpy(v), side)
        np.testing.assert_array_equal(found.to_numpy(), np.searchsorted(in_order, v, side))
    for equal_nan in (True, False):
        found = gp.unique(x, True, True, True, equal_nan=equal_nan)
        for one, other in zip(found, np.unique(a, True, True, True, equal_nan=equal_nan), strict=True):
            np.testing.assert_array_equal(one.to_numpy(), other)


def test_bfloat16() -> None:
    x = gp.from_numpy(sample((2, 60), "float32")).astype("bfloat16")
    a = x.astype("float32").to_numpy()
    np.testing.assert_array_equal(gp.argsort(x).to_numpy(), np.argsort(a, kind="stable"))


def test_every_kernel_asked_for_is_listed() -> None:
    x = gp.ones(8200, "uint8")
    gp.unique_all(x)
    gp.unique_values(x)
    gp.sort(x[:3])
    gp.searchsorted(x[:3], x[:3])
    listed = {name for one in (sorting.instantiations, sorting.searching) for names in one() for name in names}
    launched = {spec.expression for _, spec in launcher._kernels}
    asked = {name for name in launched if any(part in name for part in ("sort", "heads", "invert", "digits"))}
    assert len(asked) == 7
    assert asked <= listed
