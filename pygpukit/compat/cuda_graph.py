"""CudaGraph: a graph whose capture begins and ends by calls, not with a block. The documented form of Graph."""

from __future__ import annotations

from contextlib import ExitStack

from pygpukit.core.errors import GPUError
from pygpukit.core.graph import Graph
from pygpukit.core.stream import Stream, current_stream


class CudaGraph:
    """Work between begin_capture() and end_capture(), run again by replay().

    A stream of its own is captured, and is the thread's current one in between: what Stream.capture() says of its block
    is true of what lies between the two calls. After an error in between end_capture() or reset() ends the capture.
    """

    __slots__ = ("_capture", "_graph", "_last", "_stream")

    def __init__(self) -> None:
        self._stream = Stream()
        self._capture: ExitStack | None = None
        self._graph: Graph | None = None
        self._last = self._stream  # where it ran last

    def begin_capture(self) -> None:
        """Keep what is queued from here on instead of running it. Raises GPUError while it captures, and with work:
        reset() lets go of it."""
        if self._capture is not None or self._graph is not None:
            state = "is capturing" if self._capture is not None else "has captured work"
            raise GPUError(f"CudaGraph.begin_capture(): this graph {state} already; call reset() first")
        capture = ExitStack()
        self._graph = capture.enter_context(self._stream.capture())
        self._capture = capture

    def end_capture(self) -> None:
        """Nothing more is captured; the stream that was current before is so again. Raises GPUError when it does not
        capture."""
        if self._capture is None:
            raise GPUError("CudaGraph.end_capture(): nothing is captured; call begin_capture() first")
        capture, self._capture = self._capture, None
        capture.close()

    def replay(self) -> None:
        """Run the work on the current stream. Asynchronous. Raises GPUError before a capture has ended, and as
        Graph.launch()."""
        if not self.is_ready() or self._graph is None:
            raise GPUError("CudaGraph.replay(): nothing was captured; call begin_capture() and end_capture() first")
        self._last = current_stream()
        self._graph.launch()

    def synchronize(self) -> None:
        """Wait for the last replay(), and for what its stream was given since. Errors as Stream.synchronize()."""
        self._last.synchronize()

    def reset(self) -> None:
        """Let go of the work, and of the arrays that it keeps; ends a capture."""
        if self._capture is not None:
            self.end_capture()
        self._graph = None

    def is_ready(self) -> bool:
        """True when a capture has ended: replay() runs it."""
        return self._graph is not None and self._capture is None

    def is_capturing(self) -> bool:
        """True between begin_capture() and end_capture()."""
        return self._capture is not None

    @property
    def num_nodes(self) -> int:
        """The number of its launches; 0 without work."""
        return 0 if self._graph is None else self._graph.launches

    def get_stream_handle(self) -> int:
        """The driver's handle of the stream that is captured."""
        return self._stream.handle

    def __repr__(self) -> str:
        state = "capturing" if self.is_capturing() else "ready" if self.is_ready() else "empty"
        return f"CudaGraph({state}, num_nodes={self.num_nodes})"
