"""Which cell shows which view: what a cell showed is closed once it has run again and shows it no more.

A view that another cell or a container shows too stays open, and one that went to an Output widget until it is closed.
Where the host sends no ids of cells nothing is noted, and a view is open until it is closed.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from IPython import get_ipython
from ipywidgets.widgets.widget import _instances as open_widgets

if TYPE_CHECKING:
    from pygpukit.jupyter.widgets.base import Widget

_WIDGET = "application/vnd.jupyter.widget-view+json"

# Cells run in subshells too, and show views from threads; a collected view closes itself inside either call.
_lock = threading.RLock()
_runs: dict[str, weakref.WeakKeyDictionary[Widget, str]] = {}  # by cell: the run that showed each of its views
_captured: weakref.WeakSet[Widget] = weakref.WeakSet()  # by Output widgets, which tell only the page what they show


def note(view: Widget) -> None:
    """The running cell shows `view`, as far as its host tells which cell that is."""
    shell = get_ipython()
    cell, run = _place(shell)
    if not run:
        return
    with _lock:
        if any(getattr(other, "msg_id", "") == run for other in _others()):
            _captured.add(view)
            return
        if not cell:
            return
        _runs.setdefault(cell, weakref.WeakKeyDictionary())[view] = run
    shell.events.register("post_run_cell", _cell_ran)  # once, however often it is said


def shares_layout(view: Widget) -> bool:
    """True where another open widget was given the same layout."""
    return any(other is not view and getattr(other, "layout", None) is view.layout for other in _others())


def _cell_ran(result: Any) -> None:
    cell, run = _place(get_ipython())
    with _lock:
        if cell not in _runs or cell != getattr(result.info, "cell_id", None):
            return
        views = _runs[cell]
        gone = [view for view, shown_by in views.items() if shown_by != run]
        for view in gone:
            del views[view]
        if not views:
            del _runs[cell]
        gone = [view for view in gone if not _is_shown(view)]
    for view in gone:
        view.close()


def _place(shell: Any) -> tuple[str, str]:
    """The cell that is answered now, and the id of its run; "" outside a kernel, or for a cell that has no id."""
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    return parent.get("metadata", {}).get("cellId") or "", parent.get("header", {}).get("msg_id") or ""


def _is_shown(view: Widget) -> bool:
    if view in _captured or any(view in shown for shown in _runs.values()):
        return True
    comm = view.comm  # not model_id, which would open a view that is closed
    return comm is not None and any(_holds(other, view, comm.comm_id) for other in _others())


def _holds(other: Any, view: Widget, model: str) -> bool:
    """A container has it as a child, or an Output widget was given it as an output."""
    children, outputs = getattr(other, "children", None), getattr(other, "outputs", None)
    if isinstance(children, (list, tuple)) and any(child is view for child in children):
        return True
    return isinstance(outputs, (list, tuple)) and any(_model_of(output) == model for output in outputs)


def _model_of(output: Any) -> Any:
    """The model that an output of an Output widget shows; None where it shows none."""
    for key in ("data", _WIDGET, "model_id"):
        output = output.get(key) if isinstance(output, dict) else None
    return output


def _others() -> Iterable[Any]:
    return list(open_widgets.values())
