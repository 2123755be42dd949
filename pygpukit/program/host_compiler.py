"""Host texts to one shared library, by the C++ compiler that the simulated device has, too."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from pygpukit.jit.compile import bounded, sim_headers, simulator
from pygpukit.jit.compile.diagnostics import compile_error
from pygpukit.jit.locate import cache_directory
from pygpukit.program import headers

_FLAGS = (
    "-O1", "-fPIC", "-w", "-g1", "-gdwarf-4", "-gz=none", "-fno-omit-frame-pointer", "-fno-strict-aliasing", "-fwrapv",
    "-fno-diagnostics-show-caret", "-fdiagnostics-color=never", "-fmax-errors=20", "-pipe",
)  # fmt: skip
_GCC_ONLY = ("-fno-diagnostics-show-caret", "-fdiagnostics-color=never", "-fmax-errors=20", "-pipe")
_LINK = ("-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs", "-lm", "-lpthread", "-ldl")
_KEPT = 64  # libraries
_MESSAGE = re.compile(
    r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<kind>(?:fatal )?error): (?P<text>.*)"
)
_UNDEFINED = re.compile(
    r"(?:(?P<file>\S+?):(?P<line>\d+): )?.*undefined (?:reference to|symbol:) [`']?(?P<what>[^'\n]*)"
)
_REQUIRED = re.compile(r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+):\s+required (?:from|by)")
_NEW_STANDARD = re.compile(r"-std=(?:c|gnu)\+\+(?:17|1z|2\w)$")  # the headers need 17
_OPTION = re.compile(r" \[-[fW][\w=-]+\]$")


@dataclass(frozen=True)
class HostText:
    """One text to compile. name: what messages call it. cuda: false for a file of plain C++."""

    text: str
    name: str
    cuda: bool = True


def library(texts: Sequence[HostText], options: Sequence[str]) -> Path:
    """The shared library of a program's host texts: from the cache, or compiled and linked.

    options: -I, -D, -std. Raises CompileError with the places in the texts, CompilerNotFound.
    """
    command = simulator.find_compiler()
    identity = simulator.compiler_identity()
    parts = (
        identity,
        headers.digest(),
        *_FLAGS,
        *_LINK,
        *options,
        *(part for one in texts for part in (one.name, one.text)),
    )
    key = blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
    target = cache_directory() / "programs" / f"{key}.so"
    if target.is_file():
        target.touch()
        return target
    with tempfile.TemporaryDirectory(prefix="pygpukit-program-") as folder:
        built = Path(folder) / "program.so"
        _build(texts, options, command, identity, Path(folder), built)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, aside = tempfile.mkstemp(prefix="making-", dir=target.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(built.read_bytes())
        Path(aside).replace(target)
    _forget(target.parent)
    return target


def _build(
    texts: Sequence[HostText], options: Sequence[str], command: list[str], identity: str, folder: Path, built: Path
) -> None:
    place = headers.folder()
    gcc = "clang" not in identity and not identity.startswith("zig")
    flags = [flag for flag in _FLAGS if gcc or flag not in _GCC_ONLY]
    flags += [] if any(_NEW_STANDARD.match(option) for option in options) else ["-std=c++17"]
    options = [option for option in options if _NEW_STANDARD.match(option) or not option.startswith("-std")]

    def inputs(number: int, one: HostText) -> list[str]:
        source = folder / f"unit{number}.cpp"
        source.write_text(one.text, encoding="utf-8")
        macros = ["-D__CUDACC__=1", "-D__NVCC__=1"] if one.cuda else []
        prelude = ["-include", str(place / headers.PRELUDE), "-I", str(place)]
        return [*command, *flags, *macros, "-x", "c++", *prelude, *options, str(source)]

    if len(texts) == 1:
        _checked([*inputs(0, texts[0]), "-o", str(built), *_LINK], texts)
        return
    objects = [str(folder / f"unit{number}.o") for number in range(len(texts))]
    jobs = [[*inputs(number, one), "-c", "-o", objects[number]] for number, one in enumerate(texts)]
    with ThreadPoolExecutor(max_workers=4) as pool:
        for done in [pool.submit(_checked, job, [one]) for job, one in zip(jobs, texts, strict=True)]:
            done.result()
    _checked([*command, *objects, "-o", str(built), *_LINK], texts)


def _checked(command: list[str], texts: Sequence[HostText]) -> None:
    bounds = bounded.limits()
    status, _, log, exceeded = bounded.run(
        command, sim_headers.compiler_environment(), replace(bounds, memory_bytes=2 * bounds.memory_bytes)
    )
    if status or exceeded:
        name, text = texts[0].name, texts[0].text
        raise compile_error(name, f"{name}:1: error: {exceeded}" if exceeded else readable(log, texts), text)


def readable(log: str, texts: Sequence[HostText]) -> str:
    """The compiler's messages at the lines of the program's own text: one about a header stands where that was asked
    for."""
    own = {one.name for one in texts}
    messages: list[str] = []
    origin = ""
    for line in log.splitlines():
        if required := _REQUIRED.match(line):
            if _is_own(required["file"], own):
                origin = f"{required['file']}:{required['line']}:{required['column']}"
        elif match := _MESSAGE.match(line):
            place = f"{match['file']}:{match['line']}" + (f":{match['column']}" if match["column"] else "")
            place = place if _is_own(match["file"], own) or not origin else origin
            messages.append(f"{place}: error: {_OPTION.sub('', match['text'])}")
            origin = ""
        elif undefined := _UNDEFINED.match(line):
            place = f"{undefined['file']}:{undefined['line']}" if undefined["line"] else f"{texts[0].name}:1"
            messages.append(
                f"{place}: error: {undefined['what']} is declared, and defined in none of the program's files"
            )
    return "\n".join(dict.fromkeys(messages)) or log.strip()


def _is_own(file: str, own: set[str]) -> bool:
    return file in own or "/include/" not in file


def _forget(folder: Path, sort: Callable[[Path], float] = lambda path: path.stat().st_mtime) -> None:
    """Keeps the latest libraries."""
    for path in sorted(folder.glob("*.so"), key=sort)[:-_KEPT]:
        path.unlink(missing_ok=True)
