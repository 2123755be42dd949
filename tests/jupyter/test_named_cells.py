"""Cells as headers of other cells: --name, --with and #include, their errors, their changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cell_runner import compiles, cuda, failure
from IPython.core.error import UsageError

import pygpukit as gp
from pygpukit import _core
from pygpukit.jit.source.lines import Lines
from pygpukit.jit.toolchain import nvrtc_candidates
from pygpukit.jupyter.errors import CudaCompileError

NEEDS_NVRTC = pytest.mark.skipif(
    not any(Path(path).is_file() for path in nvrtc_candidates()), reason="NVRTC is not installed (extra cuda13)"
)
TOOLS = "// tools\ntemplate <class T> __device__ T twice(T x) {\n    return 2 * x;\n}\nusing real = float;\n"
USER = "__global__ void k(real* x, real by) {\n    x[0] = twice(x[0]) + by;\n}\n"


@pytest.fixture
def x(shell: Any) -> Any:
    shell.user_ns["x"] = gp.ones(1)
    return shell.user_ns["x"]


def test_a_named_cell_is_included(shell: Any, x: Any) -> None:
    assert repr(cuda(shell, "--name tools.cuh", TOOLS)) == "other cells include this one: --with tools.cuh"
    result = cuda(shell, "--with tools.cuh -o x -i 0.5 --grid 1 --block 1", USER)
    assert repr(result).startswith("k(real* x, real by)")
    assert float(x) == 2.5
    cuda(shell, "-o x -i 0.5 --grid 1 --block 1", '#include "tools.cuh"\n' + USER)
    assert float(x) == 5.5


def test_only_its_own_kernels_are_bound(shell: Any) -> None:
    cuda(shell, "--name tools.cuh", TOOLS + "__global__ void helper(int* x) {}")
    first = shell.user_ns["helper"]
    assert list(cuda(shell, "--with tools.cuh", USER).kernels) == ["k"]
    assert shell.user_ns["helper"] is first


def test_headers_include_headers_once(shell: Any, x: Any) -> None:
    cuda(shell, "--name tools.cuh", TOOLS)
    cuda(shell, "--name more.cuh --with tools.cuh", "__device__ real four(real x) { return twice(twice(x)); }")
    body = USER.replace("twice(x[0])", "four(twice(x[0]))")
    cuda(shell, "--with more.cuh,tools.cuh -o x -i 0 --grid 1 --block 1", body)
    assert float(x) == 8


def test_a_changed_header_recompiles_what_includes_it(shell: Any, x: Any) -> None:
    line = "--with tools.cuh -o x -i 0 --grid 1 --block 1"
    cuda(shell, "--name tools.cuh", TOOLS)
    cuda(shell, line, USER)
    since = _core.ring_head()
    cuda(shell, "--name tools.cuh", TOOLS)
    cuda(shell, line, USER)
    assert compiles(since) == 0
    cuda(shell, "--name tools.cuh", TOOLS.replace("2 *", "10 *"))
    cuda(shell, line, USER)
    assert compiles(since) == 2
    assert float(x) == 40


@pytest.mark.parametrize("arch", ["sim", pytest.param("sm_90a", marks=NEEDS_NVRTC)])
def test_an_error_in_a_header_names_the_header_and_its_line(shell: Any, capsys: Any, arch: str) -> None:
    cuda(shell, f"--name tools.cuh --no-launch --arch {arch}", TOOLS.replace("2 * x", "2 * x.value"))
    error = failure(shell, f"--with tools.cuh --no-launch --arch {arch}", USER)
    assert isinstance(error, CudaCompileError)
    first = next(one for one in error.diagnostics if one.severity == "error")
    assert (first.file, first.line) == ("tools.cuh", 4)
    shown = capsys.readouterr().out.splitlines()
    place = next(at for at, line in enumerate(shown) if line.startswith("tools.cuh:4:"))
    assert shown[place + 1].strip() == "return 2 * x.value;"


@pytest.mark.parametrize("arch", ["sim", pytest.param("sm_90a", marks=NEEDS_NVRTC)])
def test_an_error_after_an_include_keeps_its_line(shell: Any, arch: str) -> None:
    cuda(shell, f"--name tools.cuh --no-launch --arch {arch}", TOOLS)
    body = '#include "tools.cuh"\n' + USER.replace("+ by", "+ missing")
    for line, told in (("", 4), ("--with tools.cuh", 4)):
        error = failure(shell, f"{line} --no-launch --arch {arch}", body)
        assert isinstance(error, CudaCompileError)
        assert (error.diagnostics[0].file, error.diagnostics[0].line) == ("cell", told)


def test_what_cannot_be_simulated_is_told_at_its_place(shell: Any) -> None:
    cuda(shell, "--name tools.cuh", TOOLS)
    body = USER.replace("x[0] = ", 'extern __shared__ int s[]; asm("nop;");\n    x[0] = ')
    (one,) = failure(shell, "--with tools.cuh", body).diagnostics  # type: ignore[attr-defined]
    assert (one.file, one.line, one.column) == ("cell", 3, 37)  # of the instruction
    body = USER.replace("x[0] = ", "extern __shared__ int s[]; missing();\n    x[0] = ")
    error = failure(shell, "--with tools.cuh", body)
    assert (error.diagnostics[0].line, error.diagnostics[0].column) == (3, 32)  # type: ignore[attr-defined]


def test_a_macro_that_breaks_a_header_is_told_where_it_is_used(shell: Any) -> None:
    cuda(shell, "--name tools.cuh", "template <int TILE> __device__ int side() { return TILE; }")
    error = failure(shell, "--with tools.cuh -D TILE=8", "__global__ void k(int* x) { x[0] = side<TILE>(); }")
    first = error.diagnostics[0]  # type: ignore[attr-defined]
    assert (first.severity, first.file, first.line, first.column) == ("error", "tools.cuh", 2, 15)


def test_a_cell_does_not_include_itself(shell: Any) -> None:
    assert isinstance(failure(shell, "--name a.cuh --with a.cuh", TOOLS), UsageError)


def test_lines_follow_the_directives() -> None:
    lines = Lines('a\n#line 10 "h"\nb\nc\n# line 3\nd\n#line 7 "q\\"x"\ne', "cell")
    assert [lines.origin(at) for at in (1, 3, 4, 6, 8)] == [("cell", 1), ("h", 10), ("h", 11), ("h", 3), ('q"x', 7)]
    assert lines.files == {"cell", "h", 'q"x'}
