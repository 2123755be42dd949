"""Graphs: kernel launches captured from a stream, launched again as one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pygpukit._core import native

if TYPE_CHECKING:
    from pygpukit.core.stream import Stream


class Graph:
    """Launches that were captured with `with stream.capture() as graph:`.

    A launch of the graph runs them in their order with the arguments they were given: the same arrays, whose contents
    may change in between. The graph keeps those arrays, and keeps them on the device, as long as it lives.
    """

    __slots__ = ("_native",)

    def __init__(self, captured: native.Graph) -> None:
        self._native = captured

    @property
    def launches(self) -> int:
        """How many launches it has."""
        return self._native.launches

    def launch(self, stream: Stream | None = None) -> None:
        """Run the graph on a stream, the current one by default. Asynchronous.

        Raises GPUError before its capture has ended, DeviceMismatchError on another device.
        """
        self._native.launch(None if stream is None else stream.native)

    def __repr__(self) -> str:
        return f"Graph(launches={self.launches})"


@contextmanager
def capture(stream: Stream) -> Iterator[Graph]:
    """The work of Stream.capture()."""
    captured = native.capture_begin(stream.native)
    with stream:
        try:
            yield Graph(captured)
        finally:
            captured.finish()
