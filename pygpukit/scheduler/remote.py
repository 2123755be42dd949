"""Tasks that run in their partition's worker process: what is sent for one, how it runs, and what became of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import InvalidSpecError
from pygpukit.scheduler import place, runner, units
from pygpukit.scheduler.task import USED
from pygpukit.worker import host
from pygpukit.worker.arrays import Handover, take_over
from pygpukit.worker.errors import WorkerDiedError, WorkerError, WorkerStoppedError, WorkerTaskError
from pygpukit.worker.failures import rebuild
from pygpukit.worker.protocol import MAX_DESCRIPTORS
from pygpukit.worker.travel import Receiver
from pygpukit.worker.travel_code import CodeSender

if TYPE_CHECKING:
    from pygpukit.scheduler.processes import PartitionWorker
    from pygpukit.scheduler.task import Task

_UNHARMED = "A fresh worker takes its place; other partitions and this process are unharmed"


class RemoteCall(runner.Elsewhere):
    """A function and its arguments as they travel: as they are now, except for the contents of arrays.

    Raises InvalidSpecError, naming the function or the argument, for what cannot travel.
    """

    def __init__(
        self, worker: PartitionWorker, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self.worker = worker
        sender, field = CodeSender(), "fn"
        try:
            function = sender.encode("fn", fn)
            field = "args"
            positional = [sender.encode(f"argument {place}", value) for place, value in enumerate(args)]
            named = [sender.encode(f"argument {name}", value) for name, value in kwargs.items()]
            for what, array in sender.arrays:
                if worker.instance:
                    raise TypeError(
                        f"{what} is an array of this process's device, not of the instance; pass .to_numpy()"
                    )
                if not array.is_contiguous():
                    raise TypeError(f"{what} is not C-contiguous; pass .contiguous() and copy back")
        except (TypeError, RecursionError) as error:
            text = f"partition {worker.partition!r} runs its tasks in a process of its own: {error}"
            raise InvalidSpecError(text, field) from None
        self._arrays, self._hosts = sender.arrays, sender.hosts
        self._request = {
            "op": "serve",
            "by": "pygpukit.scheduler.served:run",
            "call": {"tuple": [function, {"tuple": positional}, {"dict": [list(kwargs), named]}]},
            "functions": sender.functions,
            "namespaces": sender.namespaces,
        }

    def run(self, core: _core.SchedulerCore, task: Task, start: _core.TaskStart, own_stream: runner.StreamOf) -> None:
        """Run a task that the core has just marked Running in its worker, and report its outcome to the core.

        When it is cancelled or expires meanwhile, the worker is killed: nothing else ends a kernel. KeyboardInterrupt
        cancels it.
        """
        error: BaseException | None = None
        lost, reason = False, ""
        outer = place.here()
        open_range = runner.begin_range(core, task)
        task._error = None  # of an earlier run

        def stopped() -> bool:
            record = core.get(task.id)
            return record is None or units.TaskState(record.phase).is_terminal

        try:
            if native.current_device() != self.worker.device:
                native.set_device(self.worker.device)
            native.set_current_stream(own_stream(None, start.guaranteed))
            share = start.share_limit_ppm / 1e6 if start.share_limit_ppm else None
            limits = {"share_limit": share, "memory_limit": start.memory_limit}
            answer, task._value = self.send(task.name, limits, stopped)
            core.charge(task.id, *(answer["used"][name] for name in USED))
            if answer["printed"]:
                task._context.run(sys.stdout.write, answer["printed"])
            lost = answer["lost"]
            if not answer["ok"]:
                error = _failure(answer["error"], task.name, self.worker.partition, lost)
                reason = _reason(error) if lost else ""
        except WorkerStoppedError as raised:  # it has ended already
            error = raised
        except WorkerTaskError as raised:  # it could not even be tried, or its answer was too long
            error = raised
        except WorkerError as raised:
            how = str(raised).partition(";")[0]
            error = WorkerDiedError(f"{task.name}: {how}. {_UNHARMED}", getattr(raised, "exit_code", None))
            lost, reason = True, "WorkerLost"
        except BaseException as raised:
            error = raised
            if isinstance(raised, KeyboardInterrupt):
                core.cancel(task.id)
        finally:
            if open_range is not None:
                task._context.run(open_range.end, error)
            place.leave(outer)
        task._error = error
        runner.report(core, task.id, error, lost=lost, reason=reason)
        if not self.worker.alive:
            self.worker.replace()

    def send(
        self, name: str, limits: Mapping[str, float | None], stopped: Callable[[], bool]
    ) -> tuple[dict[str, Any], Any]:
        """Run it in the worker: its answer, and the value when that is ok. limits: share_limit from 0 to 1,
        memory_limit in bytes. Raises as Worker.exchange(), and OutOfMemoryError when there is no room here for what it
        returned."""
        worker = self.worker
        with Handover(self._arrays) as handover, worker.ready(stopped) as process:
            hosts, file = host.pack(self._hosts)
            try:
                descriptors = [*handover.descriptors, *file]
                if len(descriptors) > MAX_DESCRIPTORS:
                    raise ValueError(f"arrays of {len(descriptors)} memory segments; a task takes {MAX_DESCRIPTORS}")
                more = {
                    "name": name,
                    **limits,
                    "memory": worker.memory_bytes(),
                    "device": worker.device_there,
                    "instance": worker.instance,
                    "segments": handover.segments,
                    "arrays": handover.descriptions,
                    "exports": list(handover.exports),
                    "hosts": hosts,
                }
                answer, received = process.exchange(
                    {**self._request, **more}, descriptors, stopped=stopped, exports=handover.exports
                )
            finally:
                for descriptor in file:
                    os.close(descriptor)
            if "used" not in answer:
                failure = answer["error"]
                raise WorkerTaskError(
                    f"{name}: {failure['kind']}: {failure['message']}", failure["kind"], failure["traceback"]
                )
            worker.saw(answer["pool"])
            try:
                value = self._value(answer, received) if answer["ok"] else None
            finally:
                for descriptor in received:
                    os.close(descriptor)
            if answer["lost"]:
                worker.lose(answer["error"]["message"] if "error" in answer else "a fault that the function hid")
            elif received:
                process.exchange(worker.TAKEN, stopped=stopped)
            return answer, value

    def _value(self, answer: dict[str, Any], received: list[int]) -> Any:
        """The result, in memory of this process: it outlives the worker and takes nothing of the partition's quota."""
        count = len(answer["segments"])
        shared = take_over(answer["segments"], received[:count], answer["arrays"])
        copies = []
        for array in shared:
            native.set_device(array.device)
            copies.append(native.empty(array.shape, array.dtype))
            native.copy(copies[-1], array)
        if copies:
            native.current_stream().synchronize()
        hosts = host.unpack(answer["hosts"], received[count:])
        return _Result(copies, hosts, [array for _, array in self._arrays]).decode(answer["result"])


class _Result(Receiver):
    def __init__(self, arrays: Sequence[Any], hosts: Sequence[Any], arguments: Sequence[Any]) -> None:
        super().__init__(arrays, hosts)
        self._arguments = arguments

    def other(self, kind: str, content: Any) -> Any:
        return self._arguments[content] if kind == "argument" else super().other(kind, content)


def _reason(error: Exception) -> str:
    """The core's name for a fault that cost the worker; the function may have raised something else after it."""
    reason = runner.reason_of(error)
    return reason if reason == "WatchdogTimeout" else "StickyDeviceError"


def _failure(described: dict[str, Any], name: str, partition: str, lost: bool) -> Exception:
    """The function's exception; a fault says what it cost."""
    if not lost:
        return rebuild(described, name)
    text = f"{name} faulted in the worker of partition {partition!r}: {described['message']}. {_UNHARMED}"
    return rebuild(described, name, text)
