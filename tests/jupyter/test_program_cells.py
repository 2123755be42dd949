"""%%cuda cells that are whole programs: what they show, what they refuse, and that the notebook outlives them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from cell_runner import cuda, failure
from IPython.core.error import UsageError

from pygpukit.core.errors import CompileError
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jupyter.card_program import ProgramResult
from pygpukit.jupyter.errors import CudaCompileError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "programs.md"
HEAD = "#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>\n"


def program(body: str) -> str:
    return (
        f"{HEAD}__global__ void k(int *x) {{ x[threadIdx.x] += 1; }}\nint main(int argc, char **argv)\n{{\n{body}\n}}\n"
    )


def test_the_pages_cell_runs(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (cell,) = re.findall(r"^```cuda\n%%cuda\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    result = cuda(shell, "", cell)
    assert capsys.readouterr().out.startswith("2 1998\n")
    assert repr(result).splitlines()[:2] == ["exit code 0", "add: 1 launch"]
    assert "device to host: 1 copy, 3.91 KiB" in repr(result)


def test_its_card_has_the_exit_code_and_the_times(shell: Any) -> None:
    result = cuda(
        shell, "--args '3 \"a b\"'", program("  return argc * 10 + std::atoi(argv[1]) + (argv[2][1] == ' ');")
    )
    assert isinstance(result, ProgramResult) and result.result.exit_code == 34
    bundle = result._repr_mimebundle_()
    assert bundle["text/plain"] == "exit code 34"
    assert '<span class="gk-bad">exit code 34</span>' in bundle["text/html"] and "compiled in" in bundle["text/html"]


def test_its_card_has_the_kernels_times_and_when_they_ran(shell: Any) -> None:
    body = "  int *x;\n  cudaMalloc(&x, 128);\n  k<<<2, 16>>>(x);\n  cudaDeviceSynchronize();\n  cudaFree(x);"
    result = cuda(shell, "", program(body))
    (kernel,) = result.result.kernels
    assert (kernel.launches, kernel.timed, kernel.nbytes, kernel.operations) == (1, 1, 128, None) and kernel.ns > 0
    assert 0 < kernel.occupancy <= 1
    (work,) = result.result.works
    assert (work.name, work.kind, work.blocks, work.threads, work.line) == ("k", "kernel", 2, 16, 10)
    card = result._repr_mimebundle_()["text/html"]
    assert "timeline of 1 works" in card and "arguments point to" in card
    counted = cuda(shell, "--count", program(body)).result.kernels[0]
    assert (counted.nbytes, counted.operations) == (32 * 8, 0)


def test_output_appears_while_it_runs(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr("pygpukit.jupyter.program_cell._show", seen.append)
    body = '  std::puts("first"); std::fflush(stdout);\n  for (;;) pause();'
    result = cuda(shell, "--timeout 3", program(body))
    assert "".join(seen) == "first\n"
    assert repr(result) == "ended after 3 s, the time that it was given"


def test_a_crash_is_told_with_its_line_and_the_notebook_goes_on(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    result = cuda(shell, "", program("  int *x;\n  cudaMalloc(&x, 64);\n  x[3] = 1;"))
    assert result.result.ending == "ended by SIGSEGV"
    (finding,) = result.result.findings
    assert (finding.file, finding.line) == ("cell", 10) and "12 bytes into the 64 bytes" in finding.message
    assert cuda(shell, "", program("  return 0;")).result.exit_code == 0


def test_a_long_output_is_cut_and_the_program_goes_on(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    body = '  for (int i = 0; i < 300000; ++i) std::puts("0123456789abcde");\n  return 5;'
    result = cuda(shell, "", program(body))
    out = capsys.readouterr().out.partition("Out[")[0]
    assert result.result.exit_code == 5
    assert len(out) < 1.1 * 2**20 and out.endswith("[more than 1 MiB of output: the rest is not shown]\n")


def test_compile_errors_have_the_cells_lines(shell: Any) -> None:
    error = failure(shell, "", program("  cudaMaloc(0, 4);"))
    assert isinstance(error, CudaCompileError)
    assert error.diagnostics[0].line == 8 and "cudaMaloc" in error.diagnostics[0].message
    error = failure(shell, "", "__global__ void k(int *x) { x[0] = y; }\nint main() { k<<<1, 1>>>(nullptr); }\n")
    assert isinstance(error, CudaCompileError) and error.diagnostics[0].line == 2


@pytest.mark.parametrize("options", ["--grid 1", "--no-launch", "--isolated", "--name p.cuh"])
def test_options_of_kernels_are_refused(shell: Any, options: str) -> None:
    error = failure(shell, options, program("  return 0;"))
    assert isinstance(error, UsageError) and "the cell is a program, as it has main()" in str(error)


@pytest.mark.parametrize("options", ["--args 3", "--timeout 4"])
def test_options_of_programs_need_one(shell: Any, options: str) -> None:
    error = failure(shell, options, "__global__ void k(int *x) { x[0] = 1; }\n")
    assert isinstance(error, UsageError) and "the cell has no main()" in str(error)


def test_program_says_so_where_a_macro_makes_main(shell: Any) -> None:
    cell = "#define START int main()\n__global__ void k() { }\nSTART { k<<<1, 1>>>(); return 6; }\n"
    assert cuda(shell, "--program", cell).result.exit_code == 6


@pytest.mark.parametrize("head", ["int main()", "int main(int argc, char** argv)", "void\nmain(void)"])
def test_where_kernels_are_wanted_a_program_is_told_what_to_do(head: str) -> None:
    text = f"__global__ void k() {{}}\n{head} {{ k<<<1, 1>>>(); }}\n"
    with pytest.raises(CompileError) as caught:
        compile_source(text)
    (told,) = caught.value.diagnostics
    assert "main() is no device code" in told.message and "pygpukit run" in told.message
    line = 2 + head.count("\n")
    assert (told.line, told.column) == (line, head.splitlines()[-1].index("main") + 1)
