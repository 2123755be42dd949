"""CUDA C++ text made ready for a host compiler, and a host compiler's messages made ready for the user.

Lines and columns stay the user's: text is replaced in place, and what follows on a changed line is put back at its
column with a #line directive.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pygpukit.jit.signature import KernelSignature, scan

STUB_FILE = "<kernels>"  # where messages about the entry table come from

_OPAQUE = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)
      | ^[ \t]*\#(?:\\\n|/\*.*?(?:\*/|\Z)|(?!//|/\*)[^\n])*
      | (?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z)
      | "(?:\\.|[^"\\\n])*"?
      | (?<![\w'])(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_SCOPES = re.compile(
    r"\bnamespace\b(?P<space>[^;{}()=]*)\{|\bextern\s*\{|(?P<open>\{)|(?P<close>\})"
    r"|(?P<shared>\b(?:extern|__shared__)\b[^;{}]*;)"
)
_ATTRIBUTE = re.compile(r"\b(?:__align__|alignas)\s*\([^()]*\)|\b__attribute__\s*\(\(.*?\)\)", re.DOTALL)
_ARRAY = re.compile(r"(?P<type>.*?\W)(?P<name>[^\W\d]\w*)\s*(?P<extents>\[\s*\](?:\s*\[[^\[\]]*\])*)\s*", re.DOTALL)
_REFUSED = (
    (re.compile(r"\b(?:asm|__asm__|__asm)\b"), "inline PTX (asm) cannot run on the simulated device"),
    (re.compile(r"<<<"), "a kernel cannot launch kernels on the simulated device"),
    (re.compile(r"\b(?:texture|surface)\s*<"), "texture and surface references cannot be simulated"),
    (re.compile(r"\b(?:tex[123]D\w*|surf[123]D\w*)\s*[<(]"), "texture and surface functions cannot be simulated"),
    (re.compile(r"\bwmma\s*::|\bnvcuda\b"), "tensor-core fragments (wmma) cannot be simulated"),
)
_MESSAGE = re.compile(
    r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<kind>(?:fatal )?error|note): (?P<text>.*)"
)
_REQUIRED = re.compile(r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+):\s+required (?:from|by)")
_UNDEFINED = re.compile(r"(?:.*[/ ])?(?P<file>[^\s:/][^:\n]*):(?P<line>\d+): (?P<text>undefined reference to .*)")
_UNDEFINED_ANYWHERE = re.compile(r"undefined (?:reference to|symbol:) .*")


@dataclass(frozen=True)
class Prepared:
    """text: what to compile. names: kernels in the entry table. places: line of each, for messages about the table."""

    text: str
    names: tuple[str, ...]
    places: tuple[int, ...]


def blank(source: str) -> str:
    """The source with comments, strings and preprocessor lines replaced by blanks; offsets and lines stay."""
    return _OPAQUE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)


def refusals(source: str, name: str) -> str:
    """What cannot be simulated, as compiler messages; "" when nothing is found."""
    code = blank(source)
    found = []
    for pattern, text in _REFUSED:
        for match in pattern.finditer(code):
            line, column = _place(code, match.start())
            found.append((line, column, f"{name}:{line}:{column}: error: {text}"))
    return "\n".join(message for *_, message in sorted(found))


def prepare(
    source: str, name: str, defines: Mapping[str, str] | None = None, name_expressions: Sequence[str] = ()
) -> Prepared:
    """The text to compile: the source under its own name, and the table of its kernels and name expressions."""
    text, binds = _rewrite_dynamic_shared(source, name)
    kernels = scan(source, defines)
    wanted: dict[str, KernelSignature | None] = {one.name: one for one in kernels if one.template is None}
    for expression in name_expressions:
        wanted.setdefault(expression, _template_of(expression, kernels))
    table = [
        f"PK_SIM_KERNEL({index}, {_quoted(kernel_name)}, {_bound(kernel)}, {kernel_name})"
        for index, (kernel_name, kernel) in enumerate(wanted.items())
    ]
    # The table comes first in its file, one kernel a line, so that a message's line tells the kernel.
    lines = [
        f"#line 1 {_quoted(name)}",
        text,
        f"#line 1 {_quoted(STUB_FILE)}",
        *table,
        "static void pk_sim_bind_dynamic() {" + "".join(binds) + "}",
        ", ".join([f"PK_SIM_IMAGE({len(table)}", *(f"&pk_sim_kernel_{index}" for index in range(len(table)))]) + ")",
        "",
    ]
    return Prepared("\n".join(lines), tuple(wanted), tuple(kernel.line if kernel else 1 for kernel in wanted.values()))


def readable_log(log: str, name: str, prepared: Prepared) -> str:
    """The compiler's messages about the user's source, `name:line:column: kind: text`, one a line.

    A message about one of the simulator's headers is told at the line of the user's that led there.
    """
    found: list[str] = []
    origin = ""  # the user's place that the next message about a header belongs to
    for line in log.splitlines():
        if required := _REQUIRED.match(line):
            if required["file"] == name:
                origin = f"{name}:{required['line']}:{required['column']}"
            continue
        match = _MESSAGE.match(line)
        if match is None:
            undefined = _UNDEFINED.match(line)
            if undefined and undefined["file"] == name:
                found.append(f"{name}:{undefined['line']}: error: {undefined['text']}")
            elif undefined or (match := _UNDEFINED_ANYWHERE.search(line)):
                text = undefined["text"] if undefined else _UNDEFINED_ANYWHERE.search(line).group()  # type: ignore[union-attr]
                found.append(f"{name}:1: error: {text}")
            continue
        if match["file"] == name:
            found.append(line)
        elif match["kind"] != "note":
            found.append(_message_elsewhere(match, name, prepared, origin))
        if match["kind"] != "note":
            origin = ""
    return "\n".join(dict.fromkeys(found)) or log.strip()


def _message_elsewhere(match: re.Match[str], name: str, prepared: Prepared, origin: str) -> str:
    """An error that the compiler saw in the entry table or in a header."""
    index = int(match["line"]) - 1
    if match["file"] == STUB_FILE and index < len(prepared.names):
        kernel = prepared.names[index]
        return f"{origin or f'{name}:{prepared.places[index]}'}: error: kernel {kernel}: {match['text']}"
    if origin:
        return f"{origin}: error: {match['text']}"
    return f"{name}:1: error: {match['text']} (in {match['file']}:{match['line']})"


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _bound(kernel: KernelSignature | None) -> int:
    first = kernel.launch_bounds[0] if kernel and kernel.template is None and kernel.launch_bounds else 0
    return min(first, 1024) if first > 0 else 1024


def _template_of(expression: str, kernels: Sequence[KernelSignature]) -> KernelSignature | None:
    head = expression.partition("<")[0].strip().lstrip("&")
    return next((kernel for kernel in kernels if kernel.name == head), None)


def _rewrite_dynamic_shared(source: str, name: str) -> tuple[str, list[str]]:
    """`extern __shared__ T x[];` as pointers to the block's dynamic shared memory.

    In a function the pointer is a constant; outside one it is a variable that the returned statements set.
    """
    code = blank(source)
    scopes: list[str | None] = []  # open braces: a namespace's name, "" where names stay plain, None for anything else
    pieces: list[str] = []
    binds: list[str] = []
    done = 0
    for match in _SCOPES.finditer(code):
        if match["close"]:
            if scopes:
                scopes.pop()
        elif match["open"]:
            scopes.append(None)
        elif not match["shared"]:
            scopes.append((match["space"] or "").replace("inline", "").strip())
        elif "extern" in (words := match["shared"].split()) and "__shared__" in words:
            declaration = _dynamic(match["shared"], None in scopes)
            if declaration is None:
                continue
            text, variable, kind = declaration
            if None not in scopes:
                qualified = "::".join([scope for scope in scopes if scope] + [variable])
                binds.append(f" {qualified} = pk_sim_dynamic<{kind}>();")
            pieces += [source[done : match.start()], text, _back_to(source, match.start(), match.end(), name)]
            done = match.end()
    return "".join(pieces) + source[done:], binds


def _dynamic(declaration: str, in_function: bool) -> tuple[str, str, str] | None:
    """(new declaration, variable, array type), or None when it declares anything but one array without extent."""
    words = _ATTRIBUTE.sub(" ", declaration[:-1])
    words = re.sub(r"\b(?:extern|__shared__|static)\b", " ", words)
    match = _ARRAY.fullmatch(words)
    if match is None:
        return None
    kind = " ".join((match["type"] + match["extents"]).split())
    if in_function:
        return f"pk_sim_pointer<{kind}> const {match['name']} = pk_sim_dynamic<{kind}>();", match["name"], kind
    return f"static thread_local pk_sim_pointer<{kind}> {match['name']};", match["name"], kind


def _back_to(source: str, start: int, end: int, name: str) -> str:
    """What puts the text after a replaced declaration back at its line and column; "" when none follows on the line."""
    line_end = source.find("\n", end)
    rest = source[end : line_end if line_end >= 0 else len(source)]
    if not rest.strip() and "\n" not in source[start:end]:
        return ""
    line, column = _place(source, end)
    return f"\n#line {line} {_quoted(name)}\n" + " " * (column - 1)
