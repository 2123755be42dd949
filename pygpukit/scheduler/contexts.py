"""Execution contexts for several models on shared devices: making them, finding them, sessions, and their figures."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, SupportsFloat, SupportsIndex, cast

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core import recording
from pygpukit.core import turns as core_turns
from pygpukit.core.backend import ensure
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.shortfall import Had
from pygpukit.core.stream import PriorityLike, Stream
from pygpukit.scheduler import turns, units
from pygpukit.scheduler.execution import ExecutionContext
from pygpukit.scheduler.forked import Inherited

_PPM = 1_000_000
_ENDED = 64  # contexts that dashboards still show


class ContextRecord(NamedTuple):
    """A context as dashboards show it, also after its end. max_vram 0: no limit of its own; ended_ns 0: it is there."""

    number: int
    name: str
    share: float
    max_vram: int
    gpu_ns: int
    asked_ns: int
    others_ns: int
    waited_ns: int
    created_ns: int
    ended_ns: int

    @staticmethod
    def of(context: ExecutionContext) -> ContextRecord:
        """The record of this moment."""
        fields = context.core.number, context.llm_id, context.share, context.max_vram
        return ContextRecord(*fields, 0, 0, 0, 0, context.created_ns, context.ended_ns).measured(context.core)

    def measured(self, core: _core.ModelContext) -> ContextRecord:
        """With its times as of now: what it gave the device before its end runs on."""
        _, _, gpu_ns, asked_ns, others_ns, waited_ns = core.work()
        return self._replace(gpu_ns=gpu_ns, asked_ns=asked_ns, others_ns=others_ns, waited_ns=waited_ns)

    @property
    def had(self) -> Had:
        """Its device time from its creation to its end."""
        span_ns = (self.ended_ns or _core.now_ns()) - self.created_ns
        return Had(span_ns, self.gpu_ns, self.asked_ns, self.others_ns, self.waited_ns, 0)


# Of those that ended, the newest; their cores hold figures alone.
_ended: deque[tuple[_core.ModelContext, ContextRecord]] = deque(maxlen=_ENDED)


@dataclass(frozen=True)
class SchedulerStats:
    """Contexts of one device at one moment, in bytes. stream_pool_size: streams that contexts have."""

    initialized: bool
    device_id: int
    total_vram_budget: int
    device_total_memory: int
    used_vram: int
    available_vram: int
    context_count: int
    stream_pool_size: int


class Contexts:
    """A set of contexts whose shares add up to at most a device, and whose limits to at most its budget of memory."""

    def __init__(self) -> None:
        self._core = _core.ModelContexts()
        self._lock = threading.Lock()
        self._contexts: dict[str, ExecutionContext] = {}
        self._device: int | None = None  # of initialize()
        self._sessions = 0
        _sets.add(self)

    def initialize(
        self,
        device_id: SupportsIndex = 0,
        device_total_memory: units.MemoryLike = 0,
        total_vram_budget: units.MemoryLike = 0,
    ) -> None:
        device = _device(device_id)
        asked = units.parse_memory(total_vram_budget, "total_vram_budget")
        known = units.parse_memory(device_total_memory, "device_total_memory")
        self._core.set_budget(device, asked or known or _total_memory(device))
        self._device = device

    def create(
        self,
        llm_id: str,
        max_vram: units.MemoryLike,
        share: SupportsFloat | None,
        device_id: SupportsIndex,
        max_in_flight: SupportsIndex,
        priority: PriorityLike,
        stream: Stream | None = None,
    ) -> ExecutionContext:
        name = units.parse_text(llm_id, "llm_id")
        limit = units.parse_memory(max_vram, "max_vram")
        share_ppm = units.parse_share(share, "share")
        in_flight = units.parse_count(max_in_flight, "max_in_flight")
        device = _device(device_id)
        with self._lock:
            if self._core.budget(device) is None:
                self._core.set_budget(device, _total_memory(device))
            core = self._core.create(name, limit, share_ppm, device)
            try:
                with _on_device(device):
                    stream = Stream(priority) if stream is None else stream
            except BaseException:
                self._core.destroy(name)
                core.close()
                raise
            context = ExecutionContext(self, core, stream, name, limit, share_ppm / _PPM, device, in_flight)
            self._contexts[name] = context
            recording.begin()
            return context

    def get(self, llm_id: str) -> ExecutionContext | None:
        return self._contexts.get(llm_id)

    def ids(self) -> list[str]:
        return self._core.ids()

    def all(self) -> list[ExecutionContext]:
        """Those that this process made, oldest first."""
        return [context for context in list(self._contexts.values()) if context._inherited is None]

    def resize(self, context: ExecutionContext, max_vram: units.MemoryLike, share: SupportsFloat | None) -> None:
        limit = None if max_vram is None else units.parse_memory(max_vram, "max_vram")
        share_ppm = None if share is None else units.parse_share(share, "share")
        with self._lock:
            if self._contexts.get(context.llm_id) is not context:
                raise context._destroyed()
            limit, share_ppm = self._core.resize(context.core, limit, share_ppm)
            context._set(limit, share_ppm / _PPM)

    def destroy(self, context: ExecutionContext) -> bool:
        with self._lock:
            if self._contexts.get(context.llm_id) is not context:
                return False
            self._core.destroy(context.llm_id)
            del self._contexts[context.llm_id]
        context._close()
        _ended.append((context.core, ContextRecord.of(context)))
        return True

    def memory(self, device: int) -> tuple[int, int]:
        """(held by all contexts of a device, their budget)."""
        return self._core.held(device)[0], self._core.budget(device) or 0

    def stats(self) -> SchedulerStats:
        device = self._device or 0
        total = _total_memory(device)
        used, budget = self.memory(device)
        here = sum(context.device_id == device for context in list(self._contexts.values()))
        return SchedulerStats(
            initialized=self._device is not None or bool(self._contexts),
            device_id=device,
            total_vram_budget=budget or total,
            device_total_memory=total,
            used_vram=used,
            available_vram=max(0, (budget or total) - used),
            context_count=len(self._contexts),
            stream_pool_size=here,
        )

    def reset(self) -> None:
        for context in list(self._contexts.values()):
            self.destroy(context)
        if self._device is not None:
            self._core.set_budget(self._device, _total_memory(self._device))
        self._device = None

    def disown(self) -> None:
        """In a forked child. A device that has contexts was opened, so that there can be no others here."""
        self._lock = threading.Lock()
        if not self._contexts:
            self._core = _core.ModelContexts()
            return
        remedy = 'start processes by multiprocessing.get_context("spawn"), and create contexts there'
        inherited = Inherited("these contexts", remedy)
        self._core = cast(_core.ModelContexts, inherited)
        for context in self._contexts.values():
            context._disown(inherited)

    @contextmanager
    def session(self) -> Iterator[None]:
        self.start_session()
        try:
            yield
        except BaseException:
            self._sessions -= 1
            raise
        self.end_session()

    def start_session(self) -> None:
        self._sessions += 1

    def end_session(self) -> None:
        self._sessions = max(0, self._sessions - 1)
        for context in list(self._contexts.values()):
            context.synchronize()

    def is_session_active(self) -> bool:
        return self._sessions > 0 or native.in_session()


class context_session:
    """`with context_session(context):` is `with context:`; takes the name of one of the process's contexts, too."""

    def __init__(self, ctx: ExecutionContext | str) -> None:
        context = get_context(ctx) if isinstance(ctx, str) else ctx
        if not isinstance(context, ExecutionContext):
            known = ", ".join(list_contexts()) or "none"
            raise InvalidSpecError(f"ctx={ctx!r} is no context; there are {known}", "ctx")
        self._context = context

    def __enter__(self) -> ExecutionContext:
        return self._context.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._context.end_session()

    async def __aenter__(self) -> ExecutionContext:
        return self._context.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._context.end_session()


# ---- the contexts of the process ----

_sets: weakref.WeakSet[Contexts] = weakref.WeakSet()
_contexts = Contexts()


def live_contexts() -> list[ExecutionContext]:
    """All contexts, oldest first, those of every MultiLLMController as well: for dashboards."""
    live = [context for contexts in list(_sets) for context in contexts.all()]
    return sorted(live, key=lambda context: context.core.number)


def context_records() -> list[ContextRecord]:
    """All contexts and the last that ended, oldest first: for dashboards."""
    records = [record.measured(core) for core, record in list(_ended)]
    return sorted(records + [ContextRecord.of(context) for context in live_contexts()])


def _disown_all() -> None:
    _ended.clear()
    for contexts in list(_sets):
        contexts.disown()


os.register_at_fork(after_in_child=_disown_all)
core_turns.set_giver(turns.give)  # code can be in a context only once this module is here


def initialize(
    device_id: SupportsIndex = 0,
    device_total_memory: units.MemoryLike = 0,
    total_vram_budget: units.MemoryLike = 0,
) -> None:
    """Set what all contexts of a device may hold together: total_vram_budget, else device_total_memory, else all of it.

    create_context() calls it when nobody did. Raises InvalidSpecError naming the field, and OutOfMemoryError when
    contexts were promised more already.
    """
    _contexts.initialize(device_id, device_total_memory, total_vram_budget)


def create_context(
    llm_id: str,
    max_vram: units.MemoryLike = 0,
    share: SupportsFloat | None = None,
    *,
    device_id: SupportsIndex = 0,
    max_in_flight: SupportsIndex = 64,
    priority: PriorityLike = "low",
) -> ExecutionContext:
    """A context of its own for a model: a stream, a tenant of the pacing gate, and an account in the memory pool.

    llm_id: its name, and its tenant's in dashboards and errors. max_vram: bytes or "4GB", the most that code in its
    sessions can hold, whatever it calls; 0 = only the budget of all contexts. share: of the device's time from 0 to 1,
    while others want it too; None takes what is left over. max_in_flight: commands that may be unfinished at a time.
    priority: of the stream, "low" or "high".

    Raises InvalidSpecError naming the field (a name that is taken, shares over 1 in sum), and OutOfMemoryError when
    the limits are over the budget in sum; nothing changes then.
    """
    return _contexts.create(llm_id, max_vram, share, device_id, max_in_flight, priority)


def get_context(llm_id: str) -> ExecutionContext | None:
    """The context of that name, None when there is none."""
    return _contexts.get(llm_id)


def resize_context(llm_id: str, *, max_vram: units.MemoryLike = None, share: SupportsFloat | None = None) -> None:
    """ExecutionContext.resize() of the context of that name. Raises as that does, and InvalidSpecError for another."""
    context = _contexts.get(llm_id)
    if context is None:
        known = ", ".join(map(repr, list_contexts())) or "none"
        raise InvalidSpecError(f"llm_id={llm_id!r} is no context; there are {known}", "llm_id")
    context.resize(max_vram=max_vram, share=share)


def destroy_context(llm_id: str) -> bool:
    """ExecutionContext.destroy() of the context of that name; False when there is none."""
    context = _contexts.get(llm_id)
    return context is not None and context.destroy()


def list_contexts() -> list[str]:
    """The names of all contexts, sorted."""
    return _contexts.ids()


def session() -> AbstractContextManager[None]:
    """`with session():` waits at its end, unless by an exception, until all contexts have done what they were given."""
    return _contexts.session()


def is_session_active() -> bool:
    """True if session() is open, or the running code is in a session of a context."""
    return _contexts.is_session_active()


def stats() -> SchedulerStats:
    """Figures of the contexts of initialize()'s device, read from its pool."""
    return _contexts.stats()


def reset() -> None:
    """Destroy all contexts and forget the budget."""
    _contexts.reset()


def _device(device_id: SupportsIndex) -> int:
    device = units.parse_memory(device_id, "device_id")  # a whole number, 0 or more
    ensure()
    count = native.device_count()
    if device >= count:
        raise InvalidSpecError(f"device_id={device_id!r} does not exist; there are {count}", "device_id")
    return device


@contextmanager
def _on_device(device: int) -> Iterator[None]:
    before = native.current_device()
    native.set_device(device)
    try:
        yield
    finally:
        native.set_device(before)


def _total_memory(device: int) -> int:
    ensure()
    with _on_device(device):
        return native.memory_info()[1]
