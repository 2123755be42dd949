"""Medians by selection, in checked mode: NumPy's, of rows of every form of kernel, with equal elements and NaN."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.ops.statistics import middle

pytestmark = pytest.mark.usefixtures("kernels_on_sim")

LENGTHS = (1, 2, 7, 16, 31, 32, 33, 256, 257, 600)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "float64"])
def test_rows_of_every_length(dtype: str) -> None:
    rng = np.random.default_rng()
    for length in LENGTHS:
        for scale in (2, 1000):
            x = rng.standard_normal((3, length)) * scale
            a = (x > 0) if dtype == "bool" else np.abs(x).clip(0, 120).astype(dtype) if dtype != "float64" else x
            found = gp.median(gp.from_numpy(a), 1)
            assert found.dtype == (dtype if dtype.startswith("float") else "float64")
            np.testing.assert_array_equal(found.to_numpy(), np.median(a, 1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_rounded_once(dtype: str) -> None:
    for length in (12, 40, 300):
        x = gp.from_numpy(np.random.default_rng().standard_normal((5, length)).astype("float32")).astype(dtype)
        ordered = np.sort(x.astype("float32").to_numpy(), 1)
        expected = (ordered[:, (length - 1) // 2] + ordered[:, length // 2]) / np.float32(2)
        expected = gp.from_numpy(expected).astype(dtype).astype("float32").to_numpy()
        np.testing.assert_array_equal(gp.median(x, 1).astype("float32").to_numpy(), expected)


@pytest.mark.parametrize("length", [9, 64, 301])
def test_special_values(length: int) -> None:
    a = np.random.default_rng().standard_normal((6, length)).astype("float32")
    a[0, 3] = np.nan
    a[1] = np.inf
    a[2, : length // 2 + 1] = -np.inf
    a[3] = 0.0
    a[3, ::2] = -0.0
    a[4] = 7.0
    np.testing.assert_array_equal(gp.median(gp.from_numpy(a), 1).to_numpy(), np.median(a, 1))
    strided = gp.from_numpy(a)[:, ::-2]
    np.testing.assert_array_equal(gp.median(strided, 1).to_numpy(), np.median(a[:, ::-2], 1))


def test_long_rows_and_those_that_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.random.default_rng().standard_normal((2, 9001))
    monkeypatch.setattr(middle, "_HELD_BYTES", 4096)  # the keys are read from memory again
    np.testing.assert_array_equal(gp.median(gp.from_numpy(a), 1).to_numpy(), np.median(a, 1))
    monkeypatch.setattr(middle, "_LONGEST", 100)
    b = a[:, :200].astype("float32")
    np.testing.assert_array_equal(gp.median(gp.from_numpy(b), 1).to_numpy(), np.median(b, 1))
