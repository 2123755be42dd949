"""A function of a test file in a process of its own: what other tests left on the device is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = "import importlib, sys; getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(*sys.argv[3:])"


def alone(test: str, function: str, *words: str, folder: Path | None = None) -> None:
    """Call a function of the test file `test` with words; what it raises or prints is the failure's text."""
    path = os.pathsep.join([str(Path(test).parent), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, Path(test).stem, function, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
