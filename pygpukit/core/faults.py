"""Reports of a kernel's fault on the CUDA device: which launch it was, and that the process's context is lost.

A CUDA context does not survive an illegal address, a trap or the like, and no call brings it back in the same process.
The driver does not say which kernel it was; the ring of event records does, up to the launches since the last wait.
Schedulers are told, too: they take no task for a device that answers nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core import records
from pygpukit.core.errors import ContextLostError, DriverError, Launch

# The driver's codes that leave a context unusable.
FATAL = frozenset({214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719})
# The one for a kernel that was ended because it ran too long.
TIMEOUT = 702
_SHOWN = 5
REMEDY = (
    "Nothing brings the context back in this process: restart the notebook's kernel. %%cuda --isolated runs kernels in "
    "a worker process, where a fault costs the worker and not the notebook"
)
_ELSEWHERE = 'tasks of partitions with isolation="process" are not affected'
_TASK_REMEDY = f"Restart the process (in a notebook, the kernel); {_ELSEWHERE}"
_SIM_REMEDY = (
    "A wait on device {}, such as pygpukit.synchronize() while it is the current one, tells it again and clears it; "
    + _ELSEWHERE
)

_lock = threading.Lock()
_in_task: Callable[[], bool] = bool  # False: no task runs before there is a scheduler
_lost: ContextLostError | None = None


def lost() -> ContextLostError | None:
    """The first error that told that the context of this process is lost; None while it is sound."""
    return _lost


def error_for(message: str, code: int, name: str) -> DriverError:
    """The error of a failed device call: names the launch for the first fault, and the loss for every later call."""
    global _lost
    if native.backend_name() != "cuda":
        if code in FATAL and not _in_task():
            device = native.current_device()
            _core.device_failed(f"simulated device {device} has failed: {message}. {_SIM_REMEDY.format(device)}")
        return DriverError(message, code, name)
    with _lock:
        if _lost is None and code not in FATAL:
            return DriverError(message, code, name)
        if _lost is None:
            launches = in_flight()
            _lost = ContextLostError(f"{message}. {_story(launches)}. {REMEDY}", code, name, launches)
            _core.device_failed(f"the device has failed: {message}. {_story(launches)}. {_TASK_REMEDY}")
            return _lost
        story = _story(_lost.launches)
        return ContextLostError(
            f"{message.partition(':')[0]}: the CUDA context was lost before ({_lost.name}). {story}. {REMEDY}",
            code,
            name,
            _lost.launches,
        )


def ask_whether_in_task(in_task: Callable[[], bool]) -> None:
    """Let schedulers say whether the thread runs a task: the wait that ends one clears the simulated device."""
    global _in_task
    _in_task = in_task


def _story(launches: list[Launch]) -> str:
    if not launches:
        return "No launch is on record since the last wait"
    if len(launches) == 1:
        return f"The kernel that faulted is {launches[0]}"
    names = "; ".join(map(str, launches[:_SHOWN]))
    more = f"; and {len(launches) - _SHOWN} earlier ones" if len(launches) > _SHOWN else ""
    return (
        f"The kernel that faulted is one of {len(launches)} launched since the last wait, latest first: {names}{more}"
    )


def in_flight() -> list[Launch]:
    """Launches that no wait has shown to be done, latest first, as far as the ring reaches back."""
    waited = native.waited()
    known = list(records.unpack(_core.ring_read(0)[0]))
    counts = {one.cell: one.a for one in known if one.kind == records.CELL_BEGIN}
    return [
        Launch(_core.name(one.name), one.a, one.b, _cell(one.cell, counts), one.line)
        for one in reversed(known)
        if one.kind == records.LAUNCH and one.t_ns >= waited.get(one.stream, 0)
    ]


def _cell(cell: int, counts: dict[int, int]) -> str:
    """A cell as the user sees it: In[5]; its id when it began before the oldest record."""
    if cell == 0:
        return ""
    return f"In[{counts[cell]}]" if cell in counts else _core.name(cell)
