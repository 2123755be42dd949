"""Control actions of the dashboards: each asks for something and returns at once, also from a subshell's thread."""

from __future__ import annotations

import contextlib
import math
import reprlib
from collections.abc import Callable
from typing import Any

from pygpukit import _core
from pygpukit.core.text import human_bytes
from pygpukit.telemetry import cell_figures, tenants

_UNLIMITED = 1 << 60
_MAX_NUMBER = 32  # characters


def _controls(_args: dict[str, Any]) -> dict[str, Any]:
    """The controls that a page may draw."""
    return {"actions": ["cancel", *(name for name in ACTIONS if name not in ("controls", "cells"))]}


def _cells(_args: dict[str, Any]) -> dict[str, Any]:
    return {"rows": [row.message() for row in cell_figures.ledger.rows()]}


def _pause(_args: dict[str, Any]) -> dict[str, Any]:
    schedulers = _schedulers()
    for scheduler in schedulers:
        scheduler.stop(wait=False)
    return {"paused": len(schedulers), "note": "paused: tasks under way run to their end, others wait"}


def _resume(_args: dict[str, Any]) -> dict[str, Any]:
    schedulers = [scheduler for scheduler in _schedulers() if not scheduler.closed]
    for scheduler in schedulers:
        scheduler.start()
    return {"resumed": len(schedulers), "note": "resumed"}


def _pause_task(args: dict[str, Any]) -> dict[str, Any]:
    scheduler, task = _task(args, "pause_task")
    changed = scheduler.pause(task.id)
    return {"changed": changed, "note": f"{task.name} is paused" if changed else f"{task.name} was paused already"}


def _resume_task(args: dict[str, Any]) -> dict[str, Any]:
    scheduler, task = _task(args, "resume_task")
    changed = scheduler.resume(task.id)
    return {"changed": changed, "note": f"{task.name} goes on" if changed else f"{task.name} was not paused"}


def _quota(args: dict[str, Any]) -> dict[str, Any]:
    from pygpukit.core.sizes import parse_memory  # not before somebody sets a limit

    limit = args.get("limit")
    if isinstance(limit, bool) or not isinstance(limit, str | int):
        raise ValueError('quota needs args {"limit": bytes or "2GB"}')
    size = parse_memory(limit, "limit")
    if not 0 < size < _UNLIMITED:
        raise ValueError(f"limit={limit!r}: give a size above 0")
    _core.pool_set_limit(0, size)
    return {"limit": size, "note": f"the limit is {human_bytes(size)}"}


def _priority(args: dict[str, Any]) -> dict[str, Any]:
    scheduler, task = _task(args, "priority", ', "priority": number')
    priority = _number(args.get("priority"), "priority", "a whole number; higher runs first")
    if priority != int(priority):
        raise ValueError(f"priority={args['priority']!r}; give a whole number; higher runs first")
    scheduler.set_priority(task.id, int(priority))
    return {"priority": int(priority), "note": f"{task.name} has priority {int(priority)}"}


def _share(args: dict[str, Any]) -> dict[str, Any]:
    """Of a task, or of a partition."""
    share = _fraction(args.get("share"))
    if "partition" in args:
        name = args["partition"]
        for scheduler in _schedulers():
            if isinstance(name, str) and scheduler.partitions.get(name) is not None:
                scheduler.set_partition_share(name, share)
                return {"share": share, "note": f"partition {name} keeps {100 * share:g} % of the device"}
        raise ValueError(f"no partition {_short(name)}")
    scheduler, task = _task(args, "share", ', "share": number')
    scheduler.set_share(task.id, share)
    return {"share": share, "note": f"{task.name} is promised {100 * share:g} % of the device"}


def _task(args: dict[str, Any], action: str, more: str = "") -> tuple[Any, _core.TaskRecord]:
    """The task that a request names, and its scheduler. more: what else the action needs."""
    task_id = args.get("task")
    if not isinstance(task_id, str):
        raise ValueError(f'{action} needs args {{"task": id{more}}}')
    for scheduler in _schedulers():
        record = scheduler.core.get(task_id)
        if record is not None:
            return scheduler, record
    raise ValueError(f"no task {_short(task_id)}: never submitted here, or ended and forgotten")


def _fraction(value: Any) -> float:
    """A share as people write it: 0.3, "0.3", "30 %"."""
    expected = 'a fraction of the device from 0 to 1, or per cent, such as 0.3 or "30 %"'
    percent = isinstance(value, str) and value.strip().endswith("%")
    number = _number(value.strip().rstrip("%") if percent else value, "share", expected)
    share = number / 100 if percent else number
    if not 0 <= share <= 1:
        raise ValueError(f"share={_short(value)}; give {expected}")
    return share


def _number(value: Any, field: str, expected: str) -> float:
    """A number that came as itself or as a text."""
    short = not isinstance(value, str) or len(value) <= _MAX_NUMBER
    if isinstance(value, str | int | float) and not isinstance(value, bool) and short:
        with contextlib.suppress(ValueError, OverflowError):
            number = float(value)
            if math.isfinite(number):
                return number
    raise ValueError(f"{field}={_short(value)}; give {expected}")


def _short(value: Any) -> str:
    """The value of a request, as an answer may repeat it."""
    return reprlib.repr(value)


def _trim(_args: dict[str, Any]) -> dict[str, Any]:
    released = _core.pool_trim(0)
    return {"released": released, "note": f"{human_bytes(released)} released"}


def _schedulers() -> list[Any]:
    schedulers = list(tenants.schedulers())
    if not schedulers:
        raise ValueError("there is no scheduler: make one with gp.scheduler.Scheduler()")
    return schedulers


ACTIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "controls": _controls,
    "cells": _cells,
    "pause": _pause,
    "resume": _resume,
    "pause_task": _pause_task,
    "resume_task": _resume_task,
    "quota": _quota,
    "share": _share,
    "priority": _priority,
    "trim": _trim,
}
