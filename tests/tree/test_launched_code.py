"""tools/launched_code.py: machine code is compared without its names, and a row that differs is told."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.compile.nvrtc import get_nvrtc_version

SOURCE = 'extern "C" __global__ void {name}(float* x) {{ x[threadIdx.x] *= {factor}; }}'


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "tools" / "launched_code.py"
    spec = importlib.util.spec_from_file_location("launched_code", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(code: str, *launches: str) -> dict[str, object]:
    kernel = {"launched": [0, [1, 1, 1], False, False], "code": [["text", code, 128]]}
    return {"launches": [list(launches)], "kernels": [kernel]}


def test_a_row_that_differs_is_told_in_what(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = {"same": row("a", "(1, 1, 1)"), "code": row("b"), "grid": row("a", "(2, 1, 1)"), "new": row("a")}
    theirs = {"same": row("a", "(1, 1, 1)"), "code": row("a"), "grid": row("a", "(1, 1, 1)"), "gone": row("a")}
    paths = [tmp_path / "ours.json", tmp_path / "theirs.json"]
    for path, rows in zip(paths, (ours, theirs), strict=True):
        path.write_text(json.dumps(rows))
    assert tool.main([str(paths[0]), "--beside", str(paths[1])]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "code: machine code: 128 bytes there, 128 here",
        "gone: one version alone has this row",
        "grid: launches",
        "new: one version alone has this row",
        "1 of 4 rows launch the same machine code with the same arguments",
    ]
    assert tool.main([str(paths[0]), "--beside", str(paths[0])]) == 0


def test_names_are_no_part_of_machine_code(tool: ModuleType) -> None:
    if get_nvrtc_version() is None:
        pytest.skip("NVRTC is not installed")
    one, renamed, other = (
        tool.code_digests(compile_source(SOURCE.format(name=name, factor=factor), arch=tool.ARCH).image)
        for name, factor in (("scale", "2.f"), ("renamed", "2.f"), ("scale", "3.f"))
    )
    assert one == renamed != other
    assert any(kind == "text" for kind, _, _ in one)


def test_what_is_no_machine_code_is_refused(tool: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"begins with b'// PT'"):
        tool.code_digests(b"// PTX is text")
