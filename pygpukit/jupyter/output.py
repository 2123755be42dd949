"""Output of kernels, shown while they run and in the cell that launched them, also when a thread did."""

from __future__ import annotations

import sys
import threading
from typing import Any

from pygpukit._core import native
from pygpukit.core.output import emit

_PERIOD_S = {"sim": 0.05, "cuda": 0.2}  # while a cell runs; asking the driver costs more than asking the simulation
_IDLE_PERIOD_S = 0.5  # between cells, for what they left running


class DeviceOutput:
    """A thread that writes what kernels print to the output of the running cell, or of the one that ran last.

    Work that a cell leaves behind prints there until the next cell begins.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._parent: Any = None  # the message that the cell answers; None in a terminal
        self._changed = threading.Event()
        self._running = False
        self._ended = False
        self._thread: threading.Thread | None = None

    def install(self) -> None:
        self._thread = threading.Thread(target=self._run, name="pygpukit-output", daemon=True)
        self._thread.start()

    def remove(self) -> None:
        self._ended = True
        self._changed.set()
        if self._thread is not None:
            self._thread.join()

    def cell_begins(self) -> None:
        """Note that what was printed before belongs to the cell before."""
        emit(self._write)
        self._parent = self._shell.get_parent() if hasattr(self._shell, "get_parent") else None
        self._running = True
        self._changed.set()

    def cell_ends(self) -> None:
        """The running cell shows what was printed so far."""
        emit(self._write)
        self._running = False

    def _run(self) -> None:
        while not self._ended:
            name = native.backend_name()
            period = _PERIOD_S[name] if name and self._running else _IDLE_PERIOD_S
            self._changed.wait(period)
            self._changed.clear()
            if name and not self._ended:
                emit(self._write)

    def _write(self, text: str) -> None:
        """To the cell's output, whatever thread this is: the stream keeps for each thread which cell it serves."""
        stream: Any = sys.stdout
        if self._parent is None or not hasattr(stream, "set_parent"):  # a terminal, or output that is captured
            stream.write(text)
        elif hasattr(stream, "set_thread_parent"):
            token = stream.set_thread_parent(self._parent)
            stream.write(text)
            stream.reset_thread_parent(token)
        else:  # ipykernel before 7.4
            before = stream.parent_header
            stream.set_parent(self._parent)
            stream.write(text)
            stream.set_parent({"header": before})
        stream.flush()
