#!/usr/bin/env python3
"""Share of other people's CUDA that the simulator takes: of the .cu files that NVRTC compiles, those that both do.

    python tools/public_kernels.py FOLDER... [--list]

Each file is compiled with its host code taken out, by one rule on its text:
- an #include of a header that NVRTC brings with it stays; that of a file beside (or in ./include, ../include or
  FOLDER) becomes the file's text, treated alike, once
- a function's definition at the level of a file, a namespace or extern "C" is dropped unless its head has one of the
  words of _DEVICE, as is a declaration with one of the words of _HOST. Macros, types, variables and other declarations
  stay, and so do the line numbers.
A kernel template is compiled for the name expressions that the file launches, as far as NVRTC takes them.
"""

from __future__ import annotations

import argparse
import collections
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pygpukit.core.errors import CompileError  # noqa: E402
from pygpukit.jit.compile.compiler import compile_source  # noqa: E402
from pygpukit.jit.compile.sim_source import blank  # noqa: E402

_DEVICE = re.compile(r"__global__|__device__|\bconstexpr\b|\boperator\b|__forceinline__|\bDEVICE\b|_DEVICE\b")
_HOST = re.compile(
    r"\b(?:FILE|cu(?:blas|dnn|fft|sparse)\w*|thrust)\b|\busing\s+std::|\bstd::(?!size_t|u?int\d)"
    # a function's prototype, or a variable that is neither constant nor the device's
    r"|^(?!.*\b(?:__\w+__|const|constexpr|typedef|using|struct|class|union|enum|template|static_assert|namespace|friend|operator)\b)"
    r"(?:[^()]*|[^()=]+[\s*&]\w+\s*\(.*\)\s*)$",
    re.DOTALL,
)
_NVRTC_HEADERS = re.compile(
    r"(?:cooperative_groups(?:/\w+)?|cuComplex|cuda_(?:awbarrier\w*|bf16|fp16|fp4|fp6|fp8|pipeline\w*|tf32)|mma"
    r"|math_constants|vector_types)\.h|cuda/.*|nv/target|cub/(?:block|warp|thread)/.*|curand_kernel\.h"
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]')
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_FUNCTION = re.compile(r"\)(?:\s|const|noexcept)*$")
_LAUNCH = re.compile(r"\b((?:\w+::)*\w+\s*<[^;{}()<>]*>)\s*<<<")
_SPACE = re.compile(r"(?:\bnamespace\b[\w\s:]*|\bextern\s*)$")
_PAIRS = {"()": re.compile(r"[()]"), "{}": re.compile(r"[{}]")}
_PLACES = re.compile(r"[^:\n]*:\d+(?::\d+)?: (?:error: )?")


def device_code(path: Path, folders: list[Path], seen: set[Path] | None = None) -> str:
    """The source of a file without its host code, by the rule above. folders: where it includes files from."""
    seen = set() if seen is None else seen
    seen.add(path.resolve())
    lines = []
    for number, line in enumerate(_without_host(path.read_text(encoding="utf-8", errors="replace")).split("\n"), 2):
        include = _INCLUDE.match(line)
        if include and not _NVRTC_HEADERS.fullmatch(include[2]):
            places = [folder / include[2] for folder in (path.parent, *folders)] + sorted(
                folders[-1].rglob(Path(include[2]).name)
            )
            file = next((place for place in places if include[1] == '"' and place.is_file()), None)
            line = ""
            if file is not None and file.resolve() not in seen:
                line = f'#line 1 "{file.name}"\n{device_code(file, folders, seen)}\n#line {number} "{path.name}"'
        lines.append(line)
    return "\n".join(lines)


def _without_host(text: str) -> str:
    code = blank(text)
    pieces, done = [], 0
    for start, end, head in _declarations(code):
        host = not _DEVICE.search(head) if code[end - 1] == "}" else _HOST.search(head.strip())
        if host:
            pieces += [text[done:start], _directives(text[start:end])]
            done = end
    return "".join(pieces) + text[done:]


def _directives(text: str) -> str:
    """The text with blank lines for all but the preprocessor's."""
    kept, done = [], 0
    for match in _DIRECTIVE.finditer(text):
        kept += ["\n" * text.count("\n", done, match.start()), match.group()]
        done = match.end()
    return "".join(kept) + "\n" * text.count("\n", done)


def _declarations(code: str) -> list[tuple[int, int, str]]:
    """(start, end, head) of each declaration outside bodies; head: what stands before its body, or all."""
    declarations, start, at = [], 0, 0
    while at < len(code):
        letter = code[at]
        if letter in ";}":  # the latter ends a namespace
            if letter == ";":
                declarations.append((start, at + 1, code[start:at]))
            start = at + 1
        elif letter == "(":
            at = _closed(code, at, "()")
        elif letter == "{":
            head = code[start:at]
            if _SPACE.search(head[-200:]):
                start = at + 1
            else:
                at = _closed(code, at, "{}")
                if _FUNCTION.search(head[-200:]):
                    declarations.append((start, at + 1, head))
                    start = at + 1
        at += 1
    return declarations


def _closed(code: str, at: int, pair: str) -> int:
    depth = 0
    for match in _PAIRS[pair].finditer(code, at):
        depth += 1 if match.group() == pair[0] else -1
        if depth == 0:
            return match.start()
    return len(code)


def _taken(source: str, name: str, **arguments: object) -> str:
    """ "" where it compiles, else the first message."""
    try:
        compile_source(source, name=name, **arguments)  # type: ignore[arg-type]
    except CompileError as error:
        return str(error).splitlines()[0]
    except Exception as error:  # anything else is a fault of ours, and counts as one
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


def measured(path: Path, root: Path) -> tuple[str, str, str] | None:
    """The first messages of NVRTC, the simulator and its checked mode, "" where it compiles; None without a kernel."""
    source = path.read_text(encoding="utf-8", errors="replace")
    if "__global__" not in source:
        return None
    text = device_code(path, [path.parent / "include", path.parent.parent / "include", root])
    expressions = sorted({"".join(one.split()) for one in _LAUNCH.findall(blank(source))})
    kept: list[str] = []
    name = path.name
    first = _taken(text, name, arch="sm_90a")
    if not first:
        kept = [one for one in expressions if not _taken(text, name, arch="sm_90a", name_expressions=[one])]
        arguments = {"name_expressions": kept, "arch": "sim"}
        return "", _taken(text, name, check=False, **arguments), _taken(text, name, check=True, **arguments)
    return first, "", ""


def main() -> int:
    """Prints the table. Exit status 1 where the share is below --least."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--list", action="store_true", help="tell every file that the simulator refuses")
    parser.add_argument("--least", type=float, default=0.0, help="the share in percent that must be reached")
    arguments = parser.parse_args()
    rows: list[tuple[Path, tuple[str, str, str]]] = []
    for root in arguments.folders:
        for path in sorted(root.rglob("*.cu")):
            if (row := measured(path, root)) is not None:
                rows.append((path, row))
    nvrtc = [(path, row) for path, row in rows if not row[0]]
    both = [row for _, row in nvrtc if not row[1]]
    checked = [row for _, row in nvrtc if not row[1] and not row[2]]
    causes: dict[str, list[Path]] = collections.defaultdict(list)
    for path, row in nvrtc:
        if message := row[1] or row[2]:
            causes[re.sub(r"\d+", "N", _PLACES.sub("", message))].append(path)
            if arguments.list:
                print(f"{path}: {message}")
    for cause, paths in sorted(causes.items(), key=lambda one: -len(one[1])):
        print(f"{len(paths):4}  {cause[:150]}    e.g. {paths[0].name}")
    share = 100 * len(checked) / max(len(nvrtc), 1)
    print(f"{len(rows)} files with kernels; NVRTC takes {len(nvrtc)}, the simulator {len(both)} of these, "
          f"{len(checked)} in checked mode, too: {share:.1f} %")  # fmt: skip
    return 1 if share < arguments.least else 0


if __name__ == "__main__":
    sys.exit(main())
