"""The reference names every public name once, by the place that mkdocstrings finds it at."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pygpukit as gp

sys.path.append(str(Path(__file__).parents[2] / "tools"))
import reference_pages

ENTRY = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


def test_every_public_name_is_on_one_page() -> None:
    pages = reference_pages.pages()
    places = [place for text in pages.values() for place in ENTRY.findall(text)]
    assert len(set(places)) == len(places) > 600
    for place in places:
        module, _, name = place.rpartition(".")
        assert callable(getattr(importlib.import_module(module), name)), place
    for namespace in reference_pages.NAMESPACES:
        text = pages[f"reference/{namespace}.md"]
        for name in reference_pages.names(namespace):
            assert re.search(rf"\b{name}\b", text) or f"`{name}`" in text, f"{namespace}.{name}"


def test_a_name_of_two_namespaces_stands_in_the_more_exact_one() -> None:
    pages = reference_pages.pages()
    assert re.search(r"^(### softmax|::: [\w.]+\.softmax)$", pages["reference/pygpukit.ops.md"], re.MULTILINE)
    assert "`softmax`" in pages["reference/pygpukit.md"].partition("## Also here")[2]
    assert set(reference_pages.names("pygpukit")) <= set(gp.__all__)
    assert "### acos\n\n    " in pages["reference/pygpukit.ops.md"]
