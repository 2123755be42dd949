"""Two reports side by side: what got slower, what got faster, what is gone and what is new."""

from __future__ import annotations

from dataclasses import dataclass, field

from .result import BenchmarkReport, BenchmarkResult


@dataclass
class Regression:
    """A row that moved. delta_percent > 0 is worse, whichever direction its unit counts as better."""

    result: BenchmarkResult
    baseline: BenchmarkResult
    delta_percent: float

    def other_plan(self) -> str:
        """Both kernels where they are not the same, else nothing."""
        now, then = (str(row.params.get("plan", "")).partition(":")[0] for row in (self.result, self.baseline))
        return "" if now == then else f", by {now}, then {then}"


@dataclass
class ComparisonResult:
    current: BenchmarkReport
    baseline: BenchmarkReport
    regressions: list[Regression] = field(default_factory=list)
    improvements: list[Regression] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)

    def has_regression(self, threshold: float = 0.05) -> bool:
        return any(r.delta_percent > threshold * 100 for r in self.regressions)

    def summary(self) -> str:
        lines = [f"compared with {self.baseline.timestamp} (version {self.baseline.version}, {self.baseline.gpu.name})"]
        for title, moved in (("slower", self.regressions), ("faster", self.improvements)):
            for r in sorted(moved, key=lambda r: -abs(r.delta_percent)):
                lines.append(
                    f"  {title} {abs(r.delta_percent):5.1f} %  {r.result.key}: "
                    f"{r.baseline.value:.4g} -> {r.result.value:.4g} {r.result.unit}{r.other_plan()}"
                )
        lines += [f"  missing      {name}" for name in self.missing]
        lines += [f"  new          {name}" for name in self.new]
        if len(lines) == 1:
            lines.append("  no row moved beyond the threshold")
        return "\n".join(lines)


def _worse_by(now: BenchmarkResult, then: BenchmarkResult) -> float:
    """Relative change, positive when worse. A value that was 0 and is not now counts as 100 %."""
    assert now.value is not None and then.value is not None
    if then.value == 0:
        change = 0.0 if now.value == 0 else 1.0
    else:
        change = (now.value - then.value) / abs(then.value)
    return change if now.better == "lower" else -change


def compare_reports(current: BenchmarkReport, baseline: BenchmarkReport, threshold: float = 0.05) -> ComparisonResult:
    """Rows that moved by more than the threshold and by more than both runs' spread together.

    Raises ValueError for reports of different devices: their figures say nothing about the code.
    """
    if current.gpu.name != baseline.gpu.name:
        raise ValueError(
            f"the baseline was measured on {baseline.gpu.name!r} and this run on {current.gpu.name!r}; "
            "measure a baseline on this device with --save"
        )
    comparison = ComparisonResult(current, baseline)
    before = {r.key: r for r in baseline.results}
    after = {r.key: r for r in current.results}
    comparison.missing = [key for key in before if key not in after]
    comparison.new = [key for key in after if key not in before]
    for key, now in after.items():
        then = before.get(key)
        if then is None or now.peer is not None:
            continue  # a peer's own figure is not ours to guard
        delta = _worse_by(now, then)
        scale = abs(then.value or 0.0)
        noise = (now.spread + then.spread) / scale if scale else 0.0
        if abs(delta) <= max(threshold, noise):
            continue
        moved = Regression(now, then, delta * 100)
        (comparison.regressions if delta > 0 else comparison.improvements).append(moved)
    return comparison
