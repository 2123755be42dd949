"""Slicer: makes the sliced variants that the gates ask for, of kernels that keep a device from others for long.

A gate that holds tenants apart launches a kernel in parts as soon as it has taken far longer than a turn and a variant
of it is there. The variant is made aside, on a thread of its own, so that nobody waits for it: until then, and for a
kernel that is refused, launches stay whole. Outputs are the same bits either way (jit/launch/slicing.py says why).
"""

from __future__ import annotations

import threading

from pygpukit._core import native
from pygpukit.core.errors import UnsliceableError
from pygpukit.jit.launch import slicing

_PERIOD_S = 3600.0

_refused: dict[str, str] = {}
_sliced: dict[str, tuple[slicing.Recipe, int, object]] = {}  # by name: the variant's handle, and what keeps it
_lock = threading.Lock()
_thread: threading.Thread | None = None


def start() -> None:
    """Start the thread, if it does not run in this process."""
    global _thread
    if _thread is not None and _thread.is_alive():
        return
    with _lock:
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(target=_serve, name="pygpukit-slicer", daemon=True)
            _thread.start()


def report() -> dict[str, str | None]:
    """Kernels that gates asked to cut, by name: None, or why they are launched whole."""
    with _lock:
        return {**dict.fromkeys(_sliced), **_refused}


def _serve() -> None:
    while True:
        function = native.next_wanted_slices(_PERIOD_S)
        if function:
            _make(function)


def _make(function: int) -> None:
    recipe = slicing.recipe(function)
    if recipe is None:  # of a module that is not ours, or gone meanwhile
        native.set_slices(function, 0)
        return
    with _lock:
        sliced_kernel = _sliced.get(recipe.name)
    if sliced_kernel is not None and sliced_kernel[0] is recipe:  # gates forget variants when a module goes
        native.set_slices(function, sliced_kernel[1])
        return
    variant, kept, why = 0, None, ""
    try:
        native.set_device(recipe.device)
        variant, kept = recipe.make()
    except UnsliceableError as error:
        why = str(error)
    except Exception as error:  # of the driver, or a warning that is an error here: the kernel itself is sound
        why = f"its variant could not be made: {type(error).__name__}: {error}"
    with _lock:
        if variant:
            _sliced[recipe.name] = (recipe, variant, kept)
            _refused.pop(recipe.name, None)
        else:
            _refused[recipe.name] = why
    native.set_slices(function, variant)
