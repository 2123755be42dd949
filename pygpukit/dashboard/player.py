"""Replay: a trace as the source of views, at any speed, with no GPU. Time goes on only while somebody looks."""

from __future__ import annotations

import bisect
import math
import os
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.telemetry import state, trace

if TYPE_CHECKING:
    from pygpukit.jupyter.widgets import CellsWidget, DeviceWidget, MemoryWidget, SchedulerWidget
    from pygpukit.jupyter.widgets.dashboard import Dashboard

_TICK_S = 0.05


class Replay:
    """One trace and the views on it, which share its clock. Made by gp.dashboard.replay()."""

    def __init__(self, path: str | os.PathLike[str], speed: float = 1.0) -> None:
        if not speed > 0:
            raise ValueError(f"speed={speed!r}; give trace seconds in a second, above 0")
        self.path = Path(path)
        self.speed = float(speed)
        self._trace = trace.read(path)
        if not self._trace.entries:
            raise trace.TraceError(f"{os.fspath(path)} has a header and no entries: nothing was recorded")
        self.label = f"{self._trace.about.get('device', 'unknown device')}, replay"
        self._end_state = state.of_entries(self.label, self._trace.entries)
        self._times = [entry.t_ns - self._trace.entries[0].t_ns for entry in self._trace.entries]
        self._views: weakref.WeakKeyDictionary[Dashboard, int] = weakref.WeakKeyDictionary()  # entries sent to each
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._position_ns = 0.0

    # ---- views ----

    def memory(self) -> MemoryWidget:
        """The memory view of the trace."""
        from pygpukit.jupyter.widgets import MemoryWidget

        return MemoryWidget(source=self)

    def scheduler(self) -> SchedulerWidget:
        """The scheduler view of the trace."""
        from pygpukit.jupyter.widgets import SchedulerWidget

        return SchedulerWidget(source=self)

    def device(self) -> DeviceWidget:
        """The device strip of the trace."""
        from pygpukit.jupyter.widgets import DeviceWidget

        return DeviceWidget(source=self)

    def cells(self) -> CellsWidget:
        """The cell ledger of the trace."""
        from pygpukit.jupyter.widgets import CellsWidget

        return CellsWidget(source=self)

    # ---- what views call ----

    def looked_at(self, view: Dashboard) -> None:
        """Somebody begins to look at a view: it gets everything up to now, and then what follows."""
        with self._lock:
            self._views[view] = 0
            view.visible = True
            view.tell_page({"type": "replay", "state": "begins"})
            self._send(view)
            if self._thread is None and self._position_ns < self._times[-1]:
                self._thread = threading.Thread(target=self._run, name="pygpukit-replay", daemon=True)
                self._thread.start()

    def left(self, view: Dashboard) -> None:
        """A view was closed."""
        with self._lock:
            self._views.pop(view, None)

    def state(self) -> state.State:
        """The state at the end of the trace: what a static picture shows."""
        return self._end_state

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Controls have nothing to act on."""
        return {"id": request.get("id"), "ok": False, "error": "this is a replay: there is nothing to control"}

    # ---- the clock ----

    @property
    def position_s(self) -> float:
        """Seconds of the trace that views have seen."""
        return self._position_ns / 1e9

    @property
    def duration_s(self) -> float:
        """Seconds from the first entry to the last."""
        return self._times[-1] / 1e9

    def rewind(self) -> None:
        """Begin again: views that are looked at start from nothing."""
        with self._lock:
            self._position_ns = 0.0
            views = [view for view in self._views if view.visible]
        for view in views:
            self.looked_at(view)

    def _run(self) -> None:
        before = time.monotonic()
        while True:
            time.sleep(_TICK_S)
            now = time.monotonic()
            with self._lock:
                views = [view for view in self._views if view.visible]
                if not views or self._position_ns >= self._times[-1]:
                    self._thread = None
                    return
                self._position_ns = min(self._position_ns + (now - before) * 1e9 * self.speed, float(self._times[-1]))
                before = now
                for view in views:
                    self._send(view)
            del views

    def _send(self, view: Dashboard) -> None:
        if math.isinf(self.speed):
            self._position_ns = float(self._times[-1])
        since, until = self._views[view], bisect.bisect_right(self._times, self._position_ns)
        for entry in self._trace.entries[since:until]:
            content = {**entry.content, "device": self.label} if entry.content["type"] == "snapshot" else entry.content
            view.tell_page(content, *entry.buffers)
        self._views[view] = until
        if since < until == len(self._times):
            view.tell_page({"type": "replay", "state": "ended"})

    def __repr__(self) -> str:
        frames = sum(entry.content.get("type") == "frame" for entry in self._trace.entries)
        return (
            f"Replay({self.path.name!r}: {self.duration_s:.1f} s, {frames} frames, {self._trace.about.get('device')})"
        )
