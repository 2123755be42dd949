"""One measured row, and the report that holds the rows of a run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from statistics import median, pstdev
from typing import Any, Literal

from .brief import fold, unfold
from .environment import GPUInfo

SCHEMA = 1
MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}

Better = Literal["lower", "higher"]


# Parameters that say what came out; the others say what was measured.
_OUTCOMES = {"plan", "error", "peer's error", "per cent of a copy's rate"}


def _now() -> str:
    return datetime.now().isoformat(timespec="seconds")


@dataclass
class BenchmarkResult:
    """One row. `value` in `unit` is what is compared; the `*_us` fields repeat it in microseconds where it is a time.

    `spread` is half the interquartile range of the samples, in `unit`. `peer` names another library measured in the
    same run and `peer_value` is its figure in the same unit. `series`: columns of equal length by name, what the row
    was computed from over time.
    """

    name: str
    category: str
    params: dict[str, Any] = field(default_factory=dict)
    median_us: float | None = None
    min_us: float | None = None
    max_us: float | None = None
    std_us: float | None = None
    tflops: float | None = None
    bandwidth_gbps: float | None = None
    correct: bool = True
    rel_error: float = 0.0
    iterations: int = 0
    timestamp: str = field(default_factory=_now)
    value: float | None = None
    unit: str = "us"
    better: Better = "lower"
    samples: list[float] = field(default_factory=list)
    spread: float = 0.0
    peer: str | None = None
    peer_value: float | None = None
    series: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.value is None:
            if self.median_us is None:
                raise ValueError(f"the result {self.name!r} has neither a value nor median_us")
            self.value = self.median_us

    @property
    def ratio(self) -> float | None:
        """Ours over the peer's figure, or None without a peer."""
        if self.peer_value is None or self.value is None or self.peer_value == 0:
            return None
        return self.value / self.peer_value

    @property
    def key(self) -> str:
        """The key that two rows of two reports share where they are the same measurement, whatever plan it took."""
        params = ",".join(f"{k}={self.params[k]}" for k in sorted(self.params.keys() - _OUTCOMES))
        return (
            f"{self.category}/{self.name}" + (f"[{params}]" if params else "") + (f" {self.peer}" if self.peer else "")
        )

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio}

    @classmethod
    def from_dict(cls, d: dict[str, Any]) -> BenchmarkResult:
        names = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in d.items() if k in names})


Result = BenchmarkResult


@dataclass(frozen=True)
class Unavailable:
    """A row that cannot be measured here, and why."""

    key: str
    reason: str


def half_iqr(samples: list[float]) -> float:
    """Half the interquartile range: a spread that one outlier does not move."""
    ordered = sorted(samples)
    last = len(ordered) - 1
    return (ordered[round(last * 0.75)] - ordered[round(last * 0.25)]) / 2


def percentile(samples: list[float], part: float) -> float:
    """The sample that `part` of them do not pass; 1 is the largest."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def from_samples(name: str, category: str, samples: list[float], unit: str, **more: Any) -> BenchmarkResult:
    """A row from samples in `unit`: the median is the value."""
    if not samples:
        raise ValueError(f"the benchmark {category}/{name} took no sample")
    scale = MICROSECONDS.get(unit)
    times: dict[str, Any] = {}
    if scale is not None:
        times = {
            "median_us": median(samples) * scale,
            "min_us": min(samples) * scale,
            "max_us": max(samples) * scale,
            "std_us": pstdev(samples) * scale,
        }
    return BenchmarkResult(
        name=name,
        category=category,
        value=median(samples),
        unit=unit,
        samples=samples,
        spread=half_iqr(samples),
        iterations=len(samples),
        **times,
        **more,
    )


@dataclass
class BenchmarkReport:
    """The rows of one run and where it ran. Saved as JSON with a schema number."""

    gpu: GPUInfo
    results: list[BenchmarkResult] = field(default_factory=list)
    timestamp: str = field(default_factory=_now)
    version: str = ""
    environment: dict[str, Any] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def add(self, result: BenchmarkResult) -> None:
        self.results.append(result)

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "version": self.version,
            "timestamp": self.timestamp,
            "gpu": self.gpu.to_dict(),
            "environment": self.environment,
            "skipped": self.skipped,
            "results": [r.to_dict() for r in self.results],
        }

    def save(self, path: str | Path, brief: bool = False) -> None:
        """Write it as JSON, a result a line; brief: without samples and times of day, with four digits."""
        head = self.to_dict()
        results = fold(head.pop("results")) if brief else head.pop("results")
        rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in results)
        opening = json.dumps(head, indent=1).removesuffix("\n}")
        Path(path).write_text(f'{opening},\n "results": [\n{rows}\n]\n}}\n', encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> BenchmarkReport:
        """Raises ValueError for a file that is not a report of a schema this version reads."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            if data["schema"] != SCHEMA:
                raise ValueError(
                    f"{path} has report schema {data['schema']}; this version reads {SCHEMA}; measure it again"
                )
            return cls(
                gpu=GPUInfo(**data["gpu"]),
                results=[BenchmarkResult.from_dict(r) for r in unfold(data["results"], data["timestamp"])],
                timestamp=data["timestamp"],
                version=data["version"],
                environment=data["environment"],
                skipped=data["skipped"],
            )
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} is not a benchmark report of this package: {error!r}") from error
