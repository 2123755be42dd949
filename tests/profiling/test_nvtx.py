"""nvtx_ranges(): which ranges NVTX gets, in which order, and that nothing stays behind. NVTX is a list here."""

from __future__ import annotations

import sys
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError
from pygpukit.ops.methods.bind import GPUArray
from pygpukit.profiling import nvtx_ranges
from pygpukit.scheduler import Scheduler

pytestmark = pytest.mark.usefixtures("backend_name")


class Kept:
    """The library's calls, in order; open ranges by number."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.open: dict[int, str] = {}
        self._stack: list[str] = []

    def module(self) -> Any:
        return SimpleNamespace(push_range=self._push, pop_range=self._pop, start_range=self._start, end_range=self._end)

    def _push(self, message: str, color: str, domain: str) -> None:
        assert domain == "pygpukit"
        self._stack.append(message)
        self.calls.append(("push", message))

    def _pop(self, domain: str) -> None:
        self.calls.append(("pop", self._stack.pop()))

    def _start(self, message: str, color: str, domain: str) -> int:
        number = len(self.calls) + 1
        self.open[number] = message
        self.calls.append(("start", message))
        return number

    def _end(self, number: int) -> None:
        self.calls.append(("end", self.open.pop(number)))


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    library = Kept()
    monkeypatch.setitem(sys.modules, "nvtx", library.module())
    return library


def test_operations_are_ranges_as_functions_operators_and_methods(kept: Kept) -> None:
    a = gp.ones((4, 4))
    with nvtx_ranges():
        b = gp.exp(a)
        c = a @ b + 1
        c.sum()
    assert [call for call in kept.calls if call[0] == "push"] == [
        ("push", "gp.exp"),
        ("push", "GPUArray.__matmul__"),
        ("push", "GPUArray.__add__"),
        ("push", "GPUArray.sum"),
    ]
    assert kept.calls[:2] == [("push", "gp.exp"), ("pop", "gp.exp")]


def test_an_operation_that_raises_ends_its_range(kept: Kept) -> None:
    with nvtx_ranges(), pytest.raises(ValueError):
        gp.matmul(gp.ones((2, 3)), gp.ones((2, 3)))
    assert kept.calls[-1] == ("pop", "gp.matmul")


def test_tasks_are_ranges_around_their_operations(kept: Kept) -> None:
    with nvtx_ranges(), Scheduler(total_memory="1MB") as scheduler:
        scheduler.submit(lambda: gp.exp(gp.ones(3)).sum().item(), name="work").result(60)
    names = [call for call in kept.calls if call[1] in ("task work", "gp.exp")]
    assert names == [("start", "task work"), ("push", "gp.exp"), ("pop", "gp.exp"), ("end", "task work")]
    assert not kept.open


def test_everything_is_as_it_was_afterwards(kept: Kept) -> None:
    functions = (gp.exp, gp.matmul, GPUArray.__add__, GPUArray.sum)
    ranged = nvtx_ranges()
    assert gp.exp is not functions[0] and gp.exp.__doc__ == functions[0].__doc__
    with pytest.raises(InvalidSpecError, match="already"):
        nvtx_ranges()
    ranged.close()
    ranged.close()
    assert (gp.exp, gp.matmul, GPUArray.__add__, GPUArray.sum) == functions
    assert all(isinstance(one, FunctionType) for one in functions)
    count = len(kept.calls)
    gp.exp(gp.ones(3))
    assert len(kept.calls) == count


def test_without_nvtx_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nvtx", None)
    with pytest.raises(ModuleNotFoundError, match=r"ranges of NVTX needs nvtx: python -m pip install .*nvtx"):
        nvtx_ranges()


def test_the_real_library_takes_the_calls() -> None:
    pytest.importorskip("nvtx")
    with nvtx_ranges(), Scheduler(total_memory="1MB") as scheduler:
        assert scheduler.submit(lambda: gp.exp(gp.zeros(3)).sum().item()).result(60) == 3
