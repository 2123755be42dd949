"""The notebook side: magics, dashboards, telemetry and control. Nothing of Jupyter is imported before it is used."""

from __future__ import annotations

from typing import Any

__all__ = ["load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """%load_ext pygpukit.jupyter is %load_ext pygpukit."""
    from pygpukit.jupyter.extension import load_ipython_extension as load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Undo load_ipython_extension()."""
    from pygpukit.jupyter.extension import unload_ipython_extension as unload

    unload(shell)
