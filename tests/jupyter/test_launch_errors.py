"""What a user reads after a wrong launch: the parameter, the remedy, the own line, and no frames of the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cell_runner import cuda, error_of, failure
from IPython.core.error import UsageError

import pygpukit as gp
from pygpukit.core import frames
from pygpukit.core.errors import KernelArgumentError

ADD = """__global__ void add(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}
"""


@pytest.fixture
def launched(shell: Any) -> Any:
    shell.user_ns.update({name: gp.ones(8, "float32") for name in "xyz"}, n=8, np=np, gp=gp)
    shell.colors = "NoColor"
    cuda(shell, "", ADD)
    return shell


@pytest.mark.parametrize(
    ("call", "parameter", "words"),
    [
        ("add(n, x, y, z)", "a", "parameter 'a': expected a GPUArray of float32, got 8; the order is add(const float"),
        ("add(x, y, z, 2**40)", "n", "cannot follow from 1099511627776; it must be a whole number that fits int32"),
        ("add(x, y, z, 'a')", "n", "parameter 'n': expected a number (int), got 'a'"),
        ("add(x, y, z, x)", "n", "parameter 'n': expected a number (int), got GPUArray of shape (8,)"),
        ("add(x, y, np.ones(8), [8])", "out", "got ndarray of shape (8,); use gp.from_numpy()"),
        ("add(x, y, z, -1)", "n", "cannot follow from -1"),
        ("add(x, y, z, 2.5)", "n", "cannot follow from 2.5"),
        ("add(x, y, z)", "n", "parameter 'n': missing"),
        ("add[4](x, y, z, 8)", "block", "add[4]: the block is missing; write add[grid, block]"),
        ("add[(4,)](x, y, z, 8)", "block", "add[4]: the block is missing"),
        ("add[2**40, 32](x, y, z, 8)", "grid", "an extent is at most 2147483647"),
        ("add[1, 'a'](x, y, z, 8)", "block", "block is 'a'"),
    ],
)
def test_a_wrong_launch_names_the_parameter_and_shows_the_users_line(
    launched: Any, capsys: pytest.CaptureFixture[str], call: str, parameter: str, words: str
) -> None:
    capsys.readouterr()
    error = error_of(launched, f"def mine():\n    {call}\nmine()")
    shown = capsys.readouterr().out
    assert isinstance(error, KernelArgumentError) and error.parameter == parameter and words in str(error)
    assert error.__context__ is None, "no second error in front of it"
    assert call in shown and "mine()" in shown and words in shown
    assert "jit/kernel.py" not in shown and "pygpukit/" not in shown.replace("\\", "/")


def test_the_mode_verbose_shows_every_frame(launched: Any, capsys: pytest.CaptureFixture[str]) -> None:
    launched.run_line_magic("xmode", "Verbose")
    capsys.readouterr()
    error_of(launched, "add[4](x, y, z, 8)")
    assert "configuration.py" in capsys.readouterr().out
    launched.run_line_magic("xmode", "Context")


def test_a_traceback_without_frames_of_others_is_left_whole() -> None:
    assert frames.users(None) is None
    try:
        raise KernelArgumentError("x")
    except KernelArgumentError as error:
        assert frames.users(error.__traceback__) is not None


def test_host_data_in_inputs_is_told_the_way(launched: Any) -> None:
    error = failure(launched, "-i np.ones(3)", "__global__ void k(float* a) { a[0] = 1; }\n")
    assert isinstance(error, UsageError) and "gp.from_numpy(np.ones(3))" in str(error)


def test_a_function_or_a_branch_that_is_not_the_programs_main_compiles(launched: Any) -> None:
    body = """#ifndef __CUDACC_RTC__
int main() { return 0; }
#endif
struct S { __device__ int main() const { return 3; } };
__global__ void k(int* out) { S s; out[0] = s.main(); }  // main()
"""
    cuda(launched, "", body)
    out = gp.zeros(1, "int32")
    launched.user_ns["k"][1, 1](out)
    assert out.item() == 3
