"""The limits that this version must keep, and the check of a report against them."""

from __future__ import annotations

from dataclasses import dataclass

from .result import BenchmarkReport


@dataclass(frozen=True)
class Goal:
    """A row's limit and the value aimed at; `cuda_only` goals say nothing about the simulation."""

    key: str
    limit: float
    aim: float
    unit: str
    cuda_only: bool = False


GOALS = (
    Goal("imports/import pygpukit over a bare interpreter", 40, 25, "ms"),
    Goal("imports/numpy, IPython or libcuda loaded by import", 0, 0, "count"),
    Goal("pool/pool hit, Rust", 100, 40, "ns"),
    Goal("pool/gp.empty and release, Python", 1000, 300, "ns"),
    Goal("launch/Python launch over C++ loop", 1.4, 1.25, "x", cuda_only=True),
    Goal("launch/telemetry at 10 Hz, cost of a launch", 1.0, 0.5, "%", cuda_only=True),
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
)


@dataclass(frozen=True)
class Verdict:
    goal: Goal
    value: float | None  # None: the row was not measured in this run
    reason: str = ""

    @property
    def met(self) -> bool | None:
        return None if self.value is None else self.value <= self.goal.limit


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
