"""The documented classes of several models on one device, over pygpukit.scheduler's contexts."""

from __future__ import annotations

import warnings
from enum import Enum

from pygpukit.core.errors import OutOfMemoryError
from pygpukit.scheduler.contexts import Contexts
from pygpukit.scheduler.contexts import SchedulerStats as ControllerStats
from pygpukit.scheduler.execution import CommandStats, ContextStats, ExecutionContext
from pygpukit.scheduler.futures import AsyncKernelRequest, KernelFuture, KernelResult

__all__ = [
    "AsyncExecStats",
    "AsyncKernelRequest",
    "ContextState",
    "ContextStats",
    "ControllerStats",
    "FutureState",
    "KernelFuture",
    "KernelResult",
    "MultiLLMController",
]


_REMEMBERED = 1000


class ContextState(str, Enum):
    """States of a context; they compare equal to ContextStats.state. No context is ever Paused."""

    Idle = "Idle"
    Running = "Running"
    Paused = "Paused"


class FutureState(str, Enum):
    """States of a command; they compare equal to KernelFuture.state."""

    Pending = "Pending"
    Running = "Running"
    Completed = "Completed"
    Failed = "Failed"
    Cancelled = "Cancelled"


class AsyncExecStats:
    """Commands of a context by what became of them; avg_exec_time in seconds."""

    def __init__(self, stats: CommandStats) -> None:
        self.total_dispatched = stats.dispatched
        self.pending_count = stats.pending
        self.running_count = stats.running
        self.completed_count = stats.completed
        self.failed_count = stats.failed
        self.cancelled_count = stats.cancelled
        self.avg_exec_time = stats.avg_exec_time


class MultiLLMController:
    """Contexts by name, each controller with its own. Unknown names raise ValueError where no None is documented."""

    def __init__(self) -> None:
        self._contexts = Contexts()
        self._futures: dict[tuple[str, int], KernelFuture] = {}

    def initialize(self, device_id: int = 0, device_total_memory: int = 0, total_vram_budget: int = 0) -> None:
        self._contexts.initialize(device_id, device_total_memory, total_vram_budget)

    def is_initialized(self) -> bool:
        return self._contexts.stats().initialized

    def create_context(self, llm_id: str, max_vram: int = 0, share: float | None = None) -> int:
        """The id of its stream. share: of the device's time, as create_context() of pygpukit.scheduler."""
        device = self._contexts.stats().device_id
        return self._contexts.create(llm_id, max_vram, share, device, 64, "low").stream_id

    def get_context(self, llm_id: str) -> ContextStats | None:
        context = self._contexts.get(llm_id)
        return None if context is None else context.stats

    def destroy_context(self, llm_id: str) -> bool:
        context = self._contexts.get(llm_id)
        self._futures = {key: future for key, future in self._futures.items() if key[0] != llm_id}
        return context is not None and context.destroy()

    def list_contexts(self) -> list[str]:
        return self._contexts.ids()

    def context_count(self) -> int:
        return len(self._contexts.ids())

    def get_stream_id(self, llm_id: str) -> int | None:
        context = self._contexts.get(llm_id)
        return None if context is None else context.stream_id

    def track_allocation(self, llm_id: str, buffer_id: int, size: int) -> bool:
        """Deprecated, changes nothing. Raises MemoryError when so much would not fit."""
        fits = self._named(llm_id).track_allocation(buffer_id, size)
        if not fits:
            raise OutOfMemoryError(f"{size} bytes do not fit into what context {llm_id!r} may hold", size)
        return fits

    def track_deallocation(self, llm_id: str, buffer_id: int) -> None:
        """Deprecated, changes nothing."""
        self._named(llm_id).track_deallocation(buffer_id)

    def used_vram(self) -> int:
        return self._contexts.stats().used_vram

    def available_vram(self) -> int:
        return self._contexts.stats().available_vram

    def start_session(self) -> None:
        self._contexts.start_session()

    def end_session(self) -> None:
        self._contexts.end_session()

    def is_session_active(self) -> bool:
        return self._contexts.is_session_active()

    def start_context_session(self, llm_id: str) -> bool:
        """The calling thread or asyncio task works in the context from now on. False for an unknown name."""
        context = self._contexts.get(llm_id)
        if context is not None:
            context.start_session()
        return context is not None

    def end_context_session(self, llm_id: str) -> bool:
        context = self._contexts.get(llm_id)
        if context is not None:
            context.end_session()
        return context is not None

    def is_context_session_active(self, llm_id: str) -> bool | None:
        context = self._contexts.get(llm_id)
        return None if context is None else context.is_session_active()

    def stats(self) -> ControllerStats:
        return self._contexts.stats()

    def reset(self) -> None:
        self._futures.clear()
        self._contexts.reset()

    # ---- commands ----

    def dispatch_async(self, llm_id: str, request: AsyncKernelRequest) -> KernelFuture:
        future = self._named(llm_id).dispatch_async(request)
        self._remember(future)
        return future

    def get_pending_futures(self, llm_id: str) -> list[int] | None:
        """Ids of the commands that have not ended."""
        context = self._contexts.get(llm_id)
        return None if context is None else [future.id for future in context.unfinished()]

    def get_future(self, llm_id: str, future_id: int) -> KernelFuture | None:
        """One of the last thousand, or one that has not ended."""
        return self._futures.get((llm_id, future_id))

    def cancel_future(self, llm_id: str, future_id: int) -> bool:
        """True when nothing of it had reached the device."""
        future = self._futures.get((llm_id, future_id))
        return future is not None and future.cancel()

    def async_stats(self, llm_id: str) -> AsyncExecStats | None:
        context = self._contexts.get(llm_id)
        return None if context is None else AsyncExecStats(context.command_stats())

    def mark_future_launched(self, llm_id: str, future_id: int) -> None:
        """Deprecated, changes nothing: the gate launches."""
        _warn("mark_future_launched")

    def mark_future_completed(self, llm_id: str, future_id: int, exec_time: float) -> None:
        """Deprecated, changes nothing: the device tells."""
        _warn("mark_future_completed")

    def mark_future_failed(self, llm_id: str, future_id: int, error: str) -> None:
        """Deprecated, changes nothing: the device tells."""
        _warn("mark_future_failed")

    def _named(self, llm_id: str) -> ExecutionContext:
        context = self._contexts.get(llm_id)
        if context is None:
            raise ValueError(f"no context {llm_id!r}; there are {', '.join(self._contexts.ids()) or 'none'}")
        return context

    def _remember(self, future: KernelFuture) -> None:
        self._futures[future.context_id, future.id] = future
        while len(self._futures) > _REMEMBERED:
            oldest = next(iter(self._futures))
            if not self._futures[oldest].is_ready():
                return
            del self._futures[oldest]


def _warn(method: str) -> None:
    text = f"{method}() changes nothing: commands are launched and their end is seen without it"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
