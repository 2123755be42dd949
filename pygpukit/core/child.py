"""Child processes that run a module of this package: the one that the parent runs, whatever folder it stands in."""

from __future__ import annotations

import os
import sys

# With -m Python would look in the present folder first, where a source tree without its compiled core may lie.
_CODE = """import runpy, sys
sys.path[:] = {path!r}
runpy.run_module({module!r}, run_name="__main__")"""


def command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module with the modules that this process finds."""
    return [sys.executable, "-c", _CODE.format(path=sys.path, module=module), *arguments]


def one_simulated_device(memory_bytes: int) -> dict[str, str]:
    """The variables by which a child has one device that is simulated as those here are, with as much memory."""
    settings = [one for one in os.environ.get("PYGPUKIT_SIM", "").split(",") if one]
    kept = [one for one in settings if one.partition("=")[0] not in ("devices", "memory")]
    return {
        "PYGPUKIT_BACKEND": "sim",
        "PYGPUKIT_SIM_DEVICES": "1",
        "PYGPUKIT_SIM": ",".join([*kept, f"memory={memory_bytes}B"]),
    }
