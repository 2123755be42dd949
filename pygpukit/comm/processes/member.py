"""A rank in a worker process: its window and those of the others, mapped here; and its calls, told to the parent."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import traceback
import zlib
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.comm.failures import KINDS, STOPPED, kind_name, ticket
from pygpukit.comm.orders import Call
from pygpukit.comm.rank import Rank
from pygpukit.comm.windows import Board, fields, new_window
from pygpukit.core import deferred
from pygpukit.core.errors import CollectiveError
from pygpukit.worker import host
from pygpukit.worker.arrays import Handover, take_over
from pygpukit.worker.failures import describe
from pygpukit.worker.protocol import encode, receive, send
from pygpukit.worker.travel import Sender
from pygpukit.worker.travel_code import CodeReceiver

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_LOOK_EVERY_S = 0.02  # at the board
_EXPLAINED_S = 1.0  # in which the parent says what a kernel's failure means

_member: Member | None = None
_lent = contextlib.ExitStack()  # what goes with the last answer: it stays until the next request


class Member:
    """One rank's part of the group, as Rank asks for it."""

    def __init__(self, rank: int, size: int, device: int, timeout: float, line: socket.socket) -> None:
        self.size, self._index, self._device, self._timeout, self._line = size, rank, device, timeout, line
        native.set_device(device)
        self.board = Board(size)
        self.window = new_window(size)
        self.rank: Rank | None = None
        self._mapped: list[GPUArray] = []  # windows, as long as the rank may launch
        self._calls = 0
        self._kinds: set[int] = set()
        self._why = ""
        self._explained = threading.Event()
        self._telling = threading.Lock()
        deferred.watch(device, self)

    def meet(self, windows: list[dict[str, Any]], descriptors: list[int]) -> None:
        """Map the others' windows, in order of ranks."""
        native.set_device(self._device)
        addresses = []
        for index, (window, descriptor) in enumerate(zip(windows, descriptors, strict=True)):
            here = self.window
            if index != self._index:
                described = {**window["array"], "segment": 0, "device": self._device}
                (here,) = take_over([window["nbytes"]], [descriptor], [described])
            self._mapped.append(here)
            addresses.append(here.device_ptr)
        self.rank = Rank(self, self._index, self._device, fields(addresses, self.board, self._timeout, self._index))
        threading.Thread(target=self._watch, name="group", daemon=True).start()

    def check(self) -> None:
        """Raises CollectiveError when the group has failed."""
        if self.board.stopped:
            self._explained.wait(_EXPLAINED_S)
            raise CollectiveError(self._why or STOPPED)

    def add(self, rank: int, call: Call) -> int:
        """One more call of the rank, in its order; its number. The parent finds out who waits for ever."""
        self.check()
        self._tell({"call": [call.name, call.details, call.peer]})
        self._calls += 1
        return self._calls

    def ticket(self, call: Call, number: int) -> int:
        """A call as the rank's kernels show it to the others. Processes number kinds alike by hashing them: two that
        have one number in common go on together in a graph; other calls the parent compares."""
        name = kind_name(call)
        kind = 1 + zlib.crc32(f"{name} {call.details}".encode()) % KINDS
        if kind not in self._kinds:
            self._kinds.add(kind)
            self._tell({"kind": kind, "name": name})
        return ticket(number, kind)

    def ended(self) -> None:
        """The rank's function has come back."""
        self._calls = 0
        self._tell({"ended": True})

    def _tell(self, message: dict[str, Any]) -> None:
        with self._telling:
            send(self._line, encode(message))

    def _watch(self) -> None:
        """Tell the parent what kernels wrote to the board, and stop when it says so, or has gone."""
        reported = False
        waiting = select.poll()
        waiting.register(self._line, select.POLLIN)
        try:
            while True:
                if waiting.poll(_LOOK_EVERY_S * 1000):
                    message, _ = receive(self._line)
                    self._why = message["stop"]
                    self.board.stop()
                    self._explained.set()
                if not reported and (failures := self.board.failures()):
                    reported = True
                    self._tell({"failed": list(failures[0])})
        except (EOFError, OSError):  # the parent closed the line; the process ends with its other one
            self.board.stop()


def join(request: dict[str, Any], descriptors: list[int]) -> tuple[dict[str, Any], list[int]]:
    """Become a rank: the answer tells its window, and the segment's descriptor goes with it."""
    global _member
    line = socket.socket(fileno=os.dup(descriptors[0]))
    _member = Member(request["rank"], request["size"], request["device"], request["timeout"], line)
    shown = _lent.enter_context(Handover([("window", _member.window)]))
    window = {"array": shown.descriptions[0], "nbytes": shown.segments[0]}
    shown.exports.clear()  # others map it until the process ends
    return {"ok": True, "window": window}, shown.descriptors


def meet(request: dict[str, Any], descriptors: list[int]) -> tuple[dict[str, Any], list[int]]:
    """Map the windows of all ranks."""
    assert _member is not None
    _lent.close()
    _member.meet(request["windows"], descriptors)
    return {"ok": True}, []


def work(request: dict[str, Any], descriptors: list[int]) -> tuple[dict[str, Any], list[int]]:
    """The answer to a request to run a function of the rank, and the descriptors that go with it."""
    assert _member is not None and _member.rank is not None
    _lent.close()
    rank = _member.rank
    try:
        receiver = CodeReceiver((), host.unpack(request["hosts"], descriptors))
        receiver.open(request["functions"], request["namespaces"])
        function, *args = receiver.decode(request["call"])
        with rank:
            value = function(rank, *args)
            _member.ended()
            rank.synchronize()
        sender = Sender()
        tree = sender.encode(f"the result of rank {rank.index}", value)
        if sender.arrays:
            raise TypeError(f"{sender.arrays[0][0]} is a GPUArray of the rank's process; give .to_numpy() of it")
        hosts, file = host.pack(sender.hosts)
        for descriptor in file:
            _lent.callback(os.close, descriptor)
        return {"ok": True, "result": tree, "hosts": hosts}, file
    except BaseException as error:
        answer = {"ok": False, "error": describe(error)}
        traceback.clear_frames(error.__traceback__)  # which hold arrays
        return answer, []
