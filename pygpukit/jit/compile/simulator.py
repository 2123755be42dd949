"""The simulated device's compiler: CUDA C++ to an image that native/sim loads, with a C++ compiler of the machine."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

from pygpukit._core import native
from pygpukit.core.errors import NvrtcError, NvrtcErrorCode
from pygpukit.jit.compile import bounded, expand, sim_headers, sim_lenient, sim_textures
from pygpukit.jit.compile.diagnostics import compile_error
from pygpukit.jit.compile.room import check_room, name_full_disk
from pygpukit.jit.compile.sim_flops import COUNTING_FLAGS, with_counters
from pygpukit.jit.compile.sim_initialisers import complaint, initialisers
from pygpukit.jit.compile.sim_source import MACROS, blank, prepare, readable_log, refusals
from pygpukit.jit.ptx.source import Source, with_ptx
from pygpukit.jit.source.lines import Lines
from pygpukit.jit.source.signature import scan_variables

# Semantics first: wrapping integers, aliasing pointers, signed char and exact arithmetic are what a GPU gives. Without
# the last flag g++ takes the address of the built-in variables, and then keeps them in memory; without that before it
# both leave endless loops out.
_FLAGS = (
    "-O2", "-march=native", "-fPIC", "-fvisibility=hidden", "-nostdinc", "-w",
    "-g1", "-gdwarf-4", "-gz=none", "-fno-exceptions", "-fno-rtti", "-fno-math-errno", "-fno-trapping-math",
    "-fno-strict-aliasing", "-fwrapv", "-fsigned-char", "-fno-delete-null-pointer-checks", "-fstack-clash-protection",
    "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-fno-finite-loops", "-fno-tree-slp-vectorize",
)  # fmt: skip
# Checked images: calls before every access, which pk_sim_check.h answers. Sanitizers' own libraries stay out.
_CHECKED_FLAGS = (
    "-fsanitize=thread", "-fsanitize=bounds,integer-divide-by-zero,alignment",  # zig takes what is beside thread away
    "-fno-sanitize-recover=bounds,integer-divide-by-zero,alignment",
)  # fmt: skip
# A plain image says where an integer is divided by zero; what the processor itself would say ends other divisions, too.
_DIVISION_FLAGS = ("-fsanitize=integer-divide-by-zero", "-fno-sanitize-recover=integer-divide-by-zero")
_CHECKED_GCC = ("--param=tsan-distinguish-volatile=1", "--param=tsan-instrument-func-entry-exit=0")
_CHECKED_CLANG = (
    "-mllvm", "-tsan-distinguish-volatile=1", "-mllvm", "-tsan-instrument-func-entry-exit=0",
    "-fno-sanitize-link-runtime",
)  # fmt: skip
ALL_FLAGS = " ".join((*_FLAGS, *_CHECKED_FLAGS, *_CHECKED_GCC, *_CHECKED_CLANG, *COUNTING_FLAGS, *_DIVISION_FLAGS))
CHECK_MODES = {True: 1, "memory": 2, "count": 3}  # pk_sim_check_mode

# Options that mean something to a GPU's code generator only.
_WITHOUT_EFFECT = (
    "--use_fast_math", "-use_fast_math", "--ftz", "-ftz", "--prec-sqrt", "-prec-sqrt", "--prec-div", "-prec-div",
    "--maxrregcount", "-maxrregcount", "--generate-line-info", "-lineinfo", "--device-debug", "-G", "--restrict",
    "--extra-device-vectorization", "--disable-warnings", "-w", "--default-device", "-default-device",
    "--relocatable-device-code", "-rdc", "--ptxas-options", "-Xptxas", "--diag-suppress", "-diag-suppress",
    "--device-as-default-execution-space", "--dopt", "-dopt", "--minimal", "--split-compile", "--time", "--verbose",
)  # fmt: skip
_MACRO = re.compile(r"(?:-(?P<short>[DU])|--(?P<long>define|undefine)-macro=)(?P<name>[^=]*)=?(?P<value>.*)", re.DOTALL)


class CompilerNotFound(NvrtcError):
    """No C++ compiler was found, or the one that PYGPUKIT_SIM_CXX names does not run."""

    def __init__(self, message: str) -> None:
        super().__init__(message, NvrtcErrorCode.NotLoaded)


@dataclass(frozen=True)
class SimImage:
    """image: a shared object for the simulated device. log: the compiler's words. kernels: names to ask for."""

    image: bytes
    log: str
    kernels: tuple[str, ...]


def find_compiler() -> list[str]:
    """The command of the compiler: $PYGPUKIT_SIM_CXX, g++, clang++, or the ziglang package. Raises CompilerNotFound."""
    chosen = os.environ.get("PYGPUKIT_SIM_CXX", "").split()
    if chosen:
        if shutil.which(chosen[0]) is None:
            raise CompilerNotFound(f"PYGPUKIT_SIM_CXX is {' '.join(chosen)!r}, but there is no such program")
        return chosen
    for program in ("g++", "clang++"):
        if path := shutil.which(program):
            return [path]
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise CompilerNotFound(
        "CUDA kernels on the simulated device need a C++ compiler, and none was found (looked for $PYGPUKIT_SIM_CXX, "
        "g++, clang++, ziglang); install g++, or run: pip install ziglang"
    )


def compiler_identity() -> str:
    """Version of the compiler and features of the processor it compiles for, without paths. Raises CompilerNotFound."""
    return _identity(tuple(find_compiler()))


@name_full_disk()
def compile(
    source: str,
    *,
    name: str = "kernel",
    options: Sequence[str] = (),
    defines: Sequence[str] = (),
    name_expressions: Sequence[str] = (),
    read: list[str] | None = None,
    check: bool | str = False,
    step_limit: int = 0,
) -> SimImage:
    """Compile CUDA C++ for the simulated device. `options` as for NVRTC, `defines` as "NAME=value".

    The files that the compiler read are appended to `read` when it is given. `check`: True for an image whose every
    access is checked, "memory" for one without races, "count" to count bytes. `step_limit`: how many basic blocks a
    launch of a checked image may run, 0 for no limit.

    Raises CompileError with the places in `source`, CompilerNotFound, ValueError for an option without meaning. The GIL
    is free while the compiler runs; Ctrl-C ends it.
    """
    macros = {key: value or "1" for key, _, value in (define.partition("=") for define in defines)}
    command = find_compiler()
    translated = _with_ptx(source, name, options, macros, read)
    original, source = source, translated.text
    if translated.expanded:  # with what the command line says
        options, defines = _without_macros(options), ()
    if refused := refusals(source, name, macros):
        raise compile_error(name, refused, source)
    present = expand.present(source, options, {**MACROS, **macros})
    prepared = prepare(source, name, macros, name_expressions, original if check else None, present)
    headers = sim_headers.folder()
    with tempfile.TemporaryDirectory(prefix="pygpukit-sim-") as folder:
        text, image = Path(folder) / "kernel.cpp", Path(folder) / "kernel.so"
        macros_file = Path(folder) / "macros.h"
        switches = (*prepared.switches, *sim_textures.switches(source, [*options, *defines]))
        ours = Path(folder) / "own"
        for header, content_of in translated.own.items():
            (ours / header).parent.mkdir(parents=True, exist_ok=True)
            (ours / header).write_text(content_of, encoding="utf-8")
        macros_file.write_text(_macro_lines(options, defines, switches, translated.headers), encoding="utf-8")
        listed = Path(folder) / "kernel.d"
        listing = ["-MD", "-MF", str(listed), *_listing_flags(command)] if read is not None else []
        # A linker that is told of sanitizers adds their own libraries, with zig whatever else it is told.
        halfway = Path(folder) / ("kernel.s" if check == "count" else "kernel.o")
        at_once = not check or (check != "count" and not _is_zig(command))
        until = ["-o", str(image), *_link_flags(command)] if at_once else []
        language, own = _translate(options)
        flags = [*command, *_FLAGS, *_compiler_flags(command), *_check_flags(check, command, step_limit), *language]
        first = headers / sim_headers.PRELUDE
        if _is_gcc(command):
            first = sim_headers.prelude(headers, flags, compiler_identity())
        inputs = [
            *flags, "-x", "c++", "-include", str(first), "-include", str(macros_file),
            "-iquote", str(ours), *own, "-iquote", str(Path.cwd()), "-I", str(headers), str(text),
        ]  # fmt: skip
        aim = until or ["-S" if check == "count" else "-c", "-o", str(halfway)]

        def run(content: str, permissive: bool) -> bounded.Outcome:
            text.write_text(content, encoding="utf-8")
            return _run([*inputs, *([sim_lenient.FLAG] if permissive else []), "-shared", *listing, *aim])

        status, _, log, exceeded = sim_lenient.compiled(prepared.text, run)
        if not until and status == 0:
            if check == "count":
                halfway.write_text(with_counters(halfway.read_text()))
            link = ["-shared", "-fPIC", "-gdwarf-4", str(halfway), "-o", str(image), *_link_flags(command)]
            status, _, log, exceeded = _run([*command, *link])
        if exceeded:
            raise compile_error(name, f"{name}:1: error: {exceeded}", source)
        if status != 0:
            check_room()
            raise compile_error(name, readable_log(log, name, prepared, source), source)
        content = image.read_bytes()
        if functions := native.sim_refused_functions(content):
            raise compile_error(name, _refused_functions(functions, name, source), source)
        if initialisers(content) > bool(check):  # the sanitizer's own
            assembly = Path(folder) / "initialisers.s"
            _run([*inputs, "-O0", "-S", "-o", str(assembly)])  # nothing is inlined: each at its variable's line
            raise compile_error(name, complaint(assembly, name, scan_variables(source, macros)), source)
        if read is not None:
            files = _dependencies(listed.read_text())
            read += [
                file
                for file in files
                if Path(folder) not in Path(file).parents and not sim_headers.is_precompiled(file)
            ]
        return SimImage(content, "", prepared.names)


def _with_ptx(
    source: str, name: str, options: Sequence[str], macros: Mapping[str, str], read: list[str] | None
) -> Source:
    """The source with its asm statements as C++. The files that the preprocessor read for them are appended to
    `read`."""
    _, own = _translate(options)
    places = [Path(option.removeprefix("-I")) for option in own if option.startswith("-I") and option != "-I"]
    places += [Path(own[at + 1]) for at, option in enumerate(own) if option == "-I"]
    return with_ptx(source, name, options, macros, [Path.cwd(), *places], preprocess, read)


def preprocess(
    text: Path, options: Sequence[str], defines: Mapping[str, str], read: list[str] | None = None
) -> str | None:
    """A source file as the host compiler's preprocessor leaves it, with CUDA's own words as they are. None where it
    finds a fault. The files that it read are appended to `read`. Raises CompilerNotFound, and ValueError as compile()
    does."""
    _, own = _translate(options)
    defined = [f"-D{name}={value}" for name, value in defines.items()]
    undefined = [option for option in options if option.startswith("-U")]
    predefined = [f"-D{name}={value}" for name, value in MACROS.items()]
    command = [
        *find_compiler(), "-E", "-x", "c++", "-std=c++17", "-nostdinc", "-w", *predefined, *undefined, *defined, *own,
        "-iquote", str(Path.cwd()), "-I", str(sim_headers.folder()), str(text),
    ]  # fmt: skip
    listed = text.with_suffix(".d")
    status, out, _, exceeded = _run([*command, *(["-MD", "-MF", str(listed)] if read is not None else [])])
    if read is not None and not status:
        read += _dependencies(listed.read_text())
    return None if status or exceeded else out


def header_folders() -> list[Path]:
    """Where the simulator's own headers lie."""
    return [sim_headers.folder()]


def _dependencies(rule: str) -> list[str]:
    """The files in a rule that a compiler wrote for make: `target: file file \\`."""
    words = re.findall(r"(?:\\[ #\\]|\$\$|[^\s\\])+", rule.partition(": ")[2])
    return [re.sub(r"\\([ #\\])", r"\1", word).replace("$$", "$") for word in words]


def _translate(options: Sequence[str]) -> tuple[list[str], list[str]]:
    """NVRTC's options as the host compiler's: those about the language, and those that name macros and files. Those
    about speed or code size have nothing to do here."""
    flags, own = ["-std=c++17"], []
    for option in options:
        key, _, value = option.partition("=")
        if key in ("--std", "-std"):
            # The entry table itself needs C++17.
            flags[0] = f"-std={value}" if value not in ("c++03", "c++11", "c++14") else flags[0]
        elif key in ("--fmad", "-fmad"):
            flags += ["-ffp-contract=off"] if value == "false" else []
        elif key in ("--include-path", "--pre-include", "-include"):
            own += ["-I" if key == "--include-path" else "-include", value]
        elif key.startswith("-I"):
            own.append(option)
        elif key not in _WITHOUT_EFFECT and not _MACRO.match(option):
            raise ValueError(f"the simulator's compiler does not know the option {option!r}")
    return flags, own


def _macro_lines(
    options: Sequence[str], defines: Sequence[str], switches: Sequence[str], headers: Sequence[str]
) -> str:
    """The macros of the command line, in its order, as text: our own headers are read before them."""
    lines = []
    for option in [*options, *(f"-D{define}" for define in defines)]:
        if (match := _MACRO.match(option)) is None:
            continue
        has_value = "=" in option.partition("-macro=")[2] if match["long"] else "=" in option
        value = match["value"].partition("\n")[0] if has_value else "1"
        removed = match["short"] == "U" or match["long"] == "undefine"
        lines.append(f"#undef {match['name']}" if removed else f"#define {match['name']} {value}")
    ours = [*(f"#include <{header}>" for header in headers), *(f"#define {switch}" for switch in switches)]
    return "\n".join([*ours, '#line 1 "<command-line>"', *lines, f"#include <{sim_headers.END}>", ""])


def _refused_functions(functions: Sequence[str], name: str, source: str) -> str:
    """The messages about functions of the C library that no device has, each at the first line that names it."""
    code, lines = blank(source), Lines(source, name)
    messages = []
    for function in functions:
        match = re.search(rf"(?<!\w)(?:__builtin_)?{re.escape(function)}\b", code)
        line = code.count("\n", 0, match.start()) + 1 if match else 1
        file, origin = lines.origin(line)
        text = f"{file}:{origin}: error: {function}() is no function of a device: a kernel cannot call it"
        messages.append((line, text))
    return "\n".join(text for _, text in sorted(messages))


def _without_macros(options: Sequence[str]) -> list[str]:
    """The options that say nothing to the preprocessor."""
    return [
        option
        for option in options
        if not _MACRO.match(option) and not option.startswith(("--pre-include", "-include"))
    ]


def _check_flags(check: bool | str, command: Sequence[str], step_limit: int) -> list[str]:
    if not check:
        return list(_DIVISION_FLAGS)
    gcc = _is_gcc(command)
    counting = COUNTING_FLAGS if check == "count" else ()
    own = _CHECKED_GCC if gcc else _CHECKED_CLANG
    # clang leaves out blocks whose runs follow from others', among them a loop of one block.
    stepping = (f"-fsanitize-coverage=trace-pc{'' if gcc else ',no-prune'}", f"-DPK_SIM_STEP_LIMIT={step_limit}ull")
    steps = stepping if step_limit else ()
    return [*_CHECKED_FLAGS, *own, *counting, *steps, f"-DPK_SIM_CHECK={CHECK_MODES[check]}"]


def _is_zig(command: Sequence[str]) -> bool:
    return "zig" in " ".join(command[-2:])


def _is_gcc(command: Sequence[str]) -> bool:
    return not _is_zig(command) and "clang" not in _identity(tuple(command))  # macOS calls its clang g++


def _listing_flags(command: Sequence[str]) -> list[str]:
    # The headers behind a precompiled one, too.
    return ["-fpch-deps"] if _is_gcc(command) else []


def _compiler_flags(command: Sequence[str]) -> list[str]:
    if _is_zig(command):
        return ["-fno-sanitize=undefined", "-UNDEBUG"]
    if not _is_gcc(command):
        return ["-fno-caret-diagnostics", "-fno-color-diagnostics"]
    # As a GPU does: a product and a sum in one. clang does it by itself, and would contract conversions, too. The rest
    # saves time: no files between compiler and assembler, no plugin in the linker.
    return ["-fno-diagnostics-show-caret", "-fdiagnostics-color=never", "-fmax-errors=20",
            "-ffp-contract=fast", "-pipe", "-fno-use-linker-plugin"]  # fmt: skip


def _link_flags(command: Sequence[str]) -> list[str]:
    # No start files and no C++ library: an image needs neither. Undefined names are errors here, not when it is loaded;
    # zig without its own C library finds the process's mathematical functions at load time instead.
    if _is_zig(command):
        return ["-nostdlib"]
    return ["-nostartfiles", "-nodefaultlibs", "-Wl,-z,defs,-z,relro,-z,now", "-lm", "-lc", "-lgcc"]


def _run(command: list[str]) -> bounded.Outcome:
    """The compiler and what it started are ended when this is interrupted, and when this process ends."""
    bounds = bounded.limits()
    if _is_zig(command):  # reserves addresses that it does not use
        bounds = replace(bounds, memory_bytes=8 * bounds.memory_bytes)
    return bounded.run(command, sim_headers.compiler_environment(), bounds)


@cache
def _identity(command: tuple[str, ...]) -> str:
    asked = [*command, "--version"] if not _is_zig(command) else [*command[:-1], "version"]
    try:
        status, answer, said, _ = _run(asked)
    except OSError as error:
        raise CompilerNotFound(f"the C++ compiler {' '.join(command)!r} does not run: {error}") from error
    if status != 0:
        what = f"exit status {status}{': ' if said else ''}{said.strip()}"
        raise CompilerNotFound(f"the C++ compiler {' '.join(command)!r} does not run: {what}")
    version = next((line.strip() for line in answer.splitlines() if line.strip()), "unknown version")
    return f"{'zig ' if _is_zig(command) else ''}{version}, cpu {_processor()}"


def _processor() -> str:
    """The processor's features that -march=native depends on, as a short number."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        features = platform.machine() + platform.processor()
    return blake2b(features.encode(), digest_size=6).hexdigest()
