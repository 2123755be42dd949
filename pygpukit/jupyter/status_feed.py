"""The status feed: a one-way comm that tells a page how the kernel's GPU is whenever that changed, also while a cell
runs (docs/seams.md). Nothing is sent while no page follows, and no thread runs then.

Pages follow, renew and leave over the control channel: what is sent here from this module's thread would make ipykernel
7.4 route a page's messages on the same comm behind the running cell, or to a subshell that has ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from pygpukit.jupyter import status

TARGET = "pygpukit.status.v1"
PERIOD_S = 1.0
LEASE_S = 10.0  # a page that was not heard from for so long is asked whether it is there, and has as long to say so
MAX_PAGES = 64


class Line(Protocol):
    """The kernel's end of a page's comm."""

    def send(self, message: dict[str, Any]) -> None: ...

    def drop(self) -> None: ...


class CommLine:
    """A comm that the page has made under this id, and that was never opened by a message."""

    def __init__(self, name: str) -> None:
        import comm

        self._manager = comm.get_comm_manager()
        if name in self._manager.comms:
            raise ValueError(f"the comm {name!r} is another one's: a page follows with a comm of its own")
        self._comm = comm.create_comm(comm_id=name, target_name=TARGET, primary=False)
        self._manager.register_comm(self._comm)

    def send(self, message: dict[str, Any]) -> None:
        self._comm.send(message)

    def drop(self) -> None:
        """As if the page had closed it. It is told nothing: it has left, or is another page that knows no such comm."""
        self._manager.comm_close(None, None, {"content": {"comm_id": self._comm.comm_id}})


class _Page:
    """A page that follows."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.last: dict[str, Any] | None = None  # what it was sent
        self.apart = False  # whether it is heard while a cell runs: if not, its silence says nothing
        self.heard_s = 0.0
        self.asked_s: float | None = None  # when it was asked whether it is there, and has not said so yet

    def gone(self, now_s: float, lease_s: float) -> bool:
        return self.apart and self.asked_s is not None and now_s - self.asked_s > lease_s

    def send(self, message: dict[str, Any], ask: bool) -> bool:
        """True if it could be sent; False where the comm is closed."""
        try:
            self.line.send({**message, "answer": True} if ask else message)
        except Exception:  # whatever the transport raises: who asked drops the page
            return False
        if ask and self.asked_s is None:
            self.asked_s = time.monotonic()
        return True


class StatusFeed:
    """The pages that follow, and the thread that serves them."""

    def __init__(
        self, period_s: float = PERIOD_S, lease_s: float = LEASE_S, line: Callable[[str], Line] = CommLine
    ) -> None:
        self._period_s = period_s
        self._lease_s = lease_s
        self._line = line
        self._lock = threading.RLock()
        self._heard = threading.Condition(self._lock)
        self._pages: dict[str, _Page] = {}  # by the id of its comm
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, name: str, apart: bool) -> None:
        """A page follows, or says that it still does; `name` is its comm's id. A new one's first message follows at
        once. `apart`: it is heard while a cell runs. Raises ValueError where it cannot follow."""
        with self._lock:
            page = self._pages.get(name)
            if page is None:
                if len(self._pages) >= MAX_PAGES:
                    raise ValueError(f"{MAX_PAGES} pages follow this kernel already: close some of them")
                page = self._pages[name] = _Page(self._line(name))
                self._wake.set()
            page.apart, page.heard_s, page.asked_s = apart, time.monotonic(), None
            self._heard.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pygpukit-status", daemon=True)
                self._thread.start()

    def leave(self, name: str) -> None:
        """A page follows no more."""
        with self._lock:
            page = self._pages.pop(name, None)
            self._wake.set()
        if page is not None:
            page.line.drop()

    def tell(self, message: dict[str, Any], timeout_s: float) -> bool:
        """Send a message to each page, and wait so long for one that has it. False when there was none.

        A page that is heard while a cell runs says so itself; of another it is enough that the message was sent.
        """
        deadline_s = time.monotonic() + timeout_s
        sent: dict[str, float] = {}
        with self._lock:
            while True:
                for name, page in list(self._pages.items()):
                    if name in sent:
                        continue
                    sent[name] = time.monotonic()
                    if not page.send(message, ask=True):
                        self.leave(name)
                if any(self._has(name, since_s) for name, since_s in sent.items()):
                    return True
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not self._heard.wait(left_s):
                    return False

    def _has(self, name: str, since_s: float) -> bool:
        page = self._pages.get(name)
        return page is not None and (page.heard_s >= since_s or not page.apart)

    def close(self) -> None:
        """Serve none of these pages any more and wait for their thread. A page that follows later gets another one, so
        that one which answers just now is not waited for."""
        with self._lock:
            thread, self._thread = self._thread, None
            for name in list(self._pages):
                self.leave(name)
            self._wake.set()
        if thread is not None:
            thread.join()

    def running(self) -> bool:
        return self._thread is not None

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._thread is not threading.current_thread():
                    return  # closed
                if not self._pages:
                    self._thread = None
                    return
                self._wake.clear()
            state = _status()
            with self._lock:
                for name, page in list(self._pages.items()):
                    if not self._serve(page, state):
                        self.leave(name)
                wait_s = self._period_s if self._pages else 0
            self._wake.wait(wait_s)

    def _serve(self, page: _Page, state: dict[str, Any]) -> bool:
        """Send a page what it does not have yet. False where it is gone."""
        now_s = time.monotonic()
        if page.gone(now_s, self._lease_s):
            return False
        if state == page.last:
            return True
        page.last = state
        # Of a page that is heard between cells only, one answer at most waits behind the running cell.
        ask = now_s - page.heard_s > self._lease_s and (page.apart or page.asked_s is None)
        return page.send(state, ask)


def _status() -> dict[str, Any]:
    try:
        return status.live()
    except Exception as error:  # a lost context: the page is told so
        return {"backend": None, "line": f"{type(error).__name__}: {error}"}
