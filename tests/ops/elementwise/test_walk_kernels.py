"""Element-wise kernels on views of any shape, in checked mode: NumPy's elements, in one launch, or in halves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import kernels
from pygpukit.ops.elementwise import walks

pytestmark = pytest.mark.usefixtures("kernels_on_sim")

SHAPES = ((37,), (5, 7), (9, 100), (3, 4, 31), (2, 3, 5, 9), (64, 3), (1, 1))


def numbers(dtype: str, shape: tuple[int, ...]) -> tuple[gp.GPUArray, np.ndarray[Any, Any]]:
    values = np.random.default_rng().integers(-9, 10, shape)
    return gp.from_numpy(values).astype(dtype), values.astype("float32" if dtype == "bfloat16" else dtype)


def view_of(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[slice, ...]:
    """Slices that begin anywhere, take every first to third element, some of them backwards."""
    steps = rng.choice([1, 1, 2, -1, 3, -2], len(shape)).tolist()
    begins = [int(rng.integers(0, max(n // 3, 1))) for n in shape]
    return tuple(
        slice(at, None, step) if step > 0 else slice(None, at or None, step)
        for at, step in zip(begins, steps, strict=True)
    )


def same(found: gp.GPUArray, expected: np.ndarray[Any, Any]) -> None:
    found = found.astype("float32") if found.dtype == "bfloat16" else found
    np.testing.assert_array_equal(found.to_numpy(), expected)


@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float32", "int64"])
def test_views_of_every_kind(dtype: str) -> None:
    rng = np.random.default_rng()
    for shape in SHAPES:
        x, a = numbers(dtype, shape)
        for _ in range(3):
            view = view_of(shape, rng)
            turned = tuple(rng.permutation(len(shape)).tolist())
            y, b = x[view].transpose(turned), a[view].transpose(turned)
            row = tuple(slice(0, 1) if rng.random() < 0.5 else slice(None) for _ in shape)
            same(y.clone(), b)
            same(y + y[row], b + b[row])
            same(gp.where(y[row] != 0, y, 3), np.where(b[row] != 0, b, b.dtype.type(3)))
            same(y.astype("float64"), b.astype("float64"))
            if b.size:
                out, into = numbers(dtype, tuple(2 * n + 1 for n in b.shape))
                begins = rng.integers(0, 2, b.ndim).tolist()
                target = tuple(slice(at, at + 2 * n - 1, 2) for at, n in zip(begins, b.shape, strict=True))
                out[target] = y
                out[target] += y[row]
                into[target] = b
                into[target] += b[row]
                same(out, into)


def test_places_beyond_32_bits_go_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[str] = []
    launch = kernels.launch
    monkeypatch.setattr(kernels, "launch", lambda spec, *args: launched.append(spec.expression) or launch(spec, *args))
    monkeypatch.setattr(walks, "_REACH", 60)
    x, a = numbers("float32", (12, 20))
    same(x + x[:1], a + a[:1])
    assert len(launched) >= 4
    same(x.T + x[:, 0], a.T + a[:, 0])
    same(gp.where(x > 0, x[:, ::-1], 1), np.where(a > 0, a[:, ::-1], np.float32(1)))


@pytest.mark.parametrize("extent", [1, 2, 3, 7, 8, 100, 127, 128, 4095, 65537, 2**31 - 1])
def test_quotients_by_a_product(extent: int) -> None:
    factor, shift = walks._quotient(extent)
    assert 0 < factor < 2**32
    for k in (0, 1, 5, 1000, (2**31 - 1) // extent):
        for number in (k * extent - 1, k * extent, k * extent + 1, 2**31 - 1):
            if 0 <= number < 2**31:
                assert ((number * factor >> 32) + number) >> shift == number // extent
