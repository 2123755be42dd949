"""A shell for tests of magics, as a notebook's kernel has one, without a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("IPython")

from IPython.core.interactiveshell import InteractiveShell


@pytest.fixture
def shell() -> Iterator[Any]:
    """A fresh shell with the extension loaded, and taken out again."""
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance()
    made.run_line_magic("load_ext", "pygpukit")
    made.magics_manager.registry["CudaMagics"].bench_ms = 50.0  # the figures do not matter here
    yield made
    made.run_line_magic("unload_ext", "pygpukit")
    InteractiveShell.clear_instance()
