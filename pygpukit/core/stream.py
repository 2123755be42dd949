"""Streams: in-order queues of device work. `with stream:` makes one current for the thread."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from enum import IntEnum
from typing import Any
from weakref import WeakValueDictionary

from pygpukit._core import native
from pygpukit.core import deferred
from pygpukit.core.backend import is_sim
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.event import Event
from pygpukit.core.graph import Graph, capture
from pygpukit.core.output import emit


class StreamPriority(IntEnum):
    """HIGH work goes before LOW work where both wait for the device."""

    HIGH = 0
    LOW = 1


PriorityLike = str | StreamPriority

DRIVER_PRIORITY = {StreamPriority.HIGH: -5, StreamPriority.LOW: 0}  # the driver's most and least urgent level
_LEGACY_DEFAULT = 1  # the driver's other number for the default stream
_Block = AbstractContextManager[object]
# What is around the present streams, of this asyncio task or thread: streams to go back to, and sessions to leave.
_entered: ContextVar[tuple[native.Stream | _Block, ...]] = ContextVar("pygpukit.entered_streams", default=())
_known: WeakValueDictionary[int, native.Stream] = WeakValueDictionary()  # by id
# By id, the sessions that `with stream:` is for streams that were promised a share.
paced_streams: dict[int, _Block] = {}


class Stream:
    """A queue of device work. Work of one stream runs in order; streams run side by side.

    priority: "low" or "high", or a StreamPriority. `stream.native` is the compiled object, for kernels and events.
    Raises InvalidSpecError for another priority.
    """

    __slots__ = ("__weakref__", "native", "priority")

    def __init__(self, priority: PriorityLike = StreamPriority.LOW) -> None:
        self.priority = _priority(priority)
        self.native = native.Stream(DRIVER_PRIORITY[self.priority])
        _known[self.native.id] = self.native

    @classmethod
    def _of(cls, stream: native.Stream) -> Stream:
        self = cls.__new__(cls)
        self.priority = StreamPriority.LOW if stream.priority == 0 else StreamPriority.HIGH
        self.native = stream
        return self

    @classmethod
    def from_external(cls, stream: Any) -> Stream:
        """Another library's stream, as one of ours: `with Stream.from_external(torch_stream):` works on it.

        stream: an object with `__cuda_stream__` (the protocol's version 0), or one with the handle as `cuda_stream`
        (PyTorch) or `ptr` (CuPy), which must be on the current device. It lives as long as the result.
        Raises InvalidSpecError for other objects, and on the simulated device for streams that are not its own.
        """
        if isinstance(stream, Stream):
            return stream
        handle = _handle_of(stream)
        if handle in (0, _LEGACY_DEFAULT):
            return default_stream()
        if (own := next((one for one in _known.values() if one.handle == handle), None)) is not None:
            return cls._of(own)
        if is_sim():
            raise InvalidSpecError(
                f"stream {handle:#x} of a {type(stream).__name__} is not the simulated device's; use gp.Stream()",
                "stream",
            )
        external = native.external_stream(handle, stream)
        _known[external.id] = external
        return cls._of(external)

    @property
    def handle(self) -> int:
        """The driver's handle; 0 is the default stream."""
        return self.native.handle

    @property
    def id(self) -> int:
        """The short number of this stream in records and dashboards; 0 is the default stream."""
        return self.native.id

    def query(self) -> bool:
        """True when all work queued so far is done. Does not wait."""
        return self.native.query()

    def synchronize(self) -> None:
        """Wait until all work queued so far is done. Ctrl-C interrupts the wait. Errors as gp.synchronize()."""
        self.native.synchronize()
        deferred.check(self.id)

    def wait_event(self, event: Event) -> None:
        """Work queued from now on starts after the event. The calling thread does not wait. TypeError for no Event."""
        if not isinstance(event, Event):
            raise TypeError(f"wait_event: event={event!r}; give a gp.Event, such as record_event() returns")
        self.native.wait_event(event.native)

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event (a new one by default) after the work queued so far, and return it."""
        event = Event() if event is None else event
        if not isinstance(event, Event):
            raise TypeError(f"record_event: event={event!r}; give a gp.Event, or None for a new one")
        event.record(self)
        return event

    def capture(self) -> AbstractContextManager[Graph]:
        """`with stream.capture() as graph:` keeps the block's work for graph.launch() instead of running it.

        The stream is current in the block. Launches, operations, new arrays, device copies and fills are captured;
        what needs the work done (copies to and from the host, events, waits) raises GPUError. So do the default stream
        and a stream that is captured already.
        """
        return capture(self)

    def __enter__(self) -> Stream:
        session = paced_streams.get(self.native.id)
        before = native.current_stream() if session is None else session
        if session is None:
            native.set_current_stream(self.native)
        else:
            session.__enter__()
        _entered.set((*_entered.get(), before))
        return self

    def __exit__(self, *exc: object) -> None:
        *outer, before = _entered.get()
        _entered.set(tuple(outer))
        if isinstance(before, native.Stream):
            native.set_current_stream(before)
        else:
            before.__exit__(None, None, None)

    def __cuda_stream__(self) -> tuple[int, int]:
        """(protocol version, handle), for libraries that take foreign streams."""
        return 0, self.handle

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.handle == self.handle

    def __hash__(self) -> int:
        return hash(self.handle)

    def __repr__(self) -> str:
        return f"Stream(id={self.id}, priority={self.priority.name.lower()})"


class StreamManager:
    """Makes streams and keeps those it made until they are destroyed."""

    def __init__(self) -> None:
        self._streams: list[Stream] = []

    def create_stream(self, priority: PriorityLike = "low") -> Stream:
        """A new stream. Raises InvalidSpecError for an unknown priority."""
        stream = Stream(priority)
        self._streams.append(stream)
        return stream

    def destroy_stream(self, stream: Stream) -> None:
        """Wait for the stream's work and let go of it. Raises ValueError for a stream this manager did not make."""
        self._streams.remove(stream)
        stream.synchronize()

    def get_default_stream(self) -> Stream:
        """The device's default stream."""
        return default_stream()

    def synchronize_all(self) -> None:
        """Wait for the default stream and every stream this manager made."""
        for stream in (default_stream(), *self._streams):
            stream.synchronize()


_manager = StreamManager()


def get_stream_manager() -> StreamManager:
    """The manager of this process."""
    return _manager


def default_stream() -> Stream:
    """The device's default stream."""
    return Stream._of(native.default_stream())


def find_stream(id: int) -> Stream | None:
    """The stream that shows this id: one that Stream() or Stream.from_external() made and that is still there."""
    stream = _known.get(id)
    return None if stream is None else Stream._of(stream)


def current_stream() -> Stream:
    """The stream that work of this thread goes to."""
    return Stream._of(native.current_stream())


def synchronize() -> None:
    """Wait for every stream of the current device, then show what kernels printed on the simulated one.

    Ctrl-C interrupts the wait. Raises DriverError when a kernel faulted, and IndexError when an index array on
    the device was out of range.
    """
    native.synchronize()
    emit()
    deferred.check_all()


def _handle_of(stream: Any) -> int:
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version, handle = protocol() if callable(protocol) else protocol
        if version != 0:
            raise InvalidSpecError(f"__cuda_stream__ version {version} is not understood; version 0 is", "stream")
        return int(handle)
    for name in ("cuda_stream", "ptr"):
        if isinstance(handle := getattr(stream, name, None), int):
            return handle
    raise InvalidSpecError(
        f"a {type(stream).__name__} is not a stream: it has no __cuda_stream__ (nor cuda_stream, nor ptr)", "stream"
    )


def _priority(priority: PriorityLike) -> StreamPriority:
    if isinstance(priority, StreamPriority):
        return priority
    name = priority.upper() if isinstance(priority, str) else ""
    if name not in StreamPriority.__members__:
        raise InvalidSpecError(f"stream priority {priority!r} is unknown; use 'low' or 'high'", "priority")
    return StreamPriority[name]
