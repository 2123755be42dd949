"""Other libraries measured in the same run, each in an interpreter of its own so that contexts do not meet.

`python -m pygpukit.benchmark.peers FUNCTION [ARGUMENT]` prints one figure as JSON, in the unit of our own row.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from .result import BenchmarkResult, Unavailable

SCALE = """
extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
"""


def peer_figures(
    mine: BenchmarkResult, functions: dict[str, str], argument: str = ""
) -> Iterator[BenchmarkResult | Unavailable]:
    """A row for each peer that runs here, beside our own row; the others come back with their reason."""
    for peer, function in functions.items():
        done = subprocess.run(
            [sys.executable, "-m", __name__, function, argument],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1][-200:]
            yield Unavailable(f"{mine.category}/{mine.name} {peer}", reason)
            continue
        figure = float(json.loads(done.stdout.strip().splitlines()[-1]))
        yield BenchmarkResult(
            mine.name,
            mine.category,
            dict(mine.params),
            value=mine.value,
            unit=mine.unit,
            better=mine.better,
            peer=peer,
            peer_value=figure,
        )


def _loop_ns(call: Callable[[], object], wait: Callable[[], object], calls: int = 500, batches: int = 25) -> float:
    """Median nanoseconds a call over batches; the waits are not counted. The same shape as our own rows."""
    samples = []
    for _ in range(batches + 1):
        begin = time.perf_counter_ns()
        for _ in range(calls):
            call()
        samples.append((time.perf_counter_ns() - begin) / calls)
        wait()
    return median(samples[1:])


def cupy_launch(_: str) -> float:
    import cupy as cp

    kernel = cp.RawKernel(SCALE, "scale")
    x, factor, n = cp.ones(256, "f"), cp.float32(1), cp.int32(256)
    return _loop_ns(lambda: kernel((1,), (256,), (x, factor, n)), cp.cuda.Device().synchronize) * 1e-3


def cuda_core_launch(_: str) -> float:
    import ctypes

    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device: Any = Device()
    device.set_current()
    stream = device.create_stream()
    program = Program(SCALE, code_type="c++", options=ProgramOptions(arch=f"sm_{device.arch}"))
    kernel = program.compile("cubin").get_kernel("scale")
    config = LaunchConfig(grid=1, block=256)
    buffer = device.allocate(1024, stream=stream)
    pointer, factor, n = int(buffer.handle), ctypes.c_float(1), ctypes.c_int(256)
    return _loop_ns(lambda: launch(stream, config, kernel, pointer, factor, n), stream.sync) * 1e-3


def triton_launch(_: str) -> float:
    import importlib.util
    import tempfile
    from pathlib import Path

    import torch

    code = (
        "import triton\nimport triton.language as tl\n@triton.jit\ndef scale(x, factor, n, B: tl.constexpr):\n"
        "    i = tl.program_id(0) * B + tl.arange(0, B)\n    m = i < n\n"
        "    tl.store(x + i, tl.load(x + i, mask=m) * factor, mask=m)\n"
    )
    with tempfile.TemporaryDirectory() as folder:  # triton reads the source of its kernels from a file
        path = Path(folder) / "triton_peer.py"
        path.write_text(code, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("triton_peer", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        x = torch.ones(256, device="cuda")
        return _loop_ns(lambda: module.scale[(1,)](x, 1.0, 256, B=256), torch.cuda.synchronize) * 1e-3


def cupy_empty(_: str) -> float:
    import cupy as cp

    return _loop_ns(lambda: cp.empty(256, "f"), cp.cuda.Device().synchronize, 20_000, 9)


def torch_empty(_: str) -> float:
    import torch

    return _loop_ns(lambda: torch.empty(256, device="cuda"), torch.cuda.synchronize, 20_000, 9)


def cupy_add(nbytes: str) -> float:
    import cupy as cp

    a, b = (cp.random.random(int(nbytes) // 4, dtype=cp.float32) for _ in range(2))
    times = []
    for _ in range(35):
        start, end = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        a + b
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(start, end))
    return 3 * int(nbytes) / median(times[5:]) * 1e-6


def torch_add(nbytes: str) -> float:
    import torch

    a, b = (torch.rand(int(nbytes) // 4, device="cuda") for _ in range(2))
    times = []
    for _ in range(35):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        torch.add(a, b)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return 3 * int(nbytes) / median(times[5:]) * 1e-6


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else "")))
