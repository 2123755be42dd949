"""CUDA C++ text made ready for a host compiler, and a host compiler's messages made ready for the user.

Lines and columns stay the user's: text is replaced in place, and what follows on a changed line is put back at its
column with a #line directive.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from pygpukit.jit.compile.sim_missing import with_remedy
from pygpukit.jit.compile.sim_parameters import grid_constants
from pygpukit.jit.compile.sim_specifiers import ordered
from pygpukit.jit.compile.sim_textures import references
from pygpukit.jit.source.lexer import lex
from pygpukit.jit.source.lines import Lines, directive
from pygpukit.jit.source.signature import KernelSignature, scan, scan_variables

STUB_FILE = "<kernels>"  # where messages about the entry table come from

# Those of pk_cuda_sim.h that sources ask for.
MACROS = {
    "PYGPUKIT_SIM": "1",
    "__CUDACC__": "1",
    "__CUDACC_RTC__": "1",
    "__CUDA_ARCH__": "900",
    "CUDART_VERSION": "12080",
}
_OPAQUE = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)
      | ^[ \t]*\#(?:\\\n|/\*.*?(?:\*/|\Z)|(?!//|/\*)[^\n])*
      | (?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z)
      | "(?:\\.|[^"\\\n])*"?
      | (?<![\w'])(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SCOPES = re.compile(
    r"\bnamespace\b(?P<space>[^;{}()=]*)\{|\bextern\s*\{|(?P<open>\{)|(?P<close>\})"
    r"|(?P<shared>\b(?:extern|__shared__)\b[^;{}]*;)"
)
_ATTRIBUTE = re.compile(r"\b(?:__align__|alignas)\s*\([^()]*\)|\b__attribute__\s*\(\(.*?\)\)", re.DOTALL)
_ARRAY = re.compile(r"(?P<type>.*?\W)(?P<name>[^\W\d]\w*)\s*(?P<extents>\[\s*\](?:\s*\[[^\[\]]*\])*)\s*", re.DOTALL)
_REFUSED = (
    (
        re.compile(r"<<<"),
        "a kernel cannot launch kernels (dynamic parallelism), neither on the simulated device nor with NVRTC, which "
        "links no device runtime; launch the inner kernel from Python, or call a __device__ function in its place",
    ),
    (
        re.compile(r"\b(?:this_multi_grid\s*\(|multi_grid_group\b)"),
        "a kernel of several devices (multi_grid_group) cannot run: CUDA 13 has none; launch one kernel a device",
    ),
)
_BESSEL = frozenset(f"{name}{letter}" for name in ("j0", "j1", "jn", "y0", "y1", "yn") for letter in ("", "f"))
# Names of the CUDA runtime, or files that may have them.
_OF_RUNTIME = re.compile(r"\bcuda[A-Z]|^[ \t]*#[ \t]*include[ \t]*(?:[^ \t<]|<cut(?:e|lass)/)", re.MULTILINE)
# A declaration of it, or a member: a type, . or -> stands before it.
_OWN_ASSERT = re.compile(r"(?:(?<!\breturn)(?<!\belse)(?<!\bdo)(?<=\w)[\s*&]+|\.\s*|->\s*|>\s+|::\s*)assert\b")
# An asm statement without an instruction: a barrier to the compiler.
_EMPTY_ASM = re.compile(
    r"""\b(?:asm|__asm__|__asm)\b\s*(?:(?:volatile|__volatile__|__volatile)\b\s*)?
        \(\s*(?:"[ \t]*"\s*)+(?:\)|:[^;\n]*?\)(?=\s*(?:;|\}|$)))""",
    re.MULTILINE | re.VERBOSE,
)
_MAX_REFUSALS = 20  # of a kind
_LONGEST_LINE = 2000
_MESSAGE = re.compile(
    r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<kind>(?:fatal )?error|note): (?P<text>.*)"
)
_ON_COMMAND = re.compile(r"<command-line>: error: (?P<text>.*)")
_REQUIRED = re.compile(r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+):\s+required (?:from|by)")
_UNDEFINED = re.compile(
    r"(?:(?P<file>.*?):(?P<line>\d+): )?.*?undefined (?:reference to|symbol:) [`']?(?P<what>[^'\n]*)"
)
FAULTY_PTX = re.compile(r"static assertion failed.*?: (?=inline PTX: )")  # of a template (pygpukit.jit.ptx.translate)
_FLAG = re.compile(r" \[-[fW][\w=-]+\]$")  # names an option of the compiler that the user did not give


@dataclass(frozen=True)
class Prepared:
    """text: what to compile. names: kernels in the entry table. places: "file:line" of each, for messages about it.
    switches: what pk_sim_end.h is to leave to the source."""

    text: str
    names: tuple[str, ...]
    places: tuple[str, ...]
    switches: tuple[str, ...] = ()


@lru_cache(maxsize=8)  # of one kernel source and its headers, for those that look in turn
def blank(source: str) -> str:
    """The source with comments, strings and preprocessor lines replaced by blanks; offsets and lines stay."""
    return _OPAQUE.sub(_blanks, source)


def _blanks(match: re.Match[str]) -> str:
    text = match.group()
    return re.sub(r"[^\n]", " ", text) if "\n" in text else " " * len(text)


def without_empty_asm(source: str) -> str:
    """The source with its empty asm statements in words that any host compiler knows: a barrier to the compiler, or
    nothing, where one has operands and leaves memory alone. Offsets and lines stay."""
    if "asm" not in source:
        return source
    code = _COMMENT.sub(_blanks, source)

    def replaced(match: re.Match[str]) -> str:
        text = match.group()
        fence = len(text) >= len("__pk_fence()") and (":" not in text or "memory" in text)
        return ("__pk_fence()" if fence else "(void)0").ljust(len(text))

    pieces, done = [], 0
    for match in _EMPTY_ASM.finditer(code):
        if "\n" not in match.group():
            pieces += [source[done : match.start()], replaced(match)]
            done = match.end()
    return "".join(pieces) + source[done:]


def refusals(source: str, name: str, defines: Mapping[str, str] | None = None) -> str:
    """The constructs that cannot be simulated, as compiler messages; "" when nothing is found.

    What stands in branches that the preprocessor leaves out, as under #ifndef PYGPUKIT_SIM, does not count.
    """
    code = blank(source)
    lines = Lines(source, name)
    messages = []
    places = [
        (one.start(), text) for pattern, text in _REFUSED for one in islice(pattern.finditer(code), _MAX_REFUSALS)
    ]
    for offset, text in [*places, *references(code)[:_MAX_REFUSALS]]:
        line, column = _place(code, offset)
        file, origin = lines.origin(line)
        messages.append((line, column, f"{file}:{origin}:{column}: error: {text}"))
    active = {token.line for token in lex(source, {**MACROS, **(defines or {})}).tokens} if messages else ()
    return "\n".join(message for line, _, message in sorted(messages) if line in active)


def prepare(
    source: str,
    name: str,
    defines: Mapping[str, str] | None = None,
    name_expressions: Sequence[str] = (),
    shown: str | None = None,
    present: Collection[str] | None = None,
) -> Prepared:
    """The text to compile: the source under its own name, and the table of its kernels and name expressions.

    shown: the source as the user has it, for a checked image, which names arrays by it. present: the kernels that no
    condition leaves out, None for all that the tokens show.
    """
    macros = {**MACROS, **(defines or {})}
    kernels = [kernel for kernel in scan(source, macros) if present is None or kernel.name in present]
    plain = ordered(source, blank(source))
    plain = grid_constants(plain, blank(plain))
    if any(kernel.extern_c for kernel in kernels):
        plain = _without_c_linkage(plain, name)
    text, binds = _rewrite_dynamic_shared(plain, name)
    variables = [one.expression for one in scan_variables(source, macros)]
    asked: dict[str, KernelSignature | None] = {one.name: one for one in kernels if one.template is None}
    for expression in name_expressions:
        asked.setdefault(expression, _template_of(expression, kernels))
    table = [
        f"PK_SIM_KERNEL({index}, {_quoted(kernel_name)}, {_bound(kernel)}, {_cluster(kernel)}, {kernel_name})"
        for index, (kernel_name, kernel) in enumerate(asked.items())
    ]
    # The table comes first in its file, one kernel a line, so that a message's line tells the kernel.
    lines = [
        directive(1, name) + text,
        directive(1, STUB_FILE) + "\n".join(table),
        _escaping(variables),
        "static void pk_sim_bind_dynamic() {" + "".join(binds) + "}",
        ", ".join([f"PK_SIM_IMAGE({len(table)}", *(f"&pk_sim_kernel_{index}" for index in range(len(table)))]) + ")",
        *([f"PK_SIM_CHECKED_IMAGE({_quoted(shown)}, {_quoted(name)})"] if shown is not None else []),
        "",
    ]
    origins = Lines(source, name)
    places = (origins.origin(kernel.line if kernel else 1) for kernel in asked.values())
    places_of_kernels = tuple(f"{file}:{line}" for file, line in places)
    return Prepared("\n".join(lines), tuple(asked), places_of_kernels, _switches(source, variables))


def _without_c_linkage(source: str, name: str) -> str:
    """The source with C++ names for what is declared extern "C": nothing here asks for the others, and a compiler has
    its own idea of functions that are called exit or memcpy."""
    pieces, done, lines = [], 0, Lines(source, name)
    for match in re.finditer(r"\bextern\b", blank(source)):
        if language := re.compile(r'extern\s*"C"').match(source, match.start()):
            end = language.end()
            pieces += [source[done : end - 1], '++"', back_to(source, end - 3, end, lines)]
            done = end
    return "".join(pieces) + source[done:]


def _switches(source: str, variables: Sequence[str]) -> tuple[str, ...]:
    """Names that nvcc keeps for itself and that this source gives to something of its own, or that it may use."""
    switches = []
    if not _BESSEL.isdisjoint(name.removeprefix("&") for name in variables):
        switches.append("PK_SIM_BESSEL_OF_OWN")
    if "assert" in source and _OWN_ASSERT.search(blank(source)):
        switches.append("PK_SIM_ASSERT_OF_OWN")
    if _OF_RUNTIME.search(source):
        switches.append("PK_SIM_RUNTIME")
    return tuple(switches)


def _escaping(variables: Sequence[str]) -> str:
    """A declaration through which the variables could be changed from outside, as far as a compiler can tell."""
    listed = f"static const volatile void *const pk_sim_variables[] = {{{', '.join(variables)}}};"
    return f"__attribute__((__used__)) {listed}" if variables else ""


def readable_log(log: str, name: str, prepared: Prepared, source: str) -> str:
    """The compiler's messages about the user's source, `name:line:column: kind: text`, one a line.

    A message about one of the simulator's headers is told at the line of the user's that led there; of those about one
    entry of the kernel table only the first is kept.
    """
    reader = _LogReader(name, prepared, source)
    for line in log.splitlines():
        reader.read(line[:_LONGEST_LINE])
    reader.place_waiting(f"{name}:1")
    failed = any("error: " in message for message in reader.messages)
    messages = reader.messages if failed else reader.unclosed + reader.messages
    return "\n".join(dict.fromkeys(messages)) or log.strip()


class _LogReader:
    """One pass over a log. messages: as the user's source has them. unclosed: those that only say that the source
    ended too early."""

    def __init__(self, name: str, prepared: Prepared, source: str) -> None:
        self.messages: list[str] = []
        self.unclosed: list[str] = []
        self._name, self._prepared = name, prepared
        lines = Lines(source, name)
        self._files = lines.files
        self._end = "{}:{}".format(*lines.origin(source.count("\n") + 1))
        self._origin = ""  # the user's place that the next message about a header belongs to (g++ tells it before)
        self._waiting = ""  # a message about a header whose place is not known yet (clang tells it after)
        self._reported: set[str] = set()  # kernels of the table that a message was about

    def read(self, line: str) -> None:
        if required := _REQUIRED.match(line):
            if required["file"] in self._files:
                self._origin = f"{required['file']}:{required['line']}:{required['column']}"
        elif match := _MESSAGE.match(line):
            self._message(match)
        elif on_command := _ON_COMMAND.match(line):  # about a macro given with -D; a note tells where it is used
            self._waiting = f"error: {on_command['text']}"
        elif undefined := _UNDEFINED.match(line):
            ours = (undefined["file"] or "").endswith(("/" + self._name, " " + self._name))  # the linker adds a folder
            what = (
                f"{undefined['what']} is declared and not defined here: units are not linked with each other; put its "
                "definition into this source, or #include it"
            )
            self.messages.append(f"{self._name}:{undefined['line'] if ours else 1}: error: {what}")

    def _message(self, match: re.Match[str]) -> None:
        text = FAULTY_PTX.sub("", with_remedy(_FLAG.sub("", match["text"])))
        if match["kind"] != "note":
            self.place_waiting(f"{self._name}:1")
        elif match["file"] in self._files and text.startswith(("in instantiation of", "in expansion of macro")):
            self.place_waiting(f"{match['file']}:{match['line']}:{match['column']}")
            return
        if match["file"] in self._files:
            column = f":{match['column']}" if match["column"] else ""
            self.messages.append(f"{match['file']}:{match['line']}{column}: {match['kind']}: {text}")
        elif match["kind"] != "note":
            self._elsewhere(match["file"], int(match["line"]), text)
        if match["kind"] != "note":
            self._origin = ""

    def _elsewhere(self, file: str, line: int, text: str) -> None:
        """An error that the compiler saw in the entry table or in a header."""
        names = self._prepared.names
        if file == STUB_FILE and line <= len(names):
            place = self._origin or self._prepared.places[line - 1]
            if names[line - 1] not in self._reported:
                self.messages.append(f"{place}: error: kernel {names[line - 1]}: {text}")
            self._reported.add(names[line - 1])
        elif file == STUB_FILE:
            if not self.unclosed or "end of input" in text:
                self.unclosed = [f"{self._end}: error: {text}"]
        elif self._origin:
            self.messages.append(f"{self._origin}: error: {text}")
        else:
            inside = "" if file == "<command-line>" else f" (in {file.rpartition('/')[2]}:{line})"
            self._waiting = f"error: {text}{inside}"

    def place_waiting(self, place: str) -> None:
        """The place of the message that waits for one, if any does."""
        if self._waiting:
            self.messages.append(f"{place}: {self._waiting}")
        self._waiting = ""


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _bound(kernel: KernelSignature | None) -> int:
    first = kernel.launch_bounds[0] if kernel and kernel.template is None and kernel.launch_bounds else 0
    return min(first, 1024) if first > 0 else 1024


def _cluster(kernel: KernelSignature | None) -> str:
    dims = kernel.cluster_dims if kernel else ()
    return f"({', '.join((*dims, '1', '1')[:3])})" if dims else "(0, 0, 0)"


def _template_of(expression: str, kernels: Sequence[KernelSignature]) -> KernelSignature | None:
    head = expression.partition("<")[0].strip().lstrip("&")
    return next((kernel for kernel in kernels if kernel.name == head), None)


def _rewrite_dynamic_shared(source: str, name: str) -> tuple[str, list[str]]:
    """`extern __shared__ T x[];` as pointers to the block's dynamic shared memory.

    In a function the pointer is a constant; outside one it is a variable that the returned statements set.
    """
    code, lines = blank(source), Lines(source, name)
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
                binds.append(f" {qualified} = pk_sim_dynamic<{kind}>({_quoted(variable)});")
            pieces += [source[done : match.start()], text, back_to(source, match.start(), match.end(), lines)]
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
        value = f"pk_sim_dynamic<{kind}>({_quoted(match['name'])})"
        return f"pk_sim_pointer<{kind}> const {match['name']} = {value};", match["name"], kind
    return f"PK_SIM_STATE pk_sim_pointer<{kind}> {match['name']};", match["name"], kind


def back_to(source: str, start: int, end: int, lines: Lines, columns: bool = True) -> str:
    """The text that puts what follows a replaced declaration back at its line and column; "" if none is there.

    lines: those of the source. columns: False where they are not the user's, as after the preprocessor.
    """
    line_end = source.find("\n", end)
    rest = source[end : line_end if line_end >= 0 else len(source)]
    if not rest.strip(" \t\r;}") and "\n" not in source[start:end]:
        return ""
    line, column = _place(source, end)
    file, origin = lines.origin(line)
    return "\n" + directive(origin, file) + " " * (column - 1 if columns else 0)
