"""Where a dashboard's messages come from: the process itself, or anything else with these methods, a replay for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pygpukit import _core
from pygpukit.core.backend import backend
from pygpukit.core.device import device_count
from pygpukit.jupyter import control
from pygpukit.telemetry import sampler, state
from pygpukit.telemetry.feed import Feed
from pygpukit.telemetry.sensors import DeviceSampler
from pygpukit.telemetry.tenants import TaskSource, all_tasks, caches, contexts, unstarted

if TYPE_CHECKING:
    from pygpukit.jupyter.widgets.dashboard import Dashboard


class Source(Protocol):
    """The interface that a dashboard needs of its source."""

    label: str

    def looked_at(self, view: Dashboard) -> None:
        """Somebody begins to look: send everything, then what follows, with view.tell_page()."""

    def left(self, view: Dashboard) -> None:
        """The view was closed."""

    def state(self) -> state.State:
        """The state that a static picture shows."""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a control request; never raises."""


class LiveSource:
    """This process: frames by the sampler, everything else by a feed. It is the sampler's sink for one view."""

    def __init__(
        self, tasks: TaskSource = all_tasks, device: bool = False, links: bool = False, place: int = 0
    ) -> None:
        opened = backend()
        number = f"device {place}: " if device_count() > 1 else ""
        self.label = f"{number}{_core.native.device_info(place)['name']}, {opened}"
        self.place = place
        self._tasks = tasks
        self._sampler = DeviceSampler(place) if device else None
        self.feed = Feed(self.label, tasks, self._sampler, links, place)

    def looked_at(self, view: Dashboard) -> None:
        messages, view.since, view.since_name = self.feed.begin()
        for content, buffers in messages:
            view.tell_page(content, *buffers)
        sampler.add_sink(view)

    def left(self, view: Dashboard) -> None:
        sampler.remove_sink(view)

    def state(self) -> state.State:
        sample = self._sampler.newest() if self._sampler else None
        tasks = self._tasks()
        waiting = {label for label, task in tasks if task.phase in ("Queued", "Admitted")} & unstarted()
        return state.live(self.label, [task for _, task in tasks], contexts(), sample, waiting, caches(), self.place)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        return control.answer(request)
