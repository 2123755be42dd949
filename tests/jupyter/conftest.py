"""A shell for tests of magics, as a notebook's kernel has one, without a kernel."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("IPython")

from cell_runner import let_go
from IPython.core.interactiveshell import InteractiveShell

FAKE_NVML = Path(__file__).parent / "data" / "fake_nvml.c"


@pytest.fixture
def shell() -> Iterator[Any]:
    """A fresh shell with the extension loaded, and taken out again."""
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance()
    made.run_line_magic("load_ext", "pygpukit")
    made.magics_manager.registry["CudaMagics"].bench_ms = 50.0  # the figures do not matter here
    yield made
    made.run_line_magic("unload_ext", "pygpukit")
    let_go(made)
    InteractiveShell.clear_instance()


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A stand-in for NVML."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler for the stand-in")
    path = tmp_path_factory.mktemp("nvml") / "libfake-nvml.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", path, FAKE_NVML], check=True)
    return str(path)


@pytest.fixture(params=["MemoryWidget", "SchedulerWidget", "DeviceWidget", "CellsWidget"])
def widget(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Each of the dashboard widgets, closed afterwards."""
    from pygpukit.jupyter import widgets

    one = getattr(widgets, request.param)()
    yield one
    one.close()
