"""Kernels in a worker process, the parent's side: units it is given, calls of them, its errors as exceptions here."""

from __future__ import annotations

import base64
import itertools
import threading
import time
import weakref
from typing import Any

from pygpukit._core import native
from pygpukit.core.errors import DriverError, Finding, GPUError, KernelArgumentError, KernelCheckError
from pygpukit.jit.compile.options import parse_options
from pygpukit.jit.launch.unit import Unit
from pygpukit.worker.parent import Worker

_FUNCTIONS = "pygpukit.worker.kernels"


class RemoteUnit:
    """A unit that a worker is given on the first call, and forgets when the last kernel of it is gone here."""

    _numbers = itertools.count(1)

    def __init__(self, unit: Unit, worker: KernelWorker) -> None:
        self.name = f"unit{next(self._numbers)}"
        self.unit = unit
        weakref.finalize(self, worker.drop, self.name)


class KernelWorker:
    """A worker that runs kernels of this process, started by the first call and again by the first after its death.

    backend: as for Worker.
    """

    def __init__(self, name: str, backend: str | None = None) -> None:
        self.name, self.backend = name, backend
        self._worker: Worker | None = None
        self._loaded: set[str] = set()
        self._dropped: list[str] = []
        self._lock = threading.Lock()

    @property
    def started(self) -> bool:
        return self._worker is not None

    def call(self, function: str, remote: RemoteUnit, call: dict[str, Any], values: list[Any]) -> dict[str, Any]:
        """The result of a function of worker/kernels.py for a kernel of the unit. Raises as Worker.call()."""
        with self._lock:
            worker = self._ready()
            if remote.name not in self._loaded:
                self._load(worker, remote)
            answer: dict[str, Any] = worker.call(f"{_FUNCTIONS}:{function}", call, *values)
            return answer

    def restart(self) -> float:
        """A fresh process; the seconds that took."""
        begin = time.monotonic()
        with self._lock:
            if self._worker is not None:
                self._worker.kill()
            self._ready()
        return time.monotonic() - begin

    def kill(self) -> None:
        """End the process; the next call starts another."""
        if self._worker is not None:
            self._worker.kill()

    def drop(self, unit: str) -> None:
        self._dropped.append(unit)

    def _ready(self) -> Worker:
        if self._worker is None:
            self._worker = Worker(self.name, self.backend)
        elif not self._worker.alive:
            self._worker.restart()
            self._loaded.clear()
        return self._worker

    def _load(self, worker: Worker, remote: RemoteUnit) -> None:
        dropped, self._dropped = self._dropped, []
        arguments = unit_arguments(remote.unit)
        image = base64.b64encode(remote.unit.image.to_bytes()).decode()
        worker.call(f"{_FUNCTIONS}:load", remote.name, remote.unit.source, arguments, image, dropped)
        self._loaded = (self._loaded | {remote.name}) - set(dropped)


def unit_arguments(unit: Unit) -> dict[str, Any]:
    """The arguments of Unit() beside the source, as JSON carries them."""
    keywords = unit.arguments()
    arguments = {name: list(value) if isinstance(value, tuple) else value for name, value in keywords.items()}
    return arguments | {"defines": dict(parse_options((), keywords["defines"]).defines)}


def portable(title: str, value: Any) -> Any:
    """The value as it travels: arrays by handle, numbers as they are. Raises KernelArgumentError for anything else."""
    if value is None or isinstance(value, (bool, int, float, native.ArrayBase)):
        return value
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": base64.b64encode(value).decode()}
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return portable(title, value.item())
    raise KernelArgumentError(
        f"{title}: a {type(value).__name__} cannot travel to the worker; it takes GPUArrays, numbers and bytes"
    )


def exception_of(error: dict[str, Any], message: str) -> GPUError:
    """An error that the worker described, as it is raised in the process itself, with this message."""
    if error["kind"] == "KernelArgumentError":
        return KernelArgumentError(message, error["parameter"])
    if "findings" in error:
        fields: list[dict[str, Any]] = [
            one | {name: tuple(one[name]) for name in ("block", "thread")} for one in error["findings"]
        ]
        return KernelCheckError(message, error["code"], error["name"], [Finding(**one) for one in fields])
    return DriverError(message, error["code"], error["name"]) if "code" in error else GPUError(message)
