"""Suite `variants`: how long making a kernel's sliced variant takes, and what it does to another thread's launches.

Beside the way that is taken, the driver's linker, the same PTX is loaded as a module, for which the driver compiles it,
too. Every text is new: drivers keep what they have compiled.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator

from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "variants"
STEPS = 12  # of a kernel: about 50 kB of PTX


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit._core import native
    from pygpukit.core.backend import ensure

    ensure()
    if native.backend_name() != "cuda":
        yield Unavailable(CATEGORY, "the simulated device runs any part of a grid: it needs no variants")
        return
    ways = {"assembled": native.assemble_ptx, "loaded as PTX": native.Module}
    count = 3 if quick else 5
    for way, make in ways.items():
        build_ms, longest_ms = zip(*(beside_launches(make, sliced_text()) for _ in range(count)), strict=True)
        yield from_samples(f"a variant {way}", CATEGORY, list(build_ms), "ms")
        row = from_samples(f"longest launch beside a variant {way}", CATEGORY, list(longest_ms), "ms")
        row.value = max(longest_ms)
        yield row
    cubin = native.assemble_ptx(sliced_text())
    kept_ms = [_ms(lambda: native.Module(cubin)) for _ in range(10)]
    yield from_samples("a kept variant loaded", CATEGORY, kept_ms, "ms")


def sliced_text() -> bytes:
    """PTX of a sliced variant that no cache has seen."""
    import pygpukit as gp
    from pygpukit.jit.launch import slicing

    steps = "".join(
        f"  x = fmaf(x, y + {step}.5f, sinf(x * {secrets.randbelow(1000)}.25f));\n"
        f"  y = expf(y) * x + sqrtf(fabsf(x - {step}.0f));\n"
        for step in range(STEPS)
    )
    kernel = gp.jit(
        f'extern "C" __global__ void large(float *out, float x, float y) {{\n{steps}  out[threadIdx.x] = x + y;\n}}',
        func="large",
    )
    return slicing.sliced_ptx(kernel.unit, kernel.signature, slicing.newest_ptx()).encode() + b"\0"


def beside_launches(make: Callable[[bytes], object], text: bytes) -> tuple[float, float]:
    """Milliseconds of making something of the text, and of the longest launch of a brief kernel meanwhile."""
    import pygpukit as gp
    from pygpukit._core import native

    out = gp.zeros(32)
    brief = gp.jit('extern "C" __global__ void brief(float *out) { out[threadIdx.x] = 1.0f; }', func="brief")[1, 32]
    stream = native.current_stream()
    brief(out)
    stream.synchronize()
    took: list[float] = []
    builder = threading.Thread(target=lambda: took.append(_ms(lambda: make(text))))
    builder.start()
    longest = 0.0
    while builder.is_alive():
        longest = max(longest, _ms(lambda: brief(out)))
        stream.synchronize()  # one launch right after the other would keep the driver's locks from the maker
    builder.join()
    if not took:
        raise RuntimeError("the variant was not made; the thread's error is above")
    return took[0], longest


def _ms(act: Callable[[], object]) -> float:
    begin = time.perf_counter()
    act()
    return (time.perf_counter() - begin) * 1e3
