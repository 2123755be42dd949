"""`pygpukit lab`: a working copy that is never overwritten silently, the originals, options of JupyterLab, root."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

import pygpukit
from pygpukit import cli
from pygpukit.core import extras
from pygpukit.core.extras import install_command
from pygpukit.jupyter import lab_command, working_copy
from pygpukit.jupyter.working_copy import FOLDER, TOUR

TOUR_PAGE = "--LabApp.default_url=/lab/tree/00_tour.ipynb"


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """The arguments of each JupyterLab that would have been started, by somebody who is not root."""
    commands: list[list[str]] = []
    monkeypatch.setattr(lab_command.subprocess, "call", lambda command: commands.append(command[1:]) or 0)
    monkeypatch.setattr(lab_command.os, "geteuid", lambda: 1000)
    yield commands
    assert commands == []


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Small originals; the current folder is an empty one beside them."""
    folder = tmp_path / "originals"
    (folder / "data").mkdir(parents=True)
    (folder / ".ipynb_checkpoints").mkdir()
    for name in (TOUR, "01.ipynb", "data/a.wav", ".ipynb_checkpoints/01-checkpoint.ipynb"):
        (folder / name).write_text(name)
    monkeypatch.setattr(working_copy, "originals", lambda: folder)
    monkeypatch.setattr(lab_command, "originals", lambda: folder)
    (tmp_path / "current").mkdir()
    monkeypatch.chdir(tmp_path / "current")
    return folder


def test_missing_parts_are_explained_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], source: Path
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "anywidget" else object())
    assert cli.main(["lab"]) == 1
    assert capsys.readouterr().err == f"pygpukit lab needs anywidget: {install_command('lab')}\n"
    assert list(Path.cwd().iterdir()) == []


def test_it_opens_a_copy_and_tells_where(
    called: list[list[str]], source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path.cwd() / FOLDER
    assert cli.main(["lab", "--no-browser"]) == 0
    assert called.pop() == ["-m", "jupyterlab", f"--ServerApp.root_dir={copy}", TOUR_PAGE, "--no-browser"]
    assert capsys.readouterr().out == f"notebooks: {copy} (3 copied)\n"
    assert sorted(path.name for path in copy.rglob("*") if path.suffix in (".ipynb", ".wav")) == [
        TOUR,
        "01.ipynb",
        "a.wav",
    ]
    os.chdir(copy)  # from within the copy it opens the same one
    assert cli.main(["lab"]) == 0
    assert called.pop()[2] == f"--ServerApp.root_dir={copy}"
    assert capsys.readouterr().out == f"notebooks: {copy}\n"


def test_here_and_headless_take_the_originals(
    called: list[list[str]], source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Path] = []
    monkeypatch.setattr("pygpukit.headless.run_notebook", lambda path: ran.append(path) or 0)
    assert cli.main(["lab", "--here"]) == 0
    assert called.pop() == ["-m", "jupyterlab", f"--ServerApp.root_dir={source}", TOUR_PAGE]
    assert cli.main(["lab", "--headless"]) == 0
    assert ran == [source / TOUR] and list(Path.cwd().iterdir()) == []


def test_what_the_user_changed_stays_and_the_rest_follows(source: Path) -> None:
    copy, done = working_copy.working_copy()
    assert done == "3 copied"
    (copy / TOUR).write_text("mine")
    (copy / "own.ipynb").write_text("my own")
    assert working_copy.working_copy() == (copy, "")  # its original is as it was: nothing to tell
    for name in (TOUR, "01.ipynb"):
        (source / name).write_text("newer")
    (copy / "data" / "a.wav").unlink()
    told = "1 copied, 1 renewed, 1 kept as changed here, older than the originals"
    assert working_copy.working_copy() == (copy, told)
    assert [(copy / name).read_text() for name in (TOUR, "01.ipynb", "own.ipynb")] == ["mine", "newer", "my own"]
    (copy / TOUR).unlink()
    assert working_copy.working_copy() == (copy, "1 copied")
    assert (copy / TOUR).read_text() == "newer"


@pytest.mark.parametrize("record", ["", "no JSON", "[1]", None])
def test_without_a_record_every_file_is_the_users(source: Path, record: str | None) -> None:
    copy, _ = working_copy.working_copy()
    if record is None:
        (copy / working_copy.RECORD).unlink()
    else:
        (copy / working_copy.RECORD).write_text(record)
    (copy / "01.ipynb").write_text("mine")
    assert working_copy.working_copy() == (copy, "1 kept as changed here, older than the originals")
    assert (copy / "01.ipynb").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_named(
    called: list[list[str]], source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(FOLDER).touch()  # as root nothing else is refused
    assert cli.main(["lab"]) == 1
    said = capsys.readouterr().err
    assert str(Path.cwd() / FOLDER) in said and "--here" in said


def test_the_originals_are_the_checkouts_or_the_wheels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, notebooks: Path
) -> None:
    assert working_copy.originals() == notebooks
    monkeypatch.setattr(pygpukit, "__file__", str(tmp_path / "site-packages" / "pygpukit" / "__init__.py"))
    monkeypatch.setattr(working_copy.sys, "prefix", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="the notebooks are not where"):
        working_copy.originals()
    shared = tmp_path / "share" / "pygpukit" / "notebooks"
    shared.mkdir(parents=True)
    shutil.copyfile(notebooks / TOUR, shared / TOUR)
    assert working_copy.originals() == shared


def test_a_notebook_of_the_user_is_opened_where_it_is(
    called: list[list[str]], source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "my own.ipynb"
    mine.touch()
    folder, page = f"--ServerApp.root_dir={tmp_path}", "--LabApp.default_url=/lab/tree/my%20own.ipynb"
    for words, expected in (
        ([str(mine), "--no-browser"], [folder, page, "--no-browser"]),
        (["--port", "9999", str(mine)], [folder, page, "--port", "9999"]),
        (["--notebook-dir=/", str(mine)], [str(mine), "--notebook-dir=/"]),
    ):
        assert cli.main(["lab", *words]) == 0
        assert called.pop() == ["-m", "jupyterlab", *expected]
    capsys.readouterr()
    for words, told in (([str(tmp_path / "missing.ipynb")], "there is no notebook"), (["a.ipynb", "b.ipynb"], "one")):
        assert cli.main(["lab", *words]) == 1
        assert told in capsys.readouterr().err
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize("given", [[], ["--allow-root"], ["--ServerApp.allow_root=True"]])
def test_root_is_warned_in_one_line(
    called: list[list[str]],
    source: Path,
    given: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(lab_command.os, "geteuid", lambda: 0)
    assert cli.main(["lab", *given]) == 0
    assert called.pop()[4:] == (given or ["--allow-root"])
    said = capsys.readouterr().err
    assert said.startswith("warning: ") and said.count("\n") == 1 if not given else said == ""


def test_the_address_that_is_printed_without_a_browser_opens_the_tour(tmp_path: Path) -> None:
    pytest.importorskip("jupyterlab")
    command = [sys.executable, "-m", "pygpukit", "lab", "--no-browser", "--ServerApp.port=0"]
    environment = os.environ | {"JUPYTER_CONFIG_DIR": str(tmp_path), "JUPYTER_RUNTIME_DIR": str(tmp_path / "run")}
    server = subprocess.Popen(
        command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert server.stderr is not None
        told = next((line for line in server.stderr if "http://127.0.0.1" in line), "nothing")
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate()
    assert re.search(r"http://127\.0\.0\.1:\d+/lab/tree/00_tour\.ipynb\?token=\w+", told), told
    assert nbformat.read(tmp_path / FOLDER / TOUR, as_version=4).cells
