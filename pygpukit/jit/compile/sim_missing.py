"""Remedies for a header that the simulated device does not have."""

from __future__ import annotations

import re

_MISSING = re.compile(r"'?(?P<header>[\w./-]+)'?(?:: No such file or directory| file not found)")
_REMEDIES = (
    ("thrust/", "Thrust is for host code; call its like on arrays from Python (gp.sort, gp.sum), or write the loop as "
     "a kernel"),
    ("cub/device/", "it is for host code, and NVRTC refuses it, too; include a collective of blocks or warps, such as "
     "<cub/block/block_reduce.cuh>, or call gp.sum, gp.sort and the like from Python"),
    ("cub/", "the simulated device has no such part of CUB; docs/simulation.md says which there are"),
    ("cuda/", "the simulated device has no such part of libcu++; docs/simulation.md says which there are"),
)  # fmt: skip


def with_remedy(text: str) -> str:
    """A compiler's message, with what to do where it is about a missing header of CCCL."""
    if missing := _MISSING.search(text):
        for folder, remedy in _REMEDIES:
            if missing["header"].startswith(folder):
                return f"{text}; {remedy}"
    return text
