"""PTX, SASS and the compiler's figures of a kernel, for the page: made on a thread, so that asking returns at once."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from pygpukit._core import native
from pygpukit.core.errors import GPUError
from pygpukit.jit.launch.kernel import JITKernel
from pygpukit.jupyter.card import Launch
from pygpukit.jupyter.card_listing import INSPECTED_ARCH, KINDS, MAX_LINES, Listing, inspected, listings
from pygpukit.jupyter.reports import Report
from pygpukit.profiling.bench import BenchResult

WAIT_S = 0.05  # how long an answer may wait for the thread

_jobs: WeakKeyDictionary[JITKernel, Future[dict[str, Any]]] = WeakKeyDictionary()


def ask(report: Report, kernel: str) -> dict[str, Any]:
    """{"state": "working"}: ask again. Else {"state": "done"} with arch, card and listings (see _make).

    Raises GPUError for a kernel that the notebook no longer has.
    """
    unit_kernel = report.kernels.get(kernel)
    if unit_kernel is None:
        raise GPUError(f"the notebook has no kernel {kernel!r} of this cell any more: run the cell again")
    job = _jobs.get(unit_kernel)
    if job is None:
        job = _jobs[unit_kernel] = _threads().submit(_make, unit_kernel, native.current_device())
    try:
        answer = job.result(WAIT_S)
    except NotYet:
        return {"state": "working"}
    except BaseException:
        del _jobs[unit_kernel]  # the next question tries again
        raise
    launch = report.launch if report.launch is not None and report.launch.kernel == kernel else None
    bench = report.bench if launch is not None else None
    card = _card(answer["inspected"], answer["reason"], launch, bench)
    if card["shared_bytes"] is None:
        card["shared_bytes"] = unit_kernel.shared_bytes  # the simulator's own compiler tells it too
    return {"state": "done", "arch": answer["arch"], "card": card, "listings": answer["listings"]}


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "pygpukit-assembly")


def _make(kernel: JITKernel, device: int) -> dict[str, Any]:
    """arch: what the listings are for. inspected: the kernel whose figures count; None without any, reason says why."""
    if native.backend_name() is not None:
        native.set_device(device)  # the thread's own
    listed = {one.kind: _listing(one) for one in listings(kernel.unit, {kernel.name: kernel}, KINDS)}
    if kernel.unit.image.kind != "sim":
        return {"arch": kernel.unit.image.arch, "inspected": kernel, "reason": "", "listings": listed}
    there = inspected(kernel.unit, {kernel.name: kernel}).get(kernel.name)
    reason = f"the kernel runs on the simulated device; figures as for {INSPECTED_ARCH}"
    if there is None:
        reason = "the kernel runs on the simulated device, which has no registers"  # the listings say what is missing
    return {"arch": INSPECTED_ARCH, "inspected": there, "reason": reason, "listings": listed}


def _listing(one: Listing) -> dict[str, Any]:
    """lines: [source line or 0, text]. left: how many more there are. problem: why there are none."""
    lines = [list(line) for line in one.lines[:MAX_LINES]]
    return {"lines": lines, "left": len(one.lines) - len(lines), "problem": one.problem}


def _card(kernel: JITKernel | None, reason: str, launch: Launch | None, bench: BenchResult | None) -> dict[str, Any]:
    """Figures of a kernel, None if unknown. Bytes; occupancy in fractions; measured ones in percent of the limits
    that this machine was measured to have."""
    card: dict[str, Any] = dict.fromkeys(
        ("registers", "local_bytes", "shared_bytes", "threads", "occupancy", "limiter", "median_us", "copy", "fma")
    )
    card["reason"] = reason
    if kernel is not None:
        card["registers"], card["local_bytes"] = kernel.registers, kernel.local_bytes
        card["shared_bytes"] = kernel.shared_bytes
        bounds = kernel.signature.launch_bounds
        max_threads = bounds[0] if bounds and bounds[0] else kernel.block_size
        threads = launch.threads if launch else min(kernel.block_size, max_threads)
        try:
            occupancy = kernel.occupancy(threads, launch.shared_bytes if launch else 0)
            card["threads"], card["occupancy"], card["limiter"] = threads, occupancy.fraction, occupancy.limiter
        except GPUError as error:
            card["reason"] = "; ".join(part for part in (reason, str(error)) if part)
    if bench is not None:
        card["median_us"] = bench.median_us
        card["copy"], card["fma"] = bench.percent_of_copy, bench.percent_of_fma
    return card
