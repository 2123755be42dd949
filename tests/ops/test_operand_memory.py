"""Operands that may share memory: told from the places of their bytes, as NumPy tells it of its own views."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.ops.operands import may_share_memory, overlaps, same_view

pytestmark = pytest.mark.usefixtures("backend_name")


def test_views_may_share_memory_where_numpy_says_so() -> None:
    rng = np.random.default_rng()
    host = np.zeros((9, 11), "float32")
    array = gp.from_numpy(host)

    def part() -> tuple[slice, ...]:
        ends = [sorted(rng.integers(0, extent + 1, 2)) for extent in host.shape]
        return tuple(slice(int(first), int(last), int(rng.integers(1, 4))) for first, last in ends)

    seen = set()
    for _ in range(400):
        one, other = part(), part()
        flipped = bool(rng.integers(2))
        a, b = (array[one].T if flipped else array[one]), array[other]
        x, y = (host[one].T if flipped else host[one]), host[other]
        shared = np.may_share_memory(x, y)
        seen.add(shared)
        assert may_share_memory(a, b) == may_share_memory(b, a) == shared, (one, other, flipped)
        assert overlaps(a, b) == (shared and not same_view(a, b)), (one, other, flipped)
    assert seen == {True, False}


def test_arrays_of_their_own_and_empty_ones_share_nothing() -> None:
    a = gp.zeros((4, 4))
    assert not may_share_memory(a, gp.zeros((4, 4)))
    assert not may_share_memory(a[2:2], a)
    assert may_share_memory(a, a) and not overlaps(a, a)
    assert may_share_memory(a, a[::-1, ::-1]) and overlaps(a, a.T)


def test_memory_of_others_is_shared_where_its_addresses_meet() -> None:
    def foreign(address: int) -> Any:  # as the package sees 32 floats that another library lent it
        return SimpleNamespace(
            block=0, offset=0, device_ptr=address, size=32, shape=(32,), strides=(4,), itemsize=4, dtype=gp.float32
        )

    assert not may_share_memory(foreign(4096), foreign(4096 + 128))
    assert may_share_memory(foreign(4096), foreign(4096 + 124))
    assert same_view(foreign(4096), foreign(4096))
