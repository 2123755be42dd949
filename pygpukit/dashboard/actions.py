"""Control actions of the dashboards: each asks for something and returns at once, also from a subshell's thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from pygpukit import _core
from pygpukit.core.text import human_bytes
from pygpukit.dashboard import cell_figures

_UNLIMITED = 1 << 60


def _controls(_args: dict[str, Any]) -> dict[str, Any]:
    """What a page may draw a control for."""
    return {"actions": ["cancel", *(name for name in ACTIONS if name not in ("controls", "cells"))]}


def _cells(_args: dict[str, Any]) -> dict[str, Any]:
    return {"rows": [row.message() for row in cell_figures.ledger.rows()]}


def _pause(_args: dict[str, Any]) -> dict[str, Any]:
    schedulers = _schedulers()
    for scheduler in schedulers:
        # stop() waits for the tasks under way; the request does not.
        threading.Thread(target=scheduler.stop, name="pygpukit-pause", daemon=True).start()
    return {"paused": len(schedulers), "note": "paused: tasks under way run to their end, others wait"}


def _resume(_args: dict[str, Any]) -> dict[str, Any]:
    schedulers = [scheduler for scheduler in _schedulers() if not scheduler.closed]
    for scheduler in schedulers:
        scheduler.start()
    return {"resumed": len(schedulers), "note": "resumed"}


def _quota(args: dict[str, Any]) -> dict[str, Any]:
    from pygpukit.scheduler.units import parse_memory  # not before somebody sets a limit

    limit = args.get("limit")
    if isinstance(limit, bool) or not isinstance(limit, str | int):
        raise ValueError('quota needs args {"limit": bytes or "2GB"}')
    size = parse_memory(limit, "limit")
    if not 0 < size < _UNLIMITED:
        raise ValueError(f"limit={limit!r}: give a size above 0")
    _core.pool_set_limit(0, size)
    return {"limit": size, "note": f"the limit is {human_bytes(size)}"}


def _trim(_args: dict[str, Any]) -> dict[str, Any]:
    released = _core.pool_trim(0)
    return {"released": released, "note": f"{human_bytes(released)} released"}


def _schedulers() -> list[Any]:
    module = sys.modules.get("pygpukit.scheduler")
    found = list(module.all_schedulers()) if module is not None else []
    if not found:
        raise ValueError("there is no scheduler: make one with gp.scheduler.Scheduler()")
    return found


ACTIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "controls": _controls,
    "cells": _cells,
    "pause": _pause,
    "resume": _resume,
    "quota": _quota,
    "trim": _trim,
}
