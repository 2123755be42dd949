"""What a built wheel is checked for: nothing of a server, no address in a script beyond namespaces."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools"))
from check_wheel import problems

SCRIPT = "pygpukit-0.data/data/share/jupyter/labextensions/pygpukit/static/a.js"


def found(wheel: Path, name: str, text: str) -> list[str]:
    """Problems with one file of a wheel."""
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(name, text)
    return [problem for problem in problems(wheel) if problem.startswith(name)]


def test_a_namespace_is_no_address(tmp_path: Path) -> None:
    assert found(tmp_path / "a.whl", SCRIPT, 'e("http://www.w3.org/2000/svg")') == []


@pytest.mark.parametrize("address", ["https://cdn.example/x.js", "http://localhost:8888/", "https://github.com/x/y"])
def test_any_other_address_is_told(address: str, tmp_path: Path) -> None:
    assert found(tmp_path / "a.whl", SCRIPT, f'f("{address}")') == [f"{SCRIPT} names the address {address}"]


@pytest.mark.parametrize(
    "name",
    [
        "pygpukit-0.data/data/etc/jupyter/jupyter_server_config.d/pygpukit.json",
        "pygpukit/jupyter/widgets/static/memory.js.map",
        "tests/jit/test_x.py",
        "pygpukit/jit/host.h",
    ],
)
def test_what_does_not_belong_in_it_is_told(name: str, tmp_path: Path) -> None:
    assert found(tmp_path / "a.whl", name, "") == [f"{name} does not belong in it"]


def test_headers_that_programs_include_belong_in_it(tmp_path: Path) -> None:
    assert found(tmp_path / "a.whl", "pygpukit/program/include/thrust/core.h", "") == []
