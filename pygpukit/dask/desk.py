"""Arrays laid down for a process by others of its host: it opens their memory, copies from device to device, and says
so."""

from __future__ import annotations

import functools
import itertools
import os
import socket
import struct
import threading
import uuid
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.backend import backend
from pygpukit.core.errors import GPUError
from pygpukit.core.text import words_of
from pygpukit.worker.arrays import Handover, take_over
from pygpukit.worker.protocol import encode, receive, send

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

PATIENCE_S = 30.0  # for the other process
_CREDENTIALS = struct.Struct("3i")  # process, user, group


class NotTakenError(Exception):
    """An array was not laid on a desk; in words, why."""


class Desk:
    """Where other processes of this host lay arrays for this one, by the connection that will tell of them.

    An array is here, in memory of its own, before its message is written. It is given up with the connection over which
    that was to come: the writer may die, or its message be lost.
    """

    def __init__(self) -> None:
        self.name = f"pygpukit-{uuid.uuid4().hex}"
        self._laid: dict[str, dict[int, GPUArray]] = {}  # by connection and number; a lock could be the collector's
        self._numbers = itertools.count()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(f"\0{self.name}")
        self._socket.listen(64)
        threading.Thread(target=self._listen, name="pygpukit-desk", daemon=True).start()

    def connect(self, connection: Any) -> str:
        """Take arrays for this connection from here on, and as long as it is there; its name."""
        name = uuid.uuid4().hex
        self._laid[name] = {}
        weakref.finalize(connection, self.forget, name)
        return name

    def forget(self, connection: str) -> None:
        """Give up what was laid for a connection, and take nothing more for it."""
        self._laid.pop(connection, None)

    def take(self, connection: str, number: int) -> GPUArray:
        """The array of which a message over this connection tells."""
        return self._laid[connection].pop(number)

    @property
    def waiting(self) -> int:
        """Arrays whose messages have not come yet."""
        return sum(len(arrays) for arrays in list(self._laid.values()))

    def _listen(self) -> None:
        while True:
            line, _ = self._socket.accept()
            threading.Thread(target=self._serve, args=(line,), name="pygpukit-desk-line", daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with line, suppress(OSError, EOFError, ValueError):  # the other one died, or is none of ours
            line.settimeout(PATIENCE_S)
            check_user(line)
            request, descriptors = receive(line)
            try:
                answer: dict[str, Any] = {"number": self._lay(request, descriptors)}
            except Exception as error:  # whatever it is, the writer goes another way
                answer = {"refused": f"{type(error).__name__}: {words_of(error)}"}
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            send(line, encode(answer))

    def _lay(self, request: dict[str, Any], descriptors: list[int]) -> int:
        """A copy of the array that was handed over; its number. Nothing of the other process is mapped any more."""
        laid = self._laid.get(request["connection"])
        if laid is None:
            raise NotTakenError("the connection has ended")
        described = {**request["array"], "segment": 0, "device": native.current_device()}
        (theirs,) = take_over([request["segment_bytes"]], descriptors, [described])
        number, array = next(self._numbers), theirs.clone()
        native.synchronize()
        laid[number] = array  # where the connection has ended meanwhile, nobody else has `laid`
        return number


def lay(array: GPUArray, name: str, connection: str) -> int:
    """Lay a contiguous copy of an array on the desk of another process: its number there.

    The array is kept until the other one has copied it or died. Raises NotTakenError, and then nothing is there that
    anybody will take.
    """
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(PATIENCE_S)
        try:
            line.connect(f"\0{name}")
            check_user(line)
            with Handover([("array", array.contiguous())]) as shown:
                request = {
                    "connection": connection,
                    "array": shown.descriptions[0],
                    "segment_bytes": shown.segments[0],
                }
                send(line, encode(request), shown.descriptors)
                answer, _ = receive(line)
        except EOFError:
            raise NotTakenError("the process ended meanwhile") from None
        except TimeoutError:
            raise NotTakenError(f"no answer within {PATIENCE_S:g} s") from None
        except (GPUError, OSError) as error:
            raise NotTakenError(words_of(error)) from error
    if "refused" in answer:
        raise NotTakenError(answer["refused"])
    return int(answer["number"])


@functools.cache
def own() -> Desk:
    """The desk of this process. Raises OSError where it cannot have one."""
    return Desk()


@functools.cache
def here() -> dict[str, str]:
    """Host, network and kind of devices: two processes that can open each other's memory have them in common."""
    host = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return {"host": host, "network": str(Path("/proc/self/ns/net").readlink()), "devices": backend()}


def check_user(line: socket.socket) -> None:
    """Raises OSError where the other end is another user's."""
    size = _CREDENTIALS.size
    _, user, _ = _CREDENTIALS.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    if user != os.getuid():
        raise PermissionError(f"the other process is user {user}'s")
