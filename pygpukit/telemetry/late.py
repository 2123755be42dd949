"""The shares of the last seconds, and why they are below their promises: what dashboards say, both of one span."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, NamedTuple

from pygpukit import _core
from pygpukit.core.shortfall import Had, Shortfall, had_by, shortfall

if TYPE_CHECKING:
    from pygpukit.scheduler.contexts import ContextRecord

WINDOW_NS = 10_000_000_000
_PPM = 1_000_000
_STEP_NS = 1_000_000_000
_STEPS = 12
_MAX_TENANTS = 4096


class Lately(NamedTuple):
    """The recent share of a tenant, None where nothing was promised, and why that is less than promised."""

    share: float | None
    shortfall: Shortfall


class Late:
    """Notes figures when they are asked for, and compares with those of a window ago. Thread-safe."""

    def __init__(self) -> None:
        self._noted: OrderedDict[int, deque[Had]] = OrderedDict()  # by number; span_ns counts from the start
        self._lock = threading.Lock()

    def of_task(self, task: _core.TaskRecord) -> Lately:
        """Of its last seconds, once it has ended of the last of its life."""
        if not task.started_ns or not task.share_ppm:
            return Lately(None, Shortfall.NONE)
        return self._lately(task.number, task.share_ppm / _PPM, had_by(task))

    def of_context(self, context: ContextRecord) -> Lately:
        """Of the last seconds of a context of a model. Its sessions are on any thread, so that no host's time is
        known."""
        return self._lately(context.number, context.share, context.had)

    def _lately(self, number: int, promised: float, had: Had) -> Lately:
        recent = self._recent(number, had)
        return Lately(recent.share, shortfall(promised, recent))

    def _recent(self, number: int, had: Had) -> Had:
        with self._lock:
            noted = self._noted.setdefault(number, deque(maxlen=_STEPS))
            self._noted.move_to_end(number)
            if len(self._noted) > _MAX_TENANTS:
                self._noted.popitem(last=False)
            before = next((one for one in reversed(noted) if had.span_ns - one.span_ns >= WINDOW_NS), None)
            if noted and before is None and noted[0].span_ns > _STEP_NS:
                before = noted[0]  # nobody looked in its first seconds
            if not noted or had.span_ns - noted[-1].span_ns >= _STEP_NS:
                noted.append(had)
        return had if before is None else had.since(before)


late = Late()
