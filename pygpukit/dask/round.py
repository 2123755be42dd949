"""The items of a map that are under way: on workers, or waiting to run by themselves because workers died."""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any

import dask
from distributed import Client, Future, KilledWorker, TimeoutError, wait

from pygpukit.dask.failures import failure
from pygpukit.dask.packed import Packed
from pygpukit.dask.workers import GPU, gpu_workers
from pygpukit.worker.errors import WorkerDiedError, WorkerError

_AHEAD = 4  # tasks that a worker has at once: one runs, the others wait, so that it need not
_UNREAD = 64  # results a worker that may wait for an earlier one
_LOOK_S = 5.0  # how often a wait looks whether there are workers at all
_COUNT_S = 1.0  # how often workers are counted


class Round:
    """The part of a map that is under way: items on workers, and those that workers died of, which run one by one."""

    def __init__(self, client: Client, function: Callable[[Any], Any], retries: int, patience: float) -> None:
        self.client, self.function, self.retries, self.patience = client, function, retries, patience
        self.name = f"{getattr(function, '__name__', 'map')}-{uuid.uuid4().hex[:8]}"
        self.running: dict[Future, tuple[int, Any]] = {}
        self.suspects: deque[tuple[int, Any]] = deque()
        self.died: dict[int, int] = {}  # by place: how often Dask gave the item up
        self.alone = False  # one is run by itself
        self.workers, self._counted = 1, float("-inf")

    @property
    def busy(self) -> bool:
        """True while items are under way."""
        return bool(self.running or self.suspects)

    def takes(self, unread: int) -> bool:
        """True if another item may begin, where so many results wait for earlier ones."""
        if self.alone or self.suspects:
            return False
        if (now := time.monotonic()) - self._counted > _COUNT_S:
            self.workers, self._counted = max(1, len(gpu_workers(self.client))), now
        return len(self.running) < _AHEAD * self.workers and unread < _UNREAD * self.workers

    def begin(self, place: int, item: Any) -> None:
        """Hand an item to the cluster."""
        key = f"{self.name}-{place}-{self.died.get(place, 0)}"
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):  # arrays are large
            packed = Packed((self.function, item), f"{self.name}, item {place}")
            future = self.client.submit(_call, packed, key=key, resources={GPU: 1})
        self.running[future] = place, item

    def finished(self) -> Iterator[tuple[int, Any]]:
        """Places and results of items that are done; waits for one where any runs."""
        if not self.running:
            self.alone = bool(self.suspects)
            if not self.alone:
                return
            self.begin(*self.suspects.popleft())
        done = self._wait()
        values = self._values(done)
        for future in done:
            place, item = self.running.pop(future)
            outcome = (values[future].unpack(),) if future in values else self._outcome(future, place, item)
            if outcome is not None:
                yield place, outcome[0]

    def _values(self, done: list[Future]) -> dict[Future, Any]:
        """The results that are there, at once: one by one costs a way there and back each."""
        there = [future for future in done if future.status == "finished"]
        try:
            return dict(zip(there, self.client.gather(there), strict=True))
        except Exception:  # one went with its worker meanwhile, and is asked for by itself
            return {}

    def _wait(self) -> list[Future]:
        without = 0.0
        while True:
            try:
                with self.client.as_current():  # wait() takes the default one, whose loop may be another
                    done = wait(list(self.running), timeout=_LOOK_S, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                done = []
            if done:
                return list(done)
            without = 0.0 if gpu_workers(self.client) else without + _LOOK_S
            if without >= self.patience:
                raise WorkerDiedError(
                    f"the last worker with a GPU is gone, {len(self.running)} items were under way, and none came "
                    f"within {self.patience:g} s"
                )

    def _outcome(self, future: Future, place: int, item: Any) -> tuple[Any] | None:
        """The result or the error of an item; None for one that will be run again."""
        what = f"item {place} ({_shown(item)})"
        if future.status == "cancelled":
            raise WorkerError(f"{what} was under way when the cluster ended or its client was closed")
        try:
            return (future.result().unpack(),)
        except KilledWorker as error:
            self.died[place] = self.died.get(place, 0) + 1
            if self.died[place] <= self.retries:
                self.suspects.append((place, item))
                return None
            return (failure(f"{what}{', also by itself' if self.retries else ''}", error),)
        except Exception as error:
            return (failure(what, error),)


def _call(packed: Packed) -> Packed:
    """On a worker: the function of the item. What cannot be pickled is its error, here, where it is told."""
    function, item = packed.unpack()
    return Packed(function(item), f"the result of {packed}")


def _shown(item: Any) -> str:
    """An item in few letters."""
    shape = getattr(item, "shape", None)
    if shape is not None:
        return f"{type(item).__name__} of shape {tuple(shape)}"
    if isinstance(item, PurePath):
        return str(item)
    text = repr(item)
    return text if len(text) <= 80 else f"{text[:77]}..."
