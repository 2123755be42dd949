"""Trace Event JSON of what was profiled, for Perfetto and chrome://tracing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.profiling.record import KernelRecord

if TYPE_CHECKING:
    from pygpukit.profiling.memory import MemoryProfiler, MemorySnapshot
    from pygpukit.profiling.profiler import Profiler
    from pygpukit.profiling.work import Work


def export_chrome_trace(
    records: Iterable[KernelRecord],
    path: str | PathLike[str],
    *,
    memory_snapshots: Sequence[MemorySnapshot] | None = None,
    process_name: str = "PyGPUkit",
    thread_name: str = "GPU",
) -> None:
    """Write records, and snapshots as a counter, as Trace Event JSON.

    Parameters
    ----------
    records : iterable of KernelRecord
        A slice each, which ends at its timestamp.
    path : path
        Of the file, which is replaced.
    memory_snapshots : sequence of MemorySnapshot, optional
        Their MiB in use and cached become a counter.
    process_name, thread_name : str
        Of the row.
    """
    kept, snapshots = list(records), list(memory_snapshots or ())
    times = [record.timestamp * 1e6 - record.elapsed_us for record in kept]
    times += [snapshot.timestamp * 1e6 for snapshot in snapshots]
    zero = min(times, default=0.0)
    events = [_named("process_name", 0, 0, process_name), _named("thread_name", 0, 0, thread_name)]
    for record in kept:
        rates = {"flops": record.flops, "bytes": record.bytes_transferred, "TFLOP/s": record.tflops,
                 "GB/s": record.bandwidth_gb_s}  # fmt: skip
        begin = record.timestamp * 1e6 - record.elapsed_us - zero
        args = {name: value for name, value in rates.items() if value is not None}
        events.append(_slice(record.name, "kernel", begin, record.elapsed_us, 0, 0, args))
    for snapshot in snapshots:
        figures = {"used": snapshot.used_mb, "cached": snapshot.cached_mb}
        at = snapshot.timestamp * 1e6 - zero
        events.append({"name": "memory in MiB", "ph": "C", "ts": at, "pid": 0, "tid": 0, "args": figures})
    _write(events, path)


def export_combined_trace(
    profiler: Profiler, memory_profiler: MemoryProfiler, path: str | PathLike[str], *, process_name: str = "PyGPUkit"
) -> None:
    """Write a profiler's records and a memory profiler's snapshots as one trace; see export_chrome_trace()."""
    snapshots = memory_profiler.snapshots
    export_chrome_trace(profiler.records, path, memory_snapshots=snapshots, process_name=process_name)


def write_works(works: Sequence[Work], path: str | PathLike[str]) -> None:
    """The works of profile(): a process a device, a row a stream, or a tenant's stream."""
    zero = min((work.begin_ns for work in works), default=0)
    rows: dict[tuple[int, int, str], int] = {}
    events: list[dict[str, Any]] = []
    for device in sorted({work.device for work in works}):
        events.append(_named("process_name", device, 0, f"device {device}"))
    for work in works:
        key = work.device, work.stream, work.tenant
        row = rows.setdefault(key, len(rows))
        args = {"cell": work.cell, "line": work.line, "blocks": work.blocks, "threads": work.threads,
                "bytes": work.nbytes, "launches": work.launches}  # fmt: skip
        begin, took = (work.begin_ns - zero) / 1e3, work.duration_us
        shown = {name: value for name, value in args.items() if value}
        events.append(_slice(work.name, work.kind, begin, took, work.device, row, shown))
    for (device, stream, tenant), row in rows.items():
        label = "default stream" if stream == 0 else f"stream {stream}"
        events.append(_named("thread_name", device, row, f"{label} of {tenant}" if tenant else label))
    _write(events, path)


def _slice(name: str, kind: str, begin: float, took: float, pid: int, tid: int, args: object) -> dict[str, Any]:
    return {"name": name, "cat": kind, "ph": "X", "ts": begin, "dur": took, "pid": pid, "tid": tid, "args": args}


def _named(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def _write(events: list[dict[str, Any]], path: str | PathLike[str]) -> None:
    with Path(path).open("w", encoding="utf-8") as file:
        json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)
