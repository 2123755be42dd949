"""The tool that writes the report of checked kernels: what it runs again, and what it reads back."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pygpukit.jit.compile import headers

ROOT = Path(__file__).resolve().parents[2]


def _tool(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return import_module(name)


@pytest.fixture
def sweep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The tool with a report of the test's own."""
    tool = _tool("checked_kernels", monkeypatch)
    monkeypatch.setattr(tool, "REPORT", tmp_path / "sim" / "checked_kernels.json")
    return tool


def test_digests_of_kernels_follow_their_headers(sweep: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    softmax, search = "ops/nn/softmax/softmax.cu", "ops/sorting/search.cu"
    before = {source: sweep.digest(source) for source in (softmax, search)}
    read = headers.text
    monkeypatch.setattr(headers, "text", lambda path: read(path) + ("\n" if path.name == "rows.cuh" else ""))
    assert sweep.digest(softmax) != before[softmax]
    assert sweep.digest(search) == before[search]


def test_the_sweep_runs_what_changed_or_failed(sweep: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = sweep.groups(sweep.FAMILIES)
    ran: list[str] = []
    failing = {"pk::rope<float>"}

    def run(group: Any) -> dict[tuple[str, str], Any]:
        ran.append(group.name)
        found = {kernel: sys.modules["sweep.engine"].Outcome({"(2,)": None}, 1.26e-4) for kernel in group.kernels}
        for (_, name), outcome in found.items():
            outcome.failure = "race" if name in failing else ""
        return found

    few = [family for family in sweep.FAMILIES if family.name in ("rope", "moving", "selects")]
    monkeypatch.setattr(sweep, "groups", lambda _: [group for group in groups if group.family in few])
    monkeypatch.setattr(sweep, "run", run)
    monkeypatch.setattr(sys, "argv", ["checked_kernels.py"])
    assert sweep.main() == 1
    everything = len(ran)
    report = json.loads(sweep.REPORT.read_text())
    assert sweep.written(report) == sweep.REPORT.read_text()
    rope = report["kernels"]["ops/nn/rope/rope.cu"]
    assert rope["pk::rope<float>"] == {"shapes": ["(2,)"], "error": 1.3e-4, "verdict": "race"}
    failing.clear()
    ran.clear()
    assert sweep.main() == 0
    assert ran == ["rope-all"]
    ran.clear()
    assert sweep.main() == 0
    assert ran == []
    report = json.loads(sweep.REPORT.read_text())
    report["sources"]["ops/copying/transpose.cu"] = "another"
    sweep.REPORT.write_text(sweep.written(report))
    assert sweep.main() == 0
    assert ran and all(name.startswith("moving-") for name in ran)
    ran.clear()
    monkeypatch.setattr(sys, "argv", ["checked_kernels.py", "--all"])
    assert sweep.main() == 0
    assert len(ran) == everything


def test_the_sweep_names_sources_that_it_does_not_have(
    sweep: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    removed, *others = sweep.FAMILIES
    monkeypatch.setattr(sweep, "FAMILIES", others)
    monkeypatch.setattr(sys, "argv", ["checked_kernels.py"])
    assert sweep.main() == 1
    assert f"has the kernels of {', '.join(removed.sources)};" in capsys.readouterr().out
    assert not sweep.REPORT.exists()
