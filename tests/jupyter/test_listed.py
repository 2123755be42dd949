"""widgets.json: every widget that it lists is there, in Python, as a bundle and for the lab extension, and no other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pygpukit import jupyter, lab
from pygpukit.jupyter import widgets
from pygpukit.jupyter.listed import DASHBOARDS, MODULES, PANES
from pygpukit.jupyter.widgets.base import STATIC
from pygpukit.jupyter.widgets.dashboard import Dashboard


def test_every_listed_widget_is_a_class_with_its_bundle() -> None:
    for name, module in MODULES.items():
        widget = getattr(widgets, name)
        assert widget is getattr(jupyter, name) and widget.__module__ == f"pygpukit.jupyter.widgets.{module}"
        assert widget.module == f"{module}.js" and (STATIC / widget.module).is_file()
        assert issubclass(widget, Dashboard) == (module in DASHBOARDS)
    assert {name for name in jupyter.__all__ if name.endswith("Widget")} == set(MODULES)
    assert lab.PANES == PANES == (*DASHBOARDS, "timeline")


def test_the_lab_extension_is_built_with_the_dashboards() -> None:
    sources = Path(__file__).parents[2] / "extension" / "labext" / "lib" / "views.js"
    if sources.is_file():  # not beside an installed wheel
        assert all(f'"{name}"' in sources.read_text(encoding="utf-8") for name in PANES)


def test_a_page_gets_the_widget_of_each_dashboard_once_the_extension_is_loaded() -> None:
    code = """
from IPython.testing.globalipapp import start_ipython
shell = start_ipython()
shell.run_line_magic("load_ext", "pygpukit")
from pygpukit.jupyter import control
from pygpukit.jupyter.listed import PANES
for kind in PANES:
    answer = control.answer({"id": 1, "action": "view", "args": {"view": kind}})
    assert answer["ok"] and answer["result"]["model"], answer
"""
    # In a process of its own: another test may have imported what the extension lacks.
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
