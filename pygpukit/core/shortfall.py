"""Why a share of the device is below its promise: decided here, from what the gate and the host's clock measured."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from pygpukit import _core
from pygpukit.core import host_time

_LEAST = 0.01  # of the device; less than a promise by a point, or by a tenth of it, is what turns come to
_PART = 0.1


class Shortfall(Enum):
    """What a share below its promise comes from. The value is how it is said."""

    NONE = ""
    NOT_ASKED_FOR = "not asked for"
    HOST_TOO_SLOW = "the host is too slow"
    HELD_BY_LIMIT = "held by its limit"
    BROKEN = "promise broken"


class Had(NamedTuple):
    """What a tenant had in a stretch of time, in ns. host_ns: its thread worked or wanted to, beside work that counts
    as the device's; None where nobody measured it."""

    span_ns: int
    gpu_ns: int
    waited_ns: int
    throttled_ns: int
    host_ns: int | None = None

    def since(self, before: Had) -> Had:
        """What was added since an earlier one."""
        host = None if self.host_ns is None or before.host_ns is None else self.host_ns - before.host_ns
        return Had(
            self.span_ns - before.span_ns,
            self.gpu_ns - before.gpu_ns,
            self.waited_ns - before.waited_ns,
            self.throttled_ns - before.throttled_ns,
            host,
        )


def had_by(task: _core.TaskRecord) -> Had:
    """What a task has had since it was started, to its end."""
    if not task.started_ns:
        return Had(0, 0, 0, 0)
    span_ns = (task.finished_ns or _core.now_ns()) - task.started_ns
    host = host_time.of(task.number)
    host_ns = None if host is None else host - task.host_ns
    return Had(span_ns, task.gpu_ns, task.waited_ns, task.throttled_ns, host_ns)


def shortfall(promised: float, had: Had) -> Shortfall:
    """Say why a tenant had less of the device than it was promised; NONE where it had that, or was promised nothing.

    Time in which it had work, done or waiting, is what it asked for. Where that is less than the promise, it is for the
    tenant to say: its thread was busy between its launches, or it had nothing to launch. Else something held it.
    """
    if had.span_ns <= 0 or promised <= 0 or had.gpu_ns >= (promised - max(_LEAST, _PART * promised)) * had.span_ns:
        return Shortfall.NONE
    asked_ns = had.gpu_ns + had.waited_ns + had.throttled_ns
    if asked_ns < promised * had.span_ns:
        idle_ns = had.span_ns - asked_ns
        busy = had.host_ns is not None and had.host_ns >= idle_ns / 2
        return Shortfall.HOST_TOO_SLOW if busy else Shortfall.NOT_ASKED_FOR
    return Shortfall.HELD_BY_LIMIT if had.throttled_ns >= had.waited_ns else Shortfall.BROKEN
