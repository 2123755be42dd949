"""Markdown of strangers: what it looks like stays, and nothing in it acts, however a page reads it."""

from __future__ import annotations

import random
import time
from html.parser import HTMLParser

import pytest

from pygpukit.core.markdown import inert

HIT = "window.hit=1"
HOSTILE = (
    f"<script>{HIT}</script>",
    f'<img src=x onerror="{HIT}">',
    f"<svg/onload={HIT}>",
    f'<a href="javascript:{HIT}">x</a>',
    "<!-- ",
    "<![CDATA[",
    "<?php",
    "</code></pre>",
    "</div>",
    "![x](http://127.0.0.1:9/x.png)",
    "![x][y]",
    "[y]: http://127.0.0.1:9/x.png",
    "[z]: javascript:hit",
    "[x][z]",
    "[x](javascript:hit)",
    "[x](<javascript:hit>)",
    "[x](data:text/html,hit)",
    "[x](  vbscript:hit)",
    "<javascript:hit>",
    "[![x](http://127.0.0.1:9/a)](https://x.y)",
    r"$\href{javascript:hit}{x}$",
    r"\require{action}",
)
NEUTRAL = (
    "```",
    "````",
    "~~~",
    "`",
    "``",
    "$",
    "$$",
    r"\(",
    r"\)",
    r"\[",
    r"\]",
    "\n",
    "\n\n",
    "    ",
    "- ",
    "> ",
    "1. ",
    "\\",
    "a",
    "|",
    "*",
    "^[x]",
)
TAGS = {"p", "br", "hr", "em", "strong", "del", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a", "span", "div"}
TAGS |= {"table", "thead", "tbody", "tr", "th", "td", "sup", "section", *(f"h{level}" for level in range(1, 7))}


class Look(HTMLParser):
    """Notes every tag and attribute that could act."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self.found.append(tag)
        for name, value in attributes:
            address = (value or "").strip().lower()
            if name.startswith("on") or name in ("src", "srcdoc", "action", "formaction"):
                self.found.append(f"{tag} {name}")
            elif name == "href" and not address.startswith(("http:", "https:", "mailto:", "#")):
                self.found.append(f"href {address}")

    def handle_comment(self, data: str) -> None:
        self.found.append("comment")

    def handle_decl(self, decl: str) -> None:
        self.found.append("declaration")

    def handle_pi(self, data: str) -> None:
        self.found.append("instruction")


def acting(html: str) -> list[str]:
    look = Look()
    look.feed(html)
    look.close()
    return look.found


def readers() -> dict[str, object]:
    filters = pytest.importorskip("nbconvert.filters.markdown_mistune")
    mistune = pytest.importorskip("mistune")
    plain = mistune.create_markdown(escape=False, plugins=["table", "strikethrough", "footnotes", "url", "math"])
    return {"nbconvert": filters.markdown2html_mistune, "mistune": plain}


def test_what_is_usual_stays_as_it_is() -> None:
    for text in (
        "Some **bold** and `code`, a < b, a & b.",
        "- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "```python\nfor i in range(3):\n    print(x[i], 1 << 2)\n```\nand more",
        r"\(a + b\), $x_1$ and \[\frac{a}{b}\]",
        "[a link](https://example.org) and http://example.org",
    ):
        assert inert(text) == text


def test_what_would_be_markup_is_shown_as_text_and_code_as_code() -> None:
    assert inert("`vector<int>` <b>") == "<code>vector&#60;int&#62;</code> &lt;b>"
    assert inert("```cpp\n#include <x>\n") == "<pre><code>#include &#60;x&#62;\n</code></pre>\n"
    assert inert("![a](http://b) [c](javascript:d)") == "!&#91;a](http://b) [c]&#40;javascript:d)"
    assert inert(r"$a<b$ and \(c<d\)") == r"$a< b$ and \(c< d\)"
    assert inert("```py\nx") == "```py\nx\n```"
    assert inert("a\x1b\u202e") == r"a\x1b\u202e"


def test_hostile_texts_do_nothing_whoever_reads_them() -> None:
    draw = random.Random(35)
    read = readers()
    texts = [*HOSTILE, *("```\n" + text for text in HOSTILE), *(f"`{text}`" for text in HOSTILE)]
    for _ in range(1500):
        pieces = draw.choices(NEUTRAL, k=draw.randint(1, 6)) + draw.choices(HOSTILE, k=draw.randint(1, 3))
        draw.shuffle(pieces)
        texts.append("".join(pieces))
    acted = 0
    for text in texts:
        safe = inert(text)
        for name, reader in read.items():
            acted += bool(acting(reader(text)))  # type: ignore[operator]
            found = acting(reader(f"**Model:** {safe}"))  # type: ignore[operator]
            assert found == [], (name, text, safe)
    assert acted > len(texts) / 2  # as it was said, most of it would


def test_it_takes_time_in_proportion() -> None:
    for piece in ("`a``b```", "$", "[a](", r"\[", r"\(", "<a", "```\n", "`", "![", "$$", "]:", "- "):
        began = time.process_time()
        inert(piece * 20_000)
        assert time.process_time() - began < 5, piece
