"""Findings of the checked mode as a person reads them: what and where, the source's own lines with a mark, and who."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pygpukit.core.errors import Finding
from pygpukit.jit.inspect.mentions import Mention, meant, mentions
from pygpukit.jit.source.lines import Lines

Place = tuple[str, int]  # file and line
Texts = Mapping[Place, str]

MAX_LINES = 15
_DIRECTIVE = re.compile(r"\s*#\s*line\b")  # ours, where cells are put together: no line of the user's
_CONTEXT = 1  # lines shown before and after a marked one


def render(findings: Sequence[Finding], unit: str, source: str, max_lines: int = MAX_LINES) -> list[str]:
    """At most `max_lines` lines. `unit` and `source`: name and text of what the findings are about."""
    texts = _by_place(unit, source)
    out: list[str] = []
    for shown, one in enumerate(findings):
        entry = _entry(one, unit, texts)
        left = len(findings) - shown
        room = max_lines - len(out) - (left > 1)
        if len(entry) > room and out:
            out.append(f"... and {left} more finding{'s' * (left > 1)}: see .findings")
            break
        out += entry[:room]
    return out


def _by_place(unit: str, source: str) -> Texts:
    """The lines of a source by the file and line that its #line directives say."""
    lines = Lines(source, unit)
    return {
        lines.origin(number): text.expandtabs(4)
        for number, text in enumerate(source.splitlines(), 1)
        if not _DIRECTIVE.match(text)
    }


def _entry(one: Finding, unit: str, texts: Texts) -> list[str]:
    files = "|".join(re.escape(file) for file in {unit, *(file for file, _ in texts)} if file)
    named = re.findall(rf"(?<!\w)({files}):(\d+)\b", one.message) if files else []
    places = [(file, int(number)) for file, number in named]
    here = next((place for place in reversed(places) if place[1] == one.line), (unit, one.line))
    place = f"{here[0]}:{one.line}" if unit and one.line else f"line {one.line}" if one.line else ""
    element = f", {one.array}" + ("" if one.index is None else f"[{one.index}]") if one.array else ""
    message = one.message.removesuffix(f", at {place}") if place else one.message
    return [
        (f"{place}: " if place else "") + f"{one.kind}: {message}",
        f"  kernel {one.kernel}, block {_triple(one.block)}, thread {_triple(one.thread)}{element}",
        *_excerpt(texts, here, {other for other in places if other != here}, one),
    ]


def _excerpt(texts: Texts, here: Place, others: set[Place], one: Finding) -> list[str]:
    """The marked line with what stands around it, and the lines that conflict with it; carets under the array where it
    is meant."""
    marked = [place for place in (here, *others) if place in texts]
    shown = {(file, near) for file, line in marked for near in range(line - _CONTEXT, line + _CONTEXT + 1)}
    out: list[str] = []
    before: Place | None = None
    for file, number in sorted(shown & texts.keys()):
        if before and (file, number) != (before[0], before[1] + 1):
            out.append("      ...")
        before = file, number
        mark = "->" if before == here else " >" if before in others else "  "
        out.append(f"  {mark} {number:3} | {texts[before]}".rstrip())
        if before in marked:
            out += _carets(
                texts[before], meant(texts[before], one) if before == here else mentions(texts[before], one.array)
            )
    return out


def _carets(text: str, marked: Sequence[Mention]) -> list[str]:
    """A line with a caret under each of these mentions of an array; none where there are none."""
    pointed = [" "] * len(text)
    for start, end, *_ in marked:
        pointed[start:end] = "^" + "~" * (end - start - 1)
    carets = "".join(pointed).rstrip()
    return ["         | " + carets] if carets else []


def _triple(place: Sequence[int]) -> str:
    return "({},{},{})".format(*place)
