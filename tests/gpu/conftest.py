"""Every test in this folder needs a GPU and says so; on a machine without one, `-m gpu` fails instead of skipping."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(autouse=True)
def _on_the_device() -> None:
    import pygpukit as gp

    assert gp.backend() == "cuda", gp.backend().reason
