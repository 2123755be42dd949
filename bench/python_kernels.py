"""Suite `python_kernels`: launches of kernels in Triton and cuTile beside a bound kernel with the same parameters.

On the simulated device, which interprets them, they are compiled for SM 9.0 and launched over a libcuda with host
memory instead: what is compared is Python's share of a launch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from shutil import which
from typing import Any

from pygpukit.benchmark.measure import host_ns, simulated
from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "python_kernels"
ROOT = Path(__file__).parents[1]
BATCH = 200  # launches between two waits

Launches = tuple[Callable[[], object], Callable[[], object], Callable[[], object]]


def _triton() -> Launches:
    """A launch of a kernel in Triton, one over a grid that is a function, and a bound kernel's."""
    import pygpukit as gp
    from pygpukit.triton import kernels

    x, weight = gp.ones((1, 64)), gp.ones(64)
    kernel: Any = kernels._kernel("rmsnorm")
    options = {"BLOCK": 64, "num_warps": 1}
    kernel[1](x, weight, x, 64, 1e-5, **options)
    ((built, compiled),) = kernel._kernels.values()
    bound = compiled.bind((1, 1, 1), (32, 1, 1), built.shared_bytes)
    scratch = (None,) * built.scratch
    return (
        lambda: kernel[1](x, weight, x, 64, 1e-5, **options),
        lambda: kernel[lambda one: (one["n"] // 64,)](x, weight, x, 64, 1e-5, **options),
        lambda: bound(x, weight, x, 64, 1e-5, *scratch),
    )


def _cutile() -> Launches:
    """The same of a kernel in cuTile."""
    import pygpukit as gp

    sys.path.insert(0, str(ROOT / "tests" / "cutile"))
    x, y, z = gp.ones(64), gp.ones(64), gp.ones(64)
    kernel: Any = import_module("cutile_samples").add
    kernel[4](x, y, z, 16)
    (compiled,) = kernel._kernels.values()
    bound = compiled.bind((4, 1, 1), (1, 1, 1))
    return (
        lambda: kernel[4](x, y, z, 16),
        lambda: kernel[lambda one: (one["x"].size // 16,)](x, y, z, 16),
        lambda: bound(x, 64, 1, y, 64, 1, z, 64, 1),
    )


def measured(rounds: int) -> dict[str, list[list[float]] | str]:
    """Nanoseconds of a launch by language and round: by number of blocks, by a function of the arguments, bound."""
    from pygpukit._core import native

    out: dict[str, list[list[float]] | str] = {}
    for name, setup in (("Triton", _triton), ("cuTile", _cutile)):
        try:
            calls = setup()
        except ModuleNotFoundError as error:
            out[name] = str(error)
            continue
        out[name] = [  # in turn, so that all meet the same clocks
            [min(host_ns(call, BATCH, 3, native.synchronize)) for call in calls] for _ in range(rounds)
        ]
    return out


def _over_host_memory(rounds: int) -> dict[str, list[list[float]] | str]:
    """measured() in a process whose libcuda has host memory."""
    sys.path.insert(0, str(ROOT / "tests" / "support" / "mock_libcuda"))
    mock_cuda = import_module("mock_cuda")
    settings = {"LD_LIBRARY_PATH": str(mock_cuda.build() / "mock"), "TRITON_INTERPRET": "0"}
    base = {key: value for key, value in os.environ.items() if key not in ("CUDA_VISIBLE_DEVICES", "PYGPUKIT_BACKEND")}
    command = [sys.executable, "-m", __name__, str(rounds)]
    done = subprocess.run(command, env=base | settings, cwd=ROOT, check=True, capture_output=True, text=True)
    out: dict[str, list[list[float]] | str] = json.loads(done.stdout)
    return out


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    rounds = 5 if quick else 25
    if simulated() and which("g++") is None:
        yield Unavailable(CATEGORY, "needs g++, which makes a libcuda with host memory for the simulated device")
        return
    results = _over_host_memory(rounds) if simulated() else measured(rounds)
    for language, samples in results.items():
        if isinstance(samples, str):
            yield Unavailable(f"{CATEGORY}/{language}", samples)
            continue
        blocks, function, bound = zip(*samples, strict=True)
        yield from_samples(f"launch of a kernel in {language}", CATEGORY, [one * 1e-3 for one in blocks], "us")
        ratios = [launch / alone for launch, alone in zip(blocks, bound, strict=True)]
        yield from_samples(f"launch of a kernel in {language} over a bound kernel's", CATEGORY, ratios, "x")
        ratios = [launch / alone for launch, alone in zip(function, bound, strict=True)]
        yield from_samples(f"the same in {language}, its grid a function of the arguments", CATEGORY, ratios, "x")


if __name__ == "__main__":
    print(json.dumps(measured(int(sys.argv[1]))))
