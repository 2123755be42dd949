"""What is stored in the notebooks: every cell ran, in order, without errors, and nothing in it changes with the run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

MAX_BYTES = 1_000_000
UNSTABLE = {
    "an address": r"\b0x[0-9a-f]{6,}\b",
    "an absolute path": r"(?<![\w.])/(home|root|tmp|usr|work|Users)/",
    "a date": r"\b20\d\d-\d\d-\d\d\b",
}


@pytest.fixture(params=["00_tour.ipynb"])
def path(request: pytest.FixtureRequest, notebooks: Path) -> Path:
    return notebooks / str(request.param)


def test_every_notebook_is_checked(notebooks: Path) -> None:
    assert {p.name for p in notebooks.glob("*.ipynb")} == {"00_tour.ipynb"}


def test_cells_ran_in_order_without_errors(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [o for cell in code for o in cell.outputs if o.output_type == "error"]
    assert not [cell for cell in code if "nbval-ignore-output" in cell.metadata.get("tags", [])]
    assert path.stat().st_size < MAX_BYTES


def test_outputs_are_stable(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            texts = [output.get("text", ""), *map(str, output.get("data", {}).values())]
            for text in texts:
                if text.isascii() and len(text) < 50_000:  # pictures are longer
                    for what, pattern in UNSTABLE.items():
                        assert not re.search(pattern, text), f"{cell.id} stores {what}: {text[:200]}"


def test_a_changed_output_is_found(path: Path, tmp_path: Path) -> None:
    """nbval on the first cells, once as stored and once with one digit changed: the comparison can fail."""
    book = nbformat.read(path, as_version=4)
    book.cells = book.cells[:4]
    result = book.cells[-1].outputs[0].data
    codes = []
    for name in ("stored", "changed"):
        nbformat.write(book, tmp_path / f"{name}.ipynb")
        command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q", "-p", "no:cacheprovider"]
        folder = {"PYTEST_ADDOPTS": "", **os.environ}
        done = subprocess.run([*command, str(tmp_path / f"{name}.ipynb")], capture_output=True, env=folder, check=False)
        codes.append(done.returncode)
        result["text/plain"] = result["text/plain"].replace("1.5", "1.6")
    assert codes == [0, 1]
