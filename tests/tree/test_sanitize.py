"""tools/sanitize.py: the sanitizers find what is planted, a blind one is noticed, and any report fails a run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The tool, with a folder of the test's own."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import sanitize

    monkeypatch.setattr(sanitize, "BUILD", tmp_path)
    for variable in ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
        monkeypatch.delenv(variable, raising=False)
    return sanitize


def need_libraries(tool: ModuleType, kind: str) -> None:
    try:
        tool.environment(kind, Path())
    except tool.CannotRun as why:
        pytest.skip(str(why))


@pytest.mark.parametrize("kind", ["address", "thread"])
def test_what_is_planted_is_found(tool: ModuleType, tmp_path: Path, kind: str) -> None:
    need_libraries(tool, kind)
    assert tool.missed(kind, tmp_path) == []


def test_a_sanitizer_that_sees_nothing_ends_the_run(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    need_libraries(tool, "address")
    blind = dataclasses.replace(tool.KINDS["address"], flags=("-O1",))
    monkeypatch.setitem(tool.KINDS, "address", blind)
    with pytest.raises(tool.CannotRun, match="did not find what was planted: planted_overflow, planted_undefined"):
        tool.run("address", [])


def test_a_report_of_a_child_fails_the_run(tool: ModuleType, tmp_path: Path) -> None:
    need_libraries(tool, "address")
    assert tool.missed("address", tmp_path) == []
    for number, code in (3, 0), (4, 1):  # within the array, and beyond
        call = f"import ctypes; ctypes.CDLL({str(tmp_path / 'planted.so')!r}).planted_overflow({number})"
        parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {call!r}], capture_output=True)"
        assert tool.watched("address", tmp_path, ["-c", parent]) == code


def test_a_file_that_fails_keeps_none_from_its_turn(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ended = {"one.py": 0, "two.py": -11, "three.py": 0}
    monkeypatch.setattr(tool, "NATIVE_TESTS", (*ended, "slow.py"))
    kind = dataclasses.replace(tool.KINDS["thread"], left_out=("slow.py", "one.py::test_other"))
    monkeypatch.setitem(tool.KINDS, "thread", kind)
    monkeypatch.setattr(tool, "missed", lambda *_: [])
    monkeypatch.setattr(tool, "build", lambda *_: Path())
    monkeypatch.setattr(tool, "copy_tree", lambda *_: Path())
    monkeypatch.setattr(tool, "watched", lambda kind, folder, arguments, **_: ended[arguments[-1]])
    assert tool.run("thread", []) == 1
    assert capfd.readouterr().out.splitlines() == [
        "thread: one.py: clean",
        "thread: two.py: ended with -11",
        "thread: three.py: clean",
    ]
    ended["two.py"] = 0
    assert tool.run("thread", []) == 0
