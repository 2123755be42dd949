"""The limits that this version must keep, and the check of a report against them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .result import BenchmarkReport, Better


@dataclass(frozen=True)
class Goal:
    """A row's limit and the value aimed at; `cuda_only` goals say nothing about the simulation.

    better: "higher" for rows that must reach their limit, "lower" for those that must not pass it.
    """

    key: str
    limit: float
    aim: float
    unit: str
    cuda_only: bool = False
    better: Better = "lower"


# Percent of a device copy that moves as many bytes: operators, for both of suite `operators`' types.
OF_COPY = {
    90: ("add", "mul", "exp", "gelu", "silu", "rmsnorm", "layernorm", "softmax"),
    80: ("transpose", "sum, axis 0", "sum, axis 1", "sum", "argmax", "where"),
    60: ("cumsum", "boolean index", "take rows of 128 B", "take rows of 4 KiB"),
}


def _operators() -> Iterator[Goal]:
    for dtype in ("float32", "bfloat16"):
        for limit, names in OF_COPY.items():
            for name in names:
                key = f"operators/{name} {dtype}, of the copy[Mi=64]"
                yield Goal(key, limit, 95, "%", cuda_only=True, better="higher")
    yield Goal("operators/sort float32, speed over cupy's[Mi=64]", 0.8, 1, "x", cuda_only=True, better="higher")
    yield Goal("operators/add(x, y, out=z) over the driver's launch", 1.5, 1.3, "x", cuda_only=True)
    yield Goal("operators/add(x, y) over the driver's launch", 1.8, 1.5, "x", cuda_only=True)


def _transforms() -> Iterator[Goal]:
    limits = {**dict.fromkeys((256, 512, 1024, 2048, 4096), 0.9), 16384: 0.95, 65536: 1.0}
    for n, limit in limits.items():
        key = f"fft/fft of {n}, speed over CuPy's cuFFT[points=67108864]"
        yield Goal(key, limit, 1.0, "x", cuda_only=True, better="higher")


def _sound() -> Iterator[Goal]:
    batch = "[items=64,seconds=30]"
    over = {"stft 400/160": 2.5, "stft 1024/256": 2.5, "istft 400/160": 3.0, "istft 1024/256": 3.0}
    for name, limit in {**over, "mel 80 bands 400/160": 8.0}.items():
        key = f"sound/{name}, speed over torch{batch}"
        yield Goal(key, limit, 2 * limit, "x", cuda_only=True, better="higher")
    yield Goal("sound/Whisper log-mel, one window of 30 s[windows=256]", 6, 2.5, "us", cuda_only=True)
    yield Goal("sound/stft of 10 s, a call from Python", 40, 15, "us", cuda_only=True)
    yield Goal("sound/Griffin-Lim, 32 iterations on 10 s", 4, 0.8, "ms", cuda_only=True)
    key = "sound/resample 2/3, polyphase, of the copy[points=100000000]"
    yield Goal(key, 60, 90, "%", cuda_only=True, better="higher")


def _scheduler() -> Iterator[Goal]:
    four = "[shares=20/50/20/10]"
    yield Goal(f"scheduler/worst share error over 1 s{four}", 1.0, 0.5, "pp", cuda_only=True)
    yield Goal(f"scheduler/worst share error over 1 s, by work{four}", 1.0, 0.5, "pp", cuda_only=True)
    yield Goal(f"scheduler/share error over 100 ms, p99{four}", 3.0, 1.0, "pp", cuda_only=True)
    yield Goal(f"scheduler/share error over 100 ms, by work, p99{four}", 3.0, 1.0, "pp", cuda_only=True)
    yield Goal(f"scheduler/the two meters apart{four}", 0.5, 0.2, "pp", cuda_only=True)
    yield Goal(f"scheduler/throughput kept{four}", 94, 96, "%", cuda_only=True, better="higher")
    # Beside one_wave there is none: whoever comes waits for a kernel of 150 us that nothing can cut, 1.13 times alone.
    for load in ("multiply_adds", "storm", "triad"):
        for share in (0.9, 0.5):
            name = f"scheduler/guaranteed request beside a load over alone, p99[bandwidth={share},load={load}]"
            yield Goal(name, 1.1, 1.05, "x", cuda_only=True)
            kept = f"scheduler/total throughput kept[bandwidth={share},load={load}]"
            yield Goal(kept, 94, 96, "%", cuda_only=True, better="higher")
    yield Goal("scheduler/one tenant, cost of the gate[kernel_us=20.0]", 3.0, 1.0, "%", cuda_only=True)
    yield Goal("scheduler/one tenant, cost of the gate[kernel_us=100.0]", 1.0, 0.5, "%", cuda_only=True)


def _eviction() -> Iterator[Goal]:
    for mib in (64, 256, 1024):
        for call in ("evict", "restore"):
            name = f"eviction/{call}, speed of the plain pinned copy[MiB={mib}]"
            yield Goal(name, 90, 97, "%", cuda_only=True, better="higher")


def _tenants() -> Iterator[Goal]:
    for overcommit in ("1", "1.5", "2"):
        for name in ("wrong bytes", "not refused with the exact numbers", "refused within a quota"):
            yield Goal(f"overcommit/{name}[overcommit={overcommit}]", 0, 0, "count")
    for name in ("tasks lost", "tasks that ended twice", "tasks stuck", "wrong results", "left in the ledger"):
        yield Goal(f"churn/{name}", 0, 0, "count")
    yield Goal("churn/events overwritten unread", 0, 0, "count")
    yield Goal("churn/growth of arrays on the device", 0, 0, "KiB")
    yield Goal("churn/growth of file descriptors", 0, 0, "count")


def _promptness() -> Iterator[Goal]:
    for name in ("wait for a kernel", "wait for a task's result", "wait at the gate", "cell that waits for a kernel"):
        yield Goal(f"promptness/Ctrl-C in a {name}", 100, 50, "ms")
    yield Goal("promptness/answer to a page while a cell is busy", 1000, 100, "ms")


GOALS = (
    Goal("imports/import pygpukit over a bare interpreter", 40, 25, "ms"),
    Goal("imports/numpy, IPython or libcuda loaded by import", 0, 0, "count"),
    Goal("pool/pool hit, Rust", 100, 60, "ns"),
    Goal("scheduling/submit p50", 300, 150, "ns"),
    Goal("scheduling/submit p99", 1000, 500, "ns"),
    Goal("scheduling/next p50, 1000 tenants", 200, 60, "ns"),
    Goal("scheduling/10000 submissions into a new table", 5, 3, "ms"),
    Goal("scheduling/Scheduler.submit, Python", 3, 2, "us"),
    Goal("pool/gp.empty and release, Python", 1000, 300, "ns"),
    Goal("launch/Python launch over C++ loop", 1.4, 1.25, "x", cuda_only=True),
    Goal("launch/telemetry to a sink, cost of a launch", 0.5, 0.3, "%", cuda_only=True),
    Goal("launch/timing of cells, cost of a launch", 0.5, 0.2, "%", cuda_only=True),
    *_promptness(),
    Goal("variants/longest launch beside a variant assembled", 5, 1, "ms", cuda_only=True),
    Goal("jit/unchanged cell again", 5, 1, "ms"),
    Goal("jit/compiles by unchanged cell", 0, 0, "count"),
    Goal("cells/new cell to runnable", 200, 50, "ms"),
    Goal("jit/new small kernel", 40, 30, "ms", cuda_only=True),
    Goal("jit/new bf16 kernel", 80, 50, "ms", cuda_only=True),
    Goal("jit/new fp8 kernel", 80, 50, "ms", cuda_only=True),
    Goal("check/vector addition of 1M float32, checked over plain", 25, 15, "x"),
    Goal("jit/disk hit in a new process", 50, 10, "ms", cuda_only=True),
    Goal("simulator/cell to runnable", 200, 50, "ms"),
    Goal("simulator/element-wise, 1M float32", 1.2, 0.5, "ms"),
    Goal("simulator/tiled matmul, 512^3", 400, 250, "ms"),
    Goal("simulator/barrier, 256 threads", 25, 12, "ns"),
    Goal("simulator/launch and wait", 30, 10, "us"),
    *_operators(),
    Goal("accuracy/largest error over PyTorch's", 1.5, 1, "x", cuda_only=True),
    *_transforms(),
    *_sound(),
    *_scheduler(),
    *_eviction(),
    *_tenants(),
    Goal("determinism/most distinct results of one operation", 1, 1, "count"),
)


@dataclass(frozen=True)
class Verdict:
    goal: Goal
    value: float | None  # None: the row was not measured in this run
    reason: str = ""

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        return self.value <= self.goal.limit if self.goal.better == "lower" else self.value >= self.goal.limit


def check_goals(report: BenchmarkReport) -> list[Verdict]:
    """One verdict a goal; a goal of the other backend or without a row comes back undecided, with the reason."""
    on_cuda = report.environment.get("backend") == "cuda"
    values = {r.key: r.value for r in report.results}
    verdicts = []
    for goal in GOALS:
        suite = goal.key.partition("/")[0]
        if goal.cuda_only and not on_cuda:
            verdicts.append(Verdict(goal, None, "needs a GPU"))
        elif goal.key not in values:
            verdicts.append(
                Verdict(goal, None, report.skipped.get(goal.key) or report.skipped.get(suite) or "not in this run")
            )
        else:
            verdicts.append(Verdict(goal, values[goal.key]))
    return verdicts
