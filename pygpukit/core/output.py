"""What kernels print, brought to Python's standard output in the order in which it was printed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from pygpukit._core import native

_order = threading.Lock()  # whoever takes text also writes it before the next one takes some


def emit(write: Callable[[str], object] | None = None) -> None:
    """Write what kernels printed so far, to sys.stdout unless `write` is given. Thread-safe.

    On CUDA the driver writes to the process's own standard output; this has it write what it still holds.
    """
    with _order:
        if printed := native.take_device_output():
            (write or sys.stdout.write)(printed)
