"""TransferEngine: copies of a device beside compute, by priority, in pieces that urgent ones pass."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.device import current_device
from pygpukit.core.dtypes import DataType
from pygpukit.core.errors import DeviceMismatchError, DTypeError, InvalidSpecError, ShapeError
from pygpukit.core.event import Event
from pygpukit.memory.pageable import pinned_or_pageable
from pygpukit.memory.transfer import ENDED, Transfer

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.core.stream import Stream

_LINGER_S = 0.5  # so long the thread that lets go of arrays waits for more
After = Event | Transfer | Sequence[Event | Transfer]


class TransferEngine:
    """Asynchronous copies on streams of their own: to the device, to the host, on the device, and to other devices.

    Transfers of higher priority go first, equal ones in their order; each is cut into pieces of chunk_bytes, and at
    most in_flight_bytes a direction are with the device, so that an urgent copy passes what is left of a large one.
    A transfer begins after what its stream and its array's own have by now; later uses of the array wait for it.
    Pinned memory (pinned_empty) is copied at full speed; other NumPy arrays work, through the driver's own buffers.

    Raises InvalidSpecError for sizes that cannot be. The device is the current one.
    """

    def __init__(self, *, chunk_bytes: int = 4 << 20, in_flight_bytes: int = 12 << 20) -> None:
        self.chunk_bytes = chunk_bytes
        self.in_flight_bytes = in_flight_bytes
        self.core = _core.TransferCore(native.current_device(), chunk_bytes, in_flight_bytes)
        self._lock = threading.Lock()
        self._live: dict[int, Transfer] = {}
        self._reaper: threading.Thread | None = None

    @property
    def device(self) -> int:
        """The device that it copies to and from."""
        return self.core.device

    def to_device(
        self,
        array: GPUArray,
        source: np.ndarray[Any, Any],
        *,
        priority: int = 0,
        stream: Stream | None = None,
        after: After = (),
    ) -> Transfer:
        """Copy a NumPy array into a device array of the same shape and type.

        source must not change until the transfer has ended. stream: whose work so far comes first, by default the
        current one. after: events and transfers that come first, too. Raises ShapeError, DTypeError or
        DeviceMismatchError when the arrays do not fit, GPUError while the stream is captured.
        """
        self._check_device(array, "array")
        address = _host_address(source, array, "source", writable=False)
        return self._submit("H2D", array, [array], source, (None, address), priority, stream, after)

    def to_host(
        self,
        array: GPUArray,
        target: np.ndarray[Any, Any] | None = None,
        *,
        priority: int = 0,
        stream: Stream | None = None,
        after: After = (),
    ) -> Transfer:
        """Copy a device array into a NumPy array of the same shape and type, by default a new one.

        That is pinned; where the system pins no more it is not, which a PageableMemoryWarning says once.
        The transfer's wait() and `await` give the target. The rest as to_device().
        """
        self._check_device(array, "array")
        if target is None:
            target = pinned_or_pageable("The target of a transfer", tuple(array.shape), array.dtype)
        address = _host_address(target, array, "target", writable=True)
        return self._submit("D2H", target, [array], target, (address, None), priority, stream, after)

    def copy(
        self,
        target: GPUArray,
        source: GPUArray,
        *,
        priority: int = 0,
        stream: Stream | None = None,
        after: After = (),
    ) -> Transfer:
        """Copy a device array into another of the same shape and type, which may lie on another device.

        That copy goes straight where this device can access the other's memory (gp.cuda.can_access_peer), else by way
        of the host; pieces of it go beside those of other directions. The rest as to_device().
        """
        self._check_array(target, "target")
        self._check_device(source, "source")
        if target.shape != source.shape:
            raise ShapeError(f"copy: source has shape {source.shape}, target {target.shape}")
        if target.dtype != source.dtype:
            raise DTypeError(f"copy: source is {source.dtype}, target {target.dtype}; use astype()")
        if (peer := target.device) == self.device:
            return self._submit("D2D", target, [target, source], None, (None, None), priority, stream, after)
        native.peer_reaches(self.device, peer)
        return self._submit("P2P", target, [target, source], None, (None, None), priority, stream, after, peer)

    def stats(self) -> dict[str, Any]:
        """By "H2D", "D2H", "D2D", "P2P": counts, bytes, bytes_per_s while busy, waits in ns; queued and in_progress."""
        return self.core.stats()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until every transfer asked for so far has ended; each tells its own errors."""
        for transfer in self._unfinished():
            info = self.core.wait(transfer.id, timeout)
            if info is not None and info.state not in ENDED:
                raise TimeoutError(f"{transfer} is still {info.state} after {timeout} s")
            if info is not None:
                self._settle(info)

    def close(self) -> None:
        """Cancel what is not with the device yet, wait for the rest, and take nothing more."""
        self.core.close()
        for transfer in self._unfinished():
            info = self.core.info(transfer.id)
            if info is not None:
                self._settle(info)

    def __enter__(self) -> TransferEngine:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.wait()
        self.close()

    def __repr__(self) -> str:
        return f"TransferEngine(chunk_bytes={self.chunk_bytes}, in_flight_bytes={self.in_flight_bytes})"

    # ---- how it works ----

    def _check_array(self, array: GPUArray, what: str) -> None:
        if not isinstance(array, native.ArrayBase):
            raise TypeError(f"{what} must be a GPUArray, not a {type(array).__name__}")

    def _check_device(self, array: GPUArray, what: str) -> None:
        self._check_array(array, what)
        if array.device != self.device:
            raise DeviceMismatchError(f"{what} is on device {array.device}, the engine on device {self.device}")

    def _submit(
        self,
        direction: str,
        target: Any,
        arrays: list[GPUArray],
        host: Any,
        addresses: tuple[int | None, int | None],
        priority: int,
        stream: Stream | None,
        after: After,
        peer: int = -1,
    ) -> Transfer:
        """addresses: to and from; None stands for the arrays, in their order. peer: whose memory is copied to."""
        events, transfers, kept = self._first(after)
        transfer = Transfer(self, direction, arrays[0].nbytes, priority, target)
        streams: list[int] = []
        on_device: list[int] = []
        try:
            for array in arrays:
                elsewhere = array.device != self.device
                with current_device(array.device):
                    own = None if stream is None or elsewhere else stream.native
                    address, _, first = native.begin_transfer(array, own)
                    transfer._arrays.append(array)
                    on_device.append(address)
                    if elsewhere:
                        kept.append(_event_after(first))
                        events.append(kept[-1].native.handle)
                    else:
                        streams += [handle for handle in first if handle not in streams]
            transfer._kept = [host, *kept]
            remaining = iter(on_device)
            to, source = (next(remaining) if address is None else address for address in addresses)
            with self._lock:
                transfer.id = self.core.submit(
                    direction, to, source, transfer.nbytes, priority, streams, events, transfers, peer
                )
                self._live[transfer.id] = transfer
                self._ensure_reaper()
        except BaseException:
            _let_go(transfer)
            raise
        for array in arrays:
            native.note_transfer(array, self.core.number, transfer.id)
        return transfer

    def _first(self, after: After) -> tuple[list[int], list[int], list[Event]]:
        """Events' handles, transfers' numbers, and the events, which must live so long."""
        awaited: Iterable[Event | Transfer] = (after,) if isinstance(after, (Event, Transfer)) else after
        events: list[Event] = []
        transfers: list[int] = []
        for one in awaited:
            if isinstance(one, Event):
                events.append(one)
            elif isinstance(one, Transfer):
                if one._engine is not self and not one.done:
                    raise InvalidSpecError("after: a transfer of another engine; wait() for it first", "after")
                transfers += [one.id] if one._engine is self else []
            else:
                raise InvalidSpecError(f"after: expected an Event or a Transfer, got a {type(one).__name__}", "after")
        return [event.native.handle for event in events], transfers, events

    def _unfinished(self) -> list[Transfer]:
        with self._lock:
            return list(self._live.values())

    def _ensure_reaper(self) -> None:
        if self._reaper is None:
            name = f"pygpukit-transfers-{self.core.number}"
            self._reaper = threading.Thread(target=self._reap, name=name, daemon=True)
            self._reaper.start()

    def _reap(self) -> None:
        """Lets go of what ended transfers kept, and tells those who await them; ends when there is nothing to do."""
        while True:
            ended = self.core.ended(_LINGER_S)
            for info in ended:
                self._settle(info)
            with self._lock:
                if not ended and (not self._live or self.core.closed):
                    self._reaper = None
                    return

    def _settle(self, info: _core.TransferInfo) -> None:
        with self._lock:
            transfer = self._live.pop(info.id, None)
            if transfer is None:
                return
            futures = transfer._end(info)
        _let_go(transfer)
        if info.error is None:
            self.core.forget(info.id)
        for future in futures:
            transfer._answer(future)

    def _tell(self, transfer: Transfer, future: concurrent.futures.Future[Any]) -> None:
        with self._lock:
            if transfer._final is None:
                transfer._futures.append(future)
                return
        transfer._answer(future)


def _event_after(streams: Iterable[int]) -> Event:
    """An event of the current device behind what its streams have by now; the current one waits for the others."""
    current = native.current_stream().handle
    for handle in streams:
        native.order_streams(handle, current)
    event = Event(timing=False)
    event.record()
    return event


def _let_go(transfer: Transfer) -> None:
    for array in transfer._arrays:
        native.unpin(array)
    transfer._arrays = []
    transfer._kept = []


def _host_address(host: np.ndarray[Any, Any], array: GPUArray, what: str, *, writable: bool) -> int:
    import numpy as np

    if not isinstance(host, np.ndarray):
        raise TypeError(f"{what} must be a NumPy array, not a {type(host).__name__}")
    if host.shape != array.shape:
        raise ShapeError(f"{what} has shape {host.shape}, the array {array.shape}")
    if host.dtype != array.dtype.to_numpy_dtype() and DataType.from_numpy_dtype(host.dtype) != array.dtype:
        raise DTypeError(f"{what} is {host.dtype}, the array {array.dtype}; convert one of them first")
    if not host.flags.c_contiguous:
        raise ShapeError(f"{what} is not C-contiguous; pass np.ascontiguousarray({what})")
    if writable and not host.flags.writeable:
        raise ValueError(f"{what} is read-only")
    return int(host.__array_interface__["data"][0])
