"""After Ctrl-C: what the device is still running, by the launches on record."""

from __future__ import annotations

import time
from collections import Counter

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core import records

_SETTLE_S = 0.2  # on the simulated device, whose kernels an interrupted wait ends; those of a GPU run on


def report(first_record: int) -> str:
    """One sentence on what runs on, from the launches since a record of the ring."""
    deadline = time.monotonic() + (_SETTLE_S if native.backend_name() == "sim" else 0)
    while (busy := native.busy_streams()) and time.monotonic() < deadline:
        time.sleep(0.01)
    if not busy:
        return "interrupted; nothing is left running on the device"
    launched = _launches(first_record)
    parts = []
    for stream in busy:
        names = Counter(name for on, name in launched if on == stream)
        what = ", ".join(f"{name} ({count} launch{'es' * (count > 1)})" for name, count in names.items())
        parts.append(f"stream {stream}: {what or 'work of earlier cells'}")
    return f"interrupted; still running on the device: {'; '.join(parts)}. gp.synchronize() waits for it"


def _launches(since: int) -> list[tuple[int, str]]:
    """(stream, kernel) of every launch on record from `since` on."""
    return [(one.stream, _core.name(one.name)) for one in records.since(since) if one.kind == records.LAUNCH]
