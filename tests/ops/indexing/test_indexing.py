"""Indexing with lists, index arrays and masks against NumPy: reading, writing, take and its kin, errors."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core

pytestmark = pytest.mark.usefixtures("operation_backend")

A = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
S = slice(None)
KEYS: list[Any] = [
    [0, 2],
    [-1, 3, 3],
    [],
    np.array([[1, -1], [0, 2]]),
    np.array(1),
    (S, [0, 4, 4]),
    (..., [0, 5]),
    (S, [0, 1], slice(None, None, -2)),
    ([0, 1], S, [2, 3]),
    (0, S, [1, 2]),
    (0, [1, 2]),
    (S, 0, [1, 2]),
    (None, [1, 2], ..., [0, 0]),
    ([1, 2], None, [3, 4]),
    (S, [[0], [1]], [[1, 2]]),
    ([[0], [1]], [[1, 2]], [3]),
    (np.array([1, 0], np.uint8), slice(1, 3), np.array([[2], [1]], np.int32)),
    A > 50,
    A > 1000,
    A[:, :, 0] > 30,
    (S, A[0] > 3),
    (A[:, 0, 0] > 30, [0]),
    ([True, False, True, True],),
    ([2], A[0] > 20),
    True,
    False,
    (False, [0]),
    (True, [0, 1], S, [1, 2]),
    (slice(3, 1), [0, 1]),
]


def on_device(key: Any) -> Any:
    """The key with its lists and arrays as GPUArrays."""
    items = key if isinstance(key, tuple) else (key,)
    made = (gp.from_numpy(np.asarray(i, None if i else int)) if isinstance(i, list) else i for i in items)
    return tuple(gp.from_numpy(i) if isinstance(i, np.ndarray) else i for i in made)


def same(found: gp.GPUArray, expected: Any) -> None:
    assert found.shape == np.shape(expected)
    np.testing.assert_array_equal(found.to_numpy(), expected)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: str(key)[:40].replace("\n", ""))
@pytest.mark.parametrize("where", ["host", "device"])
def test_read_and_write(key: Any, where: str) -> None:
    used = on_device(key) if where == "device" else key
    rng = np.random.default_rng(1)
    for view in (np.s_[...], np.s_[::-1, :, ::-1]):
        host = A[view].copy()
        x = gp.from_numpy(A)[view]
        expected = host[key]
        same(x[used], expected)
        for value in (rng.random(expected.shape, np.float32), rng.random(expected.shape[-1:], np.float32), 7, 2.5):
            host[key] = value
            x[used] = gp.from_numpy(value) if isinstance(value, np.ndarray) else value
            same(x, host)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "complex64", "complex128"])
def test_every_size_of_element(dtype: str) -> None:
    host = A.astype(dtype)
    x = gp.from_numpy(host)
    index = np.array([3, 0, 0])
    for key in (np.s_[index], np.s_[:, index], np.s_[..., index], np.s_[A > 60], np.s_[index, index]):
        same(x[on_device(key)], host[key])
        x[on_device(key)] = x[on_device(key)]
        same(x, host)
    storage = gp.from_numpy(A.astype("uint8")).view("float8_e4m3")
    same(storage[[1, 2]].view("uint8"), A.astype("uint8")[[1, 2]])


@pytest.mark.parametrize("where", ["host", "device"])
def test_the_last_of_several_values_stays(where: str) -> None:
    rng = np.random.default_rng(2)
    for shape, count in (((7,), 100), ((5, 3), 40), ((3,), 3000)):
        index = rng.integers(-shape[0], shape[0], count)
        values = rng.random((count, *shape[1:]))
        host = np.zeros(shape)
        for position, value in zip(index, values, strict=True):
            host[position] = value
        x = gp.zeros(shape, "float64")
        x[gp.from_numpy(index) if where == "device" else index] = gp.from_numpy(values)
        same(x, host)
    two = gp.zeros((2, 2), "int64")
    rows, columns = np.array([0, 1, 0, 0]), np.array([1, 1, 1, 0])
    keys = (rows, columns) if where == "host" else (gp.from_numpy(rows), columns)
    two[keys] = gp.arange(1, 5)
    assert two.to_numpy().tolist() == [[4, 3], [0, 2]]


def test_values_and_indices_may_be_the_array_itself() -> None:
    order = np.random.default_rng(3).permutation(50)
    x = gp.from_numpy(order)
    x[x] = x
    host = order.copy()
    host[order] = order
    same(x, host)
    y = gp.from_numpy(A)
    y[[3, 2, 1, 0]] = y
    same(y, A[::-1])
    mask = gp.from_numpy(np.array([True, False, True]))
    mask[mask] = False
    assert not mask.to_numpy().any()


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ([0, 7], "index 7 is out of range for axis 0 with size 4"),
        ((S, np.array([1, -6])), "index -6 is out of range for axis 1 with size 5"),
        ((0, [1], 9), "index 9 is out of range for axis 2 with size 6"),
        (np.ones(3, bool), r"mask of shape \(3,\) does not fit: its axis 0 has 3 elements, axis 0 of the array has 4"),
        ((S, np.ones((5, 2), bool)), "its axis 1 has 2 elements, axis 2 of the array has 6"),
        (([0, 1], [0, 1, 2]), r"index arrays of shapes \(2,\), \(3,\) do not broadcast"),
        (([0], [0], [0], [0]), "too many indices"),
        ([0.5], "integers or bools, not float64"),
        ([[0], [0, 1]], "regular"),
        ((..., [0], ...), "single ellipsis"),
    ],
    ids=str,
)
def test_bad_host_indices_are_refused_before_anything_is_launched(key: Any, words: str) -> None:
    x = gp.from_numpy(A)
    before = _core.counters()
    with pytest.raises(IndexError, match=words):
        x[key]
    with pytest.raises(IndexError, match=words):
        x[key] = 1
    after = _core.counters()
    assert [after[k] - before[k] for k in ("launches", "host_launches")] == [0, 0]


def test_bad_device_indices_raise_at_the_next_wait_at_the_latest() -> None:
    x, bad = gp.from_numpy(A), gp.from_numpy(np.array([0, 5]))
    with pytest.raises(IndexError, match="index 5 is out of range for axis 0 with size 4"):
        x[bad].to_numpy()
    with pytest.raises(IndexError, match="index 5 is out of range for axis 1 with size 5"):
        x[[0, 1], bad].to_numpy()
    same(x[gp.from_numpy(np.array([0, 3]))], A[[0, 3]])  # an error is told once
    with pytest.raises(IndexError, match="index -9 is out of range for axis 1 with size 5"):
        x[:, gp.from_numpy(np.array([-9]))] = 1
        gp.synchronize()
    same(x, A)
    with pytest.raises(IndexError, match="size 0"):
        gp.zeros((0, 3))[gp.from_numpy(np.array([0]))]
    with pytest.raises(IndexError, match="not float32"):
        x[gp.ones(2)]


def test_values_must_broadcast() -> None:
    x = gp.from_numpy(A)
    with pytest.raises(gp.ShapeError, match=r"\(2, 5, 6\)"):
        x[[0, 1]] = gp.ones((3, 5, 6))
    with pytest.raises(gp.ShapeError):
        x[gp.from_numpy(A > 100)] = gp.ones(3)
    with pytest.raises(gp.DTypeError, match="from_numpy"):
        x[[0, 1]] = np.ones((2, 5, 6), np.float32)
    with pytest.raises(gp.DTypeError, match="complex"):
        x[[0, 1]] = 1j


@pytest.mark.parametrize(
    ("shape", "masks"),
    [((3,), [(0,)]), ((0, 1), [(0, 0)]), ((2, 3, 4), [(2, 0)]), ((2, 3), [(0,), (3,)]), ((3, 0, 1), [None, (0, 0)])],
)
def test_masks_without_elements_fit_any_extent(shape: tuple[int, ...], masks: list[tuple[int, ...] | None]) -> None:
    """NumPy's rule, for reading and writing; other extents of such masks are checked."""
    a = np.ones(shape, np.float32)
    key = tuple(slice(None) if mask is None else np.zeros(mask, bool) for mask in masks)
    own = tuple(part if isinstance(part, slice) else gp.from_numpy(part) for part in key)
    for each in (key, own):
        x = gp.from_numpy(a)
        assert x[each].shape == a[key].shape
        x[each] = 7
        np.testing.assert_array_equal(x.to_numpy(), a)
    with pytest.raises(IndexError, match=r"mask of shape \(0, 2\) does not fit: its axis 1 has 2 elements"):
        gp.ones((0, 3))[np.zeros((0, 2), bool)]


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "int64", "complex128"])
@pytest.mark.parametrize("share", [0.5, 0.01])
def test_masks_over_many_blocks(dtype: str, share: float) -> None:
    """More elements than are counted together; many and few selected ones, aligned and not, with a last part."""
    rng = np.random.default_rng()
    chosen = rng.random(1_200_007) < share
    a = rng.integers(0, 100, chosen.size).astype(dtype)
    x, mask = gp.from_numpy(a), gp.from_numpy(chosen)
    for cut in (slice(None), slice(1, -3), slice(None, None, 3)):
        np.testing.assert_array_equal(x[cut][mask[cut]].to_numpy(), a[cut][chosen[cut]])
    np.testing.assert_array_equal(gp.flatnonzero(mask).to_numpy(), np.flatnonzero(chosen))


def test_masks_wait_only_where_they_must() -> None:
    x, mask = gp.from_numpy(A), gp.from_numpy(A > 50)
    before = _core.counters()
    x[mask] = 0
    after = _core.counters()
    assert after["d2h_bytes"] == before["d2h_bytes"]
    assert after["launches"] + after["host_launches"] - before["launches"] - before["host_launches"] == 1
    same(x, np.where(A > 50, 0, A))
    assert x[mask].shape == (69,)


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_take(mode: str, where: str, axis: int | None) -> None:
    index = np.array([[0, -2, 3], [1, 1, 2]]) if mode == "raise" else np.array([[0, -20, 3], [100, 1, 25]])
    for host, x in ((A, gp.from_numpy(A)), (A.T[::-1], gp.from_numpy(A).T[::-1])):
        used = gp.from_numpy(index) if where == "device" else index
        expected = host.take(index, axis, mode=mode)
        same(gp.take(x, used, axis, mode=mode), expected)
        same(x.take(used, axis, mode=mode), expected)
        out = gp.zeros(expected.shape)
        assert gp.take(x, used, axis, out=out, mode=mode) is out
        same(out, expected)
    same(gp.take(gp.from_numpy(A), 2, 1), A[:, 2])


def test_take_writes_strided_and_overlapping_out() -> None:
    x = gp.from_numpy(np.arange(8.0))
    gp.take(x, [7, 6, 5, 4], out=x[::2])
    assert x.to_numpy().tolist() == [7, 1, 6, 3, 5, 5, 4, 7]
    with pytest.raises(gp.ShapeError, match="take: out has shape"):
        gp.take(x, [1, 2], out=gp.zeros(3, "float64"))
    with pytest.raises(ValueError, match="mode 'no' is unknown"):
        gp.take(x, [1], mode="no")
    with pytest.raises(gp.DTypeError, match="mask"):
        gp.take(x, [True])


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_along_an_axis(axis: int | None) -> None:
    host = A[::-1].copy()
    index = host.size - 1 - np.argsort(-A.ravel()) if axis is None else np.argsort(-A, axis)[..., ::-1]
    x, at = gp.from_numpy(host), gp.from_numpy(np.ascontiguousarray(index))
    same(gp.take_along_axis(x, at, axis), np.take_along_axis(host, index, axis))
    values = np.random.default_rng(4).random(index.shape, np.float32)
    np.put_along_axis(host, index, values, axis)
    gp.put_along_axis(x, at, gp.from_numpy(values), axis)
    same(x, host)
    gp.put_along_axis(x, at, 3, axis)
    same(x, np.full_like(host, 3))


def test_along_an_axis_broadcasts_and_keeps_the_last() -> None:
    index = np.array([[1], [0], [1]])
    host, x = np.zeros((3, 4)), gp.zeros((3, 4), "float64")
    for target, at, put in ((host, index, np.put_along_axis), (x, gp.from_numpy(index), gp.put_along_axis)):
        put(target, at, 5, 1)
    same(x, host)
    twice, y = np.array([[2, 2, 0]]), gp.zeros((1, 3), "int64")
    gp.put_along_axis(y, gp.from_numpy(twice), gp.from_numpy(np.array([[1, 2, 3]])), 1)
    assert y.to_numpy().tolist() == [[3, 0, 2]]
    with pytest.raises(gp.ShapeError, match="take_along_axis"):
        gp.take_along_axis(x, gp.from_numpy(np.array([0])), 0)


@pytest.mark.parametrize("where", ["host", "device"])
def test_put_and_compress(where: str) -> None:
    index = np.array([3, -1, 3, 0, 10])
    used = gp.from_numpy(index) if where == "device" else index.tolist()
    for view in (np.s_[...], np.s_[::-2, :, ::3]):
        for values in (9, [1, 2], [1, 2, 3, 4, 5, 6]):
            host, x = A[view].copy(), gp.from_numpy(A)[view]
            np.put(host, index, values)
            gp.put(x, used, values)
            same(x, host)
    untouched = gp.ones(20)
    gp.put(untouched, used, [])
    same(untouched, np.ones(20, np.float32))
    mask = np.array([True, False, True])
    held = gp.from_numpy(mask) if where == "device" else mask.tolist()
    for axis in (None, 0, 2):
        same(gp.compress(held, gp.from_numpy(A), axis), np.compress(mask, A, axis))


def test_a_list_of_indices_does_not_wait() -> None:
    x = gp.from_numpy(A)
    x[[0, 1]]
    before = _core.counters()["d2h_bytes"]
    x[[0, 1], :, [2, 3]]
    assert _core.counters()["d2h_bytes"] == before
    long = np.arange(1000) % 4
    same(x[long], A[long])


def test_what_a_mask_selects_keeps_no_more_memory_than_it_needs(operation_backend: str) -> None:
    if operation_backend == "kernels":
        pytest.skip("in checked mode a freed block is held back, and every block stands between guards")
    x = gp.arange(1 << 20, dtype="float32")
    mask = x < 1000
    gp.synchronize()
    gc.collect()  # what earlier tests left is not collected meanwhile
    before = _core.pool_stats().used
    chosen = x[mask]
    assert chosen.shape == (1000,)
    assert _core.pool_stats().used - before == 4096
