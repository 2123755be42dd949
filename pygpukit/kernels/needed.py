"""Which kernels a model launches first, and compiling them together: in parallel processes, while its weights are read.

needed.json is written by `tools/record_kernels.py`, which asks the models' plans for each architecture. It is a hint:
a kernel that is not in it is compiled when it is launched.
"""

from __future__ import annotations

import json
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

from pygpukit._core import native
from pygpukit.core.backend import is_sim
from pygpukit.core.errors import GPUError
from pygpukit.core.progress import Progress
from pygpukit.kernels import sources

LISTED = Path(__file__).parent / "needed.json"
WITHOUT_TILES = " without tile kernels"
_PERIOD_S = 0.02


@cache
def listed() -> dict[str, dict[str, list[list[Any]]]]:
    """By model and architecture: source, name expression and options of each kernel."""
    kernels: dict[str, dict[str, list[list[Any]]]] = json.loads(LISTED.read_text(encoding="utf-8"))
    return kernels


def of(model: str, arch: str) -> list[list[Any]]:
    """The kernels of a model on an architecture as this machine compiles for it; [] where none are listed."""
    from pygpukit.jit.compile import tile

    return listed().get(model, {}).get(arch + (WITHOUT_TILES if tile.missing() else ""), [])


class Coming:
    """The kernels of a model on their way into the cache: begun when it is made, in the background."""

    def __init__(self, model: str, arch: str | None = None) -> None:
        self.done, self.total, self.failed = 0, 0, ""
        self._model, self._arch = model, arch
        self._thread: threading.Thread | None = None
        if model in listed() and (arch is not None or not is_sim()):
            from pygpukit.jit.compile import nvrtc

            self._arch = arch or nvrtc.device_arch(native.current_device())
            self._thread = threading.Thread(target=self._compile, name="pygpukit-needed", daemon=True)
            self._thread.start()

    def wait(self, shown: bool = True) -> None:
        """Until they are there, with a bar where that takes a moment."""
        if self._thread is None:
            return
        self._thread.join(0.2)
        if not self._thread.is_alive():
            return
        with Progress(f"compiling for {self._arch}", max(self.total, 1), shown, things="kernels") as bar:
            while self._thread.is_alive():
                bar.update(self.done)
                time.sleep(_PERIOD_S)

    def _compile(self) -> None:
        from pygpukit.jit.launch.parallel import compile_all
        from pygpukit.jit.launch.unit import Unit

        class Alone(Unit):
            """One kernel of a source, as launches ask for it."""

            def arguments(self) -> dict[str, Any]:
                return {**super().arguments(), "name_expressions": expressions[self]}

        expressions: dict[Unit, list[str]] = {}
        assert self._arch is not None
        needed = of(self._model, self._arch)
        self.total = len(needed)
        for source, expression, options in needed:
            unit = Alone(sources.text(source), name=source, options=options, arch=self._arch)
            expressions[unit] = [expression]
        try:
            compile_all(list(expressions), progress=self._count)
        except (GPUError, OSError) as error:  # a launch tells it, which may have another kernel instead
            self.failed = str(error)

    def _count(self, _: object) -> None:
        self.done += 1
