"""Why a share of the device is below its promise: decided here, from what the gate and the host's clock measured."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from pygpukit import _core
from pygpukit.core import host_time

_MIN_SHORTFALL = 0.01  # of the device; less than a promise by a point, or by a tenth of it, is what turns come to
_PART = 0.1


class Shortfall(Enum):
    """The cause of a share below its promise. The value is how it is said."""

    NONE = ""
    NOT_ASKED_FOR = "not asked for"
    HOST_TOO_SLOW = "the host is too slow"
    HELD_BY_LIMIT = "held by its limit"
    BROKEN = "promise broken"


class Had(NamedTuple):
    """The time that a tenant had in a stretch, in ns.

    asked_ns: it had work that was not done, with the device or waiting; others_ns: of the device's time, what others
    had meanwhile. waited_ns, throttled_ns: its work waited for a turn, was held by its limit. host_ns: its thread
    worked or wanted to, beside work that counts as the device's; None where nobody measured it.
    """

    span_ns: int
    gpu_ns: int
    asked_ns: int
    others_ns: int
    waited_ns: int
    throttled_ns: int
    host_ns: int | None = None

    @property
    def share(self) -> float:
        """Of the device's time, 0 to 1."""
        return self.gpu_ns / self.span_ns if self.span_ns > 0 else 0.0

    def since(self, before: Had) -> Had:
        """The difference to an earlier one."""
        host = None if self.host_ns is None or before.host_ns is None else self.host_ns - before.host_ns
        added = [now - then for now, then in zip(self[:-1], before[:-1], strict=True)]
        return Had(*added)._replace(host_ns=host)


def had_by(task: _core.TaskRecord) -> Had:
    """The time that a task has had since it was started, to its end."""
    if not task.started_ns:
        return Had(0, 0, 0, 0, 0, 0)
    span_ns = (task.finished_ns or _core.now_ns()) - task.started_ns
    host = host_time.of(task.number)
    host_ns = None if host is None else host - task.host_ns
    waits = task.asked_ns, task.others_ns, task.waited_ns, task.throttled_ns
    return Had(span_ns, task.gpu_ns, *waits, host_ns)


def shortfall(promised: float, had: Had) -> Shortfall:
    """Say why a tenant had less of the device than it was promised; NONE where it had that, or was promised nothing.

    Where it had work for less of the time than was promised, that is for itself to say. Else something held it: its
    limit, or others, who had more than their part of what the device gave while it asked. If they had not, the device
    stood idle or was not asked.
    """
    threshold = promised - max(_MIN_SHORTFALL, _PART * promised)
    if had.span_ns <= 0 or promised <= 0 or had.gpu_ns >= threshold * had.span_ns:
        return Shortfall.NONE
    idle_ns = had.span_ns - had.asked_ns
    total_ns = had.gpu_ns + had.others_ns
    if had.asked_ns >= promised * had.span_ns:
        if had.throttled_ns > had.waited_ns:
            return Shortfall.HELD_BY_LIMIT
        if had.gpu_ns < threshold * total_ns:
            return Shortfall.BROKEN
        if had.asked_ns - had.throttled_ns - total_ns > idle_ns:
            return Shortfall.HOST_TOO_SLOW
    busy = had.host_ns is not None and had.host_ns >= idle_ns / 2
    return Shortfall.HOST_TOO_SLOW if busy else Shortfall.NOT_ASKED_FOR
