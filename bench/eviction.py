"""Suite `eviction`: moving a block to pinned host memory and back, beside plain pinned copies of as many bytes.

The plain copies and the moves take turns in one run, so that both see the same machine. A move is whole: others can
have the block's device memory when evict() returns, and it is mapped at the same address when restore() does. Nobody
asks for it here, so that restore() finds memory that the pool has kept (1 GiB at most); new memory is slower to fill.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "eviction"
SIZES_MIB = (64, 256, 1024)
SIMULATED_MIB = 256  # larger ones say nothing more there, and the host holds all of their copies


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit import _core
    from pygpukit.core.backend import backend

    for mib in SIZES_MIB[:1] if quick else SIZES_MIB:
        try:
            if backend() == "sim" and mib > SIMULATED_MIB:
                raise MemoryError(f"{mib} MiB are not measured on the simulation")
            rounds = _core.eviction_ns(0, mib << 20, 5 if quick else 15)
        except MemoryError as refused:
            for call in ("evict", "restore"):
                yield Unavailable(f"{CATEGORY}/{_speed(call)}[MiB={mib}]", str(refused))
            continue
        out, evict, restore, back = (list(column) for column in zip(*rounds, strict=True))
        for call, ns, side, plain in (("evict", evict, "host", out), ("restore", restore, "device", back)):
            size = {"MiB": mib}
            yield from_samples(call, CATEGORY, [one * 1e-6 for one in ns], "ms", params=size)
            rates = [(mib << 20) / one for one in plain]
            yield from_samples(
                f"plain pinned copy to the {side}", CATEGORY, rates, "GB/s", params=size, better="higher"
            )
            speeds = [100 * median(plain) / one for one in ns]
            yield from_samples(_speed(call), CATEGORY, speeds, "%", params=size, better="higher")


def _speed(call: str) -> str:
    return f"{call}, speed of the plain pinned copy"
