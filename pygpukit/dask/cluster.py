"""cluster(): Dask's scheduler and a worker a device on this host."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from distributed import Scheduler, SpecCluster

from pygpukit.core.sizes import MemoryLike
from pygpukit.dask.devices import host_devices
from pygpukit.dask.frames import register
from pygpukit.dask.workers import worker_spec


def cluster(
    devices: Sequence[int] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    threads: int = 1,
    memory_limit: MemoryLike = None,
    device_memory: MemoryLike = None,
    dashboard: bool = False,
    **options: Any,
) -> SpecCluster:
    """Start a scheduler and a worker process for each device of this host.

    A worker sees its device alone, as number 0, and has the resource {"GPU": 1}. It is pinned to the processors near
    its device where the driver tells them, and started anew when it dies.

    Parameters
    ----------
    devices : sequence of int, optional
        Numbers of devices; all of them by default. One named twice has two workers.
    host : str
        Address at which scheduler and workers listen; by default they are reached from this host alone.
    port : int
        Port of the scheduler; 0 takes a free one.
    threads : int
        Tasks of a worker at once, of those that do not ask for {"GPU": 1}.
    memory_limit : int or str, optional
        Host memory of a worker, "8GB"; by default an even part of the host's. Dask restarts one that takes more.
    device_memory : int or str, optional
        Memory of its device that a worker's arrays may take; by default all of it.
    dashboard : bool
        Serve Dask's dashboard, which needs bokeh.
    **options
        Others of `distributed.Nanny`, for every worker: local_directory, death_timeout.

    Returns
    -------
    distributed.SpecCluster
        A context; `.get_client()` is what tasks are handed to.

    Raises
    ------
    DeviceMismatchError
        There is no such device.
    InvalidSpecError
        A size is none.

    Examples
    --------
    >>> with gp.dask.cluster() as cluster, cluster.get_client() as client:  # doctest: +SKIP
    ...     client.submit(abs, gp.ones(3), resources={"GPU": 1}).result()
    """
    chosen = host_devices(devices)
    specs = {
        place: worker_spec(
            device,
            len(chosen),
            name=f"device-{device.number}",
            threads=threads,
            memory_limit=memory_limit,
            device_memory=device_memory,
            host=host,
            **options,
        )
        for place, device in enumerate(chosen)
    }
    for place, spec in specs.items():  # a device that is named twice
        same = [one for one in range(place) if chosen[one].number == chosen[place].number]
        if same:
            spec["options"]["name"] += f"-{len(same) + 1}"
    register()
    return SpecCluster(
        workers=specs,
        scheduler={
            "cls": Scheduler,
            "options": {"host": host, "port": port, "dashboard": dashboard, "dashboard_address": ":0"},
        },
        silence_logs=logging.ERROR,
    )
