"""The worker's side of tasks of a partition: run one in a scheduling context, say what came of it and what it used."""

from __future__ import annotations

import contextlib
import io
import os
import traceback
from typing import Any

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core import faults
from pygpukit.core.errors import DriverError, KernelCheckError
from pygpukit.scheduler.scheduler import Scheduler
from pygpukit.scheduler.task import USED, Task
from pygpukit.worker import host
from pygpukit.worker.arrays import Handover, take_over
from pygpukit.worker.failures import describe
from pygpukit.worker.printed import captured
from pygpukit.worker.travel import Sender
from pygpukit.worker.travel_code import CodeReceiver

_NO_LIMIT = 2**64 - 1
_MAX_PRINTED_CHARS = 1 << 20

_lent = contextlib.ExitStack()  # what the parent copies of the last result: it stays until it has, or asks again
_scheduler: Scheduler | None = None
_limit = _NO_LIMIT


def run(request: dict[str, Any], descriptors: list[int]) -> tuple[dict[str, Any], list[int]]:
    """The answer to a request to run a task, and the descriptors that go with it."""
    printed = io.StringIO()
    by_device: list[str] = []
    with captured(by_device), contextlib.redirect_stdout(printed):
        answer, lent = _run(request, descriptors)
    answer["printed"] = (printed.getvalue() + "".join(by_device))[:_MAX_PRINTED_CHARS]
    stats = _core.pool_stats(native.current_device())
    answer["pool"] = {"used": stats.used, "peak": stats.peak_used}
    return answer, lent


def _run(request: dict[str, Any], descriptors: list[int]) -> tuple[dict[str, Any], list[int]]:
    _lent.close()
    count = len(request["segments"])
    error: BaseException | None = None
    used = dict.fromkeys(USED, 0)
    try:
        hosts = host.unpack(request["hosts"], descriptors[count:])
        arguments = take_over(request["segments"], descriptors[:count], request["arrays"], request["exports"])
        native.set_device(request["device"])  # the partition's: arrays may be on others
        _limit_pool(request["memory"])
        receiver = CodeReceiver(arguments, hosts)
        receiver.open(request["functions"], request["namespaces"])
        task = _scheduled(receiver.decode(request["call"]), request)
        used = {name: task.stats()[name] for name in USED}
        error = task._error
        if error is None:
            native.synchronize()  # it may have used other streams; the parent reads as soon as it has the answer
            answer, lent = _answer(task._value, arguments, request)
            return {**answer, "used": used, "lost": faults.lost() is not None}, lent
    except BaseException as raised:  # the answer says so, whatever it is
        error = raised
    lost = faults.lost() is not None or _is_fault(error)
    answer = {"ok": False, "error": describe(error), "used": used, "lost": lost}
    traceback.clear_frames(error.__traceback__)  # which hold arrays
    return answer, []


def taken(_request: dict[str, Any], _descriptors: list[int]) -> tuple[dict[str, Any], list[int]]:
    """The parent has copied the last result, or wants to know that this module is there."""
    _lent.close()
    return {"ok": True}, []


def _scheduled(call: tuple[Any, Any, Any], request: dict[str, Any]) -> Task:
    """The function's task, ended: its launches pass this process's gate, which measures them; both limits hold here."""
    global _scheduler
    if _scheduler is None:
        _scheduler = Scheduler(total_memory=_NO_LIMIT, start=False)
    function, args, kwargs = call
    share, memory = request["share_limit"], request["memory_limit"]

    def work() -> Any:
        return function(*args, **kwargs)

    task = _scheduler.submit(
        work, name=request["name"], bandwidth_limit=share, memory_limit=memory, device=request["device"]
    )
    with contextlib.suppress(BaseException):  # it is in the task
        _scheduler.step()
    return task


def _limit_pool(memory: int) -> None:
    """Hold what is allocated here to the partition's quota; 0 = it has none."""
    global _limit
    limit = memory or _NO_LIMIT
    if limit != _limit:
        _core.pool_set_limit(native.current_device(), limit)
        _limit = limit


def _answer(value: Any, arguments: list[Any], request: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """A result as it travels: arrays that are arguments by their place, other arrays by their segments."""
    sender = _ResultSender(arguments)
    tree = sender.encode(f"the result of {request['name']}", value)
    if request["instance"] and sender.arrays:
        raise TypeError(f"{sender.arrays[0][0]} is an array of the instance; return .to_numpy()")
    handover = Handover([(what, _own(array)) for what, array in sender.arrays])
    _lent.callback(handover.close)
    descriptions, file = host.pack(sender.hosts)
    for descriptor in file:
        _lent.callback(os.close, descriptor)
    answer = {"segments": handover.segments, "arrays": handover.descriptions, "hosts": descriptions}
    return {"ok": True, "result": tree, **answer}, [*handover.descriptors, *file]


class _ResultSender(Sender):
    def __init__(self, arguments: list[Any]) -> None:
        super().__init__()
        self._arguments = {id(array): place for place, array in enumerate(arguments)}

    def encode(self, what: str, value: Any) -> Any:
        if id(value) in self._arguments:
            return {"argument": self._arguments[id(value)]}
        return super().encode(what, value)


def _own(array: Any) -> Any:
    """The array, or a copy where it is not a contiguous one in memory of this process: a view of an argument is not."""
    array = array.contiguous()
    segments = _core.pool_segments(array.device)
    inside = any(start <= array.device_ptr < start + nbytes for start, nbytes, _ in segments)
    return array if inside else array.clone()


def _is_fault(error: BaseException) -> bool:
    """True if the device's context is gone with it; what checked mode finds leaves the simulated device as it was."""
    return isinstance(error, DriverError) and not isinstance(error, KernelCheckError) and error.code in faults.FATAL
