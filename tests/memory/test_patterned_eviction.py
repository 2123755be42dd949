"""tests/gpu/test_gpu_large_eviction.py in small: its kernel finds what is wrong, and nothing is."""

from __future__ import annotations

import pytest
from patterned import Patterned, wrong_after

import pygpukit as gp
from pygpukit import _core

pytestmark = pytest.mark.usefixtures("backend_name")


def test_evicted_blocks_come_back_word_by_word() -> None:
    assert wrong_after([1 << 18] * 3 + [(1 << 19) + 1] * 2, [3, 3, 3, 1, 1], 60, 1) == 0


@pytest.mark.parametrize(("place", "value"), [(0, 0), (999, 1 << 63)])
def test_one_wrong_word_is_counted(place: int, value: int) -> None:
    wrong = gp.zeros(1, dtype="uint64")
    block = Patterned(1000, 1, wrong)
    _core.pool_evict(0, block.array.block)
    block.array[place] = value
    block.visit(2)
    block.visit(3)
    assert int(wrong.to_numpy()[0]) == 1


def test_what_another_block_or_visit_left_is_wrong_all_over() -> None:
    wrong = gp.zeros(1, dtype="uint64")
    one, other = Patterned(1000, 1, wrong), Patterned(1000, 2, wrong)
    one.visit(3)
    one.mark, other.mark = 1, 3
    one.visit(4)
    other.visit(5)
    assert int(wrong.to_numpy()[0]) == 2000
