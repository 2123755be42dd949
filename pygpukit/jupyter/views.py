"""The views that the lab shows beside a notebook: one widget of each kind, made when it is first asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pygpukit.jupyter import control
from pygpukit.jupyter.listed import PANES

if TYPE_CHECKING:
    from pygpukit.jupyter.widgets.base import Widget

_lock = threading.Lock()  # a page may ask on a subshell's thread
_views: dict[str, Widget] = {}


def model_of(kind: str) -> str:
    """The widget model of a view, one of PANES. Raises RuntimeError where it cannot be made."""
    with _lock:
        if kind not in _views:
            from pygpukit.jupyter import widgets  # a kernel that shows none needs none

            _views[kind] = getattr(widgets, f"{kind.capitalize()}Widget")()
        return _views[kind].model_id


def _view(args: dict[str, Any]) -> dict[str, Any]:
    kind = args.get("view")
    if kind not in PANES:
        raise control.RequestError(f"view needs args {{'view': kind}}, a kind of {', '.join(PANES)}; it has {kind!r}")
    return {"model": model_of(kind)}


def install() -> None:
    """Answer pages that ask for a dashboard's widget."""
    control.add_action("view", _view)
