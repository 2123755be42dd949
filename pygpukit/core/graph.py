"""Graphs: work captured from a stream, run again as one; other arguments for it; proof that it equals eager work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core import deferred
from pygpukit.core.errors import GPUError, InvalidSpecError

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.core.stream import Stream


class Graph:
    """Work that was captured with `with stream.capture() as graph:`: launches, operations, device copies and fills.

    Nothing runs while it is captured. A launch of the graph runs all of it in its order with the arguments it was
    given: the same arrays, whose contents may change in between. Arrays that are made during a capture are memory of
    the graph's own: it keeps every array it uses, and keeps them on the device, as long as it lives.
    """

    __slots__ = ("_errors", "_native")

    def __init__(self, captured: native.Graph) -> None:
        self._native = captured
        self._errors: GPUArray | None = None

    @property
    def launches(self) -> int:
        """The number of launches in it."""
        return self._native.launches

    def launch(self, stream: Stream | None = None) -> None:
        """Run the graph on a stream, the current one by default. Asynchronous.

        An index array that holds an index out of range when it is launched raises IndexError as eager indexing does.
        Raises GPUError before its capture has ended, DeviceMismatchError on another device, TypeError for no stream.
        """
        if stream is not None and not isinstance(getattr(stream, "native", None), native.Stream):
            raise TypeError(f"launch: stream={stream!r}; give a gp.Stream, or None for the current one")
        self._native.launch(None if stream is None else stream.native)
        if self._errors is not None:
            deferred.launched(self._errors, None if stream is None else stream.id)

    def update(self, **parameters: Any) -> None:
        """Give kernel parameters, by name, another value in every captured launch that has one of that name.

        The next launch makes the graph anew. Raises InvalidSpecError when no launch has such a parameter, and
        KernelArgumentError when the value does not fit its declaration; nothing has changed then for that name.
        """
        for name, value in parameters.items():
            if not self._native.set(name, value):
                raise InvalidSpecError(f"update(): no launch of the graph has a parameter named {name!r}")

    def verify(self) -> None:
        """Prove that a launch gives what the same work gives step by step, bit for bit, in all memory it uses.

        Runs the work twice on the same contents, which the host keeps meanwhile; afterwards the arrays hold what one
        launch leaves. Waits for both. Raises GPUError naming the first array that differs.
        """
        whole = [_bytes_of(array) for array in self._native.arrays]
        before = [memory.to_numpy() for memory in whole]
        self._native.run()
        eager = [memory.to_numpy() for memory in whole]
        for memory, contents in zip(whole, before, strict=True):
            native.copy_from_host(memory, contents)
        self.launch()
        for array, memory, expected in zip(self._native.arrays, whole, eager, strict=True):
            _compare(array, memory.to_numpy(), expected)

    def __repr__(self) -> str:
        return f"Graph(launches={self.launches})"


def _bytes_of(array: GPUArray) -> GPUArray:
    """All memory that the array is a view of."""
    return native.view(array, (array.storage_nbytes,), (1,), 0, "uint8")


def _compare(array: GPUArray, actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    different = (actual != expected).nonzero()[0]
    if different.size:
        name = f"array {array.name!r}" if array.name else f"an array of {array.dtype}"
        raise GPUError(
            f"verify(): the graph and the same work step by step differ in {different.size} of {expected.size} bytes "
            f"of {name}, first in byte {different[0]}; is there work without a fixed order, such as float atomics?"
        )


@contextmanager
def capture(stream: Stream) -> Iterator[Graph]:
    """The work of Stream.capture()."""
    captured = native.capture_begin(stream.native)
    with stream:
        graph = Graph(captured)
        try:
            yield graph
        finally:
            captured.finish()
            graph._errors = deferred.end_capture()


def capturing() -> bool:
    """True while the current stream is captured: what is queued now does not run now."""
    return native.is_capturing()
