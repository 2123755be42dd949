"""%%cuda --ncu and --nsys: the programs are stand-ins that run the child and print tables of the real form."""

from __future__ import annotations

import os
import random
import string
import sys
from pathlib import Path
from typing import Any

import cell_runner
import pytest
from IPython.core.error import UsageError

from pygpukit.core.errors import GPUError
from pygpukit.worker import nsight

CELL = """%%cuda -i x,n=x.size -o y[n] --block 64 {flag}
extern "C" __global__ void scale(const float* x, float* y, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) printf("x[0] is %g\\n", x[0]);
    if (i < n) y[i] = {body};
}}
"""
NCU_HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description"'
)
NCU_ROW = '"0","11","python3.12","127.0.0.1","scale","1","7","(64, 1, 1)","(16, 1, 1)","0","9.0"'
NCU = f"""==PROF== Connected to process 11 (/usr/bin/python3.12)
==PROF== Profiling "scale" - 0: 0%....50%....100% - 8 passes
==PROF== Disconnected from process 11
{NCU_HEAD}
{NCU_ROW},"GPU Speed Of Light Throughput","DRAM Throughput","%","41.27","","",""
{NCU_ROW},"GPU Speed Of Light Throughput","Elapsed Cycles","cycle","4,221","","",""
{NCU_ROW},"GPU Speed Of Light Throughput","","","","SOLBottleneck","WRN","This kernel grid is too small."
{NCU_ROW},"Occupancy","Theoretical Occupancy","%","100","","",""
"""
NSYS = """Processing [report.sqlite] with [cuda_gpu_kern_sum.py]...
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
75.0,30000,10,3000.0,2990.0,2900,3300,101.5,"scale(const float *, float *, int)"
25.0,10000,1,10000.0,10000.0,10000,10000,0.0,"fill(float *)"
"""


def stand_in(folder: Path, name: str, body: str) -> Path:
    """A program of that name which runs `body` with its arguments in `words` and the child's command in `child`."""
    program = folder / name
    text = (
        f"#!{sys.executable}\nimport subprocess, sys\nfrom pathlib import Path\nwords = sys.argv[1:]\n"
        "at = next((n for n, word in enumerate(words) if word == '-m'), 1) - 1\n"
        "options, child = words[:at], words[at:]\n"
        "def option(name):\n    return options[options.index(name) + 1]\n" + body
    )
    program.write_text(text)
    program.chmod(0o755)
    return program


RUN_CHILD = "done = subprocess.run(child)\nif done.returncode:\n    sys.exit(done.returncode)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.fixture
def cells(shell: Any) -> Any:
    cell_runner.run(shell, "import numpy as np, pygpukit as gp\nx = gp.from_numpy(np.arange(1000, dtype=np.float32))")
    return shell


def test_ncu_is_asked_for_the_kernel_and_its_table_shown(cells: Any, folder: Path) -> None:
    (folder / "table").write_text(NCU)
    body = (
        "assert options[:3] == ['--csv', '--page', 'details'] and option('--kernel-name') == 'scale', options\n"
        "assert option('--launch-count') == '1'\n" + RUN_CHILD + f"Path(option('--log-file')).write_text("
        f"Path({str(folder / 'table')!r}).read_text())\n"
    )
    stand_in(folder, "ncu", body)
    result = cell_runner.run(cells, CELL.format(flag="--ncu", body="2 * x[i]"))
    (report,) = result.profiled
    assert report.tool == "ncu" and report.kernel == "scale"
    assert report.metrics == (
        nsight.Metric("GPU Speed Of Light Throughput", "DRAM Throughput", "%", "41.27"),
        nsight.Metric("GPU Speed Of Light Throughput", "Elapsed Cycles", "cycle", "4,221"),
        nsight.Metric("Occupancy", "Theoretical Occupancy", "%", "100"),
    )
    assert "ncu: 3 figures of scale" in repr(result)
    assert "41.27" in result._repr_html_() and "Elapsed Cycles" in str(report)
    assert cell_runner.run(cells, "float(y.sum().item())") == 999_000  # the notebook's own launch was made, too


def test_nsys_launches_more_often_and_its_sums_are_shown(cells: Any, folder: Path) -> None:
    (folder / "table").write_text(NSYS)
    body = (
        "if words[0] == 'profile':\n"
        "    done = subprocess.run(child, capture_output=True, text=True)\n"
        "    assert done.stdout.count('x[0] is 0') == 10, done\n"
        "    Path(option('--output') + '.nsys-rep').write_text('report')\n"
        "else:\n"
        "    assert Path(words[-1]).read_text() == 'report' and words[0] == 'stats'\n"
        f"    print(Path({str(folder / 'table')!r}).read_text())\n"
    )
    stand_in(folder, "nsys", body)
    (report,) = cell_runner.run(cells, CELL.format(flag="--nsys", body="x[i]")).profiled
    figures = {one.name: (one.value, one.unit) for one in report.metrics}
    assert figures["Instances"] == ("10", "") and figures["Med"] == ("2990.0", "ns")


def test_a_program_that_is_missing_is_named_before_anything_runs(cells: Any, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(nsight, "_FOLDERS", (str(tmp_path),))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    error = cell_runner.failure(cells, "--ncu -i x,n=x.size -o fresh[n]", CELL.partition("\n")[2].format(body="x[i]"))
    assert isinstance(error, UsageError) and "no program ncu on PATH" in str(error) and "install" in str(error)
    assert "fresh" not in cells.user_ns


def test_cuda_home_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    program = stand_in(tmp_path / "bin", "ncu", "")
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert nsight.find("ncu") == str(program)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("print('==ERROR== ERR_NVGPUCTRPERM - no permission')\nsys.exit(1)", "NVreg_RestrictProfilingToAdminUsers"),
        ("print('==ERROR== out of luck')\nsys.exit(3)", "ended with 3: ==ERROR== out of luck"),
        ("print('==WARNING== No kernels were profiled.')", "saw no launch of scale"),
    ],
)
def test_what_the_program_says_is_told(cells: Any, folder: Path, body: str, words: str) -> None:
    stand_in(folder, "ncu", body)
    error = cell_runner.error_of(cells, CELL.format(flag="--ncu", body="x[i]"))
    assert isinstance(error, GPUError) and words in str(error)


def test_a_launch_that_fails_in_the_child_is_told(cells: Any, folder: Path) -> None:
    stand_in(folder, "ncu", RUN_CHILD)
    error = cell_runner.error_of(cells, CELL.format(flag="--ncu", body="x[i] / *(volatile float*)8"))
    assert isinstance(error, GPUError) and "kernel scale" in str(error)


@pytest.mark.parametrize("options", ["--ncu", "--nsys --no-launch -o y[4]", "--ncu -o y[4] --sweep block=32,64"])
def test_options_that_do_not_fit_are_refused(cells: Any, options: str) -> None:
    body = "__global__ void k(float* y) { y[threadIdx.x] = 1; }"
    assert isinstance(cell_runner.failure(cells, options, body), UsageError)


def test_half_precision_and_other_arguments_travel(cells: Any, folder: Path) -> None:
    (folder / "table").write_text(NCU.replace('"scale"', '"k"'))
    stand_in(
        folder,
        "ncu",
        RUN_CHILD + f"Path(option('--log-file')).write_text(Path({str(folder / 'table')!r}).read_text())\n",
    )
    cell_runner.run(cells, "h = gp.ones(8, dtype='float16'); part = gp.arange(20, dtype='int32')[5:13]")
    body = (
        "#include <cuda_fp16.h>\n__global__ void k(const __half* h, const int* part, float* out, double a, int n)\n"
        "{\n    int i = threadIdx.x;\n    if (i >= n) return;\n"
        "    assert(__half2float(h[i]) == 1.0f && part[i] == 5 + i && a == 2.5);\n    out[i] = 1;\n}"
    )
    result = cell_runner.cuda(cells, "--ncu -i h,part,a=2.5,n=8 -o out[n] --grid 1", body)
    assert len(result.profiled[0].metrics) == 3


def test_damaged_tables_never_break_the_reader() -> None:
    chance = random.Random(7)
    for text in (NCU, NSYS):
        for _ in range(300):
            characters = list(text)
            for _ in range(chance.randrange(1, 30)):
                at = chance.randrange(len(characters))
                characters[at : at + chance.randrange(5)] = chance.choice([*string.printable, "\x00", ""])
            damaged = "".join(characters)
            for metric in (*nsight.ncu_metrics(damaged), *nsight.nsys_metrics(damaged, "scale")):
                assert metric.name and metric.value
