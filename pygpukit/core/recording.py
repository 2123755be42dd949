"""Whether somebody may look later at what the device does: then it is recorded from the first task or context on."""

from __future__ import annotations

import importlib
import sys


def begin() -> None:
    """In a notebook's kernel, have the sampler keep a past; elsewhere nobody can open a view."""
    if "ipykernel" in sys.modules:
        importlib.import_module("pygpukit.telemetry.sampler").keep_past()
