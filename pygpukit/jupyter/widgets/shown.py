"""Which cell shows which view: what a cell showed is closed once it has run again and shows it no more.

A view that another cell or a container shows too stays open. Where the host sends no ids of cells nothing is noted, and
a view is open until it is closed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from IPython import get_ipython
from ipywidgets.widgets.widget import _instances as open_widgets

if TYPE_CHECKING:
    from pygpukit.jupyter.widgets.base import Dashboard

_runs: dict[str, weakref.WeakKeyDictionary[Dashboard, str]] = {}  # by cell: the run that showed each of its views


def note(view: Dashboard) -> None:
    """The running cell shows `view`, as far as its host tells which cell that is."""
    shell = get_ipython()
    place = _place(shell)
    if place is None:
        return
    cell, run = place
    if any(getattr(other, "msg_id", "") == run for other in _others()):
        return  # what the cell shows now goes to an Output widget
    _runs.setdefault(cell, weakref.WeakKeyDictionary())[view] = run
    shell.events.register("post_run_cell", _cell_ran)  # once, however often it is said


def _cell_ran(result: Any) -> None:
    place = _place(get_ipython())
    if place is None or place[0] not in _runs or place[0] != getattr(result.info, "cell_id", None):
        return
    cell, run = place
    views = _runs[cell]
    for view in [view for view, shown_by in views.items() if shown_by != run]:
        del views[view]
        if not _is_shown(view):
            view.close()
    if not views:
        del _runs[cell]


def _place(shell: Any) -> tuple[str, str] | None:
    """The cell that is answered now, and the id of its run; None outside a kernel, or where the cell has no id."""
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    cell, run = parent.get("metadata", {}).get("cellId"), parent.get("header", {}).get("msg_id")
    return (cell, run) if cell and run else None


def _is_shown(view: Dashboard) -> bool:
    containers = (getattr(other, "children", None) or () for other in _others())
    return any(view in shown for shown in _runs.values()) or any(view in children for children in containers)


def _others() -> Iterable[Any]:
    return list(open_widgets.values())
