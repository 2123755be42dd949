"""Host memory that need not be pinned: the warning and the count where the system pins no more."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from pygpukit import _core
from pygpukit.core.backend import frames_inside_package
from pygpukit.core.errors import OutOfMemoryError, PageableMemoryWarning
from pygpukit.memory.pinned import pinned_empty

if TYPE_CHECKING:
    import numpy as np

_REMEDY = "raise the limit of locked memory (ulimit -l) or free pinned memory (gp.memory.pinned_trim())"
_warned = False


def warn_of_eviction(device: int, nbytes: int, reason: str) -> None:
    """The pool of a device evicted its first block into pageable memory; the core counts these and tells of one."""
    _warn(f"A block of {nbytes} bytes of device {device} was evicted", reason)


def pinned_or_pageable(what: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """pinned_empty(), or where the system pins no more an ordinary array, which is counted; of the first of the process
    a warning says so. what: to call it."""
    global _warned
    try:
        return pinned_empty(shape, dtype)
    except OutOfMemoryError as error:
        import numpy as np

        array = np.empty(shape, dtype.to_numpy_dtype())
        _core.count_pageable(array.nbytes)
        if not _warned:
            _warned = True
            _warn(f"{what} of {array.nbytes} bytes was placed", str(error).partition(";")[0])
        return array


def _warn(what: str, reason: str) -> None:
    text = (
        f"{what} in pageable host memory, which is copied more slowly, because it could not be pinned: {reason}. To "
        f"have it pinned, {_REMEDY}. Later ones are counted: gp.memory.stats(), Scheduler.prometheus()."
    )
    warnings.warn(text, PageableMemoryWarning, stacklevel=frames_inside_package())
