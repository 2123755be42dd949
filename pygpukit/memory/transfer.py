"""Transfer: one asynchronous copy, to wait for, await or cancel."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import TransferCancelledError, driver_error

if TYPE_CHECKING:
    from pygpukit._core import TransferInfo
    from pygpukit.memory.transfer_engine import TransferEngine

_WAYS = {"H2D": "to the device", "D2H": "to the host", "D2D": "on the device", "P2P": "to another device"}
ENDED = ("Completed", "Failed", "Cancelled")


class Transfer:
    """A copy that a TransferEngine was asked for. What it copies from and to stays alive until it has ended."""

    __slots__ = ("__weakref__", "_arrays", "_engine", "_final", "_futures", "_kept", "_target", "direction", "id",
                 "nbytes", "priority")  # fmt: skip

    def __init__(self, engine: TransferEngine, direction: str, nbytes: int, priority: int, target: Any) -> None:
        self.id = 0
        self.direction = direction
        self.nbytes = nbytes
        self.priority = priority
        self._engine = engine
        self._target = target
        self._arrays: list[Any] = []  # pinned on the device
        self._kept: list[Any] = []  # kept alive
        self._final: TransferInfo | None = None
        self._futures: list[concurrent.futures.Future[Any]] = []

    @property
    def info(self) -> TransferInfo:
        """A transfer's progress: state, landed bytes, and times in ns of the event ring's clock (0 = not yet)."""
        progress = self._final or self._engine.core.info(self.id) or self._final  # it may end between two looks
        assert progress is not None, "a transfer is forgotten only after its end was noted"
        return progress

    @property
    def state(self) -> str:
        """Queued, InProgress, Completed, Failed or Cancelled."""
        return self.info.state

    @property
    def done(self) -> bool:
        """True once it has ended, in whatever way."""
        return self.state in ENDED

    def cancel(self) -> bool:
        """Copy no more of it than is with the device already. False when nothing was left to issue."""
        return self._engine.core.cancel(self.id)

    def wait(self, timeout: float | None = None) -> Any:
        """Wait until it has ended; what was copied to. Ctrl-C interrupts the wait, not the transfer.

        timeout: seconds. Raises TimeoutError after it, DriverError when the device refused a piece, and
        TransferCancelledError when it was cancelled.
        """
        if self._final is None:
            info = self._engine.core.wait(self.id, timeout)
            if info is not None:
                if info.state not in ENDED:
                    raise TimeoutError(f"{self} is still {info.state} after {timeout} s")
                self._engine._settle(info)
        return self._outcome()

    def __await__(self) -> Generator[Any, None, Any]:
        """As wait(). To cancel the asyncio task that awaits it is to cancel() it."""
        import asyncio

        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        future.add_done_callback(lambda ended: ended.cancelled() and self.cancel())
        self._engine._tell(self, future)
        return asyncio.wrap_future(future).__await__()

    def stats(self) -> dict[str, Any]:
        """Its figures: state, bytes, and seconds: waited before the first piece, took from then on, on the device.

        gbps: over the time on the device; 0.0 while nothing has landed.
        """
        info = self.info
        until = info.started_ns or info.ended_ns
        return {
            "state": info.state,
            "direction": info.direction,
            "nbytes": info.nbytes,
            "landed": info.landed,
            "priority": info.priority,
            "waited_s": (until - info.queued_ns) * 1e-9 if until else 0.0,
            "took_s": (info.ended_ns - info.started_ns) * 1e-9 if info.started_ns and info.ended_ns else 0.0,
            "device_s": info.device_ns * 1e-9,
            "gbps": info.landed / info.device_ns if info.device_ns else 0.0,
        }

    def __str__(self) -> str:
        return f"transfer {self.id} of {self.nbytes} bytes {_WAYS[self.direction]}"

    def __repr__(self) -> str:
        return f"Transfer(id={self.id}, {self.direction}, nbytes={self.nbytes}, {self.state})"

    # ---- for the engine ----

    def _end(self, info: TransferInfo) -> list[concurrent.futures.Future[Any]]:
        """It has ended; who is to be told."""
        self._final = info
        futures, self._futures = self._futures, []
        return futures

    def _outcome(self) -> Any:
        info = self._final
        assert info is not None, "the outcome is asked for at the end"
        if info.state == "Completed":
            return self._target
        if info.error is not None:
            self._engine.core.forget(self.id)  # it is told now: the array's next use need not
            raise driver_error(f"{self} failed after {info.landed} bytes: {info.error[1]}", info.error[0])
        raise TransferCancelledError(f"{self} was cancelled after {info.landed} bytes", info.landed)

    def _answer(self, future: concurrent.futures.Future[Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(self._outcome())
        except Exception as error:
            future.set_exception(error)
