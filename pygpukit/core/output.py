"""Output of kernels, brought to Python's standard output in the order in which it was printed."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from pygpukit._core import native

_LAST_SECONDS = 5.0  # what still runs when the program ends has so long to print
_order = threading.Lock()  # whoever takes text also writes it before the next one takes some
_held = 0


def emit(write: Callable[[str], object] | None = None) -> None:
    """Write what kernels printed so far, to sys.stdout unless `write` is given. Thread-safe. Every wait ends with it.

    On CUDA the driver writes to the process's own standard output; this has it write what it still holds.
    """
    if _held and write is None:
        return
    with _order:
        if printed := native.take_device_output():
            (write or sys.stdout.write)(printed)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Waits show nothing meanwhile: who asks for this takes the text."""
    global _held
    _held += 1
    try:
        yield
    finally:
        _held -= 1


def _emit_last(process: int) -> None:
    """At the end of the program, which may not have waited for its last kernels."""
    if os.getpid() != process or native.backend_name() != "sim":
        return
    end = time.monotonic() + _LAST_SECONDS
    with contextlib.suppress(Exception):  # a fault that nobody waited for
        while native.busy_streams() and time.monotonic() < end:
            time.sleep(0.002)
    with contextlib.suppress(Exception):  # a standard output that is closed
        emit()


atexit.register(_emit_last, os.getpid())
