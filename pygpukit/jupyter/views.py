"""The dashboards that the lab shows beside a notebook: one widget of each kind, made when it is first asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pygpukit.jupyter import control
from pygpukit.jupyter.listed import DASHBOARDS

if TYPE_CHECKING:
    from pygpukit.jupyter.widgets.dashboard import Dashboard

_lock = threading.Lock()  # a page may ask on a subshell's thread
_dashboards: dict[str, Dashboard] = {}


def model_of(kind: str) -> str:
    """The widget model of a dashboard, one of DASHBOARDS. Raises RuntimeError where it cannot be made."""
    with _lock:
        if kind not in _dashboards:
            from pygpukit.jupyter import widgets  # a kernel that shows no dashboard needs none

            _dashboards[kind] = getattr(widgets, f"{kind.capitalize()}Widget")()
        return _dashboards[kind].model_id


def _view(args: dict[str, Any]) -> dict[str, Any]:
    kind = args.get("view")
    if kind not in DASHBOARDS:
        raise control.RequestError(
            f"view needs args {{'view': kind}}, a kind of {', '.join(DASHBOARDS)}; it has {kind!r}"
        )
    return {"model": model_of(kind)}


def install() -> None:
    """Answer pages that ask for a dashboard's widget."""
    control.add_action("view", _view)
