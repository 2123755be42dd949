"""Loading the compiler ahead of the first kernel: once a process, in the background if wished."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pygpukit.jit.compile.compiler import compile_uncached


class _Warmup:
    """The one warm-up of a process."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.error: Exception | None = None
        self._lock = threading.Lock()

    def run(self, callback: Callable[[], None] | None) -> bool:
        with self._lock:
            if not self.done.is_set():
                try:
                    compile_uncached('extern "C" __global__ void warmup() {}', name="warmup")
                    self.error = None
                except Exception as error:  # kept for get_warmup_error(); warm-up itself never raises
                    self.error = error
                self.done.set()
        if callback is not None:
            callback()
        return self.error is None


_warmup = _Warmup()


def warmup(background: bool = False, callback: Callable[[], None] | None = None) -> bool:
    """Load the compiler and compile an empty kernel, so that the first real one is quick.

    Returns whether it worked; in the background True at once, and `callback()` is called from the thread at the end.
    Never raises; see get_warmup_error().
    """
    if background:
        threading.Thread(target=_warmup.run, args=(callback,), name="pygpukit-warmup", daemon=True).start()
        return True
    return _warmup.run(callback)


def is_warmup_done() -> bool:
    """True once a warm-up has ended, well or not."""
    return _warmup.done.is_set()


def get_warmup_error() -> Exception | None:
    """Why the warm-up failed, None when it did not."""
    return _warmup.error if _warmup.done.is_set() else None
