"""docs/textures.md: every Python example prints what it should, on both backends."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("backend_name")

PAGE = Path(__file__).parents[2] / "docs" / "textures.md"
PRINTED = {
    "A picture between its elements": [[0, 2, 6, 8], [4, 6, 10, 12], [12, 14, 18, 20], [16, 18, 22, 24]],
    "Memory without a copy": [5, 499.5],
    "Surfaces": [[1, 1, 1], [1, 1, 1]],
}


def examples() -> dict[str, str]:
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    blocks = {
        section.partition("\n")[0]: re.findall(r"```python\n(.*?)```", section, re.DOTALL) for section in sections
    }
    return {heading: found[0] for heading, found in blocks.items() if found}


@pytest.mark.parametrize("heading", PRINTED)
def test_an_example(heading: str) -> None:
    shown: list[object] = []
    exec(compile(examples()[heading], heading, "exec"), {"gp": gp, "np": np, "print": shown.append})
    assert np.array_equal(shown[0], PRINTED[heading])


def test_every_example_is_run() -> None:
    assert list(examples()) == list(PRINTED)
