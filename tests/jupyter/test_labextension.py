"""The prebuilt lab extension: JupyterLab takes it without Node, it has no part in the server, and it runs no code."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jupyterlab")

import pygpukit as gp

ROOT = Path(__file__).parents[2]
DATA = ROOT / "pygpukit.data/data"
EXTENSION = DATA / "share/jupyter/labextensions/pygpukit/static"
WIDGETS = ROOT / "pygpukit/jupyter/widgets/static"
ASKS_THE_KERNEL_TO_RUN = ("requestExecute", "execute_request", "requestInspect", "requestComplete")
MAKES_MARKUP_OF_TEXT = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "srcdoc", "new Function")
# Bundles with the chat hold DOMPurify, which cleans markup in a document that is not shown and runs nothing. What may
# come out of it, extension/ui-tests/views/chat.spec.ts holds against hostile texts.
SANITISER, IS_THE_SANITISERS = "DOMPurify", ("innerHTML", "outerHTML")
SOURCES = [ROOT / "extension" / part / "src" for part in ("core", "views", "widgets", "labext")]
HAS_A_CONNECTION_OF_ITS_OWN = ("XMLHttpRequest", "WebSocket", "EventSource", "sendBeacon")
SERVERS = {"jupyter_server", "tornado", "http", "http.server", "socketserver", "aiohttp"}


@pytest.fixture(autouse=True)
def _built() -> None:
    if not EXTENSION.is_dir() or not WIDGETS.is_dir():
        pytest.skip("the front end is not built here: python tools/build_frontend.py")


def test_the_lab_says_that_it_is_enabled_and_ok_where_there_is_no_node(tmp_path: Path) -> None:
    own = {"PATH": str(tmp_path), "JUPYTER_PATH": str(DATA / "share/jupyter"), "JUPYTER_CONFIG_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "jupyterlab.labextensions", "list"]
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, timeout=120, check=True)
    said = re.sub(r"\x1b\[\d*m", "", done.stdout + done.stderr)
    assert f"pygpukit v{gp.__version__} enabled OK" in said, said


def test_the_scripts_run_no_code_make_no_markup_of_text_and_open_no_connection() -> None:
    """What they know of the kernel they ask over a comm: pygpukit.control.v1, or the widget's own."""
    scripts = {path: path.read_text() for folder in (EXTENSION, WIDGETS) for path in folder.glob("*.js")}
    assert "pygpukit.control.v1" in "".join(scripts.values())
    words = (*ASKS_THE_KERNEL_TO_RUN, *MAKES_MARKUP_OF_TEXT, *HAS_A_CONNECTION_OF_ITS_OWN)
    found = {
        (path.name, word)
        for path, text in scripts.items()
        for word in words
        if word in text and not (word in IS_THE_SANITISERS and SANITISER in text)
    }
    assert not found
    own = {path: path.read_text() for folder in SOURCES for path in folder.rglob("*.ts")}
    assert own and [(path.name, word) for path, text in own.items() for word in words if word in text] == []


def test_nothing_is_for_a_server() -> None:
    """No endpoint, so none that could be reached without a token; no port."""
    assert {path.name for path in DATA.iterdir()} == {"share"}, "a server's configuration would be in etc"
    imported = {
        name
        for path in (ROOT / "pygpukit").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None), *(alias.name for alias in node.names)]
    }
    assert "anywidget" in imported
    assert imported & SERVERS == set()
