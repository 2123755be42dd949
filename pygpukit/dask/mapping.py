"""map(): a function over arrays or files on the devices of a cluster, results in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, Literal, TypeVar

from distributed import Client, default_client

from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.progress import Progress
from pygpukit.core.sizes import whole
from pygpukit.dask.frames import register
from pygpukit.dask.round import Round
from pygpukit.dask.workers import gpu_workers
from pygpukit.worker.errors import WorkerError

Item = TypeVar("Item")
Result = TypeVar("Result")


def map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    client: Client | None = None,
    retries: int = 1,
    errors: Literal["raise", "return"] = "raise",
    progress: bool = True,
    patience: float = 120.0,
) -> Iterator[Result | WorkerError]:
    """Call a function for each item on the workers that have a GPU, one at a time on each.

    Items are drawn as workers become free, so that an endless iterable is fine. When a worker dies, Dask runs what it
    had on others, as often as its setting `distributed.scheduler.allowed-failures` says (3). An item that is given up
    then is run again here, by itself, with nothing beside it: the one that kills workers is told from its neighbours.

    Parameters
    ----------
    function : callable
        Called with an item in a worker's process, where it finds its device as the only one.
    items : iterable
        Arrays, which travel by way of the host, or anything that can be pickled. A path is handed over as it is: the
        file must be there for the worker.
    client : distributed.Client, optional
        Of the cluster; by default the one that was made last.
    retries : int
        How often an item that Dask gave up, because workers died, is run again by itself.
    errors : {"raise", "return"}
        Raise an item's error in its turn, or give it in the result's place and go on.
    progress : bool
        Draw a bar in a terminal or a notebook.
    patience : float
        Seconds for which there may be no worker at all.

    Returns
    -------
    iterator
        The results in the order of the items. Closing it drops what has not begun.

    Raises
    ------
    InvalidSpecError
        An argument is none.
    WorkerTaskError
        The function raised: `kind`, its words and `remote_traceback`.
    WorkerDiedError
        An item's workers died, each time, or none is left.
    WorkerError
        No worker has a GPU, or the cluster is gone.

    Examples
    --------
    >>> with gp.dask.cluster() as cluster, cluster.get_client():  # doctest: +SKIP
    ...     means = list(gp.dask.map(lambda x: float(x.mean()), [gp.ones(3), gp.zeros(5)]))
    """
    if not callable(function):
        raise InvalidSpecError(f"function={function!r} cannot be called", "function")
    if whole(retries, "retries", "a whole number, 0 or more") < 0:
        raise InvalidSpecError(f"retries={retries!r}; give a whole number, 0 or more", "retries")
    if errors not in ("raise", "return"):
        raise InvalidSpecError(f'errors={errors!r}; give "raise" or "return"', "errors")
    register()
    client = client or default_client()
    if not gpu_workers(client):
        raise WorkerError(
            'no worker of this cluster has the resource {"GPU": 1}; start some by gp.dask.cluster(), or by '
            "`pygpukit dask worker ADDRESS`"
        )
    total = len(items) if isinstance(items, Sized) else 0
    bar = Progress("map", total, shown=progress and total > 0, things="items")
    return _results(Round(client, function, retries, patience), items, errors, bar)


def _results(round_: Round, items: Iterable[Item], errors: str, progress: Progress) -> Iterator[Result | WorkerError]:
    waiting: dict[int, Any] = {}  # results and errors by place, those before them are not there yet
    drawn = enumerate(items)
    place, more = 0, True
    with progress:
        while more or place in waiting or round_.busy:
            while more and round_.takes(len(waiting)):
                item = next(drawn, None)
                if item is None:
                    more = False
                else:
                    round_.begin(*item)
            for done, result in round_.finished():
                waiting[done] = result
                progress.add(1)
            while place in waiting:
                result = waiting.pop(place)
                place += 1
                if isinstance(result, WorkerError) and errors == "raise":
                    raise result
                yield result
