"""%%gpu_profile: the cell runs as ever, and its launches are shown with cell and line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pygpukit.profiling import Profile, profile

KERNEL = """%%cuda
extern "C" __global__ void twice(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
"""


def test_a_cell_is_profiled(shell: Any, tmp_path: Path) -> None:
    assert shell.run_cell("import pygpukit as gp\nx = gp.ones(100)", store_history=True).success
    assert shell.run_cell(KERNEL, store_history=True).success
    file = tmp_path / "trace.json"
    done = shell.run_cell(f"%%gpu_profile {file}\ny = 1\ntwice(x, 100)\ntwice(x, 100)", store_history=True)
    assert isinstance(done.result, Profile)
    assert [work.name for work in done.result.works] == ["twice", "twice"]
    assert shell.user_ns["y"] == 1 and float(shell.user_ns["x"].to_numpy()[0]) == 4
    assert "twice" in done.result._repr_html_() and "twice" in str(done.result)
    assert len([event for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]) == 2


def test_a_cuda_cell_inside(shell: Any) -> None:
    assert shell.run_cell("import pygpukit as gp\nx = gp.ones(100)", store_history=True).success
    done = shell.run_cell("%%gpu_profile\n" + KERNEL.replace("%%cuda", "%%cuda -i x,n=100 -o x"), store_history=True)
    assert isinstance(done.result, Profile)
    assert "twice" in [work.name for work in done.result.works]


def test_an_error_is_the_cells_own(shell: Any) -> None:
    done = shell.run_cell("%%gpu_profile\n1 / 0", store_history=True)
    assert done.result is None


def test_other_libraries_are_asked_for_by_an_option(
    shell: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requested: list[bool] = []

    def profiled(*, cupti: bool) -> Profile:
        requested.append(cupti)
        return profile()

    monkeypatch.setattr("pygpukit.jupyter.magics.profile", profiled)
    file = tmp_path / "a name with blanks.json"
    for line in ("", "--cupti", f"--cupti {file}"):
        assert isinstance(shell.run_cell(f"%%gpu_profile {line}\npass").result, Profile)
    assert requested == [False, True, True] and file.exists()
    assert "no option --all" in str(shell.run_cell("%%gpu_profile --all\nx = 1").error_in_exec)


def test_without_cupti_python_the_cell_does_not_run(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupti", None)
    monkeypatch.delitem(sys.modules, "cupti.cupti", raising=False)
    done = shell.run_cell("%%gpu_profile --cupti\nran = 1")
    assert isinstance(done.error_in_exec, ModuleNotFoundError) and "ran" not in shell.user_ns
