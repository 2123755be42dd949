"""bench(): the time of one launch with its spread, and what part of this machine's measured limits it reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from pygpukit._core import native
from pygpukit.core.backend import backend
from pygpukit.core.cached import cached_property
from pygpukit.core.stream import Stream
from pygpukit.profiling import timing
from pygpukit.profiling.limits import Limits, limits

SIMULATED = "timed on the simulated device: host time, which says nothing about a GPU"


@dataclass(frozen=True)
class Clocks:
    """The SM clock in MHz before and after the samples (None where NVML does not tell), and what held it down."""

    sm_mhz_before: int | None
    sm_mhz_after: int | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class BenchResult:
    """The result of bench(). samples: microseconds a launch, one entry a sample of `batch` launches.

    bytes, flops: what the caller says one launch moves and computes; the rates are None without them. limits: this
    machine's measured ones, None on the simulated device and where neither bytes nor flops are given. repr() is one
    line that is the same on every run; str() has the figures.
    """

    samples: tuple[float, ...]
    batch: int
    cold_l2: bool
    backend: str
    bytes: float | None = None
    flops: float | None = None
    clocks: Clocks | None = None
    limits: Limits | None = None

    @cached_property
    def median_us(self) -> float:
        return median(self.samples)

    @cached_property
    def mad_us(self) -> float:
        """The median absolute deviation from the median."""
        return timing.deviation(self.samples)

    @property
    def converged(self) -> bool:
        """True where the samples agree by bench()'s rule; str() says why not."""
        return not timing.unsettled(self.samples)

    @property
    def min_us(self) -> float:
        return min(self.samples)

    @property
    def spread(self) -> float:
        """The robust coefficient of variation, 1.4826 * MAD / median; 0.01 is 1 %."""
        return timing.spread(self.samples)

    @property
    def gbps(self) -> float | None:
        """10**9 bytes a second at the median time."""
        return self._rate(self.bytes)

    @property
    def gflops(self) -> float | None:
        """10**9 operations a second at the median time."""
        return self._rate(self.flops)

    @property
    def percent_of_copy(self) -> float | None:
        """gbps in percent of the measured copy rate."""
        return None if self.gbps is None or self.limits is None else 100 * self.gbps / self.limits.copy_gbps

    @property
    def percent_of_fma(self) -> float | None:
        """gflops in percent of the measured float32 FMA rate."""
        return None if self.gflops is None or self.limits is None else 100 * self.gflops / self.limits.fma_gflops

    @property
    def percent_of_limit(self) -> float | None:
        """The nearer of the two limits: 100 means that no kernel moving these bytes and doing these operations at the
        measured rates can be faster."""
        known = [one for one in (self.percent_of_copy, self.percent_of_fma) if one is not None]
        return max(known) if known else None

    @property
    def bound(self) -> str | None:
        """The limit that percent_of_limit belongs to: "memory" or "compute"."""
        if self.percent_of_limit is None:
            return None
        return "memory" if self.percent_of_limit == self.percent_of_copy else "compute"

    def _rate(self, work: float | None) -> float | None:
        return None if work is None or self.median_us == 0 else work / self.median_us * 1e-3

    def __repr__(self) -> str:
        amounts = [f"{name} {value:.15g}" for name, value in (("bytes", self.bytes), ("flops", self.flops)) if value]
        where = "on the simulated device" if self.backend == "sim" else "cold L2" if self.cold_l2 else "warm L2"
        return f"bench: {', '.join([where, *amounts])}; print it for the figures"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The figures as text, one line a fact."""
        facts = [f"{len(self.samples)} samples" + (f" of {self.batch} launches" if self.batch > 1 else "")]
        if self.backend == "cuda":
            facts.append("cold L2" if self.cold_l2 else "warm L2")
        out = [f"{self.median_us:.4g} us +- {self.mad_us:.2g} us (median, MAD; {', '.join(facts)})"]
        if not self.converged:
            out.append(f"did not converge: {timing.unsettled(self.samples)}")
        for value, unit, percent, limit in (
            (self.gbps, "GB/s", self.percent_of_copy, "copy"),
            (self.gflops, "GFLOP/s", self.percent_of_fma, "float32 FMA"),
        ):
            if value is not None:
                share = f", {percent:.1f} % of the measured {limit} rate" if percent is not None else ""
                out.append(f"{value:.5g} {unit}{share}")
        out.append(SIMULATED if self.backend == "sim" else self._clock_line())
        return out

    def _clock_line(self) -> str:
        if self.clocks is None:
            return "clocks: not told (NVML is not there)"
        mhz = [str(one) if one is not None else "?" for one in (self.clocks.sm_mhz_before, self.clocks.sm_mhz_after)]
        held = f"held down by {', '.join(self.clocks.reasons)}" if self.clocks.reasons else "not held down"
        return f"SM clock {mhz[0]} MHz before, {mhz[1]} after, {held}"


def bench(
    run: Callable[[], object],
    *,
    bytes: float | None = None,
    flops: float | None = None,
    stream: Stream | None = None,
    flush_l2: bool = True,
    warmup_ms: float = 50.0,
    max_samples: int = 200,
    budget_ms: float = 2000.0,
) -> BenchResult:
    """Measure run(), which queues one launch on `stream` (by default the thread's current one).

    bytes, flops: what one launch moves and computes; with either, the limits of this device are measured once
    (limits()). Sampling ends when at least 10 samples have a robust coefficient of variation (1.4826 * MAD / median) of
    at most 1 % and the medians of their halves are at most 1 % apart: converged. Otherwise it ends after max_samples or
    budget_ms and the result says that it did not converge. A sample lasts at least 50 us: shorter launches are averaged
    over a batch. flush_l2: on a GPU every launch finds a cold L2 cache. Times are the device's, between events, and
    include its gap between two pieces of work; on the simulated device they are the host's.

    run() is called many times: it must bear that. Raises ValueError for a bad number, before anything runs, and what
    run() raises.
    """
    if not callable(run):
        raise TypeError(f"run is a {type(run).__name__}; give a function that queues one launch")
    work = checked_work(bytes, flops)
    _positive("max_samples", max_samples)
    _positive("budget_ms", budget_ms)
    if not (math.isfinite(warmup_ms) and warmup_ms >= 0):
        raise ValueError(f"warmup_ms is {warmup_ms!r}; give a time of at least 0")
    name = str(backend())
    queue = native.current_stream() if stream is None else stream.native
    taken = timing.sample(
        run, queue, flush_l2=flush_l2, warmup_ms=warmup_ms, max_samples=max_samples, budget_ms=budget_ms
    )
    compared = name == "cuda" and any(value is not None for value in work.values())
    return BenchResult(
        samples=taken.us,
        batch=taken.batch,
        cold_l2=taken.cold_l2,
        backend=name,
        clocks=_clocks(taken),
        limits=limits() if compared else None,
        **work,
    )


def checked_work(bytes: float | None, flops: float | None) -> dict[str, float | None]:
    """The two as a BenchResult has them. Raises ValueError for what is no amount."""
    return {name: _amount(name, value) for name, value in (("bytes", bytes), ("flops", flops))}


def from_fields(fields: Mapping[str, Any]) -> BenchResult:
    """The result whose asdict() came through JSON."""
    clocks, rates = fields["clocks"], fields["limits"]
    return BenchResult(
        **{
            **fields,
            "samples": tuple(fields["samples"]),
            "clocks": None if clocks is None else Clocks(**{**clocks, "reasons": tuple(clocks["reasons"])}),
            "limits": None if rates is None else Limits(**rates),
        }
    )


def _clocks(taken: timing.Samples) -> Clocks | None:
    if taken.before is None or taken.after is None:
        return None
    reasons = tuple(dict.fromkeys((*taken.before.reasons, *taken.after.reasons)))
    return Clocks(taken.before.sm_mhz, taken.after.sm_mhz, reasons)


def _amount(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not hasattr(value, "__float__") or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} is {value!r}; give a number of at least 0, or None")
    return float(value)


def _positive(name: str, value: float) -> None:
    if isinstance(value, bool) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name} is {value!r}; it must be more than 0")
