"""%%cuda --check: a finding is shown with the lines of the kernel's own cell, wherever it is waited for."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from cell_runner import clear, error_of, run

import pygpukit as gp
from pygpukit.core.errors import KernelCheckError

OFF_BY_ONE = """%%cuda --check
extern "C" __global__ void differences(const float* x, float* d, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        d[i] = x[i + 1] - x[i];
    }
}
"""
LAUNCH = "differences[1, 32](x, d, 10)"
FIXED = OFF_BY_ONE.replace("i < n", "i < n - 1")


def failure(shell: Any, cell: str) -> KernelCheckError:
    error = error_of(shell, cell)
    assert isinstance(error, KernelCheckError)
    return error


@pytest.fixture
def arrays(shell: Any) -> Any:
    shell.user_ns.update(x=gp.ones(10), d=gp.zeros(10))
    return shell


def test_a_finding_is_shown_at_the_line_of_the_cell(arrays: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(arrays, OFF_BY_ONE)
    run(arrays, LAUNCH)
    capsys.readouterr()
    (found,) = failure(arrays, "d.to_numpy()").findings
    assert (found.kind, found.line, found.array, found.index) == ("out of bounds", 6, "x", 10)
    assert (found.kernel, found.block, found.thread) == ("differences", (0, 0, 0), (9, 0, 0))
    shown = capsys.readouterr().out.rstrip().splitlines()
    assert shown[0].startswith("cell:6: out of bounds: ")
    assert shown[1] == "  kernel differences, block (0,0,0), thread (9,0,0), x[10]"
    assert "  ->   6 |         d[i] = x[i + 1] - x[i];" in shown
    assert len(shown) <= 15
    assert not any("Traceback" in line or "pygpukit" in line or "0x" in line for line in shown)


def test_the_device_works_on(arrays: Any) -> None:
    run(arrays, OFF_BY_ONE)
    failure(arrays, LAUNCH + "\nd.to_numpy()")
    run(arrays, FIXED)
    assert run(arrays, LAUNCH + "\nd.to_numpy()").tolist() == [0.0] * 10


def test_blank_lines_above_the_magic_count(arrays: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(arrays, "\n\n" + OFF_BY_ONE)
    assert failure(arrays, LAUNCH + "\nd.to_numpy()").findings[0].line == 8
    assert "  ->   8 |         d[i] = x[i + 1] - x[i];" in capsys.readouterr().out


def test_each_kernel_has_its_own_cell(arrays: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(arrays, OFF_BY_ONE)
    run(arrays, "%%cuda --check\n\n__global__ void other(float* x) { x[threadIdx.x] = 1; }")
    failure(arrays, LAUNCH + "\nd.to_numpy()")
    assert "  ->   6 |         d[i] = x[i + 1] - x[i];" in capsys.readouterr().out
    failure(arrays, "other[1, 32](x)\nx.to_numpy()")
    assert "  ->   3 | __global__ void other(float* x) { x[threadIdx.x] = 1; }" in capsys.readouterr().out


def test_a_kernel_whose_name_is_gone_still_has_its_facts(arrays: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(arrays, OFF_BY_ONE + "\n")
    run(arrays, LAUNCH + "\ndel differences; import gc; gc.collect()")
    assert failure(arrays, "d.to_numpy()").findings[0].index == 10
    assert "  kernel differences, block (0,0,0), thread (9,0,0), x[10]" in capsys.readouterr().out


def test_without_the_flag_nothing_is_checked(arrays: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYGPUKIT_CHECK", raising=False)
    run(arrays, OFF_BY_ONE.replace(" --check", ""))
    run(arrays, LAUNCH + "\nd.to_numpy()")


def test_a_line_of_an_included_cell_is_shown_from_there(arrays: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(
        arrays,
        "%%cuda --name ahead.cuh\n\n__device__ float ahead(const float* from, int i)\n{\n    return from[i + 1];\n}",
    )
    run(
        arrays,
        "%%cuda --check --with ahead.cuh\n"
        "__global__ void differences(const float* x, float* d, int n) { d[threadIdx.x] = ahead(x, threadIdx.x); }",
    )
    capsys.readouterr()
    assert failure(arrays, "differences[1, 10](x, d, 10)\nd.to_numpy()").findings[0].line == 5
    shown = capsys.readouterr().out
    assert shown.startswith("ahead.cuh:5: out of bounds: ")
    assert "  ->   5 |     return from[i + 1];" in shown


IN_A_HEADER = {
    "inner index": ("out of bounds", "__shared__ int t[4][4];\n    return t[1][i + 4];"),
    "division": ("integer division by zero", "\n    return 100 / i;"),
    "alignment": ("misaligned", "\n    return *(const int*)((const char*)x + 2 + i);"),
    "atomic": ("out of bounds", "\n    return atomicAdd((int*)x + 10 + i, 1);"),
}


@pytest.mark.parametrize("case", IN_A_HEADER)
def test_what_the_compilers_own_checks_find_in_an_included_cell_is_shown_there(
    case: str, arrays: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, body = IN_A_HEADER[case]
    run(arrays, f"%%cuda --name wrong.cuh\n__device__ int wrong(const float* x, int i)\n{{\n    {body}\n}}")
    kernel = "__global__ void k(const float* x, float* d)\n{\n\n\n    d[threadIdx.x] = wrong(x, threadIdx.x);\n}"
    run(arrays, f"%%cuda --check --with wrong.cuh\n{kernel}")
    capsys.readouterr()
    found = failure(arrays, "k[1, 2](x, d)\nd.to_numpy()").findings[0]
    assert (found.kind, found.line) == (kind, 5)
    if case == "inner index":
        assert (found.array, found.index) == ("t", 4)
    shown = capsys.readouterr().out
    assert shown.startswith(f"wrong.cuh:5: {kind}: "), shown
    assert f"  ->   5 | {body.splitlines()[1]}" in shown


def test_a_kernel_of_jit_is_shown_too(arrays: Any, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = OFF_BY_ONE.partition("\n")[2]
    run(arrays, f"import pygpukit as gp\ndifferences = gp.jit({kernel!r}, name='file.cu', check=True)")
    capsys.readouterr()
    failure(arrays, LAUNCH + "\nd.to_numpy()")
    shown = capsys.readouterr().out
    assert shown.startswith("file.cu:5: out of bounds: ")
    assert "  ->   5 |         d[i] = x[i + 1] - x[i];" in shown


def test_a_shell_that_is_done_with_keeps_no_checked_kernel(arrays: Any) -> None:
    """Or no array that another test frees gives its memory back."""
    run(arrays, FIXED)
    run(arrays, LAUNCH)
    kernel = weakref.ref(arrays.user_ns["differences"])
    clear(arrays)
    gc.collect()
    assert kernel() is None
