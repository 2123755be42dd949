"""TensorReads: tensors that threads read, convert and copy to where they belong, through pinned memory of their own."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from pygpukit.core.dtypes import uint8
from pygpukit.core.errors import ShapeError
from pygpukit.core.progress import Progress
from pygpukit.core.stream import Stream, current_stream
from pygpukit.memory.pageable import pinned_or_pageable
from pygpukit.memory.transfer_engine import TransferEngine

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.memory.transfer import Transfer

    OnProgress = Callable[[int, int, str], None]

_UNDER_WAY_BYTES = 1 << 30  # of tensors that are read, or wait for a reader
_READERS = 8  # threads at most: what they do is bound by memory
_PIECE_BYTES = 8 << 20  # of pinned memory, of which a reader fills one while the other is copied


class Read(NamedTuple):
    """A tensor of a file, or some rows of one: what reads it, and its place on the device."""

    name: str
    target: GPUArray
    values: Callable[[], Any]


@dataclass
class _Coming:
    """A tensor on its way. done: once it is where it belongs, or its error."""

    name: str
    nbytes: int
    done: Future[None]


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
        self._own = threading.local()  # of a reader: its pinned memory

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
        if host is None:
            done = self._threads.submit(self._place, read, read.target.reshape(-1).view(dtype=uint8), current_stream())
        else:
            done = self._threads.submit(_write, read.values, host)
        self._under_way.append(_Coming(read.name, nbytes, done))
        while self._under_way and self._under_way[0].done.done():
            self._end_first()
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
            self._end_first()

    def _end_first(self) -> None:
        """Wait for the tensor that began first, and tell of it."""
        coming = self._under_way.popleft()
        coming.done.result()
        self._done += coming.nbytes
        self._bar.update(self._done)
        if self._on_progress is not None:
            self._on_progress(self._done, self._total, coming.name)

    def _place(self, read: Read, target: GPUArray, stream: Stream) -> None:
        """Read a tensor, and copy it to the device, piece by piece. target: its bytes there. By a reader."""
        import numpy as np

        values = np.ascontiguousarray(read.values())
        if values.shape != read.target.shape or values.nbytes != target.nbytes:
            raise ShapeError(
                f"{read.name}: {values.nbytes} bytes of shape {values.shape} were read, its place has "
                f"{target.nbytes} of {read.target.shape}"
            )
        source, pieces = values.reshape(-1).view(np.uint8), self._pieces()
        sent: list[Transfer] = []
        for number, start in enumerate(range(0, source.size, _PIECE_BYTES)):
            if number > 1:
                sent[number - 2].wait()
            own = source[start : start + _PIECE_BYTES]
            piece = pieces[number % 2][: own.size]
            piece[...] = own
            sent.append(self._engine.to_device(target[start : start + own.size], piece, stream=stream))
        for transfer in sent[-2:]:
            transfer.wait()

    def _pieces(self) -> list[np.ndarray[Any, Any]]:
        """Pinned memory of this reader."""
        if not hasattr(self._own, "pieces"):
            what = "A piece of a model on its way"
            self._own.pieces = [pinned_or_pageable(what, (_PIECE_BYTES,), uint8) for _ in range(2)]
        pieces: list[np.ndarray[Any, Any]] = self._own.pieces
        return pieces


def offset_in(array: GPUArray, part: GPUArray) -> int | None:
    """Bytes from the beginning of an array to a part of it; None for other memory."""
    begin = part.device_ptr - array.device_ptr
    return begin if 0 <= begin < array.nbytes else None


def are_read(arrays: Iterable[tuple[GPUArray, int]], reads: Sequence[Read]) -> bool:
    """True if so many bytes of each array are read."""
    return all(
        nbytes == sum(read.target.nbytes for read in reads if offset_in(array, read.target) is not None)
        for array, nbytes in arrays
    )


def _write(read: Callable[[], Any], host: np.ndarray[Any, Any]) -> None:
    values = read()
    host.view(values.dtype).reshape(values.shape)[...] = values
