"""Index errors that only the device can see: a report for each stream, read when the host waits for the stream anyway.

A kernel that meets an index array's value out of range writes it into its stream's report, gives zeros or
writes nothing there, and goes on. The next to_numpy(), item() or synchronize() after it raises the IndexError. On the
simulated device operations check their indices themselves and raise at once.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.indexing import out_of_range

if TYPE_CHECKING:
    from pygpukit.core.array import GPUArray

_FIELDS = "<4q"  # gather.cu: state, value, axis, size
_reports: dict[tuple[int, int], GPUArray] = {}  # by device and stream
_unread: set[tuple[int, int]] = set()


def report() -> GPUArray:
    """The report of the current stream, for one more launch that may write it."""
    key = _current()
    found = _reports.get(key)
    if found is None:
        found = _reports[key] = native.empty(4, "int64")
        native.fill(found, bytes(8))
    _unread.add(key)
    return found


def check(stream: int | None = None) -> None:
    """Raises the IndexError that a kernel of the stream (the current one) reported. The stream's work must be done.

    Costs nothing when no such kernel was launched since the last check, else a copy of 32 bytes.
    """
    if not _unread:
        return
    device, current = _current()
    _read((device, current if stream is None else stream))


def check_all() -> None:
    """check() for every stream of the current device, which must be idle."""
    device = native.current_device()
    for key in sorted(_unread):
        if key[0] == device:
            _read(key)


def _read(key: tuple[int, int]) -> None:
    if key not in _unread:
        return
    data = bytearray(struct.calcsize(_FIELDS))
    native.copy_to_host(data, _reports[key])
    _unread.discard(key)
    state, value, axis, size = struct.unpack(_FIELDS, data)
    if state:
        del _reports[key]  # the next one starts empty
        raise out_of_range(value, axis, size)


def _current() -> tuple[int, int]:
    return native.current_device(), native.current_stream().id
