"""Worker processes of partitions: one each, started by its first task, replaced when lost."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from pygpukit import _core
from pygpukit.core import records
from pygpukit.core.device import device_facts
from pygpukit.core.nvml import MigInstance
from pygpukit.scheduler import instances
from pygpukit.worker.errors import WorkerDiedError, WorkerStoppedError
from pygpukit.worker.parent import START_TIMEOUT_S, Worker

LEVELS = ("process", "timesliced", "mig")  # of isolation, whose tasks run in worker processes
AVAILABLE = hasattr(socket, "send_fds") and hasattr(os, "memfd_create")  # which Linux has
_READY, _LOST = range(2)
_TURN_S = 0.02  # between looks whether a wait for the worker is still wanted
_CLOSE_S = 5.0


class WorkerRecord(NamedTuple):
    """A partition's worker at one moment.

    state: "idle" (there is no process: no task has needed one yet, or it was lost), "starting", "ready", "busy" or
    "closed". pid: 0 while there is none. starts, losses: how often it was started, and lost to a fault, its death or a
    cancelled task. ready_s: how long the last start took, until it could take a task. cause: of the last loss.
    used_bytes, peak_bytes: of its pool, after the last task. device: that of its partition. instance: the MIG instance
    of that device which it has, by its uuid.
    """

    partition: str
    state: str
    pid: int
    starts: int
    losses: int
    ready_s: float
    cause: str
    used_bytes: int
    peak_bytes: int
    device: int = 0
    instance: str = ""


class PartitionWorker:
    """The worker of one partition. One task is in it at a time."""

    # What the process is told when its result has been copied, and first of all: it loads what tasks need.
    TAKEN: ClassVar = {"op": "serve", "by": "pygpukit.scheduler.served:taken"}

    def __init__(
        self,
        partition: str,
        memory_bytes: Callable[[], int],
        environment: Callable[[], dict[str, str]] = dict,
        device: int = 0,
        instance: str = "",
    ) -> None:
        """memory_bytes: what its pool may hold now; 0 = no bound. environment: asked for more variables at each start.
        device: of its partition. instance: the one of the device that the process sees alone, where it has one."""
        self.partition, self.memory_bytes, self.device = partition, memory_bytes, device
        self.instance = instance
        self._process = Worker(f"partition {partition}", start=False, environment=environment, device=self.device_there)
        self._lock = threading.Lock()  # held by who starts it or has a task in it
        self._state = "idle"
        self._starts = self._losses = self._used_bytes = self._peak_bytes = 0
        self._ready_s, self._cause = 0.0, ""
        self._closed = False

    @property
    def alive(self) -> bool:
        return self._process.alive

    @property
    def device_there(self) -> int:
        """The number of its device in the process, which its functions begin on."""
        return 0 if self.instance else self.device

    @contextlib.contextmanager
    def ready(self, stopped: Callable[[], bool]) -> Iterator[Worker]:
        """The process, started if need be, for the caller's task. Raises WorkerStoppedError when `stopped` says so."""
        with self._started(stopped):
            self._state = "busy"
            try:
                yield self._process
            except BaseException as error:
                if not self._process.alive:
                    self.lose(str(error) or type(error).__name__)
                raise

    def replace(self) -> None:
        """Start a fresh process without waiting for it: the next task finds it ready, and nobody else is held up."""
        if not self._closed:
            name = f"pygpukit-worker-{self.partition}"
            threading.Thread(target=self._replace, name=name, daemon=True).start()

    def lose(self, cause: str) -> None:
        """End the process, of which nothing good is to be expected any more; for who has it from ready()."""
        self._process.kill()
        self._losses += 1
        self._cause = cause
        self._record(_LOST, 0)

    def saw(self, pool: dict[str, int]) -> None:
        self._used_bytes, self._peak_bytes = pool["used"], pool["peak"]

    def record(self) -> WorkerRecord:
        return WorkerRecord(
            self.partition,
            self._state,
            self._process.pid or 0,
            self._starts,
            self._losses,
            self._ready_s,
            self._cause,
            self._used_bytes,
            self._peak_bytes,
            self.device,
            self.instance,
        )

    def close(self) -> None:
        """End the process for good; whoever waits for it is told."""
        self._closed = True
        if self._lock.acquire(timeout=_CLOSE_S):  # who holds it looks at _closed all the while
            try:
                self._process.close()
            finally:
                self._lock.release()
        else:
            self._process.kill()
        self._state = "closed"

    def abandon(self) -> None:
        """As close(), without waiting for anybody."""
        self._closed = True
        if self._lock.acquire(blocking=False):
            self._process.kill()
            self._lock.release()

    @contextlib.contextmanager
    def _started(self, stopped: Callable[[], bool]) -> Iterator[None]:
        """With the process for the caller alone."""
        self._take(stopped)
        try:
            self._start(stopped)
            yield
        finally:
            self._state = "closed" if self._closed else "ready" if self._process.alive else "idle"
            self._lock.release()

    def _take(self, stopped: Callable[[], bool]) -> None:
        while not self._lock.acquire(timeout=_TURN_S):
            if self._closed or stopped():
                raise WorkerStoppedError(f"the task of partition {self.partition!r} is not wanted any more")

    def _start(self, stopped: Callable[[], bool]) -> None:
        """With the lock held."""
        if self._closed:
            raise WorkerStoppedError(f"the worker of partition {self.partition!r} is closed")

        def unwanted() -> bool:
            return self._closed or stopped()

        # One that was killed while idle can look alive until its last thread has ended: only an answer proves it, and
        # a task that was never sent is not lost.
        with contextlib.suppress(WorkerDiedError):
            if self._process.alive:
                self._prepare(unwanted)
                return
        self._state = "starting"
        begin = time.monotonic()
        self._process.kill()  # what is left of one that died
        self._process.start(unwanted)
        self._prepare(unwanted)
        self._ready_s = time.monotonic() - begin
        self._starts += 1
        self._record(_READY, round(self._ready_s * 1e9))

    def _prepare(self, stopped: Callable[[], bool]) -> None:
        self._process.exchange(self.TAKEN, timeout_s=START_TIMEOUT_S, stopped=stopped)

    def _replace(self) -> None:
        # A task that needs it starts it again, and tells what is wrong. RuntimeError: GPUError is one, and so is what
        # an interpreter that goes down says.
        with contextlib.suppress(RuntimeError), self._started(lambda: False):
            pass

    def _record(self, what: int, duration_ns: int) -> None:
        pid = self._process.pid or 0
        _core.ring_push(records.WORKER, name=_core.intern(self.partition), a=pid, b=what, c=duration_ns)


def _mps_limit(share: float, device: int) -> dict[str, str]:
    """The variable by which a server of MPS holds a process to a share of the multiprocessors; {} where none serves."""
    if not 0 < share < 1 or device_facts(device).get("mps") != 1:
        return {}
    # The server takes whole per cents, and refuses none.
    return {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(max(1, round(100 * share)))}


class Processes:
    """The workers of one scheduler, by partition."""

    def __init__(self, core: _core.SchedulerCore) -> None:
        self._core = core
        self._workers: dict[str, PartitionWorker] = {}
        self._instances: dict[str, MigInstance] = {}
        self._lock = threading.Lock()

    def call(
        self, partition: str, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Callable[[], Any]:
        """The function that a task of the partition runs. Raises InvalidSpecError for what cannot travel."""
        from pygpukit.scheduler.remote import RemoteCall  # with the compiler of kernels: not before it is needed

        return RemoteCall(self.worker(partition), fn, args, kwargs)

    def worker(self, partition: str) -> PartitionWorker:
        """The worker of a partition, not started yet when it is new."""
        with self._lock:
            worker = self._workers.get(partition)
            if worker is None:
                manager = self._core.partitions()

                def memory_bytes() -> int:
                    limits = getattr(manager.get(partition), "limits", None)
                    return 0 if limits is None or not limits.memory_quota else limits.memory_quota + limits.borrow[0]

                instance = self._instances.get(partition)

                def environment() -> dict[str, str]:
                    if instance is not None:
                        return instances.environment(instance)
                    limits = getattr(manager.get(partition), "limits", None)
                    # In its turn a worker has the device to itself.
                    if limits is None or limits.isolation != "process":
                        return {}
                    return _mps_limit(limits.compute_share + limits.borrow[1], device)

                device = getattr(getattr(manager.get(partition), "limits", None), "device", 0)
                worker = PartitionWorker(
                    partition, memory_bytes, environment, device, "" if instance is None else instance.uuid
                )
                self._workers[partition] = worker
        return worker

    def instances(self) -> dict[str, MigInstance]:
        """The MIG instances that have a partition, by its id."""
        with self._lock:
            return dict(self._instances)

    def place(self, partition: str, instance: MigInstance) -> None:
        """The worker of a partition, not there yet, is to have an instance."""
        with self._lock:
            self._instances[partition] = instance

    def records(self) -> list[WorkerRecord]:
        with self._lock:
            return [worker.record() for worker in self._workers.values()]

    def end(self, partition: str) -> None:
        """End the worker of a partition that is gone."""
        with self._lock:
            worker = self._workers.pop(partition, None)
            self._instances.pop(partition, None)
        if worker is not None:
            worker.close()

    def close(self) -> None:
        for worker in self._all_gone():
            worker.close()

    def abandon(self) -> None:
        for worker in self._all_gone():
            worker.abandon()

    def _all_gone(self) -> list[PartitionWorker]:
        with self._lock:
            workers, self._workers = list(self._workers.values()), {}
            self._instances.clear()  # others may have them now
        return workers
