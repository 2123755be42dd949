"""A scheduler with a partition whose tasks run in a process, and what became of that."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

from pygpukit.scheduler import Scheduler

P: dict[str, Any] = {"partition": "p"}


def alive(pid: int) -> bool:
    """True for a process that runs; a zombie that nobody has collected is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may be collected between the opening and the reading
        return False


def with_process(scheduler: Scheduler) -> Scheduler:
    scheduler.create_partition("p", memory="40MB", bandwidth=0.2, isolation="process")
    return scheduler


def process(scheduler: Scheduler) -> Any:
    (record,) = scheduler.worker_processes()
    return record


def kill(scheduler: Scheduler) -> None:
    pid = process(scheduler).pid
    assert pid, "0 would be all processes of this group"
    os.kill(pid, signal.SIGKILL)


def kept(scheduler: Scheduler) -> bool:
    """Whether nothing is reserved, and every task ended once."""
    totals = scheduler.global_stats()
    ended = sum(totals[phase] for phase in ("succeeded", "failed", "cancelled", "rejected", "expired"))
    return ended == totals["submitted"] and totals["reserved_memory"] == totals["reserved_share_ppm"] == 0


def children() -> set[int]:
    """Worker processes of this one that are alive."""
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread may end meanwhile
            found |= {int(pid) for pid in (thread / "children").read_text().split() if is_worker(pid)}
    return found


def is_worker(pid: str) -> bool:
    """Whether a child that is alive is a worker, and not a compiler that works aside, say."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return alive(int(pid)) and b"pygpukit.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False
