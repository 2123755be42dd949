"""ProcessGroup: a worker process for each rank, whose kernels meet in memory that the processes share."""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from pygpukit.comm.failures import failed_wait, noted, repeated
from pygpukit.comm.orders import Call, Orders
from pygpukit.comm.team import Team
from pygpukit.comm.windows import Failed, check_access
from pygpukit.core.errors import CollectiveError
from pygpukit.worker import host
from pygpukit.worker.errors import WorkerDiedError, WorkerStoppedError
from pygpukit.worker.failures import rebuild
from pygpukit.worker.parent import START_TIMEOUT_S, Worker
from pygpukit.worker.protocol import encode, receive, send
from pygpukit.worker.travel import Receiver
from pygpukit.worker.travel_code import CodeSender

if TYPE_CHECKING:
    from pygpukit.core.device import DeviceLike

Result = TypeVar("Result")

_GRACE_S = 1.0  # after a failure, until a rank's process is killed
_LOOK_EVERY_S = 0.02
_MEMBER = "pygpukit.comm.processes.member"


class ProcessGroup(Team):
    """Devices that work together, each as one rank in a process of its own. Use as a context: it ends the processes.

    What one rank's function does to its interpreter or its device, an endless kernel, an illegal address, costs its
    process and this group, and nothing else.

    Parameters
    ----------
    devices : sequence of devices, optional
        A device for each rank, at most 64; all devices when left out.
    timeout : float, default 30
        Seconds that a rank waits for another one in a collective, on the device's clock, before the group fails.

    Raises
    ------
    DeviceMismatchError
        There is no such device, it is named twice, or two cannot use each other's memory.
    InvalidSpecError
        No device, too many, or a timeout that is not positive.
    WorkerError
        A process does not start, or processes cannot share memory here.

    Examples
    --------
    >>> with gp.comm.ProcessGroup([0]) as group:
    ...     group.run(lambda rank: rank.all_gather(gp.arange(3)).tolist())
    [[[0, 1, 2]]]
    """

    def __init__(self, devices: Sequence[DeviceLike] | None = None, timeout: float = 30.0) -> None:
        super().__init__(devices, timeout)
        check_access(self.devices, "ProcessGroup")
        self._names: dict[int, str] = {}  # of calls, by their kinds
        self._failed_s = 0.0
        self._ended = 0  # ranks whose function has come back
        self._workers = [Worker(f"rank {rank}", start=False, device=device) for rank, device in enumerate(self.devices)]
        self._lines: list[socket.socket | None] = [None] * self.size
        self._close = weakref.finalize(self, _end, self._workers, self._lines)
        try:
            self._begin()
        except BaseException:
            self._close()
            raise

    @property
    def pids(self) -> tuple[int | None, ...]:
        """The process of each rank; None for one that has ended."""
        return tuple(worker.pid for worker in self._workers)

    def run(self, function: Callable[..., Result], *args: Any) -> list[Result]:
        """function(rank, *args) in the process of each rank, its device current; their results in order of ranks.

        Functions and arguments travel as those of a scheduler's process: by name where the process can import them,
        else with what they use. Waits for the work of all devices. Where one raises or dies, the others end within two
        seconds: those whose function does not come back are killed. The failure is raised here, and so is Ctrl-C. Then
        all processes end, and the group is of no use any more.

        Parameters
        ----------
        function : callable
            Called with the Rank and args. It gives numbers, text, lists, dictionaries or NumPy arrays.
        *args
            The same for every rank: such values, and functions.

        Returns
        -------
        list
            A result for each rank.

        Raises
        ------
        CollectiveError
            Ranks wait for each other for ever, or one for longer than the timeout, or a rank's process has died.
        WorkerTaskError
            A function raised what this process does not know; Python's own errors and this package's are raised.
        TypeError
            An argument or a result that cannot travel.
        """
        self.check()
        sender = CodeSender()
        call = sender.encode("run()", [function, *args])
        if sender.arrays:
            raise TypeError(f"run(): {sender.arrays[0][0]} is a GPUArray of this process; give .to_numpy() of it")
        work = {"functions": sender.functions, "namespaces": sender.namespaces, "call": call}
        self._orders, self._ended = Orders(self.size), 0
        results: list[Any] = [None] * self.size

        def ask(rank: int) -> None:
            try:
                results[rank] = self._ask(rank, work, sender.hosts)
            except BaseException as error:
                self._fail(error, rank)

        threads = [threading.Thread(target=ask, args=(rank,), name=f"rank {rank}") for rank in range(self.size)]
        for thread in threads:
            thread.start()
        try:
            self._listen(lambda: any(thread.is_alive() for thread in threads))
        except BaseException as error:  # Ctrl-C
            self._fail(error)
        for thread in threads:
            thread.join()
        failure = self._failure
        if failure is not None:
            self._close()
            self._failure = repeated(failure)
            raise failure
        return results

    def close(self) -> None:
        """End the processes; the driver takes their memory back. The group is of no use any more."""
        self._fail(CollectiveError("the group is closed; make a new one"))
        self._close()

    def _begin(self) -> None:
        """Start the processes, and show each the others' windows."""
        with ThreadPoolExecutor(self.size) as together:
            shown = list(together.map(self._join, range(self.size)))
            descriptors = [descriptor for _, descriptor in shown]
            try:
                windows = [answer for answer, _ in shown]
                list(
                    together.map(
                        lambda rank: self._request(rank, "meet", {"windows": windows}, descriptors), range(self.size)
                    )
                )
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)

    def _join(self, rank: int) -> tuple[dict[str, Any], int]:
        """Start one: its window, and the descriptor of the segment that holds it."""
        self._workers[rank].start()
        ours, theirs = socket.socketpair()
        ours.settimeout(_GRACE_S)
        self._lines[rank] = ours
        with theirs:
            fields = {"rank": rank, "size": self.size, "device": self.devices[rank], "timeout": self.timeout}
            answer, (descriptor,) = self._request(rank, "join", fields, [theirs.fileno()])
        return answer["window"], descriptor

    def _request(
        self, rank: int, operation: str, fields: dict[str, Any], descriptors: Sequence[int] = ()
    ) -> tuple[dict[str, Any], list[int]]:
        request = {"op": "serve", "by": f"{_MEMBER}:{operation}", **fields}
        answer, received = self._workers[rank].exchange(request, descriptors, START_TIMEOUT_S)
        if not answer["ok"]:
            raise rebuild(answer["error"], f"rank {rank}")
        return answer, received

    def _ask(self, rank: int, work: dict[str, Any], hosts: Sequence[Any]) -> Any:
        """The result of a rank's function. Raises its error."""
        descriptions, file = host.pack(hosts)
        try:
            request = {"op": "serve", "by": f"{_MEMBER}:work", "hosts": descriptions, **work}
            answer, descriptors = self._workers[rank].exchange(request, file, stopped=self._out_of_patience)
        except WorkerStoppedError:
            return None
        except WorkerDiedError as died:
            code = died.exit_code or 0
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise CollectiveError(
                f"the process of rank {rank}, device {self.devices[rank]}, ended with {how}; make a new group", rank
            ) from died
        finally:
            for descriptor in file:
                os.close(descriptor)
        if not answer["ok"]:
            raise rebuild(answer["error"], f"rank {rank}")
        try:
            return Receiver((), host.unpack(answer["hosts"], descriptors)).decode(answer["result"])
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _out_of_patience(self) -> bool:
        return self._failure is not None and time.monotonic() > self._failed_s + _GRACE_S

    def _listen(self, busy: Callable[[], bool]) -> None:
        """Hear of the calls of ranks, until their functions have ended and all of it was heard."""
        with selectors.DefaultSelector() as waiting:
            for rank, line in enumerate(self._lines):
                if line is not None:
                    waiting.register(line, selectors.EVENT_READ, (rank, line))
            while busy() or (self._failure is None and self._ended < self.size):
                for key, _ in waiting.select(_LOOK_EVERY_S):
                    rank, line = key.data
                    try:
                        message, _ = receive(line)
                    except (EOFError, OSError):  # it died, which its worker tells
                        waiting.unregister(line)
                        continue
                    self._hear(rank, message)

    def _hear(self, rank: int, message: dict[str, Any]) -> None:
        if "kind" in message:
            self._names[message["kind"]] = message["name"]
        elif "call" in message:
            self._judge(self._orders.add(rank, Call(*message["call"])), rank)
        elif "failed" in message:
            self._fail(failed_wait([Failed(*message["failed"])], self._names, self._orders, self.timeout), rank)
        else:
            self._ended += 1
            self._judge(self._orders.end(rank), rank)

    def _judge(self, sentence: str, rank: int) -> None:
        if sentence:
            self._fail(CollectiveError(sentence, rank), rank)

    def _fail(self, error: BaseException, rank: int = -1) -> None:
        """The group fails with this error, unless it has: every wait of its ranks ends soon."""
        with self._lock:
            if self._failure is not None:
                return
            noted(error, rank, self.size, self.devices[rank])
            self._failure, self._failed_s = error, time.monotonic()
        for line in self._lines:
            if line is not None:
                with suppress(OSError):  # it died
                    send(line, encode({"stop": str(repeated(error))}))


def _end(workers: Sequence[Worker], lines: list[socket.socket | None]) -> None:
    for worker in workers:
        worker.kill()
    for place, line in enumerate(lines):
        if line is not None:
            line.close()
            lines[place] = None
