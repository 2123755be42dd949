"""Compiler logs read into diagnostics with the line and column of the user's source.

NVRTC prints `name(line): error: text` and shows the place with a caret below the source line, counting bytes; the
column comes from that caret, else from the first quoted word of the message that occurs in the line, else it is 0
(unknown). g++ and clang print `name:line:column:` themselves, in bytes too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pygpukit.core.errors import CompileError, Diagnostic
from pygpukit.jit.source.lines import Lines

_NVRTC = re.compile(
    r"(?P<file>.+?)\((?P<line>\d+)\): (?P<severity>(?:catastrophic |internal )?error|warning|note|remark)"
    r"(?: (?P<number>#\d+(?:-D)?))?: (?P<message>.*)"
)
_GCC = re.compile(
    r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<severity>(?:fatal )?error|warning|note): (?P<message>.*)"
)
_PTXAS = re.compile(r"ptxas .*?, line \d+; (?P<severity>error|warning)\s*: (?P<message>.*)")
_OPTION = re.compile(r"nvrtc: (?P<severity>error|warning): (?P<message>.*)")
_CARET = re.compile(r"[ \t]*\^[~ ]*")
_QUOTED = re.compile(r"""["'\u2018]([^"'\u2018\u2019]+)["'\u2019]""")
_NAME_EXPRESSIONS = "__nv_name_map"  # the file that NVRTC makes of them
_ECHO_INDENT = 2  # NVRTC puts this many blanks before a source line that it shows


def parse_log(log: str, source: str = "", unit: str = "cell") -> list[Diagnostic]:
    """Every message of a compiler's log, in order. `source`, compiled under the name `unit`, serves to find columns."""
    diagnostics: list[Diagnostic] = []
    lines = log.splitlines()
    origins = Lines(source, unit)
    texts = {origins.origin(number): text for number, text in enumerate(source.splitlines(), start=1)}
    for at, line in enumerate(lines):
        if match := _NVRTC.fullmatch(line):
            text = texts.get((match["file"], int(match["line"])))
            diagnostics.append(_from_nvrtc(match, _block(lines, at + 1), text))
        elif match := _GCC.fullmatch(line):
            diagnostics.append(_from_gcc(match, texts.get((match["file"], int(match["line"])))))
        elif match := _PTXAS.fullmatch(line):
            diagnostics.append(Diagnostic(0, 0, match["severity"], match["message"], "ptx"))
        elif match := _OPTION.fullmatch(line):
            diagnostics.append(Diagnostic(0, 0, match["severity"], match["message"]))
    return diagnostics


def _block(lines: Sequence[str], start: int) -> list[str]:
    """The lines that belong to a message: up to a blank line or the next message."""
    end = start
    while end < len(lines) and lines[end].strip() and not _NVRTC.fullmatch(lines[end]):
        end += 1
    return list(lines[start:end])


def _severity(text: str) -> str:
    if text.endswith("error"):
        return "error"
    return "warning" if text == "warning" else "note"


def _from_nvrtc(match: re.Match[str], block: list[str], text: str | None) -> Diagnostic:
    caret = next((i for i, line in enumerate(block) if i > 0 and _CARET.fullmatch(line)), None)
    message, column = match["message"], 0
    if caret is None:
        remarks = block
        column = _quoted_column(message, text)
    else:
        offset = block[caret].index("^") - _ECHO_INDENT
        column = len(block[caret - 1].encode()[_ECHO_INDENT : _ECHO_INDENT + offset].decode(errors="ignore")) + 1
        remarks = block[: caret - 1] + block[caret + 1 :]
    extra = "; ".join(line.strip() for line in remarks)
    number = f" [{match['number']}]" if match["number"] else ""
    return Diagnostic(
        int(match["line"]), column, _severity(match["severity"]), message + (f" ({extra})" if extra else "") + number,
        match["file"],
    )  # fmt: skip


def _from_gcc(match: re.Match[str], text: str | None) -> Diagnostic:
    line, column = int(match["line"]), int(match["column"] or 0)
    if column == 0:
        column = _quoted_column(match["message"], text)
    elif text is not None:  # counted in bytes
        column = len(text.encode()[: column - 1].decode(errors="ignore")) + 1
    return Diagnostic(line, column, _severity(match["severity"]), match["message"], match["file"])


def _quoted_column(message: str, text: str | None) -> int:
    """Where the first quoted word of a message stands in the line it is about; 0 when it does not."""
    for word in _QUOTED.findall(message):
        match = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text or "")
        if match:
            return match.start() + 1
    return 0


def compile_error(unit: str, log: str, source: str) -> CompileError:
    """The exception for a failed compile. Its message: the first error with its place, and how many more there are."""
    diagnostics = parse_log(log, source, unit)
    others = [one for one in diagnostics if one.file != _NAME_EXPRESSIONS]
    if any(one.severity == "error" for one in others):  # names that cannot be told are what follows from them
        diagnostics = others
    errors = [one for one in diagnostics if one.severity == "error"]
    if not errors:
        last = next((line for line in reversed(log.splitlines()) if line.strip()), "the compiler gave no message")
        return CompileError(f"{unit}: {last}", log, diagnostics)
    more = len(errors) - 1
    text = place(errors[0]) + errors[0].message
    return CompileError(text + (f" (and {more} more error{'s' * (more > 1)})" if more else ""), log, diagnostics)


def place(one: Diagnostic) -> str:
    """ "cell:4:10: " as far as it is known."""
    return "".join(f"{part}:" for part in (one.file, one.line, one.column) if part) + (
        " " if one.file or one.line else ""
    )


def render(diagnostics: Sequence[Diagnostic], sources: Mapping[str, str], max_lines: int = 15) -> list[str]:
    """Errors as a person reads them: place and message, the line of the file in `sources`, a caret under the token."""
    texts = {file: source.splitlines() for file, source in sources.items()}
    errors = [one for one in diagnostics if one.severity == "error"] or list(diagnostics)
    out: list[str] = []
    for shown, one in enumerate(errors):
        entry = [f"{place(one)}{one.severity}: {one.message}"]
        lines = texts.get(one.file, ())
        if 1 <= one.line <= len(lines):
            entry += _pointed(lines[one.line - 1], one.column)
        left = len(errors) - shown
        if len(out) + len(entry) > max_lines - (left > 1):
            out.append(f"... and {left} more error{'s' * (left > 1)}: see .diagnostics")
            break
        out += entry
    return out


def _pointed(text: str, column: int) -> list[str]:
    shown = "    " + text.replace("\t", " ")
    if not 1 <= column <= len(text) + 1:
        return [shown]
    token = re.match(r"\w+", text[column - 1 :])
    return [shown, "    " + " " * (column - 1) + "^" + "~" * (len(token.group()) - 1 if token else 0)]
