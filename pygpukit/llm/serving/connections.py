"""Connections that cannot shut others out: a request must arrive in time, and the number of connections is bounded."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 10  # to send the head of a request, from the connection or the answer before on
BODY_S = 60  # to send its body
MAX_CONNECTIONS = 512  # connections at a time, and never more than half of what the process may open


def max_connections() -> int:
    """The limit of connections kept open at a time."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        return max(min(MAX_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2), 8)
    return MAX_CONNECTIONS


class BoundedProtocol(H11Protocol):  # type: ignore[misc,unused-ignore]
    """uvicorn's protocol in which a client that does not go on is closed.

    Where all connections are in use, a new one takes the place of the oldest that has no request under way; where each
    has one, the new one is closed.
    """

    limit = MAX_CONNECTIONS  # Server sets it in a class of its own
    idle: dict[BoundedProtocol, None]  # connections without a request under way, oldest first

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = None
        self._wait_for_head()
        if len(self.connections) > self.limit:
            next(iter(self.idle)).transport.close()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before and self.cycle is not None:
            self._request_began()
        elif self.cycle is not None and not self.cycle.more_body and self._timer is not None and self not in self.idle:
            self._set_timer(None)

    def on_response_complete(self) -> None:
        before = self.cycle
        self._wait_for_head()
        super().on_response_complete()  # which may begin a request that was sent along
        if self.cycle is not before:
            self._request_began()

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_timer(None)
        self.idle.pop(self, None)
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self.idle[self] = None
        self._set_timer(HEAD_S)

    def _request_began(self) -> None:
        self.idle.pop(self, None)
        self._set_timer(BODY_S if self.cycle.more_body else None)

    def _set_timer(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self.transport.close)
