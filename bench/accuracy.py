"""Suite `accuracy`: every floating-point operation against NumPy in float64 on the same inputs, PyTorch's beside it.

`python -m bench.accuracy` prints PyTorch's errors as JSON: {row: error, or why there is none}.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

from pygpukit.benchmark.operator_cases import function
from pygpukit.benchmark.result import BenchmarkResult, Unavailable

from .accuracy_cases import CASES, DTYPES, EPSILON, LONG, LONG_SIM, error, hosts, references

CATEGORY = "accuracy"
WORST_ROW = "largest error over PyTorch's"
TIMEOUT_S = 120


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    import pygpukit as gp
    from pygpukit._core import native
    from pygpukit.core.backend import ensure

    ensure()

    def upload(stored: Any, dtype: str) -> Any:
        array = gp.from_numpy(stored)
        return array.view(dtype) if array.dtype != dtype else array

    long = LONG_SIM if native.backend_name() == "sim" else LONG
    errors = _errors("gp", {"gp": gp}, upload, lambda result: result.astype("float64").to_numpy(), long)
    for name, value in errors.items():
        if isinstance(value, str):
            yield Unavailable(f"{CATEGORY}/{name}", value)
        else:
            yield BenchmarkResult(name, CATEGORY, value=value, unit="relative", rel_error=value)


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    """PyTorch's error beside each of ours, and the largest ratio of the two.

    An error below a quarter of the type's rounding unit counts as that: nearer, both are as good as exact.
    """
    done = subprocess.run(
        [sys.executable, "-m", __name__], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        yield Unavailable(f"{CATEGORY}/{WORST_ROW}", (done.stderr.strip().splitlines() or ["no message"])[-1][-200:])
        return
    theirs = json.loads(done.stdout.strip().splitlines()[-1])
    ratios: list[float] = []
    for mine in ours:
        value = theirs.get(mine.name)
        if not isinstance(value, float) or mine.value is None:
            yield Unavailable(f"{CATEGORY}/{mine.name} torch", str(value or "PyTorch has no such function"))
            continue
        row = BenchmarkResult(mine.name, CATEGORY, value=mine.value, unit=mine.unit, peer="torch", peer_value=value)
        yield row
        floor = EPSILON[mine.name.rpartition(" ")[2]] / 4
        ratios.append(max(mine.value, floor) / max(value, floor))
    if ratios:
        yield BenchmarkResult(WORST_ROW, CATEGORY, value=max(ratios), unit="x")


def _errors(
    library: str,
    names: dict[str, Any],
    upload: Callable[[Any, str], Any],
    download: Callable[[Any], Any],
    long: int,
) -> dict[str, float | str]:
    """The error of every case that the library has a function for, or why there is none."""
    errors: dict[str, float | str] = {}
    for dtype in DTYPES:
        inputs = hosts(dtype, long)
        device = {name: upload(stored, dtype) for name, (stored, _) in inputs.items()}
        exact = references({name: values for name, (_, values) in inputs.items()})
        for case in CASES:
            if expression := getattr(case, library):
                title = f"{case.name} {dtype}"
                try:
                    result = function(expression, {**names, **device})()
                    errors[title] = error(download(result), function(case.reference, exact)())
                except Exception as problem:  # it must not cost the others' figures; the report has the reason
                    errors[title] = f"{expression}: {type(problem).__name__}: {problem}"[:200]
    return errors


def torch_errors() -> dict[str, float | str]:
    """PyTorch's errors on its CUDA device."""
    import numpy as np
    import torch

    def upload(stored: Any, dtype: str) -> Any:
        bits = stored.view(np.int16) if dtype == "bfloat16" else stored
        return torch.from_numpy(bits).cuda().view(getattr(torch, dtype))

    return _errors(
        "torch", {"torch": torch, "F": torch.nn.functional}, upload, lambda r: r.double().cpu().numpy(), LONG
    )


if __name__ == "__main__":
    print(json.dumps(torch_errors()))
