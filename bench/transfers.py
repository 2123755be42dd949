"""Suite `transfers`: what the transfer engine reaches, and what an urgent copy waits for beside a large one.

Plain is the same copy as one piece: one call of the driver from pinned memory, in the same run. Rates are by the host's
clock, from the submission to the end of the wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.memory import Transfer, TransferEngine

CATEGORY = "transfers"
MIB = 1 << 20
URGENT_BYTES = 64 << 10
LARGE_BYTES = {"cuda": 1 << 30, "sim": 64 * MIB}


def _seconds(begin: Callable[[], list[Transfer]], rounds: int) -> list[float]:
    took = []
    for round_ in range(rounds + 1):
        start = time.perf_counter()
        for transfer in begin():
            transfer.wait()
        if round_:  # the first warms up
            took.append(time.perf_counter() - start)
    return took


def _rate(name: str, seconds: list[float], nbytes: int, **params: Any) -> BenchmarkResult:
    samples = [nbytes / s * 1e-9 for s in seconds]
    value = median(samples)
    return BenchmarkResult(
        name, CATEGORY, params, value=value, unit="GB/s", better="higher", samples=samples, iterations=len(samples)
    )


def rate_rows(
    engines: dict[str, TransferEngine], arrays: tuple[GPUArray, GPUArray], hosts: tuple[Any, Any], rounds: int
) -> Iterator[BenchmarkResult]:
    """Each direction, and both at once, by each engine; what the first reaches of the second."""
    nbytes = arrays[0].nbytes

    def ways(engine: TransferEngine) -> dict[str, Callable[[], list[Transfer]]]:
        return {
            "H2D": lambda: [engine.to_device(arrays[0], hosts[0])],
            "D2H": lambda: [engine.to_host(arrays[1], hosts[1])],
            "both": lambda: [engine.to_device(arrays[0], hosts[0]), engine.to_host(arrays[1], hosts[1])],
        }

    for way in ("H2D", "D2H", "both"):
        moved = nbytes * (2 if way == "both" else 1)
        rates = {name: _rate(f"pinned copy, {name}", _seconds(ways(engine)[way], rounds), moved, way=way)
                 for name, engine in engines.items()}  # fmt: skip
        yield from rates.values()
        ours, plain = (rates[name].value or 0.0 for name in ("engine", "plain"))
        yield BenchmarkResult(
            "engine over plain", CATEGORY, {"way": way}, value=100 * ours / plain, unit="%", better="higher"
        )


def piece_rows(array: GPUArray, host: Any, rounds: int) -> Iterator[BenchmarkResult]:
    """The rate to the device by the size of a piece."""
    from pygpukit.memory import TransferEngine

    for mib in (1, 2, 8):
        with TransferEngine(chunk_bytes=mib * MIB, in_flight_bytes=max(8, 3 * mib) * MIB) as engine:
            seconds = _seconds(partial(_to_device, engine, array, host), rounds)
            yield _rate("pinned copy by piece", seconds, host.nbytes, way="H2D", chunk_mib=mib)


def _to_device(engine: TransferEngine, array: GPUArray, host: Any) -> list[Transfer]:
    return [engine.to_device(array, host)]


def pageable_rows(engine: TransferEngine, arrays: tuple[GPUArray, GPUArray], rounds: int) -> Iterator[BenchmarkResult]:
    """The same from memory that is not pinned."""
    import numpy as np

    host = np.ones(arrays[0].shape, np.float32)
    seconds = _seconds(lambda: [engine.to_device(arrays[0], host)], rounds)
    yield _rate("pageable copy, engine", seconds, host.nbytes, way="H2D")
    seconds = _seconds(lambda: [engine.to_host(arrays[0], host)], rounds)
    yield _rate("pageable copy, engine", seconds, host.nbytes, way="D2H")


_Pair = tuple["GPUArray", Any]


def _urgent_us(engine: TransferEngine, large: _Pair | None, urgent: _Pair, count: int) -> list[float]:
    """Microseconds of urgent copies to the device, each asked for while a large one is under way, if there is one."""
    took: list[float] = []
    for _ in range(4 * count):
        under_way = None if large is None else engine.to_device(*large)
        while under_way is not None and under_way.state == "Queued":
            pass
        for _ in range(8):
            if under_way is not None and under_way.done:
                break
            start = time.perf_counter()
            engine.to_device(*urgent, priority=9).wait()
            took.append((time.perf_counter() - start) * 1e6)
        if under_way is not None:
            under_way.wait()
        if len(took) >= count:
            break
    return took[:count]


def urgent_rows(
    engines: dict[str, TransferEngine], large: tuple[GPUArray, Any], count: int
) -> Iterator[BenchmarkResult]:
    """The latency of an urgent copy alone, beside a large one in pieces, and beside the same as one piece."""
    from pygpukit import zeros
    from pygpukit.memory import pinned_empty

    urgent = (zeros(URGENT_BYTES // 4), pinned_empty(URGENT_BYTES // 4))
    nbytes = large[0].nbytes
    cases = {
        "urgent 64 KiB alone": (engines["engine"], None, {}),
        "urgent 64 KiB beside a large copy": (engines["engine"], large, {"large_mib": nbytes // MIB}),
        "urgent 64 KiB beside a large copy, plain": (engines["plain"], large, {"large_mib": nbytes // MIB}),
    }
    for name, (engine, beside, params) in cases.items():
        samples = _urgent_us(engine, beside, urgent, count if beside is None or engine is engines["engine"] else 8)
        yield from_samples(name, CATEGORY, samples, "us", params=params)
        worst = max(samples)
        yield BenchmarkResult(f"{name}, worst", CATEGORY, params, value=worst, unit="us", iterations=len(samples))


def overlap_rows(engine: TransferEngine, large: tuple[GPUArray, Any], rounds: int) -> Iterator[BenchmarkResult]:
    """Kernels on other memory and a copy, each alone and both at once."""
    from pygpukit._core import native

    from .scheduler_load import make_tenant

    tenant = make_tenant("beside", 200.0)
    stream, before = native.Stream(), native.current_stream()
    alone = median(_seconds(lambda: [engine.to_device(*large)], rounds))
    launches = max(1, int(alone / (tenant.kernel_us * 1e-6)))

    def compute(copy: bool) -> float:
        stream.synchronize()
        start = time.perf_counter()
        transfer = engine.to_device(*large) if copy else None
        tenant.launch(launches)
        stream.synchronize()
        if transfer is not None:
            transfer.wait()
        return time.perf_counter() - start

    native.set_current_stream(stream)
    try:
        kernels = median([compute(False) for _ in range(rounds)])
        both = [compute(True) for _ in range(rounds)]
    finally:
        native.set_current_stream(before)
    params = {"large_mib": large[0].nbytes // MIB}
    yield from_samples("copy alone", CATEGORY, [alone * 1e3], "ms", params=params)
    yield from_samples("kernels alone", CATEGORY, [kernels * 1e3], "ms", params=params)
    yield from_samples("kernels and copy at once", CATEGORY, [s * 1e3 for s in both], "ms", params=params)
    ratio = median(both) / max(kernels, alone)
    yield BenchmarkResult("at once over the longer alone", CATEGORY, params, value=ratio, unit="x")


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit import zeros
    from pygpukit._core import native
    from pygpukit.core.backend import ensure
    from pygpukit.memory import TransferEngine, pinned_empty

    ensure()
    nbytes = LARGE_BYTES[str(native.backend_name())] // (4 if quick else 1)
    arrays = (zeros(nbytes // 4), zeros(nbytes // 4))
    hosts = (pinned_empty(nbytes // 4), pinned_empty(nbytes // 4))
    for host in hosts:
        host[:] = 1
    native.synchronize()
    rounds = 3 if quick else 9
    with ExitStack() as stack:
        engines = {
            "engine": stack.enter_context(TransferEngine()),
            "plain": stack.enter_context(TransferEngine(chunk_bytes=nbytes, in_flight_bytes=nbytes)),
        }
        yield from rate_rows(engines, arrays, hosts, rounds)
        yield from piece_rows(arrays[0], hosts[0], rounds)
        yield from pageable_rows(engines["engine"], arrays, rounds)
        yield from urgent_rows(engines, (arrays[0], hosts[0]), 16 if quick else 200)
        yield from overlap_rows(engines["engine"], (arrays[0], hosts[0]), rounds)
