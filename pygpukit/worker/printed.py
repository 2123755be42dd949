"""Output of kernels in a worker, caught so that it can go to the process that the work came from."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator

from pygpukit._core import native
from pygpukit.core.errors import GPUError
from pygpukit.core.output import held


@contextlib.contextmanager
def captured(printed: list[str]) -> Iterator[None]:
    """Catch what kernels print meanwhile; on cuda the driver writes to the process's standard output."""
    if native.backend_name() == "sim":
        with held():
            try:
                yield
            finally:
                printed.append(native.take_device_output())
        return
    sys.stdout.flush()
    output, file = os.dup(1), os.memfd_create("pygpukit-printf")
    os.dup2(file, 1)
    try:
        yield
    finally:
        with contextlib.suppress(GPUError):  # of a context that a fault destroyed
            native.take_device_output()  # has the driver write what it holds back
        ctypes.CDLL(None).fflush(None)
        os.dup2(output, 1)
        with os.fdopen(file, "rb") as written:
            written.seek(0)
            printed.append(written.read().decode(errors="replace"))
        os.close(output)
