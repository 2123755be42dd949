"""Recording of what the device does, from the first task or context on, where somebody may look at it later."""

from __future__ import annotations

import importlib
import sys


def begin() -> None:
    """In a notebook's kernel, have the sampler keep a past; elsewhere nobody can open a view."""
    if "ipykernel" in sys.modules:
        importlib.import_module("pygpukit.telemetry.sampler").keep_past()
