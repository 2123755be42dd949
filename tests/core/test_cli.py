"""The `pygpukit` command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

from pygpukit import _core, cache, cli, headless
from pygpukit.jit.compile.nvrtc import get_nvrtc_version


def test_info_prints_every_fact(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info"]) == 0
    lines = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert list(lines) == [
        "version",
        "backend",
        "device",
        "sharing",
        "compiler",
        "toolchain",
        "cache",
        "kernels",
        "lab",
    ]
    assert lines["backend"].startswith("sim (")


def test_unknown_commands_and_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in ([], ["fly"], ["info", "--what"]):
        with pytest.raises(SystemExit) as stop:
            cli.main(argv)
        assert stop.value.code == 2
    assert "--what" in capsys.readouterr().err


def test_warmup_compiles_what_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    if get_nvrtc_version() is None:
        pytest.skip("NVRTC is not installed")
    before = cache.info()["disk_entries"]
    assert cli.main(["warmup", "nn/lstm", "--arch", "sm_90a"]) == 0
    added = cache.info()["disk_entries"] - before
    said = re.fullmatch(r"(\d+) kernels for sm_90a are in the cache\n", capsys.readouterr().out)
    assert said and 0 < int(said[1]) <= added
    assert cli.main(["warmup", "nn/lstm", "--arch", "sm_90a"]) == 0
    assert cache.info()["disk_entries"] == before + added


def test_warmup_works_after_a_shell_was_reset(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if get_nvrtc_version() is None:
        pytest.skip("NVRTC is not installed")
    reset = ModuleType("__main__")
    del reset.__spec__
    monkeypatch.setitem(sys.modules, "__main__", reset)
    assert cli.main(["warmup", "nn/lstm", "--arch", "sm_90a"]) == 0
    assert "kernels for sm_90a are in the cache" in capsys.readouterr().out


def test_warmup_says_what_it_cannot_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["warmup"]) == 1
    assert "there is no device" in capsys.readouterr().err
    assert cli.main(["warmup", "poetry", "--arch", "sm_90a"]) == 1
    assert re.search("'poetry'; there are some in .*matmul", capsys.readouterr().err)


def test_notebooks_run_one_after_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, code in (("good", "6 * 7"), ("bad", "1 / 0")):
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
        nbformat.write(book, tmp_path / f"{name}.ipynb")
    assert headless.main([]) == 2
    assert headless.main([str(tmp_path / "good.ipynb"), str(tmp_path / "bad.ipynb")]) == 1
    shown = capsys.readouterr()
    assert "42" in shown.out and "bad.ipynb: cell 1 failed" in shown.err


def test_headless_runs_the_notebook_that_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("6 * 7")])
    nbformat.write(book, tmp_path / "mine.ipynb")
    assert cli.main(["lab", "--headless", str(tmp_path / "mine.ipynb")]) == 0
    assert "42" in capsys.readouterr().out


def notebook_of(tmp_path: Path, *cells: str) -> Path:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    book.cells.insert(0, nbformat.v4.new_markdown_cell("words"))
    path = tmp_path / "n.ipynb"
    nbformat.write(book, path)
    return path


def test_headless_prints_results_cell_by_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = notebook_of(tmp_path, "# a comment\nx = 6 * 7\nprint('six')", "x")
    assert headless.run_notebook(path) == 0
    output = capsys.readouterr().out.splitlines()
    assert output[:4] == ["--- cell 1: x = 6 * 7", "six", "--- cell 2: x", "42"]
    assert output[4].startswith("n.ipynb: 2 cells ran in ")


def test_headless_prints_what_comes_behind_a_cells_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = "import threading\ngo = threading.Event()\nt = threading.Thread(target=lambda: (go.wait(), print('late')))"
    cells = [late + "\nt.start(); print('first')", "go.set(); t.join()", "print('half', end='')"]
    ends = "threading.Timer(0.5, print, ['last words']).start()"
    assert headless.run_notebook(notebook_of(tmp_path, *cells, ends)) == 0
    output = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(("---", "n.ipynb"))]
    assert output == ["first", "late", "half", "last words"]


def test_headless_prints_an_update_that_says_something_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = "shown = display({'text/plain': 'a'}, raw=True, display_id=True)\ndisplay({'text/plain': 'a'}, raw=True)"
    updates = "for text in 'abbc':\n    shown.update({'text/plain': text, 'image/png': ''}, raw=True)"
    assert headless.run_notebook(notebook_of(tmp_path, shown, updates)) == 0
    output = capsys.readouterr().out.splitlines()
    assert [line for line in output if len(line) == 1] == ["a", "a", "b", "c"]


@pytest.mark.parametrize("kind", ["Thread", "Process"])
def test_headless_ends_a_pool_that_was_left_open(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = f"from concurrent.futures import {kind}PoolExecutor\npool = {kind}PoolExecutor(1)\npool.submit(int).result()"
    ends = "pool.submit(__import__('time').sleep, 0.5).add_done_callback(lambda _: print('done')) or None"
    assert headless.run_notebook(notebook_of(tmp_path, pool, ends)) == 0
    assert "\ndone\n" in capsys.readouterr().out


def test_headless_leaves_out_a_cell_that_is_marked_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = notebook_of(tmp_path, "1 / 0", "'next'")
    book = nbformat.read(path, as_version=4)
    book.cells[1].metadata["tags"] = ["skip-execution"]
    nbformat.write(book, path)
    assert headless.run_notebook(path) == 0
    assert "--- cell 1: 'next'" in capsys.readouterr().out


def test_headless_goes_on_behind_an_error_on_purpose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = notebook_of(tmp_path, "1 / 0", "'next'")
    book = nbformat.read(path, as_version=4)
    book.cells[1].metadata["tags"] = ["raises-exception"]
    nbformat.write(book, path)
    assert headless.run_notebook(path) == 0
    assert "ZeroDivisionError: division by zero\n--- cell 2: 'next'\n'next'\n" in capsys.readouterr().out


def test_headless_says_why_a_cell_did_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert headless.run_notebook(notebook_of(tmp_path, "import os", "os._exit(3)")) == 1
    assert capsys.readouterr().err == "the kernel died\nn.ipynb: cell 2 failed\n"
    monkeypatch.setattr(headless, "CELL_TIMEOUT_S", 0.5)
    assert headless.run_notebook(notebook_of(tmp_path, "print('before')\nimport time\ntime.sleep(100)")) == 1
    shown = capsys.readouterr()
    assert shown.err == "no end within 0.5 s\nn.ipynb: cell 1 failed\n" and "before" in shown.out


def test_headless_stops_at_an_error_with_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert headless.run_notebook(notebook_of(tmp_path, "1 / 0", "print('never')")) == 1
    captured = capsys.readouterr()
    assert "ZeroDivisionError" in captured.err
    assert "cell 1 failed" in captured.err
    assert "never" not in captured.out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0 and capsys.readouterr().out == f"pygpukit {_core.__version__}\n"


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("chta x", "chat"),
        ("chat x --tempreture 1", "--temperature"),
        ("chat x --sed=1", "--seed"),
        ("serve x --prot 3", "--port"),
        ("models lst", "list"),
        ("cache claer", "clear"),
    ],
)
def test_a_misspelt_word_gets_the_nearest(line: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(line.split())
    assert stop.value.code == 2 and f"; did you mean {meant}?\n" in capsys.readouterr().err


def test_models_are_listed_with_and_without_the_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models"]) == 0
    listed = capsys.readouterr().out
    assert cli.main(["models", "list"]) == 0 and capsys.readouterr().out == listed
    assert cli.main(["models", "get", "Whisper-tiny"]) == 1
    assert "did you mean whisper-tiny.en? " in capsys.readouterr().err


def test_commands_say_where_they_run_without_a_warning() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYGPUKIT_BACKEND"}
    ran = subprocess.run(
        [sys.executable, "-m", "pygpukit", "info"], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stderr == "" and re.search("^backend +(sim|cuda) \\(", ran.stdout, re.MULTILINE)
