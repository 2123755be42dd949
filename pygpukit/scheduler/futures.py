"""Commands of execution contexts: requests that name a kernel by its handle, and futures that tell how they ended."""

from __future__ import annotations

import asyncio
import itertools
import weakref
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, SupportsIndex

from pygpukit._core import native
from pygpukit.core.errors import DriverError, InvalidSpecError
from pygpukit.scheduler import units

if TYPE_CHECKING:
    from pygpukit.jit import JITKernel

_NS = 1_000_000_000
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 20e-6, 1e-3
_handles: weakref.WeakValueDictionary[int, JITKernel] = weakref.WeakValueDictionary()
_numbers: weakref.WeakKeyDictionary[JITKernel, int] = weakref.WeakKeyDictionary()
_count = itertools.count(1)


def kernel_handle(kernel: JITKernel) -> int:
    """The number by which requests name a kernel. No two kernels ever have the same; it holds as long as the kernel.

    Raises InvalidSpecError (field "kernel") for what is no kernel.
    """
    check_kernel(kernel)
    handle = _numbers.get(kernel)
    if handle is None:
        handle = _numbers.setdefault(kernel, next(_count))
        _handles[handle] = kernel
    return handle


def check_kernel(kernel: object) -> None:
    """Raises InvalidSpecError for what gp.jit() did not make."""
    from pygpukit.jit import JITKernel

    if not isinstance(kernel, JITKernel):
        raise InvalidSpecError(f"kernel={kernel!r} is no kernel; make one: gp.jit(source, func=...)", "kernel")


def kernel_of(handle: object) -> JITKernel:
    """The kernel of a handle. Raises InvalidSpecError (field "kernel_handle") for any other number."""
    kernel = _handles.get(handle) if isinstance(handle, int) else None
    if kernel is None:
        raise InvalidSpecError(
            f"kernel_handle={handle!r} is no handle of a kernel, or of one that is gone; get it from "
            "pygpukit.scheduler.kernel_handle(kernel), and keep the kernel",
            "kernel_handle",
        )
    return kernel


def _extents(x: SupportsIndex, y: SupportsIndex, z: SupportsIndex, field: str) -> tuple[int, int, int]:
    return units.parse_count(x, field), units.parse_count(y, field), units.parse_count(z, field)


@dataclass(frozen=True)
class AsyncKernelRequest:
    """A launch to be made: ExecutionContext.dispatch_async() takes it. Each with_...() gives a changed copy.

    kernel_handle: of kernel_handle(kernel). args: what the kernel takes, arrays as arrays and never as addresses.
    """

    kernel_handle: int
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (256, 1, 1)
    shared_mem: int = 0
    args: tuple[Any, ...] = ()

    @classmethod
    def linear(
        cls, kernel_handle: int, n_elements: SupportsIndex, block_size: SupportsIndex = 256
    ) -> AsyncKernelRequest:
        """A 1-D grid with a thread for each element. Raises InvalidSpecError naming the field."""
        threads = units.parse_count(block_size, "block_size")
        blocks = -(-units.parse_count(n_elements, "n_elements") // threads)
        return cls(kernel_handle, (blocks, 1, 1), (threads, 1, 1))

    def with_grid(self, x: SupportsIndex, y: SupportsIndex = 1, z: SupportsIndex = 1) -> AsyncKernelRequest:
        """So many blocks. Raises InvalidSpecError."""
        return replace(self, grid=_extents(x, y, z, "grid"))

    def with_block(self, x: SupportsIndex, y: SupportsIndex = 1, z: SupportsIndex = 1) -> AsyncKernelRequest:
        """Blocks of so many threads. Raises InvalidSpecError."""
        return replace(self, block=_extents(x, y, z, "block"))

    def with_shared_mem(self, bytes: SupportsIndex) -> AsyncKernelRequest:
        """So much dynamic shared memory a block. Raises InvalidSpecError."""
        return replace(self, shared_mem=units.parse_memory(bytes, "shared_mem"))

    def with_args(self, args: Sequence[Any]) -> AsyncKernelRequest:
        """These arguments; they are checked against the kernel's signature when it is dispatched."""
        return replace(self, args=tuple(args))


@dataclass(frozen=True)
class KernelResult:
    """The end of a command. error: why it did not succeed. exec_time: seconds on the device, 0.0 where it got none."""

    success: bool
    error: str | None
    exec_time: float
    output: bytes | None = None  # commands have none: they write into arrays
    exception: BaseException | None = None  # with its fields, where the device told of a fault


class KernelFuture:
    """A command that was submitted: wait() for it or await it. Letting go of it changes nothing for the command; to
    cancel the asyncio task that awaits it is to cancel() it.

    context_id, stream_id: where it was submitted. id: unique in the process.
    """

    __slots__ = ("__weakref__", "_exception", "_ticket", "context_id", "id", "stream_id")
    _ids = itertools.count(1)

    def __init__(self, ticket: native.Ticket, context_id: str, stream_id: int) -> None:
        self._ticket = ticket
        self._exception: DriverError | None = None
        self.id: int = next(self._ids)
        self.context_id = context_id
        self.stream_id = stream_id

    @property
    def state(self) -> str:
        """Pending (waits for its turn), Running (the device has it), Completed, Failed or Cancelled."""
        self.try_get()  # a fault shows only when it is asked for
        return self._ticket.state

    def is_ready(self) -> bool:
        """True once it has ended, however. Does not wait."""
        return self._ticket.done()

    def wait(self) -> KernelResult:
        """Wait until it has ended, and say how; a failure is in the result, not raised. Ctrl-C interrupts the wait."""
        try:
            self._ticket.wait()
        except DriverError as fault:
            self._exception = fault
            self._ticket.fail(str(fault))
        success = self._ticket.state == "Completed"
        error = None if success else self._ticket.error
        return KernelResult(success, error, self.exec_time() or 0.0, exception=self._exception)

    def try_get(self) -> KernelResult | None:
        """The result, None before it has ended. Does not wait."""
        return self.wait() if self.is_ready() else None

    def exec_time(self) -> float | None:
        """Seconds on the device, between two events; None before it has ended, or if it never ran there."""
        nanoseconds = self._ticket.exec_ns
        return None if nanoseconds is None else nanoseconds / _NS

    def cancel(self) -> bool:
        """True: nothing of it had reached the device, and nothing will. False: too late."""
        return self._ticket.cancel()

    def __await__(self) -> Generator[Any, None, KernelResult]:
        return self._wait_in_loop().__await__()

    async def _wait_in_loop(self) -> KernelResult:
        pause = 0.0
        try:
            while not self.is_ready():
                await asyncio.sleep(pause)
                pause = min(2 * pause or _FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        except asyncio.CancelledError:
            self.cancel()
            raise
        return self.wait()

    def __repr__(self) -> str:
        return f"KernelFuture(id={self.id}, context_id={self.context_id!r}, state={self.state!r})"
