"""A Dask worker a device: what its process is started with, and what it does first."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from distributed import Client, Nanny
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.system import MEMORY_LIMIT

from pygpukit.core.errors import DeviceMismatchError
from pygpukit.core.sizes import MemoryLike, parse_memory
from pygpukit.core.text import human_bytes
from pygpukit.dask.devices import HostDevice
from pygpukit.dask.frames import register

GPU = "GPU"  # the resource of which every worker here has one


class DeviceSetup(WorkerPlugin):  # type: ignore[misc]
    """The first work of a worker's process: its processors, its device, the device's memory limit, arrays on the wire.

    Raises DeviceMismatchError, and the worker ends, where the process sees other devices than its own.
    """

    name = "pygpukit-device"

    def __init__(self, device: HostDevice, device_memory: int | None) -> None:
        self.device, self.device_memory = device, device_memory

    def setup(self, worker: Any) -> None:
        """Called in the worker's process before its first task."""
        if self.device.cpus:
            pin(self.device.cpus)
        register()
        import pygpukit as gp

        count = gp.device_count()
        if count != 1:
            raise DeviceMismatchError(
                f"worker {worker.name} sees {count} devices instead of one: the device was opened before the worker "
                'began. Keep work of the module that starts workers behind if __name__ == "__main__":'
            )
        if self.device_memory is not None:
            gp.memory.set_limit(self.device_memory)


def pin(cpus: tuple[int, ...]) -> None:
    """Send all threads of the process to these processors; threads that they start follow. Linux only."""
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it ended meanwhile
            os.sched_setaffinity(int(thread.name), cpus)


def worker_spec(
    device: HostDevice,
    workers: int,
    *,
    name: str,
    threads: int = 1,
    memory_limit: MemoryLike = None,
    device_memory: MemoryLike = None,
    **options: Any,
) -> dict[str, Any]:
    """The worker of a device for Dask to start.

    memory_limit: of host memory; None is an even part for each of so many workers. device_memory: of the device; None
    is all of it. options: others of distributed.Nanny.
    """
    limit = MEMORY_LIMIT // workers if memory_limit is None else parse_memory(memory_limit, "memory_limit")
    of_device = None if device_memory is None else parse_memory(device_memory, "device_memory")
    return {
        "cls": Nanny,
        "options": {
            "name": name,
            "nthreads": threads,
            "memory_limit": limit,
            "resources": {GPU: 1},
            "env": device.environment,
            "plugins": (DeviceSetup(device, of_device),),
            "silence_logs": logging.ERROR,
            **options,
        },
    }


def summary(spec: dict[str, Any]) -> str:
    """A worker's device, processors and limits in a line."""
    options = spec["options"]
    setup = options["plugins"][0]
    limit = setup.device.memory_bytes if setup.device_memory is None else setup.device_memory
    host = f"{human_bytes(options['memory_limit'])} of host memory" if options["memory_limit"] else "no limit"
    return f"{options['name']}: {setup.device}, arrays up to {human_bytes(limit)}, {host}"


def gpu_workers(client: Client) -> dict[str, str]:
    """Names of the workers that have a GPU, by their addresses."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return {address: str(one["name"]) for address, one in workers.items() if one.get("resources", {}).get(GPU)}
