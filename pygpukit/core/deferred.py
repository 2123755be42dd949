"""Errors in values that only the device can see: reports, read when the host waits for the stream anyway.

A kernel that meets an index array's value out of range writes it into a report, gives zeros or writes nothing there,
and goes on. The next to_numpy(), item() or synchronize() after it raises the IndexError. Each stream has a report, and
each graph one of its own, which every launch of it may write. On the simulated device operations check their indices
themselves and raise at once.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from pygpukit._core import native
from pygpukit.core.errors import negative_power, out_of_range

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_FIELDS = "<4q"  # report.cuh: state, value, axis, size
_EMPTY = bytes(8)
_EXPONENT = -1  # in the place of the axis: no index, but a negative exponent
_Key = tuple[int, int]  # device and stream
_reports: dict[_Key, GPUArray] = {}
_captured: dict[_Key, GPUArray] = {}  # of captures that have not ended
_unread: dict[_Key, list[GPUArray]] = {}


class Watched(Protocol):
    """Something whose kernels tell the host of failures by themselves."""

    def check(self) -> None:
        """Raises the error that there is."""


_watched: defaultdict[int, WeakSet[Watched]] = defaultdict(WeakSet)  # by device


def watch(device: int, one: Watched) -> None:
    """Waits for work of the device call one.check() from here on, until unwatch(), as long as somebody has it."""
    _watched[device].add(one)


def unwatch(one: Watched) -> None:
    """No wait calls one.check() any more."""
    for known in _watched.values():
        known.discard(one)


def report() -> GPUArray:
    """The report of the current stream, or of its capture, for one more launch that may write it."""
    key = _current()
    capturing = native.is_capturing()
    reports = _captured if capturing else _reports
    array = reports.get(key)
    if array is None:
        array = reports[key] = native.empty(4, "int64")
        if not capturing:  # a fill that is captured would forget what an earlier launch has found
            native.fill(array, _EMPTY)
    if not capturing:
        _expect(key, array)
    return native.supplied(array, report)


def expect_none(negative: GPUArray, smallest: GPUArray) -> None:
    """The next wait raises ValueError where `negative`, 0-d, is true: an exponent of integers was `smallest`.

    Both were computed on the current stream, which is not captured.
    """
    array = native.empty(4, "int64")
    native.fill(array, _EMPTY)
    array[0], array[1], array[2] = negative, smallest, _EXPONENT
    _expect(_current(), array)


def end_capture() -> GPUArray | None:
    """The report of the current stream's capture, which has just ended; None when none of its kernels may write one."""
    captured = _captured.pop(_current(), None)
    if captured is not None:
        native.fill(captured, _EMPTY)
        native.current_stream().synchronize()  # launches on other streams may write it
    return captured


def launched(graph_report: GPUArray, stream: int | None = None) -> None:
    """A graph with this report was launched on a stream, the current one by default."""
    device, current = _current()
    _expect((device, current if stream is None else stream), graph_report)


def check(stream: int | None = None) -> None:
    """Raises the error that a kernel of the stream (the current one) reported. The stream's work must be done.

    Costs nothing when no such kernel was launched since the last check, else a copy of 32 bytes a report.
    """
    if _watched:
        _ask(native.current_device())
    if not _unread:
        return
    device, current = _current()
    _read((device, current if stream is None else stream))


def check_all() -> None:
    """check() for every stream of the current device, which must be idle."""
    device = native.current_device()
    if _watched:
        _ask(device)
    for key in sorted(_unread):
        if key[0] == device:
            _read(key)


def _ask(device: int) -> None:
    for one in tuple(_watched.get(device, ())):
        one.check()


def _expect(key: _Key, array: GPUArray) -> None:
    waiting = _unread.setdefault(key, [])
    if not any(one is array for one in waiting):
        waiting.append(array)


def _read(key: _Key) -> None:
    """Reads all reports of the stream and empties them, then raises the first error that there was."""
    errors: list[Exception] = []
    for array in _unread.pop(key, ()):
        data = bytearray(struct.calcsize(_FIELDS))
        native.copy_to_host(data, array)
        state, value, axis, size = struct.unpack(_FIELDS, data)
        if state:
            errors.append(negative_power(value) if axis == _EXPONENT else out_of_range(value, axis, size))
            native.fill(array, _EMPTY)
            native.current_stream().synchronize()  # before another stream writes it
    if errors:
        raise errors[0]


def _current() -> _Key:
    return native.current_device(), native.current_stream().id
