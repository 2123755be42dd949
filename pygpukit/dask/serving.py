"""serve(): a model loaded by several workers as Dask actors, each request by one of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from distributed import Client, default_client

from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.dask.frames import register
from pygpukit.dask.service import Service
from pygpukit.dask.workers import gpu_workers
from pygpukit.worker.errors import WorkerError


def serve(
    model: str | Path | Callable[..., Any],
    *,
    replicas: int | None = None,
    threads: int = 4,
    retries: int = 2,
    patience: float = 120.0,
    client: Client | None = None,
    **options: Any,
) -> Service:
    """Load a model on several workers and spread requests over them.

    Each replica is a Dask actor on a worker of its own. A request goes to the one with the fewest under way. When a
    worker dies, its requests are asked again of others, and a worker that comes, the restarted one, too, loads a
    replica in its place; a request may therefore be begun more than once.

    Parameters
    ----------
    model : str, path or callable
        What `gp.llm.load` takes, or a function that a worker calls once, and that gives the object to be asked.
    replicas : int, optional
        How many; by default one for each worker that has a GPU.
    threads : int
        Requests that a replica works on at once; an engine of `gp.llm` computes them together.
    retries : int
        How often a request is asked again because its worker died.
    patience : float
        Seconds for which a request waits where there is no replica.
    client : distributed.Client, optional
        Of the cluster; by default the one that was made last.
    **options
        Keywords of `gp.llm.load`, or of the function.

    Returns
    -------
    Service
        Once every replica is loaded; a context that gives them up at its end.

    Raises
    ------
    InvalidSpecError
        An argument is none.
    WorkerError
        There are fewer workers with a GPU than replicas.
    WorkerTaskError
        Loading failed: `kind`, its words and `remote_traceback`.
    WorkerDiedError
        Workers died while they loaded.

    Examples
    --------
    >>> with gp.dask.serve("smollm2-135m-instruct") as model:  # doctest: +SKIP
    ...     answers = [model.submit("chat", text) for text in ("Hello", "Who are you?")]
    ...     print([answer.result() for answer in answers])
    """
    for name, value, minimum in (("threads", threads, 1), ("retries", retries, 0), ("replicas", replicas, 1)):
        if value is not None and whole(value, name, f"a whole number, {minimum} or more") < minimum:
            raise InvalidSpecError(f"{name}={value!r}; give a whole number, {minimum} or more", name)
    if not callable(model) and not isinstance(model, (str, Path)):
        raise InvalidSpecError(f"model={model!r}; give a name, a folder, or a function that makes it", "model")
    register()
    client = client or default_client()
    there = len(gpu_workers(client))
    count = there if replicas is None else replicas
    if count > there or not there:
        raise WorkerError(
            f'{count or "no"} replicas need as many workers with the resource {{"GPU": 1}}; this cluster has {there}'
        )
    make = partial(model if callable(model) else partial(_load, str(model)), **options)
    return Service(client, make, count, threads, retries, patience)


def _load(name: str, **options: Any) -> Any:
    from pygpukit.llm import load

    return load(name, progress=False, **options)
