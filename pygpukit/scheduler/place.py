"""Place: where the work of a thread that is in a task goes, on each device that the task is on."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core import device, faults


class OnDevice(NamedTuple):
    """The part of a task on one device: its stream, the account of its memory, and the multiprocessors it runs on."""

    stream: native.Stream
    account: int
    space: _core.Space | None


class Place(NamedTuple):
    """The account of a thread's work, and the place where streams that it makes run. on: by device."""

    context: int = 0
    account: int = 0
    tenant: int = 0
    space: _core.Space | None = None
    on: Mapping[int, OnDevice] = {}


class _Thread(threading.local):
    place = Place()


_thread = _Thread()


def here() -> tuple[native.Stream, Place, int]:
    """Where the thread is, for leave(): not nowhere in a step within a task."""
    return native.current_stream(), _thread.place, native.current_device()


def in_task() -> bool:
    """True if the thread is in a task that runs on it."""
    return _thread.place.context != 0


def task_devices() -> tuple[int, ...]:
    """The devices of the task that the calling code is in, ascending; outside of tasks, the current device.

    Returns
    -------
    tuple of int
        Their numbers. The task begins on the first; `with gp.cuda.Device(k):` goes to another, on a stream of its own.

    Examples
    --------
    >>> gp.scheduler.Scheduler().submit(gp.scheduler.task_devices, device=0).result()
    (0,)
    """
    return tuple(_thread.place.on) or (native.current_device(),)


def leave(outer: tuple[native.Stream, Place, int]) -> None:
    """Go back from a task to where here() was."""
    stream, place, number = outer
    native.set_current_stream(stream)  # first: it leaves sessions that the function left open
    go(place)
    if native.current_device() != number:
        native.set_device(number)  # a device that the function chose is not the next task's


def go(place: Place) -> None:
    native.set_space(place.space)
    native.set_tenant(place.tenant)
    native.enter_context(place.context, place.account)
    _thread.place = place


def _arrive(number: int) -> bool:
    """The thread has come to a device: in a task of several, to the task's stream and account there. On one that is
    not the task's, nobody's account counts what it allocates, and all multiprocessors run it."""
    place = _thread.place
    if place.context == 0:
        return False
    there = place.on.get(number)
    native.set_space(None if there is None else there.space)
    if there is not None:
        native.set_current_stream(there.stream)
    native.enter_context(place.context, 0 if there is None else there.account)
    return there is not None


faults.ask_whether_in_task(in_task)
device.when_arriving(_arrive)
