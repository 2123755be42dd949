"""Text for a page: nothing that a reader cannot see or a page could obey stays as it is."""

from __future__ import annotations

import html
import sys

import pytest

from pygpukit.core.text import escape
from pygpukit.jupyter.widgets.fallback import memory_html, scheduler_html
from pygpukit.telemetry.state import State

HOSTILE = "a\x1b[31m\x00\u202eb\u2066c\u200f\x9b\udc80<script>"


def test_only_what_can_be_seen_stays() -> None:
    for code in range(sys.maxunicode + 1):
        shown = escape(chr(code))
        if shown != chr(code):
            assert shown.isascii() and shown.isprintable()
        else:
            assert chr(code).isprintable() or chr(code) in "\t\n\r" or code > 0x9F
            shown.encode()


def test_markup_is_escaped_as_ever() -> None:
    text = '<a href="x">&\'</a>'
    assert escape(text) == html.escape(text) and escape("a\tb\nc") == "a\tb\nc"


@pytest.mark.parametrize("page", [memory_html, scheduler_html])
def test_names_in_pictures_are_text_that_can_be_sent(page: object) -> None:
    state = State(HOSTILE, tasks={1: {"number": 1, "name": HOSTILE, "phase": "Running"}})
    shown = page(state)  # type: ignore[operator]
    shown.encode()
    assert r"a\x1b[31m\x00\u202eb\u2066c\u200f\x9b\udc80&lt;script&gt;" in shown
    assert not {"\x1b", "\x00", "\u202e", "\u2066", "\u200f", "\x9b"} & set(shown)
