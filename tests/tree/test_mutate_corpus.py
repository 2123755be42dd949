"""The mutation tool: what makes it fail, what it reports, and that its sample is the same in every run."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from corpus.mutants import Mutant

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="the mutation test needs Python 3.11: it reads TOML")


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The tool, with a list of equivalents and a report of the test's own, and without its settings of the process."""
    spec = importlib.util.spec_from_file_location("mutate_corpus", ROOT / "tools" / "mutate_corpus.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutate_corpus", module)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "EQUIVALENT", tmp_path / "equivalent.toml")
    monkeypatch.setattr(module, "REPORT", tmp_path / "results" / "mutation.json")
    monkeypatch.setattr(module.os, "environ", {})
    module.EQUIVALENT.write_text("equivalent = []\n")
    return module


def outcomes_are(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, outcome: Callable[[Mutant], str]) -> None:
    monkeypatch.setattr(tool, "outcomes", lambda work, _: ((mutant, outcome(mutant), "") for mutant in work))


def list_as_equivalent(tool: ModuleType, mutant: Mutant, proof: str = "Nothing reads it afterwards.") -> None:
    tool.EQUIVALENT.write_text(
        f'[[equivalent]]\nfile = "{mutant.file}"\nline = {mutant.line}\ncolumn = {mutant.column}\n'
        f'mutation = "{mutant.mutation}"\nproof = "{proof}"\n'
    )


def test_a_survivor_must_be_listed_and_a_listed_one_must_survive(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = tool.mutants("lu.cu", (tool.KERNELS / "lu.cu").read_text())[3]
    outcomes_are(tool, monkeypatch, lambda mutant: "survived" if mutant.key == chosen.key else "checker")
    assert tool.main(["--file", "lu.cu"]) == 1
    assert f"does not list it: {chosen}" in capsys.readouterr().out
    list_as_equivalent(tool, chosen)
    assert tool.main(["--file", "lu.cu"]) == 0
    assert not tool.REPORT.exists()  # only a full run is reported
    outcomes_are(tool, monkeypatch, lambda mutant: "result")
    assert tool.main(["--file", "lu.cu"]) == 1
    assert "caught, though" in capsys.readouterr().out
    list_as_equivalent(tool, chosen, proof="obvious")
    with pytest.raises(ValueError, match=r"lu\.cu:\d+ lacks its proof"):
        tool.main(["--file", "lu.cu"])


def test_a_full_run_is_reported_and_a_stale_entry_fails(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes_are(tool, monkeypatch, lambda mutant: "checker")
    assert tool.main([]) == 0
    report = tool.json.loads(tool.REPORT.read_text())
    assert report["mutants"] == report["outcomes"]["checker"] > 1000
    assert report["cases"] == len(tool.CASES)
    list_as_equivalent(tool, Mutant("lu.cu", 1000, 1, "index", "i -> i + 1", ""))
    assert tool.main([]) == 1
    assert "lists a mutant that does not exist: ('lu.cu', 1000" in capsys.readouterr().out


def test_a_sample_is_the_same_in_every_run(tool: ModuleType) -> None:
    work = [one for path in sorted(tool.KERNELS.iterdir()) for one in tool.mutants(path.name, path.read_text())]
    first, again = tool.sample(work, 50), tool.sample(list(reversed(work)), 50)
    assert [one.key for one in first] == [one.key for one in again]
    assert len({one.file for one in first}) > 20
