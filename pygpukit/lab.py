"""JupyterLab from Python: `gp.lab.open("memory")` opens a view in a column beside the notebook."""

from __future__ import annotations

from pygpukit.jupyter.listed import PANES

VIEWS = (*PANES, "assembly", "workbench")
_PATIENCE_S = 3.0  # a page that was just told of the extension opens its feed within this time


def open(view: str) -> None:
    """Open a view beside the notebook: a live dashboard, the "assembly" of its kernels, or the whole "workbench".

    A dashboard is "memory", "scheduler", "device", "links" or "cells"; "timeline" is that of the profile which ended
    last, and of each that ends later. One that is open already comes to the front.
    Returns when a page has it (before ipykernel 7: when it was asked). Raises ValueError for another view,
    RuntimeError when no page listens.
    """
    if view not in VIEWS:
        raise ValueError(f"there is no view {view!r}: it is one of {', '.join(VIEWS)}")
    from pygpukit.jupyter import control, views

    message = {"open": view}
    if view in PANES:
        message["model"] = views.model_of(view)
    if not control.tell(message, _PATIENCE_S):
        raise RuntimeError(
            f"no page listens, so the view {view!r} was not opened: have the notebook in front in JupyterLab, run "
            "%load_ext pygpukit in a cell of its own, then run this again. The page listens while its setting "
            "'pygpukit: GPU status', 'Live status', is on"
        )


def __dir__() -> list[str]:
    return ["open"]
