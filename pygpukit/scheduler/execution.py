"""ExecutionContext: one model's part of a device, with a stream, a compute share and a hard limit on memory."""

from __future__ import annotations

import threading
import warnings
from collections import Counter, deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, SupportsFloat, cast

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import ContextDestroyedError, InvalidSpecError
from pygpukit.core.graph import Graph
from pygpukit.core.shortfall import Had, shortfall
from pygpukit.core.stream import Stream
from pygpukit.scheduler import units
from pygpukit.scheduler.forked import Inherited
from pygpukit.scheduler.futures import AsyncKernelRequest, KernelFuture, check_kernel, kernel_of

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.jit import JITKernel
    from pygpukit.scheduler.contexts import Contexts

_PPM = 1_000_000
_inside: ContextVar[tuple[ExecutionContext, ...]] = ContextVar("pygpukit.contexts", default=())


def current_context() -> ExecutionContext | None:
    """The context whose session the running code is in, the innermost one; None outside of sessions."""
    inside = _inside.get()
    return inside[0] if inside and inside[0]._inherited is None else None


@dataclass(frozen=True)
class ContextStats:
    """Figures of a context at one moment, read from the pool and the gate. Bytes, nanoseconds, fractions of the device.

    used_vram counts blocks as the pool cuts them, evicted ones too. max_vram 0: no limit of its own. launches: given to
    the device; paced: of those, held back for a turn; waited_ns: so long. shortfall: why it had less since it was made
    than it was promised, in the words of Task.stats(); "" where it had that.
    """

    llm_id: str
    state: str  # "Running" while code is in a session or a command is unfinished, else "Idle"
    stream_id: int
    max_vram: int
    used_vram: int
    available_vram: int
    buffer_count: int
    peak_vram: int
    launches: int
    paced: int
    gpu_ns: int
    waited_ns: int
    share: float
    share_10ms: float
    share_100ms: float
    share_1s: float
    shortfall: str = ""


@dataclass(frozen=True)
class CommandStats:
    """Commands of a context by what became of them; exec_time in seconds on the device."""

    dispatched: int
    pending: int
    running: int
    completed: int
    failed: int
    cancelled: int
    avg_exec_time: float


class ExecutionContext:
    """One model's part of a device; pygpukit.scheduler.create_context() makes it.

    `with context:` (or `async with`) is a session: all code of pygpukit in it, and in functions it calls, works on the
    context's stream, at its share, and allocates within its limit. Sessions belong to the running task or thread:
    asyncio tasks in different sessions do not mix, and asyncio.to_thread() takes the session along.

    launch(), copy() and replay() submit single commands without a session, and return futures.
    """

    def __init__(
        self,
        owner: Contexts,
        core: _core.ModelContext,
        stream: Stream,
        llm_id: str,
        max_vram: int,
        share: float,
        device_id: int,
        max_in_flight: int,
    ) -> None:
        self.llm_id = llm_id
        self._max_vram = max_vram
        self._share = share
        self.device_id = device_id
        self.max_in_flight = max_in_flight
        self.stream = stream
        self.stream_id = stream.id
        self._owner = owner
        self._inherited: Inherited | None = None
        self.core = core
        self.created_ns = _core.now_ns()
        self.ended_ns = 0
        self._session = native.Session(llm_id, stream.native, device_id, core.tenant, core.account, core.handle, core)
        self._lock = threading.Lock()  # over what follows
        self._entered = 0
        self._unfinished: deque[KernelFuture] = deque()
        self._ended: Counter[str] = Counter()
        self._exec_s = 0.0

    # ---- limits ----

    @property
    def max_vram(self) -> int:
        """The most bytes that it can hold, 0 for no limit of its own; changing it is resize()."""
        return self._max_vram

    @property
    def share(self) -> float:
        """Its promised share of the device's time, from 0 to 1; changing it is resize()."""
        return self._share

    def resize(self, *, max_vram: units.MemoryLike = None, share: SupportsFloat | None = None) -> None:
        """Another limit on memory, another share, or both, from now on, whatever runs; None leaves one as it is.

        max_vram: bytes or "4GB", 0 for no limit of its own. share: from 0 to 1, 0 for what is left over; work that
        waits for its turn is paced by it as well. Raises InvalidSpecError naming the field (less than it holds, more
        than others leave), OutOfMemoryError when the limits are over the budget in sum, and ContextDestroyedError;
        nothing changes then.
        """
        self._owner.resize(self, max_vram, share)

    # ---- sessions ----

    def start_session(self) -> None:
        """The running task or thread is in the context from now on. Raises ContextDestroyedError."""
        self._enter()
        with self._lock:
            self._entered += 1

    def end_session(self) -> None:
        """Back to where start_session() was called; work under way goes on. Raises GPUError outside of the session."""
        self._leave()
        with self._lock:
            self._entered -= 1

    def is_session_active(self) -> bool:
        """True if any code is in a session of the context."""
        return self._entered > 0

    def __enter__(self) -> ExecutionContext:
        self.start_session()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end_session()

    async def __aenter__(self) -> ExecutionContext:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end_session()

    # ---- commands ----

    def launch(self, kernel: JITKernel, grid: Any, block: Any, *args: Any, shared_mem: int = 0) -> KernelFuture:
        """Submit a launch: the gate gives it to the device at the context's turn, and no Python waits for that.

        Commands of a context and what its sessions launch keep their order. Waits while max_in_flight commands are
        unfinished. Raises InvalidSpecError and KernelArgumentError, naming what is wrong, before anything is submitted.
        """
        check_kernel(kernel)
        return self._submit(kernel[grid, block, shared_mem], *args)

    def copy(self, dst: GPUArray, src: GPUArray) -> KernelFuture:
        """Submit dst[...] = src on the device. Raises as gp.copyto() does, before anything is submitted."""
        from pygpukit.ops.copying import copy_to

        return self._submit(copy_to, src, dst)

    def replay(self, graph: Graph) -> KernelFuture:
        """Submit a graph. Raises InvalidSpecError for anything else, and as graph.launch()."""
        if not isinstance(graph, Graph):
            raise InvalidSpecError(f"graph={graph!r} is no Graph; capture one with stream.capture()", "graph")
        return self._submit(graph.launch)

    def dispatch_async(self, request: AsyncKernelRequest) -> KernelFuture:
        """Submit a request. Raises InvalidSpecError for an unknown handle, else as launch()."""
        if not isinstance(request, AsyncKernelRequest):
            raise InvalidSpecError(f"request={request!r} is no AsyncKernelRequest", "request")
        kernel = kernel_of(request.kernel_handle)
        return self.launch(kernel, request.grid, request.block, *request.args, shared_mem=request.shared_mem)

    def _enter(self) -> None:
        """Raises RuntimeError in a forked child."""
        if self._inherited is not None:
            self._inherited.refuse()
        self._session.enter()
        _inside.set((self, *_inside.get()))

    def _leave(self) -> None:
        self._session.leave()
        _inside.set(_inside.get()[1:])

    def _submit(self, call: Callable[..., Any], *args: Any) -> KernelFuture:
        self.wait_for_room()
        self._enter()
        try:
            ticket = native.dispatch(call, *args)
        finally:
            self._leave()
        future = KernelFuture(ticket, self.llm_id, self.stream_id)
        with self._lock:
            self._unfinished.append(future)
        return future

    def wait_for_room(self) -> None:
        """Wait until fewer than max_in_flight commands are unfinished. Ctrl-C interrupts the wait."""
        while True:
            unfinished = self.unfinished()
            if len(unfinished) < self.max_in_flight:
                return
            unfinished[0].wait()

    def unfinished(self) -> list[KernelFuture]:
        """Commands that have not ended, in the order of their submission."""
        with self._lock:
            for future in [future for future in self._unfinished if future.is_ready()]:
                self._unfinished.remove(future)
                result = future.wait()  # it has ended
                self._ended[future.state] += 1
                self._exec_s += result.exec_time
            return list(self._unfinished)

    def synchronize(self) -> None:
        """Wait until all work of the context is done. Ctrl-C interrupts the wait. Errors as gp.synchronize()."""
        self._check_open()
        self.stream.synchronize()

    # ---- figures ----

    @property
    def stats(self) -> ContextStats | None:
        """Figures of this moment; None once the context is destroyed."""
        if not self._session.open:
            return None
        used, peak, blocks, _ = self.core.held()
        launches, paced, gpu_ns, asked_ns, others_ns, waited_ns = self.core.work()
        had = Had(_core.now_ns() - self.created_ns, gpu_ns, asked_ns, others_ns, waited_ns, 0)
        shares = [ppm / _PPM for ppm in self.core.shares_ppm()]
        total_used, budget = self._owner.memory(self.device_id)
        left = budget - total_used
        return ContextStats(
            llm_id=self.llm_id,
            state="Running" if self.is_session_active() or self.unfinished() else "Idle",
            stream_id=self.stream_id,
            max_vram=self.max_vram,
            used_vram=used,
            available_vram=max(0, min(left, self.max_vram - used) if self.max_vram else left),
            buffer_count=blocks,
            peak_vram=peak,
            launches=launches,
            paced=paced,
            gpu_ns=gpu_ns,
            waited_ns=waited_ns,
            share=self.share,
            share_10ms=shares[0],
            share_100ms=shares[1],
            share_1s=shares[2],
            shortfall=shortfall(self.share, had).value,
        )

    def command_stats(self) -> CommandStats:
        """Counts of launch(), copy(), replay() and dispatch_async() by what became of them."""
        states = Counter(future.state for future in self.unfinished())
        with self._lock:
            ended, exec_s = self._ended.copy(), self._exec_s
        counts = states + ended
        completed = counts["Completed"]
        return CommandStats(
            dispatched=counts.total(),
            pending=counts["Pending"],
            running=counts["Running"],
            completed=completed,
            failed=counts["Failed"],
            cancelled=counts["Cancelled"],
            avg_exec_time=exec_s / completed if completed else 0.0,
        )

    # ---- the end ----

    def destroy(self) -> bool:
        """Let go of stream, share and limit. False when it was destroyed before.

        Commands that wait for their turn are cancelled, what the device has runs on, and arrays stay. Code that is
        still in a session gets ContextDestroyedError from then on.
        """
        return self._owner.destroy(self)

    def _set(self, max_vram: int, share: float) -> None:
        self._max_vram, self._share = max_vram, share

    def _disown(self, inherited: Inherited) -> None:
        """In a forked child, which has neither the gate's threads nor, for certain, the locks; sessions can end."""
        self._inherited = inherited
        self.core = cast(_core.ModelContext, inherited)
        self._lock = threading.Lock()
        for future in self._unfinished:
            future._ticket = cast(native.Ticket, inherited)

    def _close(self) -> None:
        self.ended_ns = _core.now_ns()
        self._session.close()
        self.core.close()

    def _check_open(self) -> None:
        if not self._session.open:
            raise self._destroyed()

    def _destroyed(self) -> ContextDestroyedError:
        return ContextDestroyedError(f"context {self.llm_id!r} was destroyed; create it again")

    def track_allocation(self, buffer_id: int, size: int) -> bool:
        """Deprecated, changes nothing: the pool counts what is allocated in sessions. Whether so much would fit."""
        _warn("track_allocation")
        stats = self.stats
        return stats is not None and 0 <= size <= stats.available_vram

    def track_deallocation(self, buffer_id: int) -> None:
        """Deprecated, changes nothing: the pool counts what is freed."""
        _warn("track_deallocation")

    def __repr__(self) -> str:
        state = "" if self._session.open else ", destroyed"
        return f"ExecutionContext({self.llm_id!r}, stream_id={self.stream_id}, share={self.share}{state})"


def _warn(method: str) -> None:
    text = f"{method}() changes nothing: the pool itself counts what is allocated in a session of the context"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
