"""MemoryProfiler.leaks(): the blocks that came between two snapshots and stayed, by who owns them."""

from __future__ import annotations

import inspect
import textwrap

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.profiling import MemoryProfiler
from pygpukit.profiling.memory import Leak

pytestmark = pytest.mark.usefixtures("backend_name")
CELL = "cell of test_leaks"


def arrays(count: int, elements: int) -> list[gp.GPUArray]:
    """Arrays that are allocated in a notebook's cell, which this file stands for."""
    native.set_cell(_core.intern(CELL), __file__)
    try:
        return [native.empty((elements,), "float32") for _ in range(count)]
    finally:
        native.set_cell(0, None)


def of_the_cell(leaks: list[Leak] | None) -> list[Leak]:
    return [leak for leak in leaks or () if leak.cell == CELL]


def test_what_stays_is_a_leak_and_what_goes_is_not() -> None:
    elements = int(np.random.default_rng().integers(2000, 9000))
    memory = MemoryProfiler()
    before = arrays(2, elements)
    memory.snapshot("a")
    stay, go = arrays(3, elements), arrays(4, elements)
    del go, before
    again = arrays(1, elements)  # in memory of one that went: a block of its own all the same
    memory.snapshot("b")
    (leak,) = of_the_cell(memory.leaks("a", "b"))
    assert leak.blocks == len(stay) + len(again) == 4 and leak.nbytes >= 4 * 4 * elements
    lines, first = inspect.getsourcelines(arrays)
    assert "native.empty" in textwrap.dedent(lines[leak.line - first])
    del stay, again
    memory.snapshot("c")
    assert of_the_cell(memory.leaks("b", "c")) == [] == of_the_cell(memory.leaks("a", "c"))
    assert memory.leaks("a", "nowhere") is None


def test_arrays_with_a_name_are_shown_by_it(capsys: pytest.CaptureFixture[str]) -> None:
    memory = MemoryProfiler()
    memory.snapshot("a")
    x, other = gp.zeros(5000), gp.zeros(50_000)
    x.name = "an array that stays"
    memory.snapshot("b")
    leaks = memory.leaks("a", "b") or []
    (leak,) = [leak for leak in leaks if leak.name == "an array that stays"]
    assert leak.nbytes >= x.nbytes and leak.blocks == 1
    assert [one.nbytes for one in leaks] == sorted((one.nbytes for one in leaks), reverse=True)
    assert leaks[0].nbytes >= other.nbytes
    memory.print_diff("a", "b")
    assert ": an array that stays" in capsys.readouterr().out
