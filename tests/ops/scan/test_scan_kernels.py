"""The CUDA kernels of scans, run by the simulator in checked mode: no findings, NumPy's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.kernels import launcher
from pygpukit.ops import scan

pytestmark = pytest.mark.usefixtures("kernels_on_sim")


def scanned(found: gp.GPUArray, a: np.ndarray[Any, Any], axis: int) -> None:
    np.testing.assert_array_equal(found.to_numpy(), np.cumsum(a, axis))


def whole_numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Of which all sums are exact, in every order."""
    return np.random.default_rng().integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["int8", "float16", "complex64"])
def test_rows_columns_and_strides(dtype: str) -> None:
    a = whole_numbers((3, 300), dtype)
    x = gp.from_numpy(a)
    for view in (np.s_[:], np.s_[::-1, 1::2], np.s_[:, :20], np.s_[:0]):
        for axis in (0, 1):
            scanned(gp.cumsum(x[view], axis), a[view], axis)
    tall = whole_numbers((700, 3), dtype)
    scanned(gp.cumsum(gp.from_numpy(tall), 0), tall, 0)


@pytest.mark.parametrize("shape", [(2, 200), (2, 500), (2, 1024), (2, 2503), (1, 67 * 1024 + 5)])
def test_tiles_pass_on_their_totals(shape: tuple[int, ...]) -> None:
    """Rows of 2, 4 and 8 warps and of several tiles, at last on three levels; the input starts between vectors."""
    a = whole_numbers((shape[0], shape[1] + 1), "complex128")
    scanned(gp.cumsum(gp.from_numpy(a)[:, 1:], 1), a[:, 1:], 1)


def test_sums_do_not_depend_on_the_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.random.default_rng().standard_normal(40 * 4096, np.float32)
    x = gp.from_numpy(a)
    checked = gp.cumsum(x).to_numpy()
    wide = np.cumsum(a, dtype=np.float64)
    np.testing.assert_allclose(checked, wide, rtol=0, atol=np.abs(wide).max() * 2e-6)
    monkeypatch.setenv("PYGPUKIT_CHECK", "0")
    monkeypatch.setattr(launcher, "_kernels", {})
    for _ in range(5):
        np.testing.assert_array_equal(gp.cumsum(x).to_numpy(), checked)


def test_products() -> None:
    a = np.random.default_rng().choice(np.array([1, -1, 1j], np.complex64), (2, 300))
    np.testing.assert_array_equal(gp.cumprod(gp.from_numpy(a), 1).to_numpy(), np.cumprod(a, 1))
    infinite = gp.from_numpy(np.array([complex(np.inf, 0)] + [1] * 40, np.complex64))
    assert np.isposinf(gp.cumprod(infinite).to_numpy().real).all()
    zeros = gp.from_numpy(np.full(40, -0.0, np.float32))
    assert np.signbit(gp.cumsum(zeros).to_numpy()).all()


def test_every_kernel_asked_for_is_listed() -> None:
    listed = {expression for expressions in scan.instantiations() for expression in expressions}
    for dtype in ("bfloat16",):
        x = gp.ones((2, 33), dtype)
        for axis in (0, 1):
            gp.cumsum(x, axis)
    launched = {spec.expression for _, spec in launcher._kernels}
    asked = {name for name in launched if "_rows" in name or "_lines" in name}
    assert len(asked) == 2
    assert asked <= listed
