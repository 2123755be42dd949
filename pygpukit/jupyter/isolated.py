"""Isolated kernels: the same call forms, launched in a worker process. A fault costs the worker, never the notebook.

Arrays are shared with the worker, not copied. A launch returns when it is done, with what the kernel printed. After a
fault the next launch finds a fresh worker, in which __device__ and __constant__ variables have their initial values.
"""

from __future__ import annotations

import base64
import itertools
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from pygpukit._core import native
from pygpukit.core import faults
from pygpukit.core.backend import backend
from pygpukit.core.errors import (
    ContextLostError,
    DriverError,
    Finding,
    GPUError,
    KernelArgumentError,
    KernelCheckError,
)
from pygpukit.jit import configuration
from pygpukit.jit.configuration import Extent
from pygpukit.jit.globals import Globals
from pygpukit.jit.kernel import JITKernel
from pygpukit.jit.options import parse_options
from pygpukit.jit.unit import Unit
from pygpukit.worker import Worker, WorkerDiedError

_FUNCTIONS = "pygpukit.worker.kernels"
_PACKAGE = str(Path(__file__).parent.parent)
_NEXT = "The notebook is unharmed, and the next launch finds a fresh worker"


def isolate(unit: Unit, kernels: Mapping[str, JITKernel]) -> dict[str, JITKernel]:
    """The kernels of a compiled unit, by the same names, bound to the worker instead of this process."""
    remote = _RemoteUnit(unit)
    return {name: IsolatedKernel(kernel, remote) for name, kernel in kernels.items()}


def reset() -> str:
    """Bring back what can be brought back, and say what that was: %cuda_reset.

    The simulated device forgets a fault and ends what runs there; the worker of isolated kernels starts afresh. Raises
    ContextLostError when this process has lost its CUDA context: nothing but a new process brings that back.
    """
    told = []
    if backend() == "sim":
        ended = native.sim_cancel()
        while native.busy_streams():
            time.sleep(0.001)
        native.sim_clear_fault()
        told.append(f"the simulated device is clear{f', {ended} kernels were ended' if ended else ''}")
    if _worker.started:
        told.append(f"the worker of isolated kernels is fresh, after {_worker.restart():.2f} s")
    if (lost := faults.lost()) is not None:
        raise ContextLostError(
            f"%cuda_reset cannot bring back the notebook's own CUDA context, which a kernel's fault destroyed: {lost}",
            lost.code,
            lost.name,
            lost.launches,
        )
    if backend() == "cuda":
        told.append("the notebook's CUDA context is sound: there was nothing to reset in it")
    return "; ".join(told)


class IsolatedKernel(JITKernel):
    """A kernel whose launches run in the worker. Launches wait until they are done; streams make no difference."""

    def __init__(self, kernel: JITKernel, remote: _RemoteUnit) -> None:
        self._remote = remote
        super().__init__(kernel.source, kernel.name, kernel.options, kernel.block_size, unit=kernel.unit)

    @cached_property
    def _kernel(self) -> Any:
        return _RemoteKernel(self._remote, self.name)

    @property
    def globals(self) -> Globals:
        """Raises GPUError: the variables are in the worker."""
        raise GPUError(f"{self.name} is isolated: its variables are in the worker; compile without --isolated")

    def __repr__(self) -> str:
        return f"<IsolatedKernel {self.signature}>"


class _RemoteUnit:
    """A unit that the worker is given on the first launch, and forgets when the last kernel of it is gone here."""

    _numbers = itertools.count(1)

    def __init__(self, unit: Unit) -> None:
        self.name = f"unit{next(self._numbers)}"
        self.unit = unit
        weakref.finalize(self, _worker.drop, self.name)


class _RemoteKernel:
    """Stands where the compiled kernel object stands in a JITKernel."""

    def __init__(self, remote: _RemoteUnit, name: str) -> None:
        self._remote = remote
        self.name = name

    def bind(
        self,
        grid: Extent,
        block: Extent,
        shared_bytes: int = 0,
        stream: native.Stream | None = None,
        flags: int = 0,
        cluster: Extent = (1, 1, 1),
    ) -> IsolatedLauncher:
        return IsolatedLauncher(self._remote, self.name, grid, block, shared_bytes, flags, cluster)


class IsolatedLauncher:
    """A kernel with its launch configuration; call it with the kernel's arguments."""

    def __init__(
        self,
        remote: _RemoteUnit,
        kernel: str,
        grid: Extent,
        block: Extent,
        shared_bytes: int,
        flags: int,
        cluster: Extent,
    ) -> None:
        self._remote = remote
        self._title = f"{kernel}[{grid}, {block}]"
        self._call: dict[str, Any] = {
            "unit": remote.name,
            "kernel": kernel,
            "grid": list(grid),
            "block": list(block),
            "shared_bytes": shared_bytes,
            "cooperative": bool(flags & configuration.COOPERATIVE),
            "cluster": list(cluster) if flags & configuration.CLUSTER else None,
        }

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Launch and wait. Raises KernelArgumentError before, DriverError for a fault, WorkerDiedError when the worker
        ended."""
        __tracebackhide__ = True
        values = [_portable(self._title, value) for value in (*args, *kwargs.values())]
        try:
            answer = _worker.launch(self._remote, self._call | {"names": list(kwargs)}, values)
        except WorkerDiedError as error:
            how = str(error).partition(";")[0]
            raise WorkerDiedError(f"{self._title}{_place()}: {how}. {_NEXT}", error.exit_code) from None
        if answer["printed"]:
            sys.stdout.write(answer["printed"])
        if answer["error"] is not None:
            self._raise(answer["error"])

    def _raise(self, error: dict[str, Any]) -> NoReturn:
        __tracebackhide__ = True
        if error["kind"] == "KernelArgumentError":
            raise KernelArgumentError(error["message"], error["parameter"])
        if "code" not in error:
            raise GPUError(f"{self._title} in the worker: {error['message']}")
        what = error["message"]
        if error["kind"] == "ContextLostError":
            _worker.kill()
            what = what.partition(". ")[0]  # what follows is about a process that has lost its context
        message = f"{self._title}{_place()} faulted in the worker: {what}. {_NEXT}"
        if "findings" in error:
            raise _check_error(message, error)
        raise DriverError(message, error["code"], error["name"])


class _IsolatedWorker:
    """The one worker of this process's isolated kernels, started by the first launch."""

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._loaded: set[str] = set()
        self._dropped: list[str] = []
        self._lock = threading.Lock()

    @property
    def started(self) -> bool:
        return self._worker is not None

    def launch(self, remote: _RemoteUnit, call: dict[str, Any], values: list[Any]) -> dict[str, Any]:
        with self._lock:
            worker = self._ready()
            if remote.name not in self._loaded:
                self._load(worker, remote)
            answer: dict[str, Any] = worker.call(f"{_FUNCTIONS}:launch", call, *values)
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
        """End the process; the next launch starts another."""
        if self._worker is not None:
            self._worker.kill()

    def drop(self, unit: str) -> None:
        self._dropped.append(unit)

    def _ready(self) -> Worker:
        if self._worker is None:
            self._worker = Worker("isolated kernels")
        elif not self._worker.alive:
            self._worker.restart()
            self._loaded.clear()
        return self._worker

    def _load(self, worker: Worker, remote: _RemoteUnit) -> None:
        dropped, self._dropped = self._dropped, []
        arguments = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in remote.unit.arguments().items()
            if name != "defines"
        }
        defines = parse_options((), remote.unit.arguments()["defines"]).defines
        image = base64.b64encode(remote.unit.image.to_bytes()).decode()
        arguments["defines"] = dict(defines)
        worker.call(f"{_FUNCTIONS}:load", remote.name, remote.unit.source, arguments, image, dropped)
        self._loaded = (self._loaded | {remote.name}) - set(dropped)


_worker = _IsolatedWorker()


def _check_error(message: str, error: dict[str, Any]) -> DriverError:
    """What checked mode found in the worker, as it is raised in the process itself."""
    fields: list[dict[str, Any]] = [
        one | {name: tuple(one[name]) for name in ("block", "thread")} for one in error["findings"]
    ]
    return KernelCheckError(message, error["code"], error["name"], [Finding(**one) for one in fields])


def _portable(title: str, value: Any) -> Any:
    """The value as it travels: arrays by handle, numbers as they are. Raises KernelArgumentError for anything else."""
    if value is None or isinstance(value, (bool, int, float, native.ArrayBase)):
        return value
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": base64.b64encode(value).decode()}
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return _portable(title, value.item())
    raise KernelArgumentError(
        f"{title}: a {type(value).__name__} cannot travel to the worker; it takes GPUArrays, numbers and bytes"
    )


def _place() -> str:
    """Where the launch stands in the user's code: " at In[5] line 3"; "" when that is nowhere."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return ""
    name = frame.f_code.co_filename
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    cell = shell.compile.format_code_name(name) if shell is not None else None
    return f" at {cell[1] if cell else Path(name).name} line {frame.f_lineno}"
