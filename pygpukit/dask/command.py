"""The commands `pygpukit dask worker` and `pygpukit dask cluster`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

from pygpukit.core.errors import GPUError
from pygpukit.core.extras import require


def arguments(parser: Any) -> None:
    """Add the words and options of `pygpukit dask`."""
    doings = parser.add_subparsers(dest="action", required=True)
    worker = doings.add_parser("worker", help="a worker process for each device of this host")
    worker.add_argument("address", help='of the scheduler, "tcp://10.0.0.1:8786"')
    worker.add_argument("--name", default=socket.gethostname(), help="of the workers, before the device's number")
    worker.add_argument("--host", help="address of this host that others reach; by default found out")
    cluster = doings.add_parser("cluster", help="a scheduler, and a worker process for each device of this host")
    cluster.add_argument("--host", default="127.0.0.1", help="address to listen at (%(default)s: this host only)")
    cluster.add_argument("--port", type=int, default=8786, help="of the scheduler (%(default)s; 0: a free one)")
    for one in (worker, cluster):
        one.add_argument("--devices", type=_numbers, metavar="0,1", help="numbers of devices; all by default")
        one.add_argument("--threads", type=int, default=1, help="tasks at once without a device (%(default)s)")
        one.add_argument("--memory-limit", metavar="SIZE", help="host memory of a worker; an even part by default")
        one.add_argument("--device-memory", metavar="SIZE", help="of its device that a worker's arrays may take")
        one.add_argument("--local-directory", metavar="FOLDER", help="where workers spill to")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def command(args: argparse.Namespace) -> int:
    """Run until Ctrl-C, SIGTERM or the scheduler's end. Exit code 1, and a sentence, when it cannot begin."""
    options = {name: getattr(args, name) for name in ("threads", "memory_limit", "device_memory", "local_directory")}
    try:
        require("dask", f"pygpukit dask {args.action}", "distributed")
        from distributed import SpecCluster

        from pygpukit.dask.cluster import cluster
        from pygpukit.dask.devices import host_devices
        from pygpukit.dask.workers import worker_spec

        if args.action == "worker":
            devices = host_devices(args.devices)
            specs = [
                worker_spec(one, len(devices), name=f"{args.name}-{one.number}", host=args.host, **options)
                for one in devices
            ]
            return asyncio.run(_work(args.address, specs))
        signal.signal(signal.SIGTERM, _interrupt)
        started: SpecCluster = cluster(args.devices, host=args.host, port=args.port, **options)
        with started:
            print(f"scheduler at {started.scheduler_address}", flush=True)
            _tell(list(started.worker_spec.values()))
            signal.pause()
    except (GPUError, ModuleNotFoundError, OSError, RuntimeError) as error:
        print(f"pygpukit dask {args.action}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _tell(specs: Sequence[dict[str, Any]]) -> None:
    from pygpukit.dask.workers import summary

    for spec in specs:
        print(summary(spec), flush=True)


async def _work(address: str, specs: Sequence[dict[str, Any]]) -> int:
    """Keep a host's workers running until they end, or a signal ends them."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    nannies = [spec["cls"](address, death_timeout=120, **spec["options"]) for spec in specs]
    try:
        await asyncio.gather(*nannies)
        _tell(specs)
        ends = [asyncio.ensure_future(one) for one in (stop.wait(), *(nanny.finished() for nanny in nannies))]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await asyncio.gather(*(nanny.close() for nanny in nannies))
    if stop.is_set():
        return 0
    print(f"the scheduler at {address} ended, and its workers with it", file=sys.stderr)
    return 1
