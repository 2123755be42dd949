"""Warning and count where host memory was to be pinned and the system pins no more."""

from __future__ import annotations

import warnings

from pygpukit import _core
from pygpukit.core.backend import frames_inside_package
from pygpukit.core.errors import PageableMemoryWarning

_REMEDY = "raise the limit of locked memory (ulimit -l) or free pinned memory (gp.memory.pinned_trim())"
_warned = False


def warn_of_eviction(device: int, nbytes: int, reason: str) -> None:
    """The pool of a device evicted its first block into pageable memory; the core counts these and tells of one."""
    _warn(f"A block of {nbytes} bytes of device {device} was evicted", reason)


def use_pageable(what: str, nbytes: int, reason: str) -> None:
    """Count a buffer that is not pinned, and say so for the first of the process."""
    global _warned
    _core.count_pageable(nbytes)
    if not _warned:
        _warned = True
        _warn(f"{what} of {nbytes} bytes was placed", reason)


def _warn(what: str, reason: str) -> None:
    text = (
        f"{what} in pageable host memory, which is copied more slowly, because it could not be pinned: {reason}. To "
        f"have it pinned, {_REMEDY}. Later ones are counted: gp.memory.stats(), Scheduler.prometheus()."
    )
    warnings.warn(text, PageableMemoryWarning, stacklevel=frames_inside_package())
