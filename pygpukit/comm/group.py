"""Group: devices that work together, and functions that run on all of them at once."""

from __future__ import annotations

import ctypes
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pygpukit._core import native
from pygpukit.comm.failures import KINDS, failed_wait, kind_name, noted, repeated, ticket
from pygpukit.comm.orders import Call, Orders
from pygpukit.comm.pace import Pace
from pygpukit.comm.rank import Rank
from pygpukit.comm.team import Team
from pygpukit.comm.windows import Board, Windows, fields
from pygpukit.core import deferred
from pygpukit.core.backend import is_sim
from pygpukit.core.errors import CollectiveError, InvalidSpecError
from pygpukit.jit.compile.check import CHECK_VARIABLE, check_mode

if TYPE_CHECKING:
    from pygpukit.core.device import DeviceLike
    from pygpukit.core.graph import Graph

Result = TypeVar("Result")

_PATIENCE_S, _GRACE_S = 0.5, 1.3  # until a rank that does not end is interrupted, and until it is left behind


class _Interrupted(BaseException):
    """Raised in the thread of a rank whose group has failed."""


class Group(Team):
    """Devices that work together, each as one rank. `with Group(...) as group:` gives its memory back at the end.

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
        No device, too many, a timeout that is not positive, or several devices in checked mode.

    Examples
    --------
    >>> with gp.comm.Group([0]) as group:
    ...     group.run(lambda rank: rank.all_gather(gp.arange(3)).tolist())
    [[[0, 1, 2]]]
    """

    def __init__(self, devices: Sequence[DeviceLike] | None = None, timeout: float = 30.0) -> None:
        super().__init__(devices, timeout)
        if len(self.devices) > 1 and is_sim() and check_mode(None, "sim"):
            raise InvalidSpecError(
                f"Group: in checked mode ({CHECK_VARIABLE}) kernels of a process run one at a time, so that ranks "
                "cannot meet; gp.comm.ProcessGroup has a process for each",
                "devices",
            )
        self._calls: dict[tuple[str, str], int] = {}
        self._running = False  # so that every rank's wait ends, not only the first one's
        self._windows = Windows(self.devices)
        self._board = Board(self.size)
        self._close = weakref.finalize(self, self._windows.free)
        self.ranks = tuple(
            Rank(self, index, device, fields(self._windows.addresses(), self._board, timeout, index))
            for index, device in enumerate(self.devices)
        )
        for device in self.devices:
            deferred.watch(device, self)

    def run(self, function: Callable[..., Result], *args: Any) -> list[Result]:
        """function(rank, *args) in a thread for each rank, the rank's device current; their results in order of ranks.

        Waits for the work of all devices. Where one raises, the others end within two seconds, and its own error is
        raised here; so does Ctrl-C. Then the group is of no use any more. A thread that runs foreign code all that time
        is left behind.

        Parameters
        ----------
        function : callable
            Called with the Rank and args.
        *args
            The same for every rank.

        Returns
        -------
        list
            A result for each rank.

        Raises
        ------
        CollectiveError
            Ranks wait for each other for ever, or one for longer than the timeout.
        """
        return self._run(lambda rank: function(rank, *args))

    def walk(self, work: Callable[[Rank], Iterator[object]]) -> None:
        """As run(), of launches, whose ends are not awaited; failures that kernels find are raised by a later wait.

        Parameters
        ----------
        work : callable
            Called with a Rank; gives an iterator, as a generator does, whose pieces the ranks launch side by side.

        Raises
        ------
        CollectiveError
            Ranks wait for each other for ever, or the group has failed before.
        """
        pace = Pace(self.size)
        self._run(lambda rank: pace.walk(rank.index, work(rank)), waits=False)

    def launch(self, graphs: Sequence[Graph]) -> None:
        """Launch one graph a rank, each on the current stream of its device, so that all go on together.

        Asynchronous on a device. Operations of the simulated device run as they are launched: there every rank has a
        thread, and all graphs are done when this returns. Errors as run().
        """
        if len(graphs) != self.size:
            raise InvalidSpecError(f"launch: {len(graphs)} graphs for {self.size} ranks; give one a rank", "graphs")
        if is_sim():
            self.run(lambda rank: graphs[rank.index].launch())
            return
        self.check()
        for rank, graph in zip(self.ranks, graphs, strict=True):
            with rank:
                graph.launch()

    def check(self) -> None:
        """Raises CollectiveError when the group has failed."""
        with self._lock:
            if self._failure is None and self._board.stopped:
                self._failure = self._failed_wait()
            failure = self._failure
            running = self._running
        if failure is not None:
            if not running:  # said once: what else is on the devices goes on
                deferred.unwatch(self)
            raise repeated(failure)

    def fail(self, error: BaseException, rank: int = -1) -> None:
        """The group fails with this error, unless it has: every wait of its ranks ends soon."""
        with self._lock:
            if self._failure is None:
                noted(error, rank, self.size, self.devices[rank])
                self._failure = error
        self._board.stop()

    def close(self) -> None:
        """Wait for the ranks' work and give the group's memory back. It is of no use any more."""
        if not self._close.alive:
            return
        self.fail(CollectiveError("the group is closed; make a new one"))
        deferred.unwatch(self)
        for rank in self.ranks:
            with rank:
                native.synchronize()
        self._close()

    def add(self, rank: int, call: Call) -> int:
        """One more call of a rank, in its order; its number. Raises CollectiveError where ranks wait for ever."""
        self.check()
        with self._lock:
            sentence = self._orders.add(rank, call)
            number = self._orders.calls(rank)
        self._judge(sentence, rank)
        return number

    def ticket(self, call: Call, number: int) -> int:
        """A call as a rank's kernels show it to the others: its number and its kind."""
        with self._lock:
            kind = self._calls.setdefault((kind_name(call), call.details), 1 + len(self._calls) % KINDS)
        return ticket(number, kind)

    def _run(self, function: Callable[[Rank], Result], *, waits: bool = True) -> list[Result]:
        """waits: for the work of all devices."""
        self.check()
        results: list[Any] = [None] * self.size
        ended: queue.SimpleQueue[int] = queue.SimpleQueue()

        def work(rank: Rank) -> None:
            try:
                with rank:
                    results[rank.index] = function(rank)
                    self._end(rank.index)
                    if waits:
                        rank.synchronize()
            except BaseException as error:
                self.fail(error, rank.index)
            finally:
                ended.put(rank.index)

        threads = [
            threading.Thread(target=work, args=(rank,), name=f"rank {rank.index}", daemon=True) for rank in self.ranks
        ]
        self._running = True
        for thread in threads:
            thread.start()
        try:
            for _ in threads:
                ended.get()
                if self._failure is not None:
                    break
        except BaseException as error:  # Ctrl-C
            self.fail(error)
        failed = self._failure is not None
        if failed:
            _end_threads(threads)
        self._running = False
        if failed:
            deferred.unwatch(self)
            raise self._taken_failure()
        self._orders = Orders(self.size)
        return results

    def _end(self, rank: int) -> None:
        with self._lock:
            sentence = self._orders.end(rank)
        self._judge(sentence, rank)

    def _judge(self, sentence: str, rank: int) -> None:
        if sentence:
            error = CollectiveError(sentence, rank)
            self.fail(error, rank)
            raise error

    def _taken_failure(self) -> BaseException:
        """The failure itself; the group keeps what it says, without the frames that hold arrays."""
        with self._lock:
            failure = self._failure
            assert failure is not None
            self._failure = repeated(failure)
        return failure

    def _failed_wait(self) -> CollectiveError:
        """The error that a kernel wrote to the board."""
        names = {kind: name for (name, _), kind in self._calls.items()}
        return failed_wait(self._board.failures(), names, self._orders, self.timeout)


def _end_threads(threads: Sequence[threading.Thread]) -> None:
    """Their waits have been ended; who does not come back is interrupted."""
    for pause, interrupt in ((_PATIENCE_S, False), (_GRACE_S, True)):
        for thread in threads:
            if interrupt and thread.is_alive() and thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(_Interrupted))
        deadline = time.monotonic() + pause
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
