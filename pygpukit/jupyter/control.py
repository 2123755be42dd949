"""The control channel: requests of the lab extension, answered also while a cell runs (docs/seams.md).

Handlers may run on a subshell's thread: they read, or ask for something, and return at once. The comm is never sent on
from anywhere else, or ipykernel would route its requests behind the running cell.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable
from typing import Any

from pygpukit import _core
from pygpukit._core import native
from pygpukit.jupyter import status
from pygpukit.jupyter.allowance import Allowance
from pygpukit.jupyter.comms import answer_quietly
from pygpukit.jupyter.reports import Report, Reports
from pygpukit.jupyter.status_feed import StatusFeed
from pygpukit.telemetry import actions, tenants

TARGET = "pygpukit.control.v1"
VERSION = 1
TELEMETRY_VERSION = 1
MAX_ERROR_CHARACTERS = 1000
SESSION = uuid.uuid4().hex
_COMM_ID = re.compile(r"[\w-]{1,64}", re.ASCII)

_POOL_FIELDS = (
    "quota",
    "used",
    "cached",
    "available",
    "reserved",
    "spare",
    "evicted",
    "peak_used",
    "active_blocks",
    "segment_count",
    "eviction_count",
    "restore_count",
)
_TASK_FIELDS = (
    "id",
    "name",
    "phase",
    "reason",
    "paused",
    "detail",
    "memory_bytes",
    "share_ppm",
    "policy",
    "priority",
    "submitted_ns",
    "started_ns",
    "finished_ns",
    "launches",
    "gpu_ns",
    "error",
)


class RequestError(Exception):
    """A request that cannot be answered; its text goes back to the page."""


def answer(request: Any) -> dict[str, Any]:
    """The answer to one request. Never raises: whatever goes wrong is the answer's error."""
    number = _number(request)
    if number is None:
        return {"id": -1, "ok": False, "error": "malformed request: expected {'id': int, 'action': str, 'args': {}}"}
    try:
        return {"id": number, "ok": True, "result": _perform(request)}
    except RequestError as error:
        return {"id": number, "ok": False, "error": _cut(str(error))}
    except Exception as error:
        return {"id": number, "ok": False, "error": _cut(f"{type(error).__name__}: {error}")}


def _number(request: Any) -> int | None:
    number = request.get("id") if isinstance(request, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _is_request(message: Any) -> bool:
    if _number(message) is None:
        return False
    return isinstance(message.get("action"), str) and isinstance(message.get("args", {}), dict)


def _cut(text: str) -> str:
    """An error repeats what was asked, of whatever length; what to do stands at its end."""
    half = MAX_ERROR_CHARACTERS // 2
    return text if len(text) <= MAX_ERROR_CHARACTERS else f"{text[:half]} ... {text[-half:]}"


def _perform(request: dict[str, Any]) -> Any:
    if not _is_request(request):
        raise RequestError("malformed request: 'action' is a string and 'args' an object")
    name, args = request["action"], request.get("args", {})
    action = _ACTIONS.get(name)
    if action is None:
        raise RequestError(f"unknown action {name!r}; there are {', '.join(_ACTIONS)}")
    return action(args)


def _hello(_args: dict[str, Any]) -> dict[str, Any]:
    return {
        "pygpukit": _core.__version__,
        "control": VERSION,
        "telemetry": TELEMETRY_VERSION,
        "backend": native.backend_name(),
        "session": SESSION,
    }


def _status(_args: dict[str, Any]) -> dict[str, Any]:
    return status.live()


def _follow(args: dict[str, Any]) -> dict[str, Any]:
    # A handler that runs on the main thread hears a page between cells only.
    _feed.follow(_comm_of("follow", args), threading.current_thread() is not threading.main_thread())
    return {}


def _leave(args: dict[str, Any]) -> dict[str, Any]:
    _feed.leave(_comm_of("leave", args))
    return {}


def _comm_of(action: str, args: dict[str, Any]) -> str:
    name = args.get("comm")
    if not isinstance(name, str) or not _COMM_ID.fullmatch(name):
        raise RequestError(f"{action} needs args {{'comm': id of the page's end of the status feed}}")
    return name


def _snapshot(_args: dict[str, Any]) -> dict[str, Any]:
    if native.backend_name() is None:
        return {"pool": None, "tasks": [], "dropped": dropped()}
    pool = _core.pool_stats(native.current_device())
    tasks = [
        {name: getattr(task, name) for name in _TASK_FIELDS}
        for one in tenants.schedulers()
        for task in one.core.tasks()
    ]
    return {"pool": {name: getattr(pool, name) for name in _POOL_FIELDS}, "tasks": tasks, "dropped": dropped()}


def _cancel(args: dict[str, Any]) -> dict[str, Any]:
    task = args.get("task")
    if not isinstance(task, str):
        raise RequestError("cancel needs args {'task': id}")
    for scheduler in tenants.schedulers():
        if scheduler.core.get(task) is not None:
            return {"cancelled": scheduler.cancel(task)}
    raise RequestError(f"no task {task!r}")


def _reports_of(args: dict[str, Any]) -> dict[str, Any]:
    cells = args.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, str) for cell in cells):
        raise RequestError("reports needs args {'cells': [cell id]}")
    reports = {cell: _report(cell) for cell in cells}
    return {"reports": {cell: report.fields() for cell, report in reports.items() if report is not None}}


def _assembly(args: dict[str, Any]) -> dict[str, Any]:
    from pygpukit.jupyter import assembly  # nothing else needs the disassembler

    cell, kernel = args.get("cell"), args.get("kernel")
    if not isinstance(cell, str) or not isinstance(kernel, str):
        raise RequestError("assembly needs args {'cell': cell id, 'kernel': name}")
    report = _report(cell)
    if report is None:
        raise RequestError("this cell has not run as a %%cuda cell: run it, then ask again")
    return assembly.ask(report, kernel)


def _options(_args: dict[str, Any]) -> dict[str, Any]:
    from pygpukit.jupyter.magics import CudaMagics

    return {
        "options": [
            {"flags": action.option_strings, "value": action.metavar or "", "help": action.help or ""}
            for action in CudaMagics.cuda.parser._actions
            if action.option_strings
        ]
    }


def _report(cell: str) -> Report | None:
    """The report of a cell in whichever shell of the process has one."""
    return next((report for one in _reports if (report := one.get(cell)) is not None), None)


_ACTIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "hello": _hello,
    "status": _status,
    "follow": _follow,
    "leave": _leave,
    "snapshot": _snapshot,
    "cancel": _cancel,
    **actions.ACTIONS,
    "reports": _reports_of,
    "assembly": _assembly,
    "options": _options,
}
_feed = StatusFeed()
_reports: list[Reports] = []  # of the shells that are served
_managers: list[Any] = []  # of comms, of those shells
_dropped = 0
_counting = threading.Lock()


def add_action(name: str, action: Callable[[dict[str, Any]], Any]) -> None:
    """Answer requests for an action that another module has."""
    _ACTIONS[name] = action


def serve(reports: Reports) -> None:
    """Answer requests about cells from these reports."""
    _reports.append(reports)


def dismiss(reports: Reports) -> None:
    """Answer from these reports no more."""
    _reports.remove(reports)


def tell(message: dict[str, Any], timeout_s: float) -> bool:
    """Send a message to each page that follows the status; waits so long for one that has it. False when none had."""
    return _feed.tell(message, timeout_s)


def dropped() -> int:
    """The number of pages' messages that did nothing: they were no requests of the channel, or beyond an allowance."""
    return _dropped


def _drop() -> None:
    global _dropped
    with _counting:  # each page may have its own thread
        _dropped += 1


def _opened(comm: Any, _message: Any) -> None:
    """A page opened the channel: answer its requests, but for a flood, for as long as the extension is loaded."""
    allowance = Allowance()

    def asked(message: Any) -> None:
        if not _managers:
            comm.close()
            return
        request, taken = message["content"].get("data"), allowance.take()
        if not taken or not _is_request(request):
            _drop()
        if taken:
            comm.send(answer(request))

    answer_quietly(comm, asked)


def install(shell: Any) -> bool:
    """Register the control channel with the shell's kernel; False in a terminal, which has no comms."""
    manager = _comm_manager(shell)
    if manager is None:
        return False
    manager.register_target(TARGET, _opened)
    _managers.append(manager)
    return True


def remove(shell: Any) -> None:
    """Take the target back, and serve no page any more."""
    manager = _comm_manager(shell)
    if manager is not None and TARGET in manager.targets:
        manager.unregister_target(TARGET, _opened)
        _managers.remove(manager)
        _feed.close()


def _comm_manager(shell: Any) -> Any:
    return getattr(getattr(shell, "kernel", None), "comm_manager", None)
