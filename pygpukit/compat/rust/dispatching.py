"""The documented kernel dispatcher: requests by priority, a limit of unfinished ones on each stream, how each ended."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, SupportsIndex

from pygpukit.scheduler import units
from pygpukit.scheduler.contexts import Contexts
from pygpukit.scheduler.execution import ExecutionContext
from pygpukit.scheduler.futures import AsyncKernelRequest, KernelFuture, kernel_of

__all__ = ["DispatchStats", "KernelDispatcher", "KernelLaunchRequest", "KernelState", "LaunchConfig"]


class KernelState(str, Enum):
    """States of a request."""

    Queued = "Queued"
    Launched = "Launched"
    Completed = "Completed"
    Failed = "Failed"
    Cancelled = "Cancelled"

    def is_terminal(self) -> bool:
        """True where it never changes any more."""
        return self not in (KernelState.Queued, KernelState.Launched)


@dataclass
class LaunchConfig:
    """Configuration of a launch. stream_id: a number of the caller's choice; each is a stream of its own of the"""

    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (256, 1, 1)
    shared_mem: int = 0
    stream_id: int = 0

    @staticmethod
    def linear(n_elements: SupportsIndex, block_size: SupportsIndex = 256) -> LaunchConfig:
        """A 1-D grid with a thread for each element."""
        request = AsyncKernelRequest.linear(0, n_elements, block_size)
        return LaunchConfig(request.grid, request.block)

    @staticmethod
    def grid_2d(grid_x: int, grid_y: int, block_x: int, block_y: int) -> LaunchConfig:
        """A 2-D grid of 2-D blocks."""
        request = AsyncKernelRequest(0).with_grid(grid_x, grid_y).with_block(block_x, block_y)
        return LaunchConfig(request.grid, request.block)


class KernelLaunchRequest:
    """One request, as it is at this moment. Times in seconds since the epoch; completed_at: when it was seen."""

    def __init__(
        self,
        id: int,
        kernel_handle: int,
        config: LaunchConfig,
        args: Sequence[Any],
        task_id: str | None,
        priority: int,
    ) -> None:
        self.id = id
        self.kernel_handle = kernel_handle
        self.config = LaunchConfig(config.grid, config.block, config.shared_mem, config.stream_id)
        self.args = list(args)
        self.task_id = task_id
        self.priority = priority
        self.queued_at = time.time()
        self.launched_at: float | None = None
        self._completed_at: float | None = None
        self._kernel: Any = kernel_of(kernel_handle)  # kept until it is launched
        self._future: KernelFuture | None = None
        self._end: KernelState | None = None
        self._error: str | None = None

    @property
    def state(self) -> KernelState:
        if self._end is None and self._future is not None:
            state = self._future.state
            if state in ("Completed", "Failed", "Cancelled"):
                self._end_as(KernelState(state), self._future.wait().error)
        return self._end or (KernelState.Queued if self._future is None else KernelState.Launched)

    @property
    def completed_at(self) -> float | None:
        return self._completed_at if self.state.is_terminal() else None

    @property
    def error(self) -> str | None:
        return self._error if self.state.is_terminal() else None

    def duration(self) -> float | None:
        """Seconds on the device; None before it has ended, and for one that was never launched."""
        return None if self._future is None else self._future.exec_time()

    def _end_as(self, state: KernelState, error: str | None) -> None:
        self._end, self._error, self._completed_at = state, error, time.time()
        self._kernel = None


@dataclass(frozen=True)
class DispatchStats:
    """Counts of requests; avg_exec_time in seconds on the device."""

    total_queued: int
    completed_count: int
    failed_count: int
    pending_count: int
    in_flight_count: int
    avg_exec_time: float
    launches_per_stream: dict[int, int]


class _Lane:
    """One stream: its waiting requests by priority, and while there are some, a thread that launches them in turn."""

    def __init__(self, stream_id: int, context: ExecutionContext) -> None:
        self._stream_id = stream_id
        self._context = context
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, int, KernelLaunchRequest]] = []
        self._runs = False
        self.launches = 0

    def put(self, request: KernelLaunchRequest) -> None:
        with self._lock:
            heapq.heappush(self._waiting, (-request.priority, request.id, request))
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._run, name="pygpukit-dispatch", daemon=True).start()

    def waiting(self) -> list[tuple[int, int, KernelLaunchRequest]]:
        with self._lock:
            return sorted(entry for entry in self._waiting if entry[2].state == KernelState.Queued)

    def in_flight(self, requests: list[KernelLaunchRequest]) -> list[int]:
        """Ids of those among the requests, which others may be of; none is launched while they are looked at."""
        with self._lock:
            mine = [request for request in requests if request.config.stream_id == self._stream_id]
            return [request.id for request in mine if request.state == KernelState.Launched]

    def cancel(self, request: KernelLaunchRequest) -> bool:
        with self._lock:
            if request.state != KernelState.Queued:
                return request._future is not None and request._future.cancel()
            request._end_as(KernelState.Cancelled, "cancelled before it was launched")
            return True

    def close(self) -> None:
        for _, _, request in self.waiting():
            self.cancel(request)
        self._context.destroy()

    def _run(self) -> None:
        while True:
            self._context.wait_for_room()  # so that a more urgent one may still come first
            with self._lock:
                while self._waiting and self._waiting[0][2].state != KernelState.Queued:
                    heapq.heappop(self._waiting)
                if not self._waiting:
                    self._runs = False
                    return
                request = heapq.heappop(self._waiting)[2]
                self._launch(request)

    def _launch(self, request: KernelLaunchRequest) -> None:
        config = request.config
        try:
            future = self._context.launch(
                request._kernel, config.grid, config.block, *request.args, shared_mem=config.shared_mem
            )
        except Exception as error:  # told where the request is looked at
            request._end_as(KernelState.Failed, f"{type(error).__name__}: {error}")
            return
        request.launched_at = time.time()
        request._kernel = None
        self.launches += 1
        request._future = future  # last: whoever sees it launched, or ended, sees when, and sees it counted


class KernelDispatcher:
    """Launches requests, on each stream the most urgent first and at most max_in_flight unfinished at a time."""

    def __init__(self, max_in_flight: int = 4) -> None:
        self._limit = units.parse_count(max_in_flight, "max_in_flight")
        self._contexts = Contexts()
        self._lanes: dict[int, _Lane] = {}
        self._requests: dict[int, KernelLaunchRequest] = {}
        self._ids = itertools.count(1)
        self._queued = 0

    def queue(
        self,
        kernel_handle: int,
        config: LaunchConfig,
        args: Sequence[Any] | None = None,
        task_id: str | None = None,
        priority: int = 0,
    ) -> int:
        """The id of a new request. kernel_handle: by scheduler.kernel_handle(); args: what the kernel takes."""
        urgency = units.parse_priority(priority)
        request = KernelLaunchRequest(next(self._ids), kernel_handle, config, args or (), task_id, urgency)
        lane = self._lanes.get(config.stream_id)
        if lane is None:
            context = self._contexts.create(f"stream {config.stream_id}", 0, None, 0, self._limit, "low")
            lane = self._lanes[config.stream_id] = _Lane(config.stream_id, context)
        self._requests[request.id] = request
        self._queued += 1
        lane.put(request)
        return request.id

    def queue_for_task(self, task_id: str, kernel_handle: int, config: LaunchConfig, args: Sequence[Any]) -> int:
        return self.queue(kernel_handle, config, args, task_id)

    def get_ready(self, max_requests: int) -> list[KernelLaunchRequest]:
        """The next that will be launched, in their order; nobody has to do it."""
        waiting = heapq.merge(*(lane.waiting() for lane in self._lanes.values()))
        return [request for _, _, request in itertools.islice(waiting, max_requests)]

    def cancel(self, req_id: int) -> bool:
        """True when it had not reached the device, and will not."""
        request = self._requests.get(req_id)
        return request is not None and self._lanes[request.config.stream_id].cancel(request)

    def get_request(self, req_id: int) -> KernelLaunchRequest | None:
        return self._requests.get(req_id)

    def get_in_flight(self, stream_id: int) -> list[int]:
        """Ids of those that were launched on a stream and have not ended."""
        lane = self._lanes.get(stream_id)
        return [] if lane is None else lane.in_flight(list(self._requests.values()))

    def get_requests_for_task(self, task_id: str) -> list[KernelLaunchRequest]:
        return [request for request in list(self._requests.values()) if request.task_id == task_id]

    def has_pending_work(self) -> bool:
        return any(not request.state.is_terminal() for request in list(self._requests.values()))

    def stats(self) -> DispatchStats:
        """Counts; ended requests that gc() forgot are only in total_queued and launches_per_stream."""
        completed = self._in(KernelState.Completed)
        seconds = sum(request.duration() or 0.0 for request in completed)
        return DispatchStats(
            total_queued=self._queued,
            completed_count=len(completed),
            failed_count=len(self._in(KernelState.Failed)),
            pending_count=len(self._in(KernelState.Queued)),
            in_flight_count=len(self._in(KernelState.Launched)),
            avg_exec_time=seconds / len(completed) if completed else 0.0,
            launches_per_stream={stream: lane.launches for stream, lane in self._lanes.items()},
        )

    def gc(self) -> None:
        """Forget the requests that have ended."""
        self._requests = {key: request for key, request in self._requests.items() if not request.state.is_terminal()}

    def clear(self) -> None:
        """Cancel what has not reached the device, and forget everything but the counts."""
        lanes, self._lanes, self._requests = self._lanes, {}, {}
        for lane in lanes.values():
            lane.close()

    def mark_launched(self, req_id: int) -> bool:
        """Deprecated, changes nothing: the dispatcher launches. Whether the request is known."""
        return self._known("mark_launched", req_id)

    def mark_completed(self, req_id: int) -> bool:
        """Deprecated, changes nothing: the device tells. Whether the request is known."""
        return self._known("mark_completed", req_id)

    def mark_failed(self, req_id: int, error: str) -> bool:
        """Deprecated, changes nothing: the device tells. Whether the request is known."""
        return self._known("mark_failed", req_id)

    def _in(self, state: KernelState) -> list[KernelLaunchRequest]:
        return [request for request in list(self._requests.values()) if request.state == state]

    def _known(self, method: str, req_id: int) -> bool:
        text = f"{method}() changes nothing: requests are launched and their end is seen without it"
        warnings.warn(text, DeprecationWarning, stacklevel=3)
        return req_id in self._requests
