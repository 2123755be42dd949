"""The step limit of checked kernels: endless loops end with their place, at the same one each time."""

from __future__ import annotations

from typing import Any

import pytest
from check_run import run

import pygpukit as gp
from pygpukit.core.errors import Finding
from pygpukit.jit import compile_source

COUNT = """__global__ void k(int *y, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i)
    if (i % 3 == threadIdx.x % 3) sum ^= i;
  y[threadIdx.x] = sum;
}"""
REGISTERS = """__global__ void k(int *y, int n) {
  int x = n;
  if (blockIdx.x == 1 && threadIdx.x == 37)
    while (x != 1)
      x = x / 2 + n;
  y[0] = x;
}"""
MEMORY = """__global__ void k(volatile int *y, int n) {
  if (threadIdx.x == 63)
    while (y[1] == 0)
      y[2] = y[2] + n;
}"""
BARRIERS = """__global__ void k(int *y, int n) {
  __shared__ int done;
  if (threadIdx.x == 0) done = 0;
  __syncthreads();
  while (!done) {
    if (threadIdx.x == n + 100) done = 1;
    __syncthreads();
  }
}"""


@pytest.fixture(autouse=True)
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_STEP_LIMIT", "200000")
    monkeypatch.setenv("PYGPUKIT_CHECK", "1")


def _found(source: str, check: bool | str) -> Finding:
    found = run(source, 2, 64, gp.zeros(64, dtype="int32"), 3, check=check)
    assert found is not None and found.kind == "step limit"
    assert "the launch ran more than 200000 steps (PYGPUKIT_SIM_STEP_LIMIT sets the limit)" in found.message
    return found


@pytest.mark.parametrize("check", [True, "memory"])
@pytest.mark.parametrize(
    ("source", "lines", "block", "thread"),
    [(REGISTERS, (4, 5), (1, 0, 0), (37, 0, 0)), (MEMORY, (3, 4), (0, 0, 0), (63, 0, 0))],
)
def test_an_endless_loop_is_told_with_its_thread(source: str, lines: Any, block: Any, thread: Any, check: Any) -> None:
    found = _found(source, check)
    assert found.line in lines and (found.block, found.thread) == (block, thread)
    assert found == _found(source, check)  # at the same step


def test_a_loop_of_barriers_ends_too() -> None:
    found = _found(BARRIERS, True)
    assert 5 <= found.line <= 8 and found.block == (0, 0, 0)


@pytest.mark.parametrize(("limit", "fits"), [(60, False), (64 * 90 * 32, True)])
def test_every_launch_has_all_its_steps_and_no_more(limit: int, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_STEP_LIMIT", str(limit))  # a thread has several steps, a turn of the loop few
    y = gp.zeros(32, dtype="int32")
    found = [run(COUNT, 1, 32, y, 90) for _ in range(40)]
    assert [one is None for one in found] == [fits] * 40  # no launch pays for those before it


def test_the_limit_concerns_checked_kernels_alone_and_is_part_of_their_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []
    for limit, check in (("", True), ("0", True), ("7", True), ("", False), ("7", False)):
        monkeypatch.setenv("PYGPUKIT_SIM_STEP_LIMIT", limit)
        keys.append(compile_source(COUNT, arch="sim", check=check).key)
    assert keys[0] == keys[1] != keys[2]
    assert keys[3] == keys[4]


@pytest.mark.parametrize("wrong", ["-1", "1.5", "many", "1e6", str(2**63)])
def test_a_limit_that_is_no_number_of_steps_is_refused(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_SIM_STEP_LIMIT", wrong)
    with pytest.raises(ValueError, match=f"PYGPUKIT_SIM_STEP_LIMIT is '{wrong}'; it must be a whole number of steps"):
        gp.jit(COUNT, check=True)
