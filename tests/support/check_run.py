"""Running a source in checked mode, for the tests of the checker."""

from __future__ import annotations

from typing import Any

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import Finding, KernelCheckError


def run(
    source: str, grid: Any, block: Any, *args: Any, shared: int = 0, check: bool | str = True, func: str | None = None
) -> Finding | None:
    """Launch the source's kernel and wait: what was found, None for nothing. The source counts as "cell"."""
    kernel = gp.jit(source, func, name="cell", check=check)
    try:
        kernel[grid, block, shared](*args)
        native.synchronize()
    except KernelCheckError as error:
        assert len(error.findings) == 1
        return error.findings[0]
    return None
