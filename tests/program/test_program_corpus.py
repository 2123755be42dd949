"""Programs of every kind that courses and books have, each with what it prints at its head."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.cu"))


def lines(text: str, what: str) -> list[str]:
    """Those of a program's head that begin with this word."""
    return re.findall(rf"^// {what}: ?(.*)$", text, re.MULTILINE)


# Their many templates take three seconds each.
SLOW = ("thrust_", "cub_")


@pytest.mark.parametrize(
    "path",
    [pytest.param(one, marks=[pytest.mark.turns(4)] * one.stem.startswith(SLOW), id=one.stem) for one in CORPUS],
)
def test_a_program_prints_what_its_head_says(path: Path) -> None:
    text = path.read_text()
    done = subprocess.run(
        [sys.executable, "-m", "pygpukit", "run", str(path), "--timeout", "60"], capture_output=True, text=True
    )
    assert done.stdout.splitlines() == lines(text, "output")
    told = [line for line in done.stderr.splitlines() if line]
    kinds = lines(text, "finding")
    assert len(told) == len(kinds), done.stderr
    assert all(kind in line for kind, line in zip(kinds, told, strict=True))
    assert done.returncode == 0


def test_the_corpus_is_whole() -> None:
    assert len(CORPUS) >= 40
    assert all(lines(path.read_text(), "output") for path in CORPUS)
