"""Markdown of strangers (models, users, files) as Markdown that looks the same and can do nothing, whoever draws it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pygpukit.core.text import visible

_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})([^`\n]*)")
_TICKS = re.compile(r"(`+)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
# What is between these goes to a typesetter as it is: no entities in it.
_MATH = re.compile(r"\$\$.{1,600}?\$\$|\\\[.{1,600}?\\\]|\\\(.{1,500}?\\\)|\$[^$\n]{1,500}\$", re.DOTALL)
_NO_LINK = re.compile(r"(\])([(:])(?![ \t]*(?:https?://|mailto:))", re.IGNORECASE)
_ACTING = re.compile(r"\\(?=(?:href|url|require|style|class|cssId|data|html\w*)\b)")
_IN_CODE = re.compile(r"[&<>\[\]!$\\`*_~|]")


def inert(text: str) -> str:
    """The text with its emphasis, lists, tables, code, formulas and links to http, https and mail.

    Markup in it is shown as text, images as their source: nothing runs, and nothing is fetched before somebody presses
    a link. This holds however a page reads Markdown: no tag begins outside of what is written here, which is <pre> and
    <code> around code that has such characters. What is open at its end is closed. Characters that a reader cannot see
    are written as \\x1b. Takes time in proportion to the text.
    """
    lines = visible(text).split("\n")
    escaped: list[str] = []
    prose: list[str] = []
    at = 0
    while at < len(lines):
        opening = _FENCE.fullmatch(lines[at])
        if opening is None:
            prose.append(lines[at])
            at += 1
            continue
        escaped += _prose(prose)
        prose = []
        end = at + 1
        while end < len(lines) and not _closes(lines[end], opening[2]):
            end += 1
        code = lines[at + 1 : end]
        escaped += _fenced(opening, code[:-1] if end == len(lines) and code[-1:] == [""] else code)
        at = end + 1
    return "\n".join([*escaped, *_prose(prose)])


def _closes(line: str, fence: str) -> bool:
    line = line.strip()
    return len(line) >= len(fence) and line == fence[0] * len(line)


def _fenced(opening: re.Match[str], code: list[str]) -> list[str]:
    """A block of code as it is; where a page that does not see it as code could do something, as HTML."""
    indent, fence, language = opening.groups()
    if _prose([language, *code]) == ["\n".join([language, *code])]:
        return [opening[0], *code, indent + fence]
    return [f"{indent}<pre><code>{_in_code(code[0]) if code else ''}", *map(_in_code, code[1:]), "</code></pre>", ""]


def _prose(lines: list[str]) -> list[str]:
    """Lines that are not in a block of code."""
    if not lines:
        return []
    escaped, last = [], 0
    text = "\n".join(lines)
    for formula in _MATH.finditer(text):
        escaped += [_spans(text[last : formula.start()]), _formula(formula[0])]
        last = formula.end()
    return ["".join([*escaped, _spans(text[last:])])]


def _spans(text: str) -> str:
    """Text with `code` in it."""
    return "\n".join("".join(_parts(line)) for line in text.split("\n"))


def _parts(line: str) -> Iterator[str]:
    parts = _TICKS.split(line)  # text and runs of backticks by turns
    ends: dict[int, list[int]] = {}
    for place in range(len(parts) - 2, 0, -2):
        ends.setdefault(len(parts[place]), []).append(place)  # the nearest last
    at = 0
    while at < len(parts):
        if at % 2 == 0:
            yield _quiet(parts[at])
            at += 1
            continue
        same = ends[len(parts[at])]
        while same and same[-1] <= at:
            same.pop()
        end = same[-1] if same else at
        code = "".join(parts[at + 1 : end])
        if end == at:
            yield parts[at]
        elif _quiet(code) == code:
            yield "".join(parts[at : end + 1])
        else:
            yield f"<code>{_in_code(code)}</code>"
        at = end + 1


def _quiet(text: str) -> str:
    text = _TAG.sub("&lt;", text).replace("![", "!&#91;")
    text = _NO_LINK.sub(lambda one: f"]&#{ord(one[2])};", text)
    return _ACTING.sub("\\&#8203;", text)


def _formula(text: str) -> str:
    return _ACTING.sub(r"\\ ", _TAG.sub("< ", text)).replace("![", "! [").replace("](", "] (")


def _in_code(text: str) -> str:
    return _IN_CODE.sub(lambda one: f"&#{ord(one[0])};", text)
