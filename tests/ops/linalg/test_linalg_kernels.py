"""The kernels of gp.linalg on the simulator in checked mode: what defines a factorization, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from linalg_checks import (
    TYPES,
    check_cholesky,
    check_eigh,
    check_qr,
    check_solve,
    check_svd,
    close,
    conditioned,
    definite,
    hermitian,
    layouts,
    sample,
    wide,
)

import pygpukit as gp
from pygpukit import linalg
from pygpukit._core import native
from pygpukit.ops import copying
from pygpukit.ops.linalg import small

# The sweep has all four types.
SOME = ("float32", "complex128")

pytestmark = pytest.mark.usefixtures("kernels_on_sim", "poisoned", "quickly_compiled")


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs hold NaN, and info what is no answer, before a kernel writes them."""
    empty = native.empty

    def made(shape: Any, dtype: Any = "float32") -> gp.GPUArray:
        out = empty(shape, dtype)
        copying.fill(out, np.nan if out.dtype.name in TYPES else 77 if out.dtype == gp.int32 else 0)
        return out

    monkeypatch.setattr(native, "empty", made)


@pytest.mark.parametrize("dtype", SOME)
def test_systems_and_determinants(dtype: str) -> None:
    for n, columns in ((1, 1), (9, 17)):
        check_solve(sample((2, n, n), dtype), sample((n, columns), dtype))
    for a in layouts(sample((2, 1, 6, 6), dtype)):
        check_solve(a, sample((3, 6, 2), dtype))
        found, (sign, logabs) = linalg.slogdet(gp.from_numpy(a)), np.linalg.slogdet(wide(a))
        bound = 1e-4 if dtype in TYPES[:2] else 1e-12
        close(found.sign, sign, bound)
        close(found.logabsdet, logabs, bound)


@pytest.mark.parametrize("dtype", SOME)
def test_cholesky(dtype: str) -> None:
    for n in (1, 7):
        for a in layouts(definite((2, n, n), dtype)):
            check_cholesky(a)


@pytest.mark.parametrize("dtype", SOME)
def test_qr(dtype: str) -> None:
    for shape in ((1, 1), (4, 7), (9, 9), (33, 2)):
        check_qr(sample(shape, dtype))
    for a in layouts(sample((2, 7, 4), dtype)):
        check_qr(a)


@pytest.mark.parametrize("dtype", SOME)
def test_eigenvalues(dtype: str) -> None:
    for n in (1, 2, 18):
        check_eigh(hermitian((n, n), dtype))
    for a in layouts(hermitian((2, 7, 7), dtype)):
        check_eigh(a)


@pytest.mark.parametrize("dtype", SOME)
def test_singular_values(dtype: str) -> None:
    for shape in ((1, 1), (4, 7), (9, 9), (33, 2)):
        check_svd(sample(shape, dtype))
    for a in layouts(sample((2, 7, 4), dtype)):
        check_svd(a)


def test_one_device_answers_as_numpy_for_what_is_hard() -> None:
    for dtype, condition in (("float32", 1e5), ("complex128", 1e12)):
        a = conditioned(10, condition, dtype)
        check_solve(a, sample((10, 2), dtype))
        check_qr(a)
        check_svd(a)
        check_eigh(np.asarray((a + a.T.conj()) / 2))


@pytest.mark.parametrize("dtype", SOME)
def test_matrices_without_full_rank(dtype: str) -> None:
    thin = np.asarray(sample((9, 2), dtype) @ sample((2, 5), dtype))
    for a in (thin, thin.T, np.zeros((5, 3), dtype), np.ones((4, 4), dtype), np.eye(6, 4, dtype=dtype)):
        check_svd(np.ascontiguousarray(a))
        check_qr(np.ascontiguousarray(a))
    check_eigh(np.ones((6, 6), dtype))
    check_eigh(np.zeros((3, 3), dtype))
    assert linalg.matrix_rank(gp.from_numpy(thin)).item() == 2
    x, b = gp.from_numpy(thin), sample((9,), dtype)
    expected = np.linalg.lstsq(wide(thin), wide(b), rcond=1e-5)[0]
    close(linalg.lstsq(x, gp.from_numpy(b), 1e-5)[0], expected, 1e-3 if dtype == "float32" else 1e-10)


@pytest.mark.parametrize("dtype", SOME)
def test_sizes_whose_squares_overflow_or_vanish(dtype: str) -> None:
    power = 30 if dtype == "float32" else 250
    for factor in (10.0**power, 10.0**-power):
        a = np.asarray(sample((4, 4), dtype) * np.asarray(factor, dtype))
        for check in (check_qr, check_svd):
            check(a)
        check_eigh(np.asarray(a / 2 + a.conj().T / 2))


def test_what_has_no_result_is_named_and_nan_where_nothing_waits() -> None:
    a = np.stack([np.eye(4), np.ones((4, 4)), np.full((4, 4), np.nan)])
    x = gp.from_numpy(a.astype("complex128"))
    for name, failed in (("inv", [(1,)]), ("cholesky", [(1,), (2,)]), ("eigh", [(2,)]), ("svd", [(2,)])):
        with pytest.raises(linalg.LinAlgError) as info:
            getattr(linalg, name)(x)
        assert info.value.failed == failed
        with linalg.unchecked():
            found = getattr(linalg, name)(x)
        parts = [part.to_numpy() for part in (found if isinstance(found, tuple) else [found])]
        assert all(np.isnan(part[place]).all() for part in parts for (place,) in failed)
        assert not any(np.isnan(part[0]).any() for part in parts)
    assert linalg.det(x).to_numpy()[:2].tolist() == [1, 0] and np.isnan(linalg.det(x).to_numpy()[2])


def test_a_matrix_has_the_bits_that_it_has_alone() -> None:
    x = gp.from_numpy(definite((5, 9, 9), "float32"))
    for name in ("inv", "cholesky", "eigh", "svd", "qr", "slogdet"):
        whole, alone, again = (
            [*map(np.asarray, map(gp.GPUArray.to_numpy, result))]
            for result in (_listed(getattr(linalg, name)(part)) for part in (x, x[3], x))
        )
        for one, other, third in zip(whole, alone, again, strict=True):
            np.testing.assert_array_equal(one[3], other)
            np.testing.assert_array_equal(one, third)


def _listed(result: Any) -> list[gp.GPUArray]:
    return list(result) if isinstance(result, tuple) else [result]


def test_empty_matrices() -> None:
    for m, n in ((0, 3), (3, 0), (0, 0)):
        a, x = np.zeros((2, m, n), "complex128"), gp.zeros((2, m, n), "complex128")
        for one, other in zip(linalg.svd(x), np.linalg.svd(a), strict=True):
            close(one, other, 0)
        for one, other in zip(linalg.qr(x, "complete"), np.linalg.qr(a, "complete"), strict=True):
            close(one, other, 0)
    assert linalg.det(gp.zeros((2, 0, 0))).to_numpy().tolist() == [1, 1]
    assert linalg.inv(gp.zeros((0, 3, 3))).shape == (0, 3, 3)


def test_the_largest_that_kernels_take() -> None:
    n = small.LONGEST
    check_cholesky(definite((n, n), "float32"))
    check_qr(sample((n, 3), "float32"))
    assert not small.fits("solve", gp.empty((n + 1, n + 1)))
    for what in ("solve", "slogdet", "cholesky", "qr", "eigh", "svd"):
        assert small.fits(what, gp.empty((n, n), "float64")) and small.fits(what, gp.empty((54, 54), "complex128"))
