"""A program's copies and fills on the path of a GPU, over a libcuda with host memory: their times are of events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from mock_cuda import build

PROGRAM = """#include <cstdio>
#include <cuda_runtime.h>
int main()
{
    int host[256] = {}, *memory, value = 0, engines = 0;
    cudaDeviceProp properties;
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMalloc(&memory, sizeof host);
    cudaMemcpy(memory, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemsetAsync(memory, 1, sizeof host, stream);
    cudaMemcpyAsync(host, memory, sizeof host, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    cudaGetDeviceProperties(&properties, 0);
    cudaDeviceGetAttribute(&value, cudaDevAttrConcurrentManagedAccess, 0);
    cudaDeviceGetAttribute(&engines, cudaDevAttrAsyncEngineCount, 0);
    std::printf("%d %d %d %d\\n", host[7], value, engines, properties.asyncEngineCount);
    cudaFree(memory);
    return 0;
}
"""


def test_times_and_properties_are_the_drivers(tmp_path: Path) -> None:
    (tmp_path / "p.cpp").write_text(PROGRAM)
    environment = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
    environment |= {"PYGPUKIT_BACKEND": "cuda", "LD_LIBRARY_PATH": str(build() / "mock")}
    done = subprocess.run(
        [sys.executable, "-m", "pygpukit", "run", "p.cpp", "--trace", "t.json"],
        capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=100, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{0x01010101} 1089 1040 1040\n", "")
    works = [one for one in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if one["ph"] == "X"]
    assert [(one["name"], one["args"]["line"]) for one in works] == [
        ("host to device", 10), ("fill", 11), ("device to host", 12),
    ]  # fmt: skip
    assert all(one["dur"] > 0 for one in works) and works[0]["tid"] != works[1]["tid"] == works[2]["tid"]
