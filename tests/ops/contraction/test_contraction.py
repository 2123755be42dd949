"""einsum, tensordot, kron, trace and cross beside NumPy's: values, types, shapes, errors, paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("operation_backend")

Host = np.ndarray[Any, Any]
EXTENTS = dict(zip("abcdeijklmn", (2, 3, 4, 1, 2, 3, 4, 2, 3, 5, 2), strict=True))
TYPES = ("float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool", "complex64", "complex128")


def numbers(shape: tuple[int, ...], dtype: str = "float64") -> Host:
    rng = np.random.default_rng()
    found = rng.integers(-4, 5, shape) + (1j * rng.integers(-4, 5, shape) if dtype.startswith("complex") else 0)
    return np.asarray(np.abs(found) if dtype[0] in "ub" else found).astype(dtype)


def same(found: gp.GPUArray, expected: Any, exact: bool = True) -> None:
    expected = np.asarray(expected)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    if exact:
        np.testing.assert_array_equal(found.to_numpy(), expected)
    else:
        np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-12, atol=1e-12)


SUBSCRIPTS = (
    "ij,jk->ik", "ij,jk", "ba,bc", "i,i", "i,i->i", "i,j", "ii", "ii->i", "iij->j", "ij->ji", "ij->", "ij", "ji",
    "ij,ij->", "ij,ij->i", "ij,ij->j", "bij,bjk->bik", "bij,bkj->bik", "bij,bjk->ik", "ijk,jkl->li", "ijk,kj->i",
    "ij,kl->ijkl", "ijk->kji", "i,ij,j", "ij,jk,kl->il", "ij,jk,kl,lm->im", "ij,ij,ij->ij", "abc,cd,bde,e->a",
    "ij,jk,ki->", "a,b,c->cab", "iji->j", "ij,ji->", "id,dj->ij", "id->i", " i j , j k -> i k ",
)  # fmt: skip


@pytest.mark.parametrize("text", SUBSCRIPTS)
def test_einsum_is_numpys(text: str) -> None:
    for dtype in TYPES[:: 1 if text == "ij,jk->ik" else 4]:
        shapes = [tuple(EXTENTS[k] for k in term) for term in text.replace(" ", "").split("->")[0].split(",")]
        arrays = [numbers(shape, dtype) for shape in shapes]
        expected = np.einsum(text, *arrays)
        same(gp.einsum(text, *map(gp.from_numpy, arrays)), expected)
        views = [gp.from_numpy(np.repeat(array.T, 2, -1)).T[::2] for array in arrays if array.ndim]
        same(gp.einsum(text, *views, optimize=False), expected)


ELLIPSES = (
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)), ("...ij,...jk", (5, 1, 2, 3), (4, 3, 4)), ("i...->...", (3, 2, 4)),
    ("...i->i...", (2, 4, 3)), ("...", (2, 3)), ("i...,i...", (3, 2), (3, 2)), ("...,...", (2, 3), (3,)),
    ("ij...,jk...->ik...", (2, 3, 5), (3, 4, 5)), ("...,i->...i", (), (3,)), ("ij,jk->ik", (2, 1), (3, 4)),
    ("i,i", (1,), (5,)), ("ij,ij->j", (1, 3), (4, 1)), ("ij,jk->ik", (0, 3), (3, 2)), ("ij,jk->ik", (2, 0), (0, 2)),
)  # fmt: skip


@pytest.mark.parametrize(("text", "shapes"), [(each[0], each[1:]) for each in ELLIPSES])
def test_einsum_of_ellipses_and_extents_of_one(text: str, shapes: tuple[Any, ...]) -> None:
    arrays = [numbers(shape) for shape in shapes]
    same(gp.einsum(text, *map(gp.from_numpy, arrays)), np.einsum(text, *arrays))


def test_einsum_of_lists_of_labels() -> None:
    a, b = numbers((2, 3)), numbers((3, 4))
    x, y = gp.from_numpy(a), gp.from_numpy(b)
    same(gp.einsum(x, [0, 1], y, [1, 2]), np.einsum(a, [0, 1], b, [1, 2]))
    same(gp.einsum(x, [0, 51], y, [51, 2], [2, 0]), np.einsum(a, [0, 51], b, [51, 2], [2, 0]))
    same(gp.einsum(x, [Ellipsis, 0], [0, Ellipsis]), np.einsum(a, [Ellipsis, 0], [0, Ellipsis]))


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ij,jk->ik", ((2, 3), (4, 2))), ("ij->ijk", ((2, 3),)), ("ij->ii", ((2, 3),)), ("i", ((2, 3),)),
        ("ijk", ((2, 3),)), ("i$", ((2, 3),)), ("ij,jk", ((2, 3),)), ("ii", ((2, 3),)), ("...->", ((2, 3),)),
        ("....", ((2, 3),)), ("ij..", ((2, 3),)), ("ij->i-", ((2, 3),)), ("ii", ((1, 3),)),
    ],
)  # fmt: skip
def test_einsum_refuses_what_numpy_refuses(text: str, shapes: tuple[Any, ...]) -> None:
    arrays = [numbers(shape) for shape in shapes]
    with pytest.raises(ValueError):
        np.einsum(text, *arrays)
    with pytest.raises(ValueError, match="einsum"):
        gp.einsum(text, *map(gp.from_numpy, arrays))


def test_einsum_delivers_and_converts() -> None:
    with pytest.raises(gp.DTypeError, match="einsum"):
        gp.einsum("ij,jk", gp.zeros((2, 3)), numbers((3, 4)))
    a, b = numbers((2, 3), "int8"), numbers((3, 4), "int8")
    x, y, out = gp.from_numpy(a), gp.from_numpy(b), gp.empty((2, 4), "float64")
    assert gp.einsum("ij,jk", x, y, out=out) is out
    same(out, np.einsum("ij,jk", a, b, dtype=np.float64))
    same(gp.einsum("ij,jk", x, y, dtype="int32"), np.einsum("ij,jk", a, b, dtype=np.int32))
    with pytest.raises(gp.ShapeError):
        gp.einsum("ij,jk", x, y, out=gp.empty((4, 2), "float64"))
    view = gp.einsum("ii->i", square := gp.zeros((3, 3)))
    view[...] = 1
    same(square, np.eye(3, dtype=np.float32))


def test_einsum_sums_bfloat16_in_float32() -> None:
    rng = np.random.default_rng()
    a = rng.standard_normal((3, 999)).astype(np.float32)
    x = gp.from_numpy(a).astype("bfloat16")
    exact = x.astype("float64").to_numpy()
    for text, other in (("ij,ij->i", None), ("ij,kj->ik", None)):
        found = gp.einsum(text, x, x)
        assert found.dtype == gp.bfloat16 and other is None
        np.testing.assert_allclose(
            found.astype("float64").to_numpy(), np.einsum(text, exact, exact), rtol=8e-3, atol=0.4
        )


def test_paths_cost_no_more_than_numpys() -> None:
    """Of random products of five operands, by the count of operations that einsum_path() states of both paths."""
    rng = np.random.default_rng()
    for _ in range(20):
        terms = ["".join(rng.choice(list("abcdef"), int(rng.integers(1, 4)), replace=False)) for _ in range(5)]
        extents = {label: int(rng.integers(2, 6)) for label in "abcdef"}
        arrays = [rng.integers(-3, 4, [extents[k] for k in term]) for term in terms]
        text = ",".join(terms) + "->" + "".join(sorted(set("".join(terms)))[:2])
        own = [gp.from_numpy(array) for array in arrays]
        path, report = gp.einsum_path(text, *own)
        theirs = np.einsum_path(text, *arrays, optimize="optimal")[0]
        assert operations(report) <= operations(gp.einsum_path(text, *own, optimize=theirs)[1])
        same(gp.einsum(text, *own, optimize=path), np.einsum(text, *arrays))
        same(gp.einsum(text, *own, optimize=theirs), np.einsum(text, *arrays))


def operations(report: str) -> float:
    return float(next(line for line in report.splitlines() if "Optimized FLOP" in line).split(":")[1])


def test_einsum_of_many_operands_is_greedy() -> None:
    arrays = [numbers((2, 2), "int64") for _ in range(12)]
    letters = "abcdefghijklm"
    text = ",".join(letters[k : k + 2] for k in range(12)) + "->am"
    same(gp.einsum(text, *map(gp.from_numpy, arrays)), np.linalg.multi_dot(arrays))


def test_paths_that_do_not_fit_are_refused() -> None:
    x = gp.zeros((2, 2), "float64")
    for path in ([(0, 5)], [(0, 0)], [()], [(0, 1)]):
        with pytest.raises(ValueError, match="path"):
            gp.einsum("ij,jk,kl", x, x, x, optimize=["einsum_path", *path])
    with pytest.raises(ValueError, match="optimize"):
        gp.einsum("ij,jk", x, x, optimize="fast")


@pytest.mark.parametrize("axes", [0, 1, 2, ((1,), (0,)), (1, 0), ((0, 1), (1, 0)), ((-1, 0), (0, -1)), ((), ())])
def test_tensordot(axes: Any) -> None:
    for dtype in ("float64", "int8", "complex64"):
        a, b = numbers((3, 4), dtype), numbers((4, 3), dtype)
        if axes == 2:
            b = np.ascontiguousarray(b.T)
        same(gp.tensordot(gp.from_numpy(a), gp.from_numpy(b), axes), np.tensordot(a, b, axes))
    wide = numbers((2, 3, 4))
    same(
        gp.tensordot(gp.from_numpy(wide), gp.from_numpy(wide), ((0, 2), (0, 2))),
        np.tensordot(wide, wide, ((0, 2), (0, 2))),
    )


@pytest.mark.parametrize("axes", [3, ((0,), (0,)), ((0, 1), (1,)), ((5,), (0,)), ((0, 0), (1, 1)), -1])
def test_tensordot_refuses(axes: Any) -> None:
    with pytest.raises(gp.ShapeError, match="tensordot"):
        gp.tensordot(gp.zeros((3, 4)), gp.zeros((4, 3)), axes)


@pytest.mark.parametrize(
    ("first", "second"),
    [((2, 3), (3, 2)), ((3,), (2,)), ((2,), (2, 3, 2)), ((2, 0), (1, 2)), ((), (2, 2)), ((2, 1, 2), (2,))],
)
def test_kron(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b = numbers(first, "int32"), numbers(second, "float32")
    same(gp.kron(gp.from_numpy(a), gp.from_numpy(b)), np.kron(a, b))
    same(gp.kron(gp.from_numpy(b), 2), b * np.float32(2))


def test_trace() -> None:
    for dtype in TYPES:
        a = numbers((3, 4, 2), dtype)
        x = gp.from_numpy(a)
        for given in ((), (1,), (-1, 1, 2), (0, 0, -1), (9,)):
            same(gp.trace(x, *given), np.trace(a, *given))
    same(gp.trace(x, dtype="complex64"), np.trace(a, dtype=np.complex64))
    with pytest.raises(gp.ShapeError, match="trace"):
        gp.trace(gp.zeros(3))


def test_cross() -> None:
    a, b = numbers((4, 3)), numbers((4, 3))
    x, y = gp.from_numpy(a), gp.from_numpy(b)
    same(gp.cross(x, y), np.cross(a, b))
    same(gp.cross(x, y[0], axisc=0), np.cross(a, b[0], axisc=0))
    same(gp.cross(x.T, y.T, axis=0), np.cross(a.T, b.T, axis=0))
    same(gp.cross(x.T, y, axisa=0, axisb=1), np.cross(a.T, b, axisa=0, axisb=1))
    for cut, other in ((2, 3), (3, 2), (2, 2)):
        # NumPy 2.5 refuses vectors of two numbers: the third is 0
        whole = np.cross(*(np.pad(one[:, :have], ((0, 0), (0, 3 - have))) for one, have in ((a, cut), (b, other))))
        expected = whole[:, 2] if cut == other == 2 else whole
        with pytest.warns(DeprecationWarning, match="cross"):
            same(gp.cross(x[:, :cut], y[:, :other]), expected)
    for first, second in (((4,), (3,)), ((), (3,)), ((2, 3), (3, 3))):
        with pytest.raises(gp.ShapeError):
            gp.cross(gp.zeros(first), gp.zeros(second))


def test_numpys_functions_come_here() -> None:
    a = numbers((3, 3))
    x = gp.from_numpy(a)
    same(np.einsum("ij,jk,kl", x, x, x), np.einsum("ij,jk,kl", a, a, a))
    same(np.tensordot(x, x, axes=1), np.tensordot(a, a, axes=1))
    same(np.kron(x, x), np.kron(a, a))
    same(np.trace(x, offset=1), np.trace(a, offset=1))
    same(np.cross(x, x[::-1]), np.cross(a, a[::-1]))
