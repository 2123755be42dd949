"""Source, PTX and SASS beside each other, linked line by line both ways with anchors: no script."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from pygpukit.core.errors import GPUError
from pygpukit.core.text import escape
from pygpukit.jit.launch.kernel import JITKernel
from pygpukit.jit.launch.unit import Unit
from pygpukit.jit.source.lines import Lines

KINDS = ("ptx", "sass")
INSPECTED_ARCH = "sm_90a"  # what a unit of the simulated device is compiled for to be read
MAX_LINES = 4000  # of one listing: the card is stored in the notebook
_SPACES = re.compile(r" {2,}")  # the disassembler leaves room for the longest predicate
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*line\b")
_COLUMN = 6  # characters of a count

Line = tuple[int, str]  # the source line it came from (0: none), and its text


@dataclass(frozen=True)
class Listing:
    """One listing of one kernel; `problem` instead of lines where it cannot be made."""

    kind: str
    kernel: str
    arch: str
    lines: tuple[Line, ...]
    problem: str = ""


def listings(unit: Unit, kernels: Mapping[str, JITKernel], kinds: Collection[str]) -> tuple[Listing, ...]:
    """The asked listings of every kernel, by the names they are bound to.

    A unit of the simulated device is compiled for sm_90a to be read. What cannot be made (NVRTC or the disassembler is
    not installed) says so in `problem`. Raises ValueError for another kind than "ptx" or "sass".
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(f"there is no listing {unknown[0]!r}; choose from {', '.join(KINDS)}")
    return tuple(
        _listing(unit, kind, name, kernel) for name, kernel in kernels.items() for kind in KINDS if kind in kinds
    )


def inspected(unit: Unit, kernels: Mapping[str, JITKernel]) -> dict[str, JITKernel]:
    """The kernels of a unit of the simulated device as sm_90a would get them, not loaded; none where NVRTC cannot."""
    there = Unit(unit.source, **{**unit.arguments(), "arch": INSPECTED_ARCH})
    try:
        return {name: JITKernel(unit.source, one.name, unit=there, load=False) for name, one in kernels.items()}
    except GPUError:
        return {}  # the listings say why


def _listing(unit: Unit, kind: str, name: str, kernel: JITKernel) -> Listing:
    from pygpukit.jit.inspect.disassembly import ptx_lines, sass_lines  # most cards have no listing

    arch = INSPECTED_ARCH if unit.image.kind == "sim" else unit.image.arch
    try:
        if kind == "ptx":
            lines = [(line, text) for line, text in ptx_lines(kernel, arch)]
        else:
            lines = [(line, _SPACES.sub("  ", text.strip())) for line, text in sass_lines(kernel, arch)]
    except GPUError as error:
        return Listing(kind, name, arch, (), str(error))
    return Listing(kind, name, arch, tuple(lines))


def source_lines(source: str, name: str) -> list[Line]:
    """The lines of the file `name`, numbered as the #line directives say, without blank ones at the ends."""
    origins = Lines(source, name)
    numbered: dict[int, str] = {}
    for at, text in enumerate(source.split("\n"), 1):
        file, number = origins.origin(at)
        if file == name and not _DIRECTIVE.match(text):
            numbered.setdefault(number, text)
    filled = [number for number, text in numbered.items() if text.strip()]
    return [(number, text) for number, text in numbered.items() if filled and filled[0] <= number <= filled[-1]]


def listings_html(source: Sequence[Line], listed: Sequence[Listing], card: str) -> str:
    """The panes: the source once, then every listing. card: the card's class and the prefix of its ids.

    Each line of the source that became code links to it and back. Following a link marks all that belongs together: its
    end is the page's target, or its start has the focus where the page scrolls by itself, as JupyterLab does.
    """
    shown = [one for one in listed if one.lines]
    problems = dict.fromkeys(one.problem for one in listed if one.problem)
    notes = "".join(f'<p class="gk-small gk-warn">{escape(text)}</p>' for text in problems)
    if not shown:
        return f"<section>{notes}</section>" if notes else ""
    numbers = {number for number, _ in source}
    kinds = " and ".join(dict.fromkeys(one.kind.upper() for one in shown))
    panes = [_pane("source", _source_lines(source, shown, card))]
    panes += [
        _pane(f"{one.kind.upper()} of {one.kernel} for {one.arch}", _listing_lines(at, one, card, numbers))
        for at, one in enumerate(shown)
    ]
    used = sorted({line for one in shown for line, _ in one.lines} & numbers)
    marks = "".join(
        f".{card}:has(.gk-l{line}:is(:target,:focus-within)) .gk-l{line}"
        "{background:color-mix(in srgb,var(--gk-blue) 18%,transparent)}"
        for line in used
    )
    head = f"<style>{marks}</style><details><summary>{kinds} by source line</summary>"
    return f'<section>{notes}{head}<div class="gk-panes">{"".join(panes)}</div></details></section>'


def _pane(title: str, lines: Iterator[str]) -> str:
    return (
        f'<div class="gk-pane"><span class="gk-small gk-muted">{escape(title)}</span><pre>{"".join(lines)}</pre></div>'
    )


def _source_lines(source: Sequence[Line], listed: Sequence[Listing], card: str) -> Iterator[str]:
    """Every line with its number and, for each kind of listing, how many lines it became, linked to the first."""
    counts = [_instructions(one) for one in listed]
    kinds = list(dict.fromkeys(one.kind for one in listed))
    yield f'<span class="gk-line gk-muted">line{"".join(f"{kind:>{_COLUMN}}" for kind in kinds)}  source\n</span>'
    for number, text in source:
        columns = ""
        for kind in kinds:
            there = [at for at, one in enumerate(listed) if one.kind == kind and number in counts[at]]
            width = len(",".join(str(counts[at][number]) for at in there))
            links = ",".join(f'<a href="#{_code_id(card, at, number)}">{counts[at][number]}</a>' for at in there)
            columns += " " * (_COLUMN - width) + links
        mark = f" gk-l{number}" if "<a" in columns else ""
        head = f'<span class="gk-muted">{number:>4}{columns}  </span>'
        yield f'<span class="gk-line{mark}" id="{_source_id(card, number)}">{head}{escape(text)}\n</span>'


def _listing_lines(at: int, listing: Listing, card: str, numbers: Collection[int]) -> Iterator[str]:
    """Runs of lines of the same source line; the first run of each has the id that the source links to."""
    seen: set[int] = set()
    for line, run in groupby(listing.lines[:MAX_LINES], key=lambda one: one[0] if one[0] in numbers else 0):
        anchor = f' id="{_code_id(card, at, line)}"' if line and line not in seen else ""
        seen.add(line)
        number = f"{line:>4}" if line else ""
        link = number.replace(str(line), f'<a href="#{_source_id(card, line)}">{line}</a>')
        mark = f" gk-l{line}" if line else ""
        blank, head = "      ", f"{link}  "
        body = "\n".join(f"{blank if row or not line else head}{escape(text)}" for row, (_, text) in enumerate(run))
        yield f'<span class="gk-line{mark}"{anchor}>{body}\n</span>'
    left = len(listing.lines) - MAX_LINES
    if left > 0:
        yield f'<span class="gk-line gk-muted">{left} more lines: {escape(listing.kernel)}.{listing.kind}\n</span>'


def _instructions(listing: Listing) -> dict[int, int]:
    """Lines of code by source line, of those that are shown."""
    out: dict[int, int] = {}
    for line, _ in listing.lines[:MAX_LINES]:
        if line:
            out[line] = out.get(line, 0) + 1
    return out


def _source_id(card: str, line: int) -> str:
    return f"{card}-s{line}"


def _code_id(card: str, at: int, line: int) -> str:
    return f"{card}-c{at}-{line}"
