"""The examples of docs/cells.md, word for word and in order, in one notebook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "cells.md"
BLOCK = re.compile(r"^```(python|cuda)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in BLOCK.finditer(PAGE.read_text())]


def run_all(shell: Any) -> None:
    for kind, text in examples():
        result = shell.run_cell(text, store_history=True)
        result.raise_error()
        if kind == "cuda":
            assert result.result.kernels or result.result.header, text


def test_every_example_runs(shell: Any) -> None:
    assert len(examples()) > 12
    run_all(shell)


@pytest.mark.gpu
def test_every_example_runs_on_a_device(shell: Any) -> None:
    run_all(shell)


def test_every_option_has_its_place(shell: Any) -> None:
    text = PAGE.read_text()
    for action in shell.magics_manager.registry["CudaMagics"].cuda.parser._actions:
        assert any(f"{flag}" in text for flag in action.option_strings), f"{action.option_strings} is not on the page"
    for name in shell.magics_manager.registry["CudaMagics"].traits(config=True):
        assert f"`{name}`" in text, f"the setting {name} is not on the page"
