"""interp, gradient, trapezoid, convolutions, polynomials and apply_along_axis beside NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp

pytestmark = [pytest.mark.usefixtures("backend_name"), pytest.mark.filterwarnings("ignore::RuntimeWarning")]

Host = np.ndarray[Any, Any]


def numbers(shape: Any, dtype: str = "float64") -> Host:
    found = np.random.default_rng().integers(-9, 10, shape)
    made = np.asarray(found if np.dtype(dtype).kind in "iu" else found / 2).astype(dtype)
    return made + 1j * made[::-1] if np.dtype(dtype).kind == "c" else made


def same(found: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    close = {"float16": 4e-3, "float32": 2e-6, "complex64": 2e-6}.get(expected.dtype.name, 1e-12)
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=close, atol=close)


def test_interp() -> None:
    xp, x = (
        np.sort(np.random.default_rng().permutation(11)[:8] * 0.6),
        np.concatenate([numbers(30) * 1.5, [np.nan, np.inf, -np.inf]]).reshape(3, 11),
    )
    fp = np.array([1.0, 3, np.inf, 2, -4, np.nan, 7, 7])
    for values in (fp, numbers(8, "int32"), numbers(8, "complex64")):
        for given in ({}, {"left": -1.0, "right": 9.0}, {"right": 0.0}, {"period": 6.5}, {"period": -7}):
            if values is fp and "period" in given:
                continue
            same(
                gp.interp(gp.from_numpy(x), gp.from_numpy(xp), gp.from_numpy(values), **given),
                np.interp(x, xp, values, **given),
            )
    same(gp.interp(gp.from_numpy(x), gp.asarray([0.5]), gp.asarray([2.0])), np.interp(x, [0.5], [2.0]))
    same(gp.interp(1.25, gp.asarray([1, 2]), gp.asarray([2.0, 4.0])), np.interp(1.25, [1, 2], [2.0, 4.0]))
    for bad in ((x, xp[:3], fp), (x, xp[:0], fp[:0]), (x, x, fp)):
        with pytest.raises(ValueError, match="interp"):
            gp.interp(*map(gp.from_numpy, bad))
    with pytest.raises(ValueError, match="period"):
        gp.interp(*map(gp.from_numpy, (x, xp, fp)), period=0)


def test_gradient() -> None:
    for dtype in ("float64", "float32", "int16", "complex128"):
        a = numbers((4, 5), dtype)
        x = gp.from_numpy(a)
        at = np.cumsum(np.random.default_rng().integers(1, 4, 5)).astype(float)
        for edge in (1, 2):
            for mine, theirs in zip(gp.gradient(x, edge_order=edge), np.gradient(a, edge_order=edge), strict=True):
                same(mine, theirs)
            same(gp.gradient(x, 2.0, axis=1, edge_order=edge), np.gradient(a, 2.0, axis=1, edge_order=edge))
            same(
                gp.gradient(x[::-1], 0.5, axis=-2, edge_order=edge), np.gradient(a[::-1], 0.5, axis=-2, edge_order=edge)
            )
            if dtype != "float32":
                same(
                    gp.gradient(x, gp.from_numpy(at), axis=1, edge_order=edge),
                    np.gradient(a, at, axis=1, edge_order=edge),
                )
        for mine, theirs in zip(gp.gradient(x, 2, 0.5, axis=(1, 0)), np.gradient(a, 2, 0.5, axis=(1, 0)), strict=True):
            same(mine, theirs)
    for call, error in (
        (lambda: gp.gradient(x, 1, 2, 3), TypeError), (lambda: gp.gradient(x[:, :1]), ValueError),
        (lambda: gp.gradient(x, edge_order=3), ValueError), (lambda: gp.gradient(x, gp.ones(3), axis=1), ValueError),
        (lambda: gp.gradient(x, axis=(0, 0)), ValueError), (lambda: gp.gradient(x, axis=2), ValueError),
    ):  # fmt: skip
        with pytest.raises(error):
            call()


def test_trapezoid() -> None:
    for dtype in ("float64", "float32", "int32", "complex64"):
        a = numbers((4, 5), dtype)
        x, at = gp.from_numpy(a), np.sort(numbers(5))
        for axis in (0, 1, -1):
            same(gp.trapezoid(x, axis=axis), np.trapezoid(a, axis=axis))
            same(gp.trapezoid(x, dx=0.25, axis=axis), np.trapezoid(a, dx=0.25, axis=axis))
        same(gp.trapezoid(x, gp.from_numpy(at)), np.trapezoid(a, at))
        grid = np.cumsum(np.abs(numbers((4, 5))), 0)
        same(gp.trapezoid(x, gp.from_numpy(grid), axis=0), np.trapezoid(a, grid, axis=0))
    with pytest.raises(ValueError):
        gp.trapezoid(x, gp.ones(3))
    with pytest.raises(ValueError):
        gp.trapezoid(x, axis=2)


def test_ediff1d() -> None:
    for dtype in ("float32", "int8", "uint16"):
        a = numbers((3, 4), dtype)
        x = gp.from_numpy(a)
        same(gp.ediff1d(x), np.ediff1d(a))
        ends = numbers(2, dtype)
        same(gp.ediff1d(x, gp.from_numpy(ends), 7), np.ediff1d(a, ends, np.array([7], dtype)))
    same(
        gp.ediff1d(gp.zeros(0), to_begin=gp.ones(1)), np.ediff1d(np.zeros(0, np.float32), None, np.ones(1, np.float32))
    )
    with pytest.raises(TypeError):
        gp.ediff1d(x, gp.from_numpy(np.ones(1) * 0.5))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode: str) -> None:
    for dtype in ("float64", "float32", "int16", "uint8", "complex128"):
        for sizes in ((9, 4), (4, 9), (5, 5), (1, 3), (6, 1), (8, 5)):
            a, b = numbers(sizes[0], dtype), numbers(sizes[1], dtype)
            for name in ("convolve", "correlate"):
                same(getattr(gp, name)(gp.from_numpy(a), gp.from_numpy(b), mode), getattr(np, name)(a, b, mode))


def test_convolutions_refuse() -> None:
    for name in ("convolve", "correlate"):
        function: Any = getattr(gp, name)
        for shapes in (((0,), (3,)), ((3,), (0,)), ((2, 2), (2,))):
            with pytest.raises(gp.ShapeError, match=name):
                function(*map(gp.ones, shapes))
        with pytest.raises(ValueError, match="mode"):
            function(gp.ones(3), gp.ones(2), "wrap")


def test_polynomials() -> None:
    for dtype in ("float64", "float32", "int32"):
        p, x = numbers(4, dtype), numbers((3, 2), dtype)
        same(gp.polyval(gp.from_numpy(p), gp.from_numpy(x)), np.polyval(p, x))
        same(gp.polyval([1, 2.5], gp.from_numpy(x)), np.polyval([1, 2.5], x))
        row = numbers(5, dtype)
        for given in ((), (3,), (0,), (1,), (4, True)):
            same(gp.vander(gp.from_numpy(row), *given), np.vander(row, *given))
    same(gp.vander(gp.asarray([2, 3]).astype("uint8"), 3), np.vander(np.array([2, 3], np.uint8), 3))
    with pytest.raises(ValueError):
        gp.vander(gp.ones((2, 2)))
    with pytest.raises(ValueError):
        gp.vander(gp.ones(2), -1)
    with pytest.raises(ValueError):
        gp.polyval(gp.ones((2, 2)), gp.ones(2))


def test_tri() -> None:
    for given in ((3,), (3, 4), (3, 4, 1), (2, 5, -1), (0, 2)):
        same(gp.tri(*given), np.tri(*given, dtype=np.float32))


ALONG: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "number": (lambda r: gp.sum(r), lambda r: r.sum()),
    "row": (lambda r: gp.sort(r), np.sort),
    "longer": (lambda r: gp.concatenate([r, r]), lambda r: np.concatenate([r, r])),
    "matrix": (lambda r: gp.outer(r, r), lambda r: np.outer(r, r)),
    "of Python": (lambda r: float(r[0].item()), lambda r: float(r[0])),
    "fused": (gp.fuse(lambda r: r * 2 + 1), lambda r: r * 2 + 1),
}


@pytest.mark.parametrize("name", ALONG)
def test_apply_along_axis(name: str) -> None:
    ours, theirs = ALONG[name]
    a = numbers((2, 3, 4))
    for axis in (0, 1, -1):
        same(gp.apply_along_axis(ours, axis, gp.from_numpy(a)), np.apply_along_axis(theirs, axis, a))


def test_apply_along_axis_passes_arguments_and_refuses() -> None:
    a = numbers((3, 4))
    x = gp.from_numpy(a)
    same(gp.apply_along_axis(lambda r, k, by=1: r * k + by, 0, x, 2, by=3), a * 2 + 3)
    with pytest.raises(gp.ShapeError, match="no row"):
        gp.apply_along_axis(gp.sum, 1, gp.zeros((0, 3)))
    with pytest.raises(gp.ShapeError, match="axis"):
        gp.apply_along_axis(gp.sum, 2, x)


def test_numpys_functions_come_here() -> None:
    a = numbers(6)
    x = gp.from_numpy(a)
    same(np.gradient(x), np.gradient(a))
    same(np.trapezoid(x, dx=2.0), np.trapezoid(a, dx=2.0))
    same(np.convolve(x, x, mode="same"), np.convolve(a, a, mode="same"))
    same(np.correlate(x, x), np.correlate(a, a))
    same(np.vander(x, N=2), np.vander(a, N=2))
    same(np.ediff1d(x), np.ediff1d(a))
    same(np.polyval(x, x), np.polyval(a, a))
    same(np.interp(x, gp.sort(x), x), np.interp(a, np.sort(a), a))
