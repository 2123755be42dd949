"""Arrays of more than 2^31 elements of one byte: every element is reached, and no index or count is cut to 32 bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native

N = 2**31 + 4099
MIDDLE = N - 4099  # the first element whose number does not fit 31 bits


@pytest.fixture(autouse=True)
def _memory_goes_back() -> Iterator[None]:
    yield
    native.synchronize()
    _core.pool_trim(0)


@pytest.fixture
def x() -> gp.GPUArray:
    """All 7, but 200 as the last but one."""
    x = gp.full(N, 7, "uint8")
    x[N - 2] = 200
    return x


def _parts(array: gp.GPUArray) -> list[list[Any]]:
    """The elements at both ends and about 2^31."""
    ends = (array[:4], array[MIDDLE - 2 : MIDDLE + 2], array[-4:])
    return [end.to_numpy().tolist() for end in ends]


def test_fill_and_sums(x: gp.GPUArray) -> None:
    assert _parts(x) == [[7] * 4, [7] * 4, [7, 7, 200, 7]]
    total = 7 * N + 193
    assert int(x.sum()) == total  # in 64 bits
    assert int(x.sum(dtype="uint8")) == total % 256
    assert int(x.view("int8").sum()) == total - 256
    assert int(gp.count_nonzero(x)) == N
    assert (int(x.max()), int(x.min())) == (200, 7)


def test_add_dense_misaligned_and_strided(x: gp.GPUArray) -> None:
    assert _parts(x + x) == [[14] * 4, [14] * 4, [14, 14, 144, 14]]
    shifted = x[1:] + x[:-1]
    assert shifted.size == N - 1
    assert _parts(shifted) == [[14] * 4, [14] * 4, [14, 14, 207, 207]]
    turned = x[::-1] + x
    assert _parts(turned) == [[14, 207, 14, 14], [14] * 4, [14, 14, 207, 14]]
    assert int(turned.sum()) == 2 * (7 * N + 193)
    x += 1
    assert _parts(x) == [[8] * 4, [8] * 4, [8, 8, 201, 8]]


def test_argmax_argmin_and_masks(x: gp.GPUArray) -> None:
    assert int(x.argmax()) == N - 2
    x[N - 1] = 0
    assert int(x.argmin()) == N - 1
    mask = x > 100
    assert bool(mask.any()) and not bool(mask.all())
    assert x[mask].to_numpy().tolist() == [200]
    (places,) = gp.nonzero(mask)
    assert places.to_numpy().tolist() == [N - 2]


def test_take_and_put_at_the_far_end(x: gp.GPUArray) -> None:
    index = np.array([N - 2, 0, MIDDLE, -1, -N])
    for own in (index, gp.from_numpy(index)):
        assert gp.take(x, own).to_numpy().tolist() == [200, 7, 7, 7, 7]
        assert x[own].to_numpy().tolist() == [200, 7, 7, 7, 7]
    x[gp.from_numpy(np.array([MIDDLE, N - 1]))] = 9
    assert _parts(x) == [[7] * 4, [7, 7, 9, 7], [7, 7, 200, 9]]
    with pytest.raises(IndexError, match=f"index {N} is out of range for axis 0 with size {N}"):
        x[gp.from_numpy(np.array([N]))].to_numpy()


def test_slices_and_copies(x: gp.GPUArray) -> None:
    x[N - 10 :: 3] = 5
    assert x[-10:].to_numpy().tolist() == [5, 7, 7, 5, 7, 7, 5, 7, 200, 5]
    x[MIDDLE:] = x[:4099]
    assert _parts(x) == [[7] * 4, [7] * 4, [7] * 4]
    x[-1] = 3
    assert _parts(x.clone()) == [[7] * 4, [7] * 4, [7, 7, 7, 3]]
    turned = x[::-1].clone()
    assert _parts(turned) == [[3, 7, 7, 7], [7] * 4, [7] * 4]
    every_other = x[::2].clone()
    assert every_other.size == (N + 1) // 2 and int(every_other[-1]) == 3
    folded = x[: 2 * (N // 2)].reshape(2, N // 2)
    assert folded.sum(axis=1).to_numpy().tolist() == [7 * (N // 2)] * 2
    assert int(folded.T.clone()[-1, -1]) == 7


def test_cumsum_wraps_like_one_long_sum() -> None:
    x = gp.ones(N, "uint8")
    found = gp.cumsum(x, dtype="uint8")
    for start in (0, MIDDLE - 100, N - 100):
        wanted = (np.arange(start, start + 100, dtype=np.uint64) + 1).astype(np.uint8)
        np.testing.assert_array_equal(found[start : start + 100].to_numpy(), wanted)


def test_conversion_and_where(x: gp.GPUArray) -> None:
    half = x.astype("float16")
    assert _parts(half) == [[7.0] * 4, [7.0] * 4, [7.0, 7.0, 200.0, 7.0]]
    del half
    assert _parts(gp.where(x > 100, x, 1)) == [[1] * 4, [1] * 4, [1, 1, 200, 1]]
