"""NVRTC on the device: errors at the right place, the disk cache across processes, a damaged entry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pygpukit as gp

SOURCE = """
extern "C" __global__ void twice(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
}
"""

CHILD = """
import json, sys
import pygpukit as gp
from pygpukit import _core
x = gp.ones(100)
gp.jit(sys.argv[1], func="twice")(x, n=100)
data, _, _ = _core.ring_read(1)
kinds = [int.from_bytes(data[i + 40 : i + 48], "little") for i in range(0, len(data), 64)
         if int.from_bytes(data[i + 16 : i + 18], "little") == 48]
print(json.dumps({"sum": float(x.to_numpy().sum()), "from": kinds}))
"""
COMPILED, MEMORY, DISK = 0, 1, 2


def child(cache: Path) -> dict[str, object]:
    environment = {**os.environ, "PYGPUKIT_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", CHILD, SOURCE]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, object] = json.loads(done.stdout)
    return result


def test_a_second_process_finds_the_image_and_a_damaged_one_is_compiled_again(tmp_path: Path) -> None:
    assert child(tmp_path) == {"sum": 200.0, "from": [COMPILED]}
    assert child(tmp_path) == {"sum": 200.0, "from": [DISK]}
    files = [p for p in tmp_path.rglob("*") if p.is_file() and p.stat().st_size > 500]
    assert files
    for path in files:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0x10
        path.write_bytes(content)
    assert child(tmp_path) == {"sum": 200.0, "from": [COMPILED]}
    assert child(tmp_path) == {"sum": 200.0, "from": [DISK]}


def test_two_processes_compile_the_same_kernel_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "PYGPUKIT_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", CHILD, SOURCE]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(4)]
    answers = [json.loads(racer.communicate(timeout=120)[0]) for racer in racers]
    assert [a["sum"] for a in answers] == [200.0] * 4


def test_a_compile_error_names_line_and_column() -> None:
    with pytest.raises(gp.core.errors.CompileError) as caught:
        gp.jit(SOURCE.replace("x[i] *=", "y[i] *="), func="twice")
    first = caught.value.diagnostics[0]
    assert (first.line, first.severity) == (4, "error")
    assert '"y"' in first.message


def test_ptx_and_resources_can_be_read() -> None:
    kernel = gp.jit(SOURCE, func="twice")
    assert kernel.ptx is not None and ".entry twice" in kernel.ptx
    assert kernel.registers is not None and kernel.registers > 0
