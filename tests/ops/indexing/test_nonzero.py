"""Where elements are not zero, and what masks select, against NumPy; on both backends."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core

pytestmark = pytest.mark.usefixtures("operation_backend")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(1,), (9001,), (3, 40), (2, 3, 4), (0,), (3, 0)])
def test_nonzero(shape: tuple[int, ...], dtype: str) -> None:
    a = np.random.default_rng().integers(0, 3, shape).astype("float32" if dtype == "bfloat16" else dtype)
    if a.size > 1 and dtype != "bool" and np.dtype(a.dtype).kind == "f":
        a.flat[0], a.flat[1] = -0.0, np.nan
    x = gp.from_numpy(a).astype(dtype)
    for view in (np.s_[...], np.s_[::-2]):
        expected = np.nonzero(a[view])
        found = gp.nonzero(x[view])
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == "int64"
            np.testing.assert_array_equal(one.to_numpy(), other)
        np.testing.assert_array_equal(gp.flatnonzero(x[view]).to_numpy(), np.flatnonzero(a[view]))
        rows = gp.argwhere(x[view])
        assert rows.shape == np.argwhere(a[view]).shape
        np.testing.assert_array_equal(rows.to_numpy(), np.argwhere(a[view]))


def test_nonzero_of_no_dimensions() -> None:
    with pytest.raises(gp.ShapeError, match="0-d"):
        gp.nonzero(gp.asarray(1))
    for value in (0, 1):
        assert gp.argwhere(gp.asarray(value)).shape == np.argwhere(np.asarray(value)).shape
        np.testing.assert_array_equal(gp.flatnonzero(gp.asarray(value)).to_numpy(), np.flatnonzero(value))


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "int64", "complex128", "float8_e4m3"])
def test_masks_over_leading_axes(dtype: str) -> None:
    rng = np.random.default_rng()
    bits = dtype == "float8_e4m3"
    a = rng.integers(0, 120, (9, 10, 14)).astype("uint8" if bits else dtype)
    x = gp.from_numpy(a).view(dtype) if bits else gp.from_numpy(a)
    for view in (np.s_[...], np.s_[::2, ::-3, 1:]):
        b, y = a[view], x[view]
        for ndim in (0, 1, 2, 3):
            mask = rng.integers(0, 2, b.shape[:ndim]).astype(bool)
            found = y[gp.from_numpy(mask)]
            assert found.shape == b[mask].shape
            np.testing.assert_array_equal(found.to_numpy(), b[mask])
        mask = rng.integers(0, 2, b.shape[::-1]).astype(bool)
        np.testing.assert_array_equal(y[gp.from_numpy(mask).T].to_numpy(), b[mask.T])


@pytest.mark.parametrize("chosen", [0.0, 0.001, 0.5, 1.0])
def test_masks_of_any_density(chosen: float) -> None:
    rng = np.random.default_rng()
    a, mask = rng.standard_normal(100_003, np.float32), rng.random(100_003) < chosen
    np.testing.assert_array_equal(gp.from_numpy(a)[gp.from_numpy(mask)].to_numpy(), a[mask])


def test_what_does_not_fit_is_refused() -> None:
    x = gp.ones((3, 4))
    with pytest.raises(IndexError, match="4"):
        x[gp.ones((4,), "bool")]
    with pytest.raises(gp.DTypeError, match="float8_e4m3"):
        gp.nonzero(x.astype("float8_e4m3"))
    with pytest.raises(gp.DTypeError, match="from_numpy"):
        gp.argwhere(np.ones(3))  # type: ignore[arg-type]


def test_only_the_count_comes_to_the_host() -> None:
    x = gp.from_numpy(np.random.default_rng().integers(0, 3, (50, 100), np.int8))
    for work in (gp.nonzero, gp.argwhere, gp.flatnonzero, gp.unique):
        before = _core.counters()["d2h_bytes"]
        work(x)
        assert _core.counters()["d2h_bytes"] - before <= 16
