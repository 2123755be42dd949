"""%%cuda and %gpu in a shell: bound kernels, errors on the user's lines, cached re-runs, a clean unload."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from cell_runner import error_of as failure
from cell_runner import let_go, run
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import pygpukit as gp
from pygpukit import _core
from pygpukit.core.errors import CompileError
from pygpukit.jit import JITKernel

SCALE = """%%cuda
extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
"""
BROKEN = """%%cuda
__global__ void k(float* x, int n) {
    int i = threadIdx.x;
    x[i] = missing;
}
"""


def records(since: int, kind: int) -> list[tuple[int, ...]]:
    """(name, a, b, c, cell) of the records of a kind."""
    data, _, _ = _core.ring_read(since)
    every = [data[at : at + 64] for at in range(0, len(data), 64)]
    return [struct.unpack_from("<IQQQI", one, 28) for one in every if struct.unpack_from("<H", one, 16) == (kind,)]


def test_a_cell_binds_its_kernels(shell: Any) -> None:
    run(shell, SCALE)
    shell.user_ns["x"] = x = gp.from_numpy(np.arange(100, dtype=np.float32))
    run(shell, "scale(x, factor=0.5, n=x.size)")
    np.testing.assert_array_equal(x.to_numpy(), np.arange(100, dtype=np.float32) * np.float32(0.5))
    run(shell, "scale[1, 128](x, 4.0, 50)")
    assert float(x.to_numpy()[49]) == 98.0


def test_the_text_of_the_result_is_the_signatures(shell: Any) -> None:
    texts = {repr(run(shell, SCALE)) for _ in range(3)}
    assert texts == {"scale(float* x, float factor, int n)"}
    html = run(shell, SCALE)._repr_html_()
    assert "scale(float* x, float factor, int n)" in html
    assert "<script" not in html and "0x" not in html
    assert "from the cache in memory" in run(shell, SCALE)._repr_html_()


def test_the_html_escapes_what_the_cell_says(shell: Any) -> None:
    html = run(
        shell,
        "%%cuda --instantiate 'k<float>'\ntemplate <class T> __global__ void k(Box<T>* x) {}".replace("Box<T>", "T"),
    )
    assert "k_float(float* x)" in html._repr_html_()
    html = run(shell, "%%cuda\ntemplate <class T> struct B { T a; };\n__global__ void k(B<int>* x) {}")._repr_html_()
    assert "B&lt;int&gt;* x" in html


def test_an_unchanged_cell_compiles_nothing_and_starts_afresh(shell: Any) -> None:
    cell = "%%cuda\n__device__ int total;\n__global__ void count(int* out) { out[0] = ++total; }"
    out = shell.user_ns["out"] = gp.zeros(1, dtype="int32")
    run(shell, cell)
    since = _core.ring_head()
    for _ in range(2):
        run(shell, cell)
        run(shell, "count[1, 1](out)")
        assert int(out.to_numpy()[0]) == 1  # globals of a run again cell start at their initial value
    assert [source for _, _, source, _, _ in records(since, 48)] == [1, 1]


def test_a_compile_error_fails_the_cell_on_the_users_line(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    error = failure(shell, BROKEN)
    assert isinstance(error, CompileError)
    first = next(one for one in error.diagnostics if one.severity == "error")
    assert (first.file, first.line, first.column) == ("cell", 4, BROKEN.splitlines()[3].index("missing") + 1)
    shown = capsys.readouterr().out
    lines = shown.rstrip().splitlines()
    assert len(lines) <= 15
    assert lines[0].startswith("cell:4:12: error:")
    place = next(at for at, line in enumerate(lines) if line.strip().startswith("^"))
    assert lines[place - 1][lines[place].index("^") :].startswith("missing")
    assert "pygpukit" not in shown and "Traceback" not in shown


def test_blank_lines_above_the_magic_count(shell: Any) -> None:
    error = failure(shell, "\n\n" + BROKEN)
    assert isinstance(error, CompileError)
    assert error.diagnostics[0].line == 6


def test_a_failed_cell_leaves_the_earlier_kernel(shell: Any) -> None:
    run(shell, SCALE)
    before = shell.user_ns["scale"]
    failure(shell, BROKEN.replace("void k", "void scale"))
    assert shell.user_ns["scale"] is before


def test_options(shell: Any) -> None:
    cell = "%%cuda -D VALUE=42 -DOTHER --name answer\n__global__ void k(int* out) { out[0] = VALUE + OTHER; }"
    out = shell.user_ns["out"] = gp.zeros(1, dtype="int32")
    since = _core.ring_head()
    run(shell, cell)
    run(shell, "k[1, 1](out)")
    assert int(out.to_numpy()[0]) == 43
    assert [_core.name(name) for name, *_ in records(since, 48)] == ["answer"]


def test_templates_are_named_and_instantiated(shell: Any) -> None:
    body = "\nnamespace a { template <class T, int N> __global__ void fill(T* x) { x[threadIdx.x] = N; } }"
    assert repr(run(shell, "%%cuda" + body)) == "a::fill: a template, bind it with --instantiate 'a::fill<...>'"
    result = run(shell, "%%cuda --instantiate 'a::fill<int, 7>' --instantiate 'a::fill<double, 2>'" + body)
    assert repr(result) == "fill_int_7(int* x)\nfill_double_2(double* x)"
    out = shell.user_ns["out"] = gp.zeros(4, dtype="int32")
    run(shell, "fill_int_7(out[:]) if False else fill_int_7[1, 4](out)")
    np.testing.assert_array_equal(out.to_numpy(), np.full(4, 7))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--unknown", "--unknown"),
        ("stray", "stray"),
        ("-D 3x=1", "'3x' is not a macro name"),
        ("--name 'open", "No closing quotation"),
        ("--instantiate 'nothing<int>'", "no template 'nothing'"),
    ],
)
def test_bad_options_are_usage_errors(shell: Any, line: str, message: str) -> None:
    error = failure(shell, SCALE.replace("%%cuda", f"%%cuda {line}"))
    assert isinstance(error, UsageError)
    assert message in str(error)
    assert "scale" not in shell.user_ns


def test_no_launch_compiles_without_loading(shell: Any) -> None:
    result = run(shell, SCALE.replace("%%cuda", "%%cuda --no-launch"))
    arch = result.unit.image.arch
    assert repr(result) == f"scale(float* x, float factor, int n)\ncompiled for {arch}, not loaded"
    assert shell.user_ns["scale"].registers is None


def test_dollar_and_braces_reach_the_compiler_as_they_are(shell: Any) -> None:
    shell.user_ns["n"] = "wrong"
    run(shell, "%%cuda\n// {n} $n {{n}}\n__global__ void k(int* out) { int a[2] = {1, 2}; out[0] = a[1]; }")
    assert isinstance(shell.user_ns["k"], JITKernel)


def test_gpu_prints_one_line(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "%gpu")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"{gp.backend()}:0 ")
    assert "pool" in lines[0] and "launch" in lines[0]
    assert isinstance(failure(shell, "%gpu now"), UsageError)


def test_cells_are_in_the_ledger(shell: Any) -> None:
    since = _core.ring_head()
    result = shell.run_cell("a = 1", store_history=True, cell_id="the-cell")
    shell.run_cell("b = 1 / 0", store_history=True)
    begins, ends = records(since, 64), records(since, 65)
    number = result.execution_count
    assert [_core.name(cell) for *_, cell in begins] == ["the-cell", f"In[{number + 1}]"]
    assert [(a, cell) for _, a, _, _, cell in begins] == [(a, cell) for _, a, _, _, cell in ends]
    assert [a for _, a, _, _, _ in ends] == [number, number + 1]
    assert all(duration > 0 for _, _, duration, _, _ in ends)


def test_cells_inside_cells_nest(shell: Any) -> None:
    since = _core.ring_head()
    shell.run_cell("get_ipython().run_cell('c = 1', cell_id='inner')", store_history=True, cell_id="outer")
    assert [_core.name(cell) for *_, cell in records(since, 64)] == ["outer", "inner"]
    assert [_core.name(cell) for *_, cell in records(since, 65)] == ["inner", "outer"]


def test_an_allocation_carries_cell_and_line(shell: Any) -> None:
    shell.user_ns["gp"] = gp
    shell.run_cell("a = 1\nz = gp.zeros(12345)\n", store_history=True, cell_id="allocating")
    block = shell.user_ns["z"].block
    (row,) = [row for row in _core.pool_blocks(0) if row[0] == block]
    assert _core.name(row[5]) == "allocating"
    assert row[6] == 2


def test_arrays_are_named_after_their_variables(shell: Any) -> None:
    run(
        shell,
        "weights = __import__('pygpukit').empty(1000)\nalias = weights\n_hidden = __import__('pygpukit').empty(1000)",
    )
    run(shell, "later = weights")
    assert shell.user_ns["weights"].name == "weights", "the first variable's name stays"
    assert shell.user_ns["_hidden"].name == ""
    assert "weights" in {_core.name(block[4]) for block in _core.pool_blocks()}


@pytest.mark.skipif("gp.backend() == 'cuda'", reason="the driver writes to the process's own stdout")
def test_what_a_kernel_prints_appears_in_its_cell(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.user_ns["gp"] = gp
    run(shell, '%%cuda\n__global__ void say(int n) { printf("n is %d\\n", n); }')
    capsys.readouterr()
    run(shell, "say[1, 1](42); gp.synchronize()")
    assert capsys.readouterr().out == "n is 42\n"
    run(shell, "1 + 1;")
    assert capsys.readouterr().out == ""


def snapshot(shell: Any) -> tuple[Any, ...]:
    hooks = {name: list(found) for name, found in shell.events.callbacks.items()}
    magics = {kind: set(found) for kind, found in shell.magics_manager.magics.items()}
    return hooks, magics, set(shell.magics_manager.registry) - {"ExtensionMagics"}  # %load_ext itself


def test_loading_and_unloading_leave_no_trace(capsys: pytest.CaptureFixture[str]) -> None:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    try:
        before = snapshot(shell)
        shell.run_line_magic("load_ext", "pygpukit")
        loaded = snapshot(shell)
        shell.run_line_magic("reload_ext", "pygpukit")
        shell.run_line_magic("reload_ext", "pygpukit")
        after = snapshot(shell)
        assert {name: len(found) for name, found in after[0].items()} == {
            name: len(found) for name, found in loaded[0].items()
        }
        assert len(after[0]["pre_run_cell"]) == len(before[0]["pre_run_cell"]) + 1
        shell.run_line_magic("unload_ext", "pygpukit")
        assert snapshot(shell) == before
        assert capsys.readouterr().out == ""
    finally:
        let_go(shell)
        InteractiveShell.clear_instance()


def test_a_magic_of_the_same_name_comes_back(shell: Any) -> None:
    shell.run_line_magic("unload_ext", "pygpukit")
    shell.register_magic_function(lambda line, cell: "theirs", "cell", "cuda")
    shell.run_line_magic("load_ext", "pygpukit")
    assert isinstance(run(shell, SCALE).kernels["scale"], JITKernel)
    shell.run_line_magic("unload_ext", "pygpukit")
    assert run(shell, "%%cuda\nanything") == "theirs"
    shell.magics_manager.magics["cell"].pop("cuda")
    shell.run_line_magic("load_ext", "pygpukit")
