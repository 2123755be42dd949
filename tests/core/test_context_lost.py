"""A fault on the CUDA device: the launch is named, and every later call says at once that the context is lost."""

from __future__ import annotations

import pytest
from mock_cuda import build, run

import pygpukit as gp

PRELUDE = """
import os
from pygpukit import _core
from pygpukit._core import native
from pygpukit.core import faults
SOURCE = '''
__global__ void good(float* x, int n) { x[0] = 1; }
__global__ void bad(float* x, int n) { x[n] = 1; }
'''
unit = gp.jit(SOURCE, func="good")
good, bad = unit, gp.jit(SOURCE, func="bad")
x = gp.ones(1000)
def fails(call):
    try:
        call()
    except gp.DriverError as error:
        return error
    raise AssertionError("it must fail")
def break_device(code=700):
    os.environ["MOCK_CUDA_FAIL"] = ",".join(f"{name}:{code}" for name in (
        "cuStreamQuery", "cuLaunchKernel", "cuMemcpyDtoHAsync", "cuMemCreate", "cuEventQuery"))
"""


@pytest.fixture(scope="module", autouse=True)
def _needs_nvrtc() -> None:
    if gp.get_nvrtc_version() is None:
        pytest.skip("NVRTC is not installed (extra cuda13)")


def test_the_only_launch_since_the_last_wait_is_the_one() -> None:
    code = """
good[4, 64](x, 5)
gp.synchronize()
bad[(2, 3), 32](x, 5)
break_device()
first = fails(gp.synchronize)
assert type(first).__name__ == "ContextLostError" and first.code == 700, first
assert "The kernel that faulted is bad (6 blocks of 32 threads)" in str(first), first
assert [one.kernel for one in first.launches] == ["bad"]
assert "--isolated" in str(first) and "restart" in str(first)
for call in (lambda: good[1, 1](x, 1), x.to_numpy, gp.synchronize):
    later = fails(call)
    assert "the CUDA context was lost before (CUDA_ERROR_ILLEGAL_ADDRESS)" in str(later), later
    assert "bad (6 blocks" in str(later) and later.launches == first.launches
assert faults.lost() is first
try:
    from pygpukit.jupyter import isolated
    isolated.reset()
except gp.DriverError as error:
    print(error)
"""
    told = run(PRELUDE + code, build() / "mock")
    assert told.startswith("%cuda_reset cannot bring back the notebook's own CUDA context")


def test_several_launches_are_told_latest_first_and_by_stream() -> None:
    code = """
one, two = gp.Stream(), gp.Stream()
good[1, 1, one](x, 1); one.synchronize()
bad[2, 1, two](x, 1)
good[3, 1, one](x, 1)
break_device(719)
error = fails(two.synchronize)
assert [(launch.kernel, launch.blocks) for launch in error.launches] == [("good", 3), ("bad", 2)], error.launches
assert "one of 2 launched since the last wait, latest first: good (3 blocks" in str(error), error
"""
    run(PRELUDE + code, build() / "mock")


def test_the_cell_and_line_are_named() -> None:
    code = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "pygpukit")
shell.user_ns.update(good=good, bad=bad, x=x, gp=gp)
shell.run_cell("a = 1", store_history=True)
shell.run_cell("b = 2\\n\\nbad[2, 1](x, 1)", store_history=True, cell_id="f00")
break_device()
print(fails(gp.synchronize))
os.environ["MOCK_CUDA_FAIL"] = ""
"""
    assert "bad (2 blocks of 1 threads, launched by In[2] line 3)" in run(PRELUDE + code, build() / "mock")


def test_other_errors_stay_what_they_are() -> None:
    code = """
os.environ["MOCK_CUDA_FAIL"] = "cuLaunchKernel:1"
error = fails(lambda: good[1, 1](x, 1))
assert type(error) is gp.DriverError and error.code == 1 and faults.lost() is None
"""
    run(PRELUDE + code, build() / "mock")
