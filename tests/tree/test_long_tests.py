"""What a run takes of the tests that take long: each case at one commit of n, and the record that says of which n."""

from __future__ import annotations

import ast
import math
import sys
from importlib import import_module
from pathlib import Path

import pytest
import turn

ROOT = Path(__file__).resolve().parents[2]
REPORT = """<testsuites><testsuite>
<testcase classname="tests.ops.test_a" name="test_long[sim-1]" time="3.25"/>
<testcase classname="tests.ops.test_a" name="test_long[sim-2[x]]" time="2.5"/>
<testcase classname="tests.ops.test_a" name="test_short" time="0.5"/>
<testcase classname="tests.ops.test_a.TestB" name="test_long" time="3"/>
</testsuite></testsuites>"""


@pytest.mark.parametrize(("cases", "commits"), [(1, 3), (5, 2), (8, 3), (2, 7)])
def test_each_case_runs_at_one_commit_of_n(monkeypatch: pytest.MonkeyPatch, cases: int, commits: int) -> None:
    runs = [0] * cases
    for commit in range(commits):
        monkeypatch.setattr(turn, "of_commit", lambda commit=commit: commit)
        came = [turn.has_come("tests/x.py::test_x", case, commits) for case in range(cases)]
        assert math.floor(cases / commits) <= sum(came) <= math.ceil(cases / commits)
        runs = [run + now for run, now in zip(runs, came, strict=True)]
    assert runs == [1] * cases


def test_the_time_of_a_test_says_how_many_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = turn.LIMIT_S
    assert [turn.commits_for(s) for s in (0.0, limit / 2, limit, limit * 1.01, limit * 7)] == [1, 1, 1, 2, 7]
    monkeypatch.setattr(turn, "recorded", lambda: {"a.py::test_long": limit * 2.5})
    assert (turn.commits_a_case("a.py::test_long"), turn.commits_a_case("a.py::test_other")) == (3, 1)


def test_the_record_names_tests_that_there_are() -> None:
    tests = set()
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        file = path.relative_to(ROOT).as_posix()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                tests.add(f"{file}::{node.name}")
            elif isinstance(node, ast.ClassDef):
                tests |= {f"{file}::{node.name}::{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
    assert tests and sorted(turn.recorded().keys() - tests) == [], "renamed or gone: rename or remove it in the record"
    assert all(seconds > turn.LIMIT_S for seconds in turn.recorded().values())


def test_a_report_becomes_the_record(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    tool = import_module("record_durations")
    report, record = tmp_path / "report.xml", tmp_path / "durations.json"
    report.write_text(REPORT)
    monkeypatch.setattr(turn, "RECORD", record)
    monkeypatch.setattr(turn, "LIMIT_S", 2.0)
    turn.recorded.cache_clear()
    try:
        assert tool.main(str(report)) == 0
        assert turn.recorded() == {
            "tests/ops/test_a.py::TestB::test_long": 3.0,
            "tests/ops/test_a.py::test_long": 5.8,
        }
    finally:
        turn.recorded.cache_clear()
    assert capsys.readouterr().out == "9 s in all, 4 s of them without --all, 2 tests in part\n"
