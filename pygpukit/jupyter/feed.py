"""The status feed: a one-way comm that tells a page how the kernel's GPU is whenever that changed, also while a cell
runs (docs/seams.md). Nothing is sent while no page has it open, and no thread runs then."""

from __future__ import annotations

import threading
from typing import Any

from pygpukit.jupyter import status

TARGET = "pygpukit.status.v1"
PERIOD_S = 1.0


class Feed:
    """The pages that have the feed open, and the thread that serves them."""

    def __init__(self, period_s: float = PERIOD_S) -> None:
        self._period_s = period_s
        self._lock = threading.RLock()
        self._arrived = threading.Condition(self._lock)
        self._pages: dict[Any, dict[str, Any] | None] = {}  # comm and what it was sent last
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def opened(self, comm: Any, _message: Any) -> None:
        """A page opened its comm: its first message follows at once."""
        comm.on_close(lambda _message: self._closed(comm))
        comm.on_msg(lambda _message: self._left(comm))
        with self._lock:
            self._pages[comm] = None
            self._arrived.notify_all()
            self._wake.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pygpukit-status", daemon=True)
                self._thread.start()

    def tell(self, message: dict[str, Any], timeout_s: float) -> bool:
        """Send a message to each page, and wait so long for the first to come. False when there was none."""
        with self._lock:
            self._arrived.wait_for(lambda: bool(self._pages), timeout_s)
            pages = list(self._pages)
        reached = [_reached(comm, message) for comm in pages]
        return any(reached)

    def close(self) -> None:
        """Serve nobody any more and wait for the thread."""
        with self._lock:
            self._pages.clear()
            thread = self._thread
            self._wake.set()
        if thread is not None:
            thread.join()

    def running(self) -> bool:
        return self._thread is not None

    def _closed(self, comm: Any) -> None:
        with self._lock:
            self._pages.pop(comm, None)
            self._wake.set()

    def _left(self, comm: Any) -> None:
        """The page says that it leaves. It does not close: that would end its subshell, maybe before it read of it."""
        self._closed(comm)
        comm.close()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._pages:
                    self._thread = None
                    return
                self._wake.clear()
                waiting = list(self._pages.items())
            now = _status()
            for comm, last in waiting:
                if now != last:
                    self._send(comm, now)
            del waiting
            self._wake.wait(self._period_s)

    def _send(self, comm: Any, now: dict[str, Any]) -> None:
        if not _reached(comm, now):
            self._closed(comm)  # it gets no more
            return
        with self._lock:
            if comm in self._pages:
                self._pages[comm] = now


def _reached(comm: Any, message: dict[str, Any]) -> bool:
    try:
        comm.send(message)
    except Exception:  # the page's comm is closed
        return False
    return True


def _status() -> dict[str, Any]:
    try:
        return status.live()
    except Exception as error:  # a lost context: the page is told so
        return {"backend": None, "line": f"{type(error).__name__}: {error}"}
