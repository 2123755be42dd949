"""Dask's connections by TCP and TLS, which tell as they begin where arrays for their reader may be laid."""

from __future__ import annotations

import logging
from typing import Any

from distributed.comm.tcp import TCP, TLS, TCPConnector, TCPListener, TLSConnector, TLSListener

from pygpukit.dask import desk

KEY = "pygpukit"  # of what Dask's two ends tell each other


class _Telling:
    deserialize: bool
    _name = ""  # of what is laid for this connection

    def handshake_info(self) -> dict[str, Any]:
        """Dask's own facts, and, where messages are read here and not passed on, this process's desk."""
        info: dict[str, Any] = super().handshake_info()  # type: ignore[misc]
        if self.deserialize:
            own = desk.own()
            self._name = own.connect(self)
            info[KEY] = {"here": desk.here(), "desk": own.name, "connection": self._name}
        return info

    async def read(self, deserializers: Any = None) -> Any:
        """The next message. Where none comes any more, what was laid for one is given up."""
        try:
            return await super().read(deserializers)  # type: ignore[misc]
        except BaseException as error:
            desk.own().forget(self._name)  # at once: the error itself may hold the connection for long
            _let_go(error)
            raise

    async def write(self, msg: Any, serializers: Any = None, on_error: str = "message") -> Any:
        """Write a message; its size in bytes."""
        try:
            return await super().write(msg, serializers, on_error)  # type: ignore[misc]
        except BaseException as error:
            _let_go(error)
            raise


def _let_go(error: BaseException) -> None:
    """The stream keeps its error, whose traceback holds the frame that wrote the last message, and its arrays."""
    if error.__cause__ is not None:
        error.__cause__.__traceback__ = None


class TellingTCP(_Telling, TCP):  # type: ignore[misc]
    """A connection by TCP."""


class TellingTLS(_Telling, TLS):  # type: ignore[misc]
    """A connection by TLS."""


def tell() -> None:
    """Let all connections of this process that begin from here on tell of its desk."""
    TCPConnector.comm_class = TCPListener.comm_class = TellingTCP
    TLSConnector.comm_class = TLSListener.comm_class = TellingTLS
    logging.getLogger("distributed.worker").addFilter(_as_text)


def _as_text(record: logging.LogRecord) -> bool:
    """Dask keeps its log: an error in it, of a reader that died, would hold its frames, and these the arrays."""
    if record.exc_info:
        record.exc_text = logging.Formatter().formatException(record.exc_info)
        record.exc_info = None
    return True
