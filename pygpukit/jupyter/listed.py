"""Which widgets there are, from widgets.json: the one list for Python, bundles and lab extension.

A widget is an entry there, a module of its name in widgets/ and one in extension/widgets/src/. Imports nothing of
Jupyter.
"""

from __future__ import annotations

import json
from pathlib import Path

_ENTRIES = json.loads((Path(__file__).parent / "widgets.json").read_text(encoding="utf-8"))

MODULES: dict[str, str] = {entry["class"]: entry["name"] for entry in _ENTRIES}
DASHBOARDS: tuple[str, ...] = tuple(entry["name"] for entry in _ENTRIES if entry["dashboard"])
# What the lab shows beside a notebook, one of each kind: a dashboard, or what follows the kernel as one does.
PANES: tuple[str, ...] = tuple(entry["name"] for entry in _ENTRIES if entry["dashboard"] or entry.get("pane"))
