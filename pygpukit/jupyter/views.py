"""The dashboards that the lab shows beside a notebook: one widget of each kind, made when it is first asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pygpukit import dashboard

if TYPE_CHECKING:
    from pygpukit.jupyter.widgets.base import Dashboard

_lock = threading.Lock()  # a page may ask on a subshell's thread
_made: dict[str, Dashboard] = {}


def model_of(kind: str) -> str:
    """The widget model of a dashboard, one of gp.lab.DASHBOARDS. Raises RuntimeError where it cannot be made."""
    with _lock:
        if kind not in _made:
            _made[kind] = getattr(dashboard, kind)()
        return _made[kind].model_id
