"""Padding, triangles and elements along an axis, in packs at any place of memory: NumPy's elements, in checked mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.ops.indexing import places

pytestmark = pytest.mark.usefixtures("kernels_on_sim")

DTYPES = ("uint8", "float32")


def views(dtype: str) -> list[tuple[gp.GPUArray, np.ndarray[Any, Any]]]:
    """Matrices and stacks whose rows begin at many residues: of wider arrays, narrow, reversed, stepped, transposed."""
    a = np.random.default_rng().integers(1, 99, 1700).astype(dtype)
    x = gp.from_numpy(a)
    found = []
    shapes = ((6, 48), (6, 48), (5, 37), (2, 3, 151), (90, 3), (1, 300), (9, 1))
    for offset, shape in zip((0, 1, 3, 5, 2, 7, 0), shapes, strict=True):
        size = int(np.prod(shape))
        found.append((x[offset : offset + size].reshape(*shape), a[offset : offset + size].reshape(shape)))
    for view in (np.s_[:, 1:], np.s_[..., 2:-3], np.s_[:, ::-1], np.s_[:, ::2]):
        found.append((found[2][0][view], found[2][1][view]))
    return [*found, (found[2][0].T, found[2][1].T)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangles(dtype: str) -> None:
    for x, a in views(dtype):
        for k in (0, -2, 5, 400, -400):
            np.testing.assert_array_equal(gp.tril(x, k).to_numpy(), np.tril(a, k))
            np.testing.assert_array_equal(gp.triu(x, k).to_numpy(), np.triu(a, k))


@pytest.mark.parametrize("dtype", DTYPES)
def test_padding(dtype: str) -> None:
    for x, a in views(dtype):
        np.testing.assert_array_equal(gp.pad(x, 1).to_numpy(), np.pad(a, 1))
        last = [(0, 0)] * (a.ndim - 1) + [(3, 18)]
        np.testing.assert_array_equal(gp.pad(x, last, constant_values=7).to_numpy(), np.pad(a, last, constant_values=7))
        np.testing.assert_array_equal(gp.pad(x, last, "wrap").to_numpy(), np.pad(a, last, "wrap"))
        np.testing.assert_array_equal(gp.pad(x, 2, "symmetric").to_numpy(), np.pad(a, 2, "symmetric"))
    one = gp.from_numpy(np.array(5, dtype))
    assert gp.pad(one, 1).to_numpy() == 5


@pytest.mark.parametrize("dtype", DTYPES)
def test_rolling_along_two_axes(dtype: str) -> None:
    for x, a in views(dtype):
        shifts = (3, 1)
        np.testing.assert_array_equal(gp.roll(x, shifts, (-1, 0)).to_numpy(), np.roll(a, shifts, (-1, 0)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_elements_along_an_axis(dtype: str, index: str) -> None:
    rng = np.random.default_rng()
    for x, a in views(dtype):
        for axis in range(a.ndim):
            p = rng.integers(-a.shape[axis], a.shape[axis], a.shape).astype(index)
            memory = gp.from_numpy(np.pad(p.reshape(-1), (1, 0)))
            expected = np.take_along_axis(a, p.astype("int64"), axis)
            for which in (gp.from_numpy(p), memory[1:].reshape(*p.shape)):
                np.testing.assert_array_equal(gp.take_along_axis(x, which, axis).to_numpy(), expected)
    bad = gp.from_numpy(np.array([[0, 1, 2, 3, 4, 48]], index))
    with pytest.raises(IndexError):
        gp.take_along_axis(views(dtype)[0][0][:1], bad, 1).to_numpy()
        gp.synchronize()


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_along_rows_that_a_block_keeps(dtype: str) -> None:
    rng = np.random.default_rng()
    a = rng.integers(1, 99, 2 * 1301 + 1).astype(dtype)
    x, a = gp.from_numpy(a)[1:].reshape(2, 1301), a[1:].reshape(2, 1301)
    for count in (places._NEAR_ELEMENTS, 1501):
        p = rng.integers(-1301, 1301, (2, count))
        for q, index in ((p, "int64"), (p[:, ::-1].copy(), "int32")):
            found = gp.take_along_axis(x[::-1], gp.from_numpy(q).astype(index), 1).to_numpy()
            np.testing.assert_array_equal(found, np.take_along_axis(a[::-1], q, 1))
    with pytest.raises(IndexError, match="1301"):
        gp.take_along_axis(x[:1], gp.from_numpy(np.full((1, 1024), 1301)), 1).to_numpy()
        gp.synchronize()
