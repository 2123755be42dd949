"""Isolated kernels: the same call forms, launched in a worker process. A fault costs the worker, never the notebook.

Arrays are shared with the worker, not copied. A launch returns when it is done, with what the kernel printed. After a
fault the next launch finds a fresh worker, in which __device__ and __constant__ variables have their initial values.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from pygpukit._core import native
from pygpukit.core import faults
from pygpukit.core.backend import backend
from pygpukit.core.cached import cached_property
from pygpukit.core.errors import ContextLostError, GPUError
from pygpukit.jit.launch import configuration
from pygpukit.jit.launch.configuration import Extent
from pygpukit.jit.launch.globals import Globals
from pygpukit.jit.launch.kernel import JITKernel
from pygpukit.jit.launch.unit import Unit
from pygpukit.profiling.bench import BenchResult, checked_work, from_fields
from pygpukit.worker import WorkerDiedError
from pygpukit.worker.remote import KernelWorker, RemoteUnit, exception_of, portable

_PACKAGE = str(Path(__file__).parent.parent)
_NEXT = "The notebook is unharmed, and the next launch finds a fresh worker"

_worker = KernelWorker("isolated kernels")


def isolate(unit: Unit, kernels: Mapping[str, JITKernel]) -> dict[str, JITKernel]:
    """The kernels of a compiled unit, by the same names, bound to the worker instead of this process."""
    remote = RemoteUnit(unit, _worker)
    return {name: IsolatedKernel(kernel, remote) for name, kernel in kernels.items()}


def reset() -> str:
    """Bring back what can be brought back, and say what that was: %cuda_reset.

    The simulated device forgets a fault and ends what runs there; the worker of isolated kernels starts afresh. Raises
    ContextLostError when this process has lost its CUDA context: nothing but a new process brings that back.
    """
    sentences = []
    if backend() == "sim":
        ended = native.sim_cancel()
        while native.busy_streams():
            time.sleep(0.001)
        native.sim_clear_fault()
        sentences.append(f"the simulated device is clear{f', {ended} kernels were ended' if ended else ''}")
    if _worker.started:
        sentences.append(f"the worker of isolated kernels is fresh, after {_worker.restart():.2f} s")
    if (lost := faults.lost()) is not None:
        raise ContextLostError(
            f"%cuda_reset cannot bring back the notebook's own CUDA context, which a kernel's fault destroyed: {lost}",
            lost.code,
            lost.name,
            lost.launches,
        )
    if backend() == "cuda":
        sentences.append("the notebook's CUDA context is sound: there was nothing to reset in it")
    return "; ".join(sentences)


class IsolatedKernel(JITKernel):
    """A kernel whose launches run in the worker. Launches wait until they are done; streams make no difference."""

    def __init__(self, kernel: JITKernel, remote: RemoteUnit) -> None:
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


class _RemoteKernel:
    """Stands where the compiled kernel object stands in a JITKernel."""

    def __init__(self, remote: RemoteUnit, name: str) -> None:
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
        remote: RemoteUnit,
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
        self._run("launch", {"names": list(kwargs)}, (*args, *kwargs.values()))

    def bench(
        self, args: Sequence[Any], bytes: float | None = None, flops: float | None = None, budget_ms: float = 2000.0
    ) -> BenchResult:
        """bench() of the launch with these arguments, in the worker: its clock, its limits. Raises as a launch, and
        ValueError for a bad number."""
        work = checked_work(bytes, flops)
        answer = self._run("measure", {"names": [], "bench": {**work, "budget_ms": budget_ms}}, args)
        return from_fields(answer["bench"])

    def _run(self, function: str, more: dict[str, Any], arguments: Sequence[Any]) -> dict[str, Any]:
        """The worker's answer; what the kernel printed appears here."""
        __tracebackhide__ = True
        values = [portable(self._title, value) for value in arguments]
        try:
            answer = _worker.call(function, self._remote, self._call | more, values)
        except WorkerDiedError as error:
            how = str(error).partition(";")[0]
            raise WorkerDiedError(f"{self._title}{_place()}: {how}. {_NEXT}", error.exit_code) from None
        if answer["printed"]:
            sys.stdout.write(answer["printed"])
        if answer["error"] is not None:
            self._raise(answer["error"])
        return answer

    def _raise(self, error: dict[str, Any]) -> NoReturn:
        __tracebackhide__ = True
        what = error["message"]
        if error["kind"] == "KernelArgumentError":
            raise exception_of(error, what)
        if "code" not in error:
            raise exception_of(error, f"{self._title} in the worker: {what}")
        if error["kind"] == "ContextLostError":
            _worker.kill()
            what = what.partition(". ")[0]  # what follows is about a process that has lost its context
        raise exception_of(error, f"{self._title}{_place()} faulted in the worker: {what}. {_NEXT}")


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
