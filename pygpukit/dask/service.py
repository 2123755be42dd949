"""A service: replicas on workers, requests spread over them, and what happens when a worker dies."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future as Answer
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from distributed import Actor, Client, TimeoutError

from pygpukit.core.text import words_of
from pygpukit.dask.failures import failure
from pygpukit.dask.packed import Packed
from pygpukit.dask.replica import Ready, Replica
from pygpukit.dask.workers import gpu_workers
from pygpukit.worker.errors import WorkerDiedError, WorkerError, WorkerTaskError

_STILL_S = 5.0  # how often a request looks whether its worker is there still
_LOOK_S = 0.2  # how often a request without a replica looks for a worker that came


class Service:
    """A model on several workers, made by serve(); `with` it, or close() it."""

    def __init__(
        self, client: Client, make: Callable[[], Any], replicas: int, threads: int, retries: int, patience: float
    ) -> None:
        self.replicas, self.retries, self.patience = replicas, retries, patience
        self._client, self._threads = client, threads
        self._make = Packed(make, "its model")
        self._changed = threading.Condition()
        self._loading: dict[str, Any] = {}  # by the worker's address: a future, or the answers that are under way
        self._ready: dict[str, Ready] = {}
        self._failure: WorkerError | None = None
        self._closed = False
        self._askers = ThreadPoolExecutor(threads * replicas, thread_name_prefix="pygpukit-ask")
        try:
            self._wait(lambda: len(self._ready) == replicas)
        except BaseException:
            self.close()
            raise

    def submit(self, method: str, /, *args: Any, **kwargs: Any) -> Answer[Any]:
        """Ask a replica to call a method of its model; the answer is a future of concurrent.futures.

        Its result() gives or raises what ask() does.
        """
        return self._askers.submit(self.ask, method, *args, **kwargs)

    def ask(self, method: str, /, *args: Any, **kwargs: Any) -> Any:
        """The result of a method of the model, by one of the replicas; arguments and result travel by pickle.

        Raises
        ------
        WorkerTaskError
            The method raised: `kind`, its words and `remote_traceback`.
        WorkerDiedError
            Every worker that was asked died, or there was none.
        WorkerError
            The service is closed.
        """
        packed = Packed((method, args, kwargs), method)
        died: list[str] = []
        while len(died) <= self.retries:
            address, replica = self._take(method)
            try:
                done, result = self._answer(address, replica, packed)
            except Exception as error:  # of the way to the worker; its own come as results
                died.append(f"{replica.name} ({words_of(error)})")
                self._lose(address, replica)
                continue
            with self._changed:
                replica.asked -= 1
                self._changed.notify_all()
            if done:
                return result.unpack()
            words = f"{method}() on {replica.name}: {result['kind']}: {result['message']}"
            raise WorkerTaskError(words, result["kind"], result["traceback"])
        raise WorkerDiedError(f"{method}(): the workers that were asked died: {'; '.join(died)}")

    def _answer(self, address: str, replica: Ready, packed: Packed) -> tuple[bool, Any]:
        """The answer of the actor. Raises OSError, or what Dask does, when its worker is gone."""
        answer = replica.actor.ask(packed)
        while True:
            try:
                return answer.result(timeout=_STILL_S)
            except TimeoutError:  # a worker whose host is gone says nothing
                if replica.future.status != "finished" or address not in gpu_workers(self._client):
                    raise OSError("the cluster has lost it") from None

    def workers(self) -> dict[str, int]:
        """Names of the workers that have a replica, and how many requests each has under way."""
        with self._changed:
            return {one.name: one.asked for one in self._ready.values()}

    def close(self) -> None:
        """Give the replicas up; requests under way fail."""
        with self._changed:
            self._closed = True
            self._ready.clear()
            self._loading.clear()
            self._changed.notify_all()
        self._askers.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _take(self, method: str) -> tuple[str, Ready]:
        """The replica with the fewest requests, which has one more now."""
        while True:
            if len(self._ready) < self.replicas:
                self._fill()
            self._wait(lambda: bool(self._ready), f"{method}(): ")
            with self._changed:
                if self._ready:  # another thread may have found it dead
                    address, replica = min(self._ready.items(), key=lambda one: one[1].asked)
                    replica.asked += 1
                    return address, replica

    def _lose(self, address: str, replica: Ready) -> None:
        with self._changed:
            if self._ready.get(address) is replica:
                del self._ready[address]

    def _wait(self, until: Callable[[], bool], what: str = "") -> None:
        """Wait until replicas are as said, and start those that are missing."""
        end = time.monotonic() + self.patience
        while True:
            with self._changed:
                if self._closed:
                    raise WorkerError(f"{what}the service is closed")
                if until():
                    return
            loading = self._fill()
            with self._changed:
                failed, self._failure = self._failure, None
            if failed is not None:
                raise failed
            if not loading and time.monotonic() > end:
                raise WorkerDiedError(f"{what}no worker with a GPU came within {self.patience:g} s")
            with self._changed:
                self._changed.wait(_LOOK_S)

    def _fill(self) -> bool:
        """Take up replicas that are loaded, and load them where workers have none; True while any loads."""
        workers = gpu_workers(self._client)
        with self._changed:
            for address in list(self._loading):
                self._settle(address, workers)
            taken = {*self._ready, *self._loading}
            missing = self.replicas - len(taken)
            for address in [one for one in workers if one not in taken][: max(missing, 0)]:
                self._load_at(address)
            return bool(self._loading)

    def _settle(self, address: str, workers: dict[str, str]) -> None:
        future = self._loading[address]
        if future.status == "pending" and address in workers:
            return
        del self._loading[address]
        if address not in workers:
            return
        if future.status == "finished":  # the actor as Dask would fetch it, without the way to its worker
            with self._client.as_current():
                actor = Actor(Replica, address, future.key)
            self._ready[address] = Ready(workers[address], future, actor)
        elif future.status == "error":
            self._failure = failure(f"loading on {workers[address]}", future.exception())

    def _load_at(self, address: str) -> None:
        future = self._client.submit(
            Replica,
            self._make,
            self._threads,
            key=f"replica-{uuid.uuid4().hex}",
            workers=[address],
            allow_other_workers=False,
            actor=True,
        )
        self._loading[address] = future
        future.add_done_callback(self._notify)

    def _notify(self, _: Any) -> None:
        with self._changed:
            self._changed.notify_all()
