"""gp.linalg against NumPy in double precision, on both backends: names, arguments, types, views, empties and errors."""

from __future__ import annotations

import inspect
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

pytestmark = pytest.mark.usefixtures("operation_backend")

Host = np.ndarray[Any, Any]
OWN = {"LinAlgError", "matmul", "unchecked"}
new_names = pytest.mark.skipif(not hasattr(np.linalg, "vector_norm"), reason="needs the names of NumPy 2")


@pytest.mark.parametrize("dtype", TYPES)
def test_factorizations_of_stacks_through_any_strides(dtype: str) -> None:
    for n in (1, 2, 5, 17):
        for a in layouts(sample((2, 3, n, n), dtype)):
            check_solve(a, sample((3, n, 2), dtype))
        for a in layouts(definite((2, 3, n, n), dtype)):
            check_cholesky(a)
        for a in layouts(hermitian((2, 3, n, n), dtype)):
            check_eigh(a)
    for m, n in ((3, 3), (7, 4), (4, 7), (1, 5), (5, 1)):
        for a in layouts(sample((2, m, n), dtype)):
            check_qr(a)
            check_svd(a)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_ill_conditioned_matrices(dtype: str) -> None:
    a = conditioned(12, 1e4 if dtype == "float32" else 1e10, dtype)
    check_solve(a, sample((12, 3), dtype))
    check_svd(a)
    check_qr(a)
    check_eigh(np.asarray((a + a.T.conj()) / 2))


def test_vectors_and_columns_of_solve() -> None:
    a, b = sample((4, 5, 5), "float64"), sample((5,), "float64")
    close(linalg.solve(gp.from_numpy(a), gp.from_numpy(b)), np.linalg.solve(a, b[:, None])[..., 0], 1e-9)
    whole = sample((2, 1, 5, 3), "float64")
    close(linalg.solve(gp.from_numpy(a), gp.from_numpy(whole)), np.linalg.solve(a, whole), 1e-9)
    mixed = linalg.solve(gp.from_numpy(a.astype("float32")), gp.from_numpy(np.arange(5)))
    assert mixed.dtype == gp.float64
    assert linalg.inv(gp.from_numpy(np.array([[2, 1], [1, 1]]))).to_numpy().tolist() == [[1, -1], [-1, 2]]


@pytest.mark.parametrize("dtype", TYPES)
def test_determinants(dtype: str) -> None:
    for a in layouts(sample((3, 6, 6), dtype)):
        close(linalg.det(gp.from_numpy(a)), np.linalg.det(wide(a)), 1e-4 if dtype in TYPES[:2] else 1e-12)
        sign, logabs = linalg.slogdet(gp.from_numpy(a))
        expected = np.linalg.slogdet(wide(a))
        close(sign, expected[0], 1e-4 if dtype in TYPES[:2] else 1e-12)
        close(logabs, expected[1], 1e-4 if dtype in TYPES[:2] else 1e-11)
    singular = gp.ones((3, 3), dtype)
    assert linalg.det(singular).item() == 0 and linalg.slogdet(singular).logabsdet.item() == -np.inf


def test_singular_matrices_raise_and_say_which() -> None:
    a = np.stack([np.eye(3), np.zeros((3, 3)), np.ones((3, 3)), np.eye(3)]).reshape(2, 2, 3, 3)
    x = gp.from_numpy(a)
    with pytest.raises(
        linalg.LinAlgError, match=r"inv: 2 of 4 matrices, the first at \(0, 1\), is singular.*lstsq"
    ) as info:
        linalg.inv(x)
    assert info.value.failed == [(0, 1), (1, 0)]
    with pytest.raises(np.linalg.LinAlgError, match="solve: the matrix is singular"):
        linalg.solve(gp.zeros((2, 2)), gp.ones(2))
    with pytest.raises(gp.GPUError, match="cholesky: 2 of 3 matrices, the first at 1, is not positive definite"):
        linalg.cholesky(gp.from_numpy(np.stack([np.eye(2), -np.eye(2), np.array([[1.0, 0], [2, 1]])])))
    for value in (np.nan, np.inf):
        for name in ("svd", "svdvals", "eigh", "eigvalsh", "cholesky"):
            with pytest.raises(linalg.LinAlgError) as info:
                getattr(linalg, name)(gp.from_numpy(np.stack([np.eye(5), np.full((5, 5), value)])))
            assert info.value.failed == [(1,)]


def test_the_other_triangle_is_not_read() -> None:
    a = definite((3, 4, 4), "float64")
    lower = gp.from_numpy(np.where(np.tri(4, dtype=bool), a, np.nan))
    close(linalg.cholesky(lower), np.linalg.cholesky(a), 1e-12)
    close(linalg.cholesky(lower.mT, upper=True), np.linalg.cholesky(a).swapaxes(-1, -2), 1e-12)
    close(linalg.eigvalsh(lower), np.linalg.eigvalsh(a), 1e-12)
    close(linalg.eigh(lower.mT, "U")[0], np.linalg.eigvalsh(a), 1e-12)


def test_unchecked_gives_nan_and_raises_nothing() -> None:
    a = gp.from_numpy(np.stack([2 * np.eye(3), np.zeros((3, 3))]))
    with linalg.unchecked():
        found = linalg.inv(a).to_numpy()
        lower = linalg.cholesky(a).to_numpy()
    np.testing.assert_array_equal(found[0], np.eye(3) / 2)
    assert np.isnan(found[1]).all() and np.isnan(lower[1]).all() and not np.isnan(lower[0]).any()
    with pytest.raises(linalg.LinAlgError):
        linalg.inv(a)


def test_empty_matrices_and_stacks() -> None:
    for shape in ((0, 3, 3), (2, 0, 0)):
        a, x = np.zeros(shape), gp.zeros(shape, "float64")
        for name in ("inv", "cholesky", "det", "eigvalsh"):
            close(getattr(linalg, name)(x), getattr(np.linalg, name)(a), 0)
        close(linalg.eigh(x).eigenvectors, np.linalg.eigh(a)[1], 0)
    for m, n in ((0, 3), (3, 0), (0, 0)):
        a, x = np.zeros((2, m, n)), gp.zeros((2, m, n), "float64")
        for whole in (True, False):
            for one, other in zip(linalg.svd(x, whole), np.linalg.svd(a, whole), strict=True):
                close(one, other, 0)
        for mode in ("reduced", "complete"):
            for one, other in zip(linalg.qr(x, mode), np.linalg.qr(a, mode), strict=True):
                close(one, other, 0)
        close(linalg.pinv(x), np.linalg.pinv(a), 0)
        assert linalg.matrix_rank(x).to_numpy().tolist() == [0, 0]
        found = linalg.lstsq(x[0], gp.ones((m, 2), "float64"))
        expected = np.linalg.lstsq(a[0], np.ones((m, 2)), rcond=None)
        close(found[0], expected[0], 0)
        assert found[2] == expected[2] == 0 and found[1].shape == expected[1].shape
    with pytest.raises(gp.ShapeError, match="no elements"):
        linalg.cond(gp.zeros((0, 0)))


@pytest.mark.parametrize("dtype", TYPES)
def test_least_squares(dtype: str) -> None:
    bound = 2e-4 if dtype in TYPES[:2] else 1e-10
    for m, n in ((7, 4), (4, 7), (5, 5)):
        a = sample((m, n), dtype)
        for b in (sample((m,), dtype), sample((m, 3), dtype)):
            found = linalg.lstsq(gp.from_numpy(a), gp.from_numpy(b))
            expected = np.linalg.lstsq(wide(a), wide(b), rcond=None)
            for i in (0, 1, 3):
                close(found[i], expected[i], bound)
            assert found[2] == expected[2]
    a = sample((6, 2), dtype) @ sample((2, 4), dtype)
    assert linalg.lstsq(gp.from_numpy(a), gp.from_numpy(sample((6,), dtype)))[1:3:1][1] == 2
    close(linalg.pinv(gp.from_numpy(a), 1e-4), np.linalg.pinv(wide(a), 1e-4), bound)
    assert linalg.matrix_rank(gp.from_numpy(a)).item() == 2


def test_ranks_and_inverses_of_stacks_with_tolerances() -> None:
    a = sample((3, 5, 4), "float64")
    a[1, :, 0] = a[1, :, 1]
    x = gp.from_numpy(a)
    assert linalg.matrix_rank(x).to_numpy().tolist() == [4, 3, 4]
    for keywords in ({"tol": 1e9}, {"rtol": 0.9}, {"tol": np.array([1e9, 1e-9, 1e9])}):
        given = {key: gp.from_numpy(v) if isinstance(v, np.ndarray) else v for key, v in keywords.items()}
        tol = keywords.get("tol", None)
        s = np.linalg.svd(a, compute_uv=False)
        limit = 0.9 * s.max(-1, keepdims=True) if tol is None else np.asarray(tol)[..., None]
        assert linalg.matrix_rank(x, **given).to_numpy().tolist() == (s > limit).sum(-1).tolist()
    rcond = np.array([1e-3, 1e-2, 0.5])
    close(linalg.pinv(x, gp.from_numpy(rcond)), np.linalg.pinv(a, rcond), 1e-10)
    h = hermitian((3, 4, 4), "complex128")
    close(linalg.pinv(gp.from_numpy(h), hermitian=True), np.linalg.pinv(h, hermitian=True), 1e-9)
    assert linalg.matrix_rank(gp.zeros(3)).item() == 0 and linalg.matrix_rank(gp.ones(3)).item() == 1
    for call in (lambda: linalg.matrix_rank(x, 1.0, rtol=1.0), lambda: linalg.pinv(x, 1.0, rtol=1.0)):
        with pytest.raises(ValueError, match="both"):
            call()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int32"])
def test_norms(dtype: str) -> None:
    a = sample((3, 4, 5), dtype)
    x, bound = gp.from_numpy(a), 1e-4 if dtype in TYPES[:2] else 1e-12
    close(linalg.norm(x), np.linalg.norm(wide(a)), bound)
    for ord in (None, 0, 1, 2, 3.5, -1, np.inf, -np.inf):
        for keepdims in (False, True):
            close(linalg.norm(x, ord, 1, keepdims), np.linalg.norm(wide(a), ord, 1, keepdims), bound)
    for ord in (None, "fro", "nuc", 1, 2, -1, -2, np.inf, -np.inf):
        for axis in ((0, 1), (2, 0), (-1, -2)):
            for keepdims in (False, True):
                close(linalg.norm(x, ord, axis, keepdims), np.linalg.norm(wide(a), ord, axis, keepdims), bound)
    close(linalg.norm(x[0], "nuc"), np.linalg.norm(wide(a[0]), "nuc"), bound)
    close(linalg.norm(x, keepdims=True), np.linalg.norm(wide(a), keepdims=True), bound)
    close(linalg.vector_norm(x, axis=(0, 2), ord=1), np.abs(wide(a)).sum((0, 2)), bound)
    close(linalg.vector_norm(x), np.linalg.norm(wide(a).ravel()), bound)
    close(linalg.matrix_norm(x, ord=2, keepdims=True), np.linalg.norm(wide(a), 2, (1, 2), True), bound)


def test_wrong_orders_and_axes_of_norms() -> None:
    x = gp.ones((2, 3, 4))
    for call, match in (
        (lambda: linalg.norm(x, "fro", 0), "number or inf"),
        (lambda: linalg.norm(x, 3, (0, 1)), "fro"),
        (lambda: linalg.norm(x, 2), "two"),
        (lambda: linalg.norm(x, 2, (1, 1)), "two"),
        (lambda: linalg.norm(x, 2, 5), "axis 5"),
        (lambda: linalg.matrix_norm(x[0, 0]), "vector_norm"),
    ):
        with pytest.raises(ValueError, match=match):
            call()


def test_condition_numbers() -> None:
    a = sample((4, 3, 3), "float64")
    for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro"):
        close(linalg.cond(gp.from_numpy(a), p), np.linalg.cond(a, p), 1e-9)
    a[1], a[2, 0, 0] = 0, np.nan
    for p in (1, "fro"):
        assert linalg.cond(gp.from_numpy(a[:2]), p).to_numpy()[1] == np.inf
    for p in (1, 2, "fro"):
        assert np.isnan(linalg.cond(gp.from_numpy(a), p).to_numpy()).tolist() == [False, False, True, False]
    assert linalg.cond(gp.from_numpy(a[:2])).to_numpy()[1] == np.inf


def test_powers_and_chains() -> None:
    a = sample((2, 3, 3), "float64")
    for n in (-3, -1, 0, 1, 2, 5, 10):
        close(linalg.matrix_power(gp.from_numpy(a), n), np.linalg.matrix_power(a, n), 1e-7)
    whole = np.array([[1, 1], [1, 0]])
    assert linalg.matrix_power(gp.from_numpy(whole), 10).to_numpy().tolist() == [[89, 55], [55, 34]]
    for shapes in (((3,), (3, 7), (7, 2), (2,)), ((2, 30), (30, 4), (4, 9)), ((3, 4), (4, 5)), ((3,), (3,))):
        arrays = [sample(shape, "float64") for shape in shapes]
        found = linalg.multi_dot([gp.from_numpy(x) for x in arrays])
        close(found, np.linalg.multi_dot(arrays), 1e-10)
    out = gp.full((3, 5), np.nan, "float64")
    arrays = [gp.ones((3, 4), "float64"), gp.ones((4, 5), "float64")]
    assert linalg.multi_dot(arrays, out=out) is out and out.to_numpy().tolist() == [[4.0] * 5] * 3
    for arrays, match in (
        ([gp.ones((2, 2))], "two"),
        ([gp.ones((2, 3))] * 2, "differ"),
        ([gp.ones(2)] * 3, "no matrix"),
    ):
        with pytest.raises(ValueError, match=match):
            linalg.multi_dot(arrays)


@new_names
def test_products_and_parts() -> None:
    a, b = sample((2, 4, 3), "complex128"), sample((4, 3), "complex128")
    x, y = gp.from_numpy(a), gp.from_numpy(b)
    close(linalg.cross(x, y), np.linalg.cross(a, b), 1e-12)
    close(linalg.cross(x.T, y.T[..., None], axis=0), np.linalg.cross(a.T, b.T[..., None], axis=0), 1e-12)
    close(linalg.vecdot(x, y), np.linalg.vecdot(a, b), 1e-12)
    close(linalg.vecdot(x, y, axis=-2), np.linalg.vecdot(a, b, axis=-2), 1e-12)
    close(linalg.outer(y[0], y[:, 0]), np.linalg.outer(b[0], b[:, 0]), 1e-12)
    close(linalg.tensordot(x, y.T, axes=1), np.linalg.tensordot(a, b.T, axes=1), 1e-12)
    for offset in (-2, 0, 1):
        close(linalg.trace(x, offset=offset), np.linalg.trace(a, offset=offset), 1e-12)
        close(linalg.diagonal(x, offset=offset), np.linalg.diagonal(a, offset=offset), 0)
    assert linalg.trace(gp.ones((2, 2), "int8")).dtype == gp.int64
    close(linalg.matrix_transpose(x), a.swapaxes(-1, -2), 0)
    for call in (lambda: linalg.outer(x, y), lambda: linalg.cross(x, x.T), lambda: linalg.trace(y[0])):
        with pytest.raises(gp.ShapeError):
            call()


@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "cholesky", "qr", "svd", "eigh", "pinv"])
def test_what_cannot_be_factorized(name: str) -> None:
    function = getattr(linalg, name)
    with pytest.raises(gp.ShapeError, match="two axes"):
        function(gp.ones(3))
    for dtype in ("float16", "bfloat16"):
        with pytest.raises(gp.DTypeError, match="float32"):
            function(gp.ones((2, 2), dtype))
    with pytest.raises(gp.DTypeError, match="from_numpy"):
        function(np.eye(2))
    if name not in ("qr", "svd", "pinv"):
        with pytest.raises(gp.ShapeError, match="square"):
            function(gp.ones((2, 3)))


def test_wrong_arguments() -> None:
    x = gp.ones((3, 3))
    for call, match in (
        (lambda: linalg.qr(x, "full"), "reduced"),
        (lambda: linalg.eigh(x, "X"), "UPLO"),
        (lambda: linalg.solve(x, gp.ones(4)), "vector of 3"),
        (lambda: linalg.solve(gp.ones((2, 3, 3)), gp.ones((3, 3, 1))), "broadcast"),
        (lambda: linalg.lstsq(x, gp.ones(4)), "do not fit"),
        (lambda: linalg.matrix_power(gp.ones((2, 3)), 2), "square"),
    ):
        with pytest.raises(ValueError, match=match):
            call()


def test_numpys_functions_call_ours() -> None:
    a = definite((2, 3, 3), "float64")
    x, b = gp.from_numpy(a), gp.ones((3,), "float64")
    assert isinstance(np.linalg.norm(x, axis=0), gp.GPUArray)
    for name in ("inv", "det", "cholesky", "eigvalsh", "cond", "pinv", "matrix_rank"):
        close(getattr(np.linalg, name)(x), getattr(np.linalg, name)(a), 1e-9)
    close(np.linalg.solve(x[0], b), np.linalg.solve(a[0], np.ones(3)), 1e-9)
    assert np.linalg.eigh(x).eigenvalues.shape == (2, 3)
    assert np.linalg.lstsq(x[0], b, rcond=None)[2] == 3


@new_names
@pytest.mark.parametrize("name", sorted(set(linalg.__all__) - OWN))
def test_signatures_are_numpys(name: str) -> None:
    ours, theirs = (inspect.signature(getattr(module, name)).parameters for module in (linalg, np.linalg))
    assert list(ours) == list(theirs)
    for one, other in zip(ours.values(), theirs.values(), strict=True):
        assert one.kind == other.kind, one
        if other.name not in ("rtol",):
            assert one.default == other.default, one


def test_names_of_results_are_numpys() -> None:
    x = gp.ones((2, 2), "float64") + gp.eye(2, dtype="float64")
    assert linalg.qr(x)._fields == ("Q", "R") and linalg.svd(x)._fields == ("U", "S", "Vh")
    assert linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.slogdet(x)._fields == ("sign", "logabsdet")
    assert type(linalg.lstsq(x, x)) is tuple and isinstance(linalg.qr(x, "r"), gp.GPUArray)


def test_the_order_of_streams_holds() -> None:
    a = definite((3, 3), "float64")
    x = gp.from_numpy(a)
    side = gp.Stream()
    with side:
        y = x * 2.0
        inverse = linalg.inv(y)
    side.synchronize()
    close(inverse, np.linalg.inv(2 * a), 1e-9)
