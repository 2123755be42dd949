"""Element-wise kernels on operands at any place of memory, in checked mode: NumPy's elements, and none beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.ops.elementwise import walks

pytestmark = pytest.mark.usefixtures("kernels_on_sim")

ROW = 531  # more than 64 packs of bfloat16, and a remainder


@pytest.fixture
def packs(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether threads took packs, a launch each that is not dense."""
    taken: list[bool] = []
    in_packs = walks._in_packs

    def noted(*args: Any) -> bool:
        taken.append(in_packs(*args))
        return taken[-1]

    monkeypatch.setattr(walks, "_in_packs", noted)
    return taken


def pair(dtype: str, *shape: int) -> tuple[gp.GPUArray, np.ndarray[Any, Any]]:
    values = np.random.default_rng().integers(-99, 99, shape)
    return gp.from_numpy(values).astype(dtype), values.astype("float32" if dtype == "bfloat16" else dtype)


def same(found: gp.GPUArray, expected: np.ndarray[Any, Any]) -> None:
    assert found.is_contiguous()
    np.testing.assert_array_equal(
        (found.astype("float32") if found.dtype == "bfloat16" else found).to_numpy(), expected
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dense_operands_at_every_residue(dtype: str) -> None:
    x, a = pair(dtype, 1200)
    y, b = pair(dtype, 1200)
    for i in range(16 // x.itemsize):
        j = 16 // x.itemsize - 1 - i // 2
        size = 1100 + i
        same(x[i:][:size] + y[j:][:size], a[i:][:size] + b[j:][:size])
        out = gp.zeros(1200, dtype)
        gp.add(x[i:][:size], y[j:][:size], out=out[i:][:size])  # results that lie in no packs
        same(out, np.pad(a[i:][:size] + b[j:][:size], (i, 1200 - i - size)))
    z = x.clone()
    z[3:] += y[3:]
    same(z, np.concatenate((a[:3], a[3:] + b[3:])))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_broadcast_stepped_and_reversed_operands(dtype: str, packs: list[bool]) -> None:
    x, a = pair(dtype, 3, 2 * ROW + 5)
    views = [np.s_[:, i : i + ROW] for i in range(16 // x.itemsize)]
    views += [np.s_[1, 2 : 2 + ROW], np.s_[:, 4:5], np.s_[:, ROW - 1 :: -1], np.s_[:, ROW + 3 : 3 : -1]]
    views += [np.s_[:, : 2 * ROW : 2], np.s_[:, 3 : 2 * ROW + 3 : 2], np.s_[::-1, 1 : ROW + 1]]
    for k, view in enumerate(views):
        other = views[3 * k % (len(views) - 3)]
        same(x[:, 1 : ROW + 1] + x[view], a[:, 1 : ROW + 1] + a[view])
        if a[view].shape == (3, ROW):
            same(x[view].clone(), a[view])
            same(x[view] + x[other], a[view] + a[other])
    assert all(packs)
    for extent in (ROW - 3, ROW - 4):  # rows of a result that are packs, and such that only begin at them
        out = gp.zeros((3, ROW + 13), dtype)
        gp.add(x[:, 1 : extent + 1], x[0, :1], out=out[:, 8 : extent + 8])
        assert packs[-1] == (extent % 8 == 0)
        same(out, np.pad(a[:, 1 : extent + 1] + a[0, :1], ((0, 0), (8, ROW + 5 - extent))))


def test_kernels_of_all_layouts_at_every_residue() -> None:
    x, a = pair("float32", 700)
    y, b = pair("float32", 700)
    mask = gp.from_numpy(np.random.default_rng().random(700) < 0.5)
    for i in range(8):
        at, other = np.s_[i : i + 601], np.s_[7 - i : 608 - i]
        same(gp.where(mask[at], x[other], 3), np.where(mask.to_numpy()[at], a[other], 3))
        same(gp.maximum(x[at], y[other]), np.maximum(a[at], b[other]))
        same(gp.abs(x[at]), np.abs(a[at]))
        same(gp.maximum(x[at], 5, out=x[at].clone()), np.maximum(a[at], 5))
    z = x.clone()
    gp.maximum(z[3:], y[3:], out=z[3:])
    same(z, np.concatenate((a[:3], np.maximum(a[3:], b[3:]))))


def test_short_rows_and_small_arrays(packs: list[bool]) -> None:
    for shape in ((9, 8), (9, 7), (2, 3, 4), (1, 1), (0, 5), (4, 1)):
        x, a = pair("float32", *shape)
        same(x + x[..., :1], a + a[..., :1])
        same(x[::-1] + x[:1], a[::-1] + a[:1])
    assert all(packs)
