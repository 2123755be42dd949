"""Profiler: blocks of code with a name, timed by two events each on the current stream."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

from pygpukit.core.event import Event
from pygpukit.profiling.record import KernelRecord

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class ProfilerContext:
    """Times a `with` block by events on the current stream; its end waits for them.

    Parameters
    ----------
    name : str
    flops, bytes_transferred : int, optional
        What the block computes and moves, for the rates.

    Examples
    --------
    >>> with gp.profiling.ProfilerContext("add", bytes_transferred=12_000) as timed:
    ...     y = gp.add(gp.ones(1000), gp.ones(1000))
    >>> timed.elapsed_ms >= 0
    True
    """

    def __init__(self, name: str = "kernel", *, flops: int | None = None, bytes_transferred: int | None = None) -> None:
        self.name, self.flops, self.bytes_transferred = name, flops, bytes_transferred
        self._begin, self._end = Event(), Event()
        self._elapsed_ms: float | None = None

    def __enter__(self) -> ProfilerContext:
        self._elapsed_ms = None
        self._begin.record()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.record()
        self._end.synchronize()
        self._elapsed_ms = self._begin.elapsed_ms(self._end)

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds on the device. RuntimeError before the block has ended."""
        if self._elapsed_ms is None:
            raise RuntimeError(f"{self.name!r} has not been timed yet: read its time after the with block")
        return self._elapsed_ms

    @property
    def elapsed_us(self) -> float:
        """Microseconds on the device."""
        return self.elapsed_ms * 1e3

    @property
    def tflops(self) -> float | None:
        return self.to_record().tflops

    @property
    def bandwidth_gb_s(self) -> float | None:
        return self.to_record().bandwidth_gb_s

    def to_record(self) -> KernelRecord:
        """The block's time as a record."""
        return KernelRecord(self.name, self.elapsed_ms, self.elapsed_us, self.flops, self.bytes_transferred)


class _Recording(ProfilerContext):
    """A block whose record a profiler keeps, also where the block raised."""

    def __init__(self, kept: list[KernelRecord], name: str, flops: int | None, nbytes: int | None) -> None:
        super().__init__(name, flops=flops, bytes_transferred=nbytes)
        self._kept = kept

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._kept.append(self.to_record())


class Profiler:
    """Keeps a record of each block that it times. profile() sees every launch instead, without names given by hand.

    Parameters
    ----------
    use_native : bool
        Times are always taken by events; False is accepted and changes nothing.

    Examples
    --------
    >>> profiler = gp.profiling.Profiler()
    >>> with profiler.record("product", flops=2 * 64**3):
    ...     y = gp.matmul(gp.ones((64, 64)), gp.ones((64, 64)))
    >>> [record.name for record in profiler.records]
    ['product']
    """

    def __init__(self, *, use_native: bool = True) -> None:
        self._records: list[KernelRecord] = []
        self._use_native = use_native

    @property
    def using_native(self) -> bool:
        """True: times always come from events."""
        return True

    @property
    def records(self) -> list[KernelRecord]:
        """A copy of the list, in the order in which blocks ended."""
        return list(self._records)

    @property
    def total_time_ms(self) -> float:
        return sum(record.elapsed_ms for record in self._records)

    def record(
        self, name: str = "kernel", *, flops: int | None = None, bytes_transferred: int | None = None
    ) -> ProfilerContext:
        """A `with` block to time and to keep; parameters as for ProfilerContext."""
        return _Recording(self._records, name, flops, bytes_transferred)

    def clear(self) -> None:
        self._records.clear()

    def summary_by_name(self) -> dict[str, dict[str, float]]:
        """By name: count, total_ms, avg_ms, min_ms, max_ms, in the order in which names came first."""
        times: dict[str, list[float]] = {}
        for record in self._records:
            times.setdefault(record.name, []).append(record.elapsed_ms)
        return {
            name: {
                "count": len(taken),
                "total_ms": sum(taken),
                "avg_ms": sum(taken) / len(taken),
                "min_ms": min(taken),
                "max_ms": max(taken),
            }
            for name, taken in times.items()
        }

    def print_summary(self) -> None:
        """Print a line a name, the longest total first."""
        summary = self.summary_by_name()
        print(f"{'name':<32} {'count':>7} {'total ms':>12} {'mean ms':>12} {'least ms':>12} {'most ms':>12}")
        for name, of in sorted(summary.items(), key=lambda item: -item[1]["total_ms"]):
            figures = " ".join(f"{of[key]:>12.4f}" for key in ("total_ms", "avg_ms", "min_ms", "max_ms"))
            print(f"{name:<32} {of['count']:>7.0f} {figures}")

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write the records as Trace Event JSON; see export_chrome_trace()."""
        from pygpukit.profiling.chrome import export_chrome_trace

        export_chrome_trace(self._records, path)


def profile_matmul(
    M: int,
    N: int,
    K: int,
    A: GPUArray,
    B: GPUArray,
    matmul_fn: Callable[[Any, Any], Any],
    warmup: int = 3,
    iterations: int = 10,
) -> tuple[GPUArray, KernelRecord]:
    """Time a product of M x K and K x N: the mean of several calls.

    Parameters
    ----------
    M, N, K : int
        For the number of operations, 2 * M * N * K.
    A, B : GPUArray
        Of shapes (M, K) and (K, N).
    matmul_fn : callable
        Called as matmul_fn(A, B).
    warmup, iterations : int
        Calls before the time begins, and those that are timed: at least 0 and 1.

    Returns
    -------
    tuple of GPUArray and KernelRecord
        The last result, and the mean time of a call.

    Raises
    ------
    ValueError
        Shapes that are not those, or numbers of calls below the least.
    """
    if tuple(A.shape) != (M, K) or tuple(B.shape) != (K, N):
        raise ValueError(
            f"profile_matmul({M}, {N}, {K}) needs shapes {(M, K)} and {(K, N)}, got {A.shape} and {B.shape}"
        )
    if warmup < 0 or iterations < 1:
        raise ValueError(f"profile_matmul() needs warmup >= 0 and iterations >= 1, got {warmup} and {iterations}")
    for _ in range(warmup):
        matmul_fn(A, B)
    with ProfilerContext(f"matmul_{M}x{N}x{K}", flops=2 * M * N * K * iterations) as timed:
        for _ in range(iterations):
            result = matmul_fn(A, B)
    each = timed.elapsed_ms / iterations
    return result, KernelRecord(timed.name, each, each * 1e3, 2 * M * N * K)


_global = Profiler()


def get_global_profiler() -> Profiler:
    """The process's own Profiler, which whoever wants may share."""
    return _global
