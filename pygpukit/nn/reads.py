"""TensorReads: tensors that threads read and convert, while those before them are copied to where they belong."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from pygpukit.core.progress import Progress
from pygpukit.memory.transfer_engine import TransferEngine

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.memory.transfer import Transfer

    OnProgress = Callable[[int, int, str], None]

_UNDER_WAY_BYTES = 256 << 20  # of tensors on the host that are converted, or wait for their copy
_READERS = 8  # threads at most: what they do is bound by memory


class Read(NamedTuple):
    """A tensor of a file, or some rows of one: what reads it, and its place on the device."""

    name: str
    target: GPUArray
    values: Callable[[], Any]


@dataclass
class _Coming:
    """A tensor on its way: its values once they are converted, then its copy to the device. target: None of one that is
    written to the host."""

    name: str
    nbytes: int
    values: Future[Any]
    target: GPUArray | None
    transfer: Transfer | None = None
    is_sent: bool = False


class TensorReads:
    """The tensors of one model, inside of `with`: at its end all of them are where they belong.

    title: of the bar. total: bytes of all tensors. progress: whether there is a bar, or a function (bytes done, bytes
    in all, tensor).
    """

    def __init__(self, title: str, total: int, progress: bool | OnProgress) -> None:
        self._total, self._done = total, 0
        self._on_progress: OnProgress | None = None if isinstance(progress, bool) else progress
        self._bar = Progress(f"loading {title}", total, shown=progress is True)
        self._under_way: deque[_Coming] = deque()
        self._collected: list[Read] | None = None
        self._at_once = False

    def __enter__(self) -> None:
        self._engine = TransferEngine()
        self._threads = ThreadPoolExecutor(min(os.cpu_count() or 1, _READERS), "pygpukit-load")
        self._bar.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.wait()
        finally:
            self._threads.shutdown(cancel_futures=True)
            self._engine.close()
            self._bar.__exit__(kind, error, trace)

    def begin(self, read: Read, host: np.ndarray[Any, Any] | None = None) -> None:
        """Read a tensor, and copy it to its place, or write it to the host: uint8, as many bytes."""
        if self._collected is not None:
            self._collected.append(read)
            return
        nbytes = read.target.nbytes
        self.wait(_UNDER_WAY_BYTES - nbytes)
        values = self._threads.submit(read.values) if host is None else self._threads.submit(_write, read.values, host)
        self._under_way.append(_Coming(read.name, nbytes, values, read.target if host is None else None))
        for coming in self._under_way:  # in their order, as far as they have come
            if not coming.is_sent:
                if not coming.values.done():
                    break
                self._send(coming)
        if self._at_once:
            self.wait()

    @contextmanager
    def collecting(self) -> Iterator[list[Read]]:
        """A list that gets what would begin meanwhile."""
        self._collected = []
        try:
            yield self._collected
        finally:
            self._collected = None

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Meanwhile begin() returns when its tensor has come."""
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False

    def wait(self, max_bytes: int = 0) -> None:
        """Until no more than that is under way."""
        while self._under_way and sum(coming.nbytes for coming in self._under_way) > max_bytes:
            coming = self._under_way.popleft()
            if not coming.is_sent:
                self._send(coming)
            if coming.transfer is not None:
                coming.transfer.wait()

    def _send(self, coming: _Coming) -> None:
        """Begin the copy of a tensor to the device, once its values are there."""
        values = coming.values.result()
        if coming.target is not None:
            coming.transfer = self._engine.to_device(coming.target, values)
        coming.is_sent = True
        self._done += coming.nbytes
        self._bar.update(self._done)
        if self._on_progress is not None:
            self._on_progress(self._done, self._total, coming.name)


def offset_in(array: GPUArray, part: GPUArray) -> int | None:
    """Bytes from the beginning of an array to a part of it; None for other memory."""
    begin = part.device_ptr - array.device_ptr
    return begin if 0 <= begin < array.nbytes else None


def are_read(arrays: Iterable[GPUArray], reads: Sequence[Read]) -> bool:
    """True if every byte of the arrays is read."""
    return all(
        array.nbytes == sum(read.target.nbytes for read in reads if offset_in(array, read.target) is not None)
        for array in arrays
    )


def _write(read: Callable[[], Any], host: np.ndarray[Any, Any]) -> None:
    values = read()
    host.view(values.dtype).reshape(values.shape)[...] = values
