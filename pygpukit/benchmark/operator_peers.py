"""The operators of suite `operators` in PyTorch or CuPy, in one process for each, so that contexts do not meet.

`python -m pygpukit.benchmark.operator_peers LIBRARY COUNT` prints {row: microseconds, or why there is no figure}.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from .operator_cases import (
    CALL_ELEMENTS,
    CALLS,
    CASES,
    COLUMNS,
    DTYPES,
    ITEMSIZE,
    NARROW_BYTES,
    WIDE_BYTES,
    function,
    size,
)

WARMUP = 3
SAMPLES = 20
FLUSH_BYTES = 256 << 20  # some times the L2 cache of any GPU there is; its read also keeps the host ahead
CALL_BATCH = 500
CALL_BATCHES = 25
TIMEOUT_S = 120


def peer_times(library: str, quick: bool) -> Iterator[tuple[str, float | str]]:
    """(row, microseconds or the reason for none), from a fresh process."""
    yield from process_times(__name__, library, size("float32", "cuda", quick).n)


def process_times(module: str, *arguments: object, timeout_s: float = TIMEOUT_S) -> Iterator[tuple[str, Any]]:
    """The JSON that a module prints in a process of its own, or ("all rows", why it printed nothing)."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        yield "all rows", f"not done after {timeout_s:g} s"
        return
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        yield "all rows", (done.stderr.strip().splitlines() or ["no message"])[-1][-200:]
        return
    yield from json.loads(lines[-1]).items()


class Torch:
    """PyTorch on its current CUDA device."""

    def __init__(self) -> None:
        import torch

        self.library = torch
        self._flush = torch.zeros(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")

    def names(self, dtype: str, n: int) -> dict[str, Any]:
        torch, item = self.library, ITEMSIZE[dtype]
        torch.manual_seed(4)
        x = torch.randn(n, device="cuda").to(getattr(torch, dtype))
        narrow, wide = (x.view(-1, width // item) for width in (NARROW_BYTES, WIDE_BYTES))
        return {
            "torch": torch,
            "F": torch.nn.functional,
            "x": x,
            "y": x.flip(0),
            "m": x.view(-1, COLUMNS),
            "w": x[:COLUMNS].clone(),
            "b": x[-COLUMNS:].clone(),
            "mask": torch.rand(n, device="cuda") < 0.5,
            "narrow": narrow,
            "wide": wide,
            "pick_narrow": torch.randperm(len(narrow), device="cuda"),
            "pick_wide": torch.randperm(len(wide), device="cuda"),
        }

    def small(self) -> dict[str, Any]:
        x, y, z = (self.library.ones(CALL_ELEMENTS, device="cuda") for _ in range(3))
        return {"torch": self.library, "x": x, "y": y, "z": z}

    def event(self) -> Any:
        event = self.library.cuda.Event(enable_timing=True)
        event.record()
        return event

    def flush(self) -> None:
        self._flush.max()

    def wait(self) -> None:
        self.library.cuda.synchronize()

    @staticmethod
    def elapsed_us(start: Any, end: Any) -> float:
        return start.elapsed_time(end) * 1e3


class Cupy:
    """CuPy on its current device."""

    def __init__(self) -> None:
        import cupy

        self.library = cupy
        self._flush = cupy.zeros(FLUSH_BYTES // 4, cupy.int32)

    def names(self, dtype: str, n: int) -> dict[str, Any]:
        cp, item = self.library, ITEMSIZE[dtype]
        from cupyx.scipy import special

        if dtype == "bfloat16":
            import ml_dtypes

            kind: Any = ml_dtypes.bfloat16
        else:
            kind = dtype
        cp.random.seed(4)
        x = cp.random.standard_normal(n, dtype=cp.float32).astype(kind)
        narrow, wide = (x.reshape(-1, width // item) for width in (NARROW_BYTES, WIDE_BYTES))
        return {
            "cp": cp,
            "special": special,
            "x": x,
            "y": x[::-1].copy(),
            "m": x.reshape(-1, COLUMNS),
            "mask": cp.random.random(n, dtype=cp.float32) < 0.5,
            "narrow": narrow,
            "wide": wide,
            "pick_narrow": cp.random.permutation(len(narrow)),
            "pick_wide": cp.random.permutation(len(wide)),
        }

    def small(self) -> dict[str, Any]:
        x, y, z = (self.library.ones(CALL_ELEMENTS, "f") for _ in range(3))
        return {"cp": self.library, "x": x, "y": y, "z": z}

    def event(self) -> Any:
        event = self.library.cuda.Event()
        event.record()
        return event

    def flush(self) -> None:
        self._flush.max()

    def wait(self) -> None:
        self.library.cuda.Device().synchronize()

    def elapsed_us(self, start: Any, end: Any) -> float:
        return self.library.cuda.get_elapsed_time(start, end) * 1e3


PEERS: dict[str, type[Torch] | type[Cupy]] = {"torch": Torch, "cupy": Cupy}


def measure(library: str, count: int) -> dict[str, float | str]:
    """Every case that the library has a function for."""
    peer = PEERS[library]()
    times: dict[str, float | str] = {}
    for dtype in DTYPES:
        titles = {f"{case.name} {dtype}": expression for case in CASES if (expression := getattr(case, library))}
        try:
            names = peer.names(dtype, count)
        except Exception as error:
            times.update(dict.fromkeys(titles, reason(error)))
            continue
        for title, expression in titles.items():
            try:
                times[title] = device_us(peer, function(expression, names))
            except Exception as error:  # a function that this version lacks for the type
                times[title] = reason(error)
        names.clear()
    small = peer.small()
    for name, _, *theirs in CALLS:
        call = function(dict(zip(PEERS, theirs, strict=True))[library], small)
        times[name] = call_us(peer, call)
    return times


def reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def device_us(
    peer: Torch | Cupy, call: Callable[[], object], warmup: int = WARMUP, samples: int = SAMPLES, cold: bool = True
) -> float:
    """The median of event times of single calls; cold: each after a read of several times the L2 cache."""
    for _ in range(warmup):
        call()
    pairs = []
    for _ in range(samples):
        if cold:
            peer.flush()
        start = peer.event()
        call()
        pairs.append((start, peer.event()))
    peer.wait()
    return median(peer.elapsed_us(start, end) for start, end in pairs)


def call_us(peer: Torch | Cupy, call: Callable[[], object]) -> float:
    samples = []
    for _ in range(CALL_BATCHES + 1):
        begin = time.perf_counter_ns()
        for _ in range(CALL_BATCH):
            call()
        samples.append((time.perf_counter_ns() - begin) * 1e-3 / CALL_BATCH)
        peer.wait()
    return median(samples[1:])


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
