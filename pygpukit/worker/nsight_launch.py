"""The child of a profiler: `python -m pygpukit.worker.nsight_launch FOLDER` makes the launch that is saved there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.backend import backend
from pygpukit.worker import kernels


def main(folder: Path) -> str:
    """Launch, as often as was asked for. Returns what went wrong, or ""."""
    call = json.loads((folder / "call.json").read_text(encoding="utf-8"))
    backend()
    kernels.load("cell", call["source"], call["arguments"], call["image"], [])
    values = [_value(folder, value) for value in call["values"]]
    native.synchronize()
    settings = {name: call[name] for name in ("kernel", "grid", "block", "shared_bytes")}
    for _ in range(call["launches"]):
        once = {**settings, "unit": "cell", "cooperative": False, "cluster": None, "names": []}
        answer = kernels.launch(once, *values)
        sys.stdout.write(answer["printed"])
        if answer["error"] is not None:
            return str(answer["error"]["message"])
    return ""


def _value(folder: Path, value: Any) -> Any:
    """An argument: arrays with the bytes that they had, other things as they are."""
    if not isinstance(value, dict) or "array" not in value:
        return value
    array = factory.empty(tuple(value["shape"]), value["dtype"])
    data = np.frombuffer((folder / value["array"]).read_bytes(), np.uint8)
    if data.size:
        native.copy_from_host(native.view(array, (array.nbytes,), (1,), 0, "uint8"), data)
    return array


if __name__ == "__main__":
    if message := main(Path(sys.argv[1])):
        sys.exit(message)
