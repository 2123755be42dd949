"""A program's files to what a process runs: the library of its host side, an image a file of its device side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pygpukit.core.backend import backend
from pygpukit.core.errors import CompileError
from pygpukit.jit.cache.image import Image
from pygpukit.jit.compile import sim_headers
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.program import headers, nvrtc_words
from pygpukit.program.declarations import Declaration
from pygpukit.program.device import device_text
from pygpukit.program.flat import flat
from pygpukit.program.host import KERNEL_SPACES, host_text
from pygpukit.program.host_compiler import HostText, library
from pygpukit.program.overloads import overloads
from pygpukit.program.refusals import at_class, refusal
from pygpukit.program.symbols import Symbol, expression, symbols
from pygpukit.program.unit import Unit

_KINDS = {"__constant__": 2, "__managed__": 3, "__device__": 1}
_KERNEL = 0


@dataclass(frozen=True)
class Source:
    """One file of a program: its text, what messages call it, and the folder that its own headers lie in."""

    text: str
    name: str
    folder: Path

    @property
    def cuda(self) -> bool:
        return not self.name.endswith((".cpp", ".cc", ".cxx", ".c"))


@dataclass(frozen=True)
class Entry:
    """A kernel or a variable: where the host knows it in the library, and what the image of a unit calls it."""

    offset: int
    kind: int
    name: str
    unit: str
    nbytes: int
    file: str
    line: int


@dataclass(frozen=True)
class Program:
    """A program that is ready to run. images: of each unit that has device code."""

    library: Path
    images: dict[str, bytes]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class _Known:
    """A kernel or variable of the text. asked: its name on the device is what the host's side makes of it."""

    kind: int
    asked: bool
    place: tuple[str, int]
    extern_c: bool = False
    template: bool = False


def build(
    sources: Sequence[Source],
    folders: Sequence[Path] = (),
    options: Sequence[str] = (),
    check: bool | str | None = None,
    arch: str | None = None,
) -> Program:
    """Compile both sides. folders: of -I. options: -D and -std. check, arch: of the device's, as of compile_source().

    Raises CompileError with the places in the sources, CompilerNotFound, NvrtcError.
    """
    units: list[Unit] = []
    texts: list[HostText] = []
    for one in sources:
        text = flat(one.text, one.name, one.folder, folders)
        if one.cuda:
            units.append(Unit(text, one.name))
            texts.append(HostText(host_text(units[-1], _only_devices), one.name))
        else:
            texts.append(HostText(text, one.name, cuda=False))
    known = [_known(unit) for unit in units]
    with ThreadPoolExecutor(max_workers=2) as pool:
        host = pool.submit(library, texts, [*options, *(f"-I{folder}" for folder in folders)])
        early = [
            pool.submit(_image, unit, _plain(names), options, check, arch)
            for unit, names in zip(units, known, strict=True)
            if names and not unit.code_makers and not any(one.asked for one in names.values())
        ]
        built = host.result()
        hosts = _entries_of(built, units, known, texts)
        images = {name: image for done in early for name, image in [done.result()]}
        for unit, names in zip(units, known, strict=True):
            if (names or unit.code_makers) and unit.name not in images:
                used = [expression(symbol.name) for symbol, at, one in hosts if at == unit.name and one.asked]
                images[unit.name] = _image(unit, [*_plain(names), *used], options, check, arch)[1]
    entries = tuple(_entry(symbol, unit, one, images[unit]) for symbol, unit, one in hosts)
    return Program(built, {name: image.image for name, image in images.items()}, entries)


def _only_devices(name: str) -> bool:
    """True for a header of device code that the host's side has none for."""
    return name in sim_headers.names() and name not in headers.files() and name not in nvrtc_words.C_HEADERS


def _known(unit: Unit) -> dict[str, _Known]:
    """The kernels and variables of the text by name."""
    names: dict[str, _Known] = {}

    def note(one: Declaration, name: str, kind: int, asked: bool) -> None:
        extern_c = 'extern "C"' in unit.text[one.start : one.end]
        names[name] = _Known(
            kind, asked, unit.place(one.start), extern_c, one.kind == "function" and one.template is not None
        )

    shared = overloads(unit)
    for one in unit.declarations:
        scope = "".join(f"{name}::" for name in one.scope)
        if one.kind == "function" and one.spaces & KERNEL_SPACES and one.body:
            tag = f"_{shared[one]}" if one in shared else ""
            note(one, one.qualified + tag, _KERNEL, one.template is not None or bool(tag))
        elif one.kind == "variable" and "extern" not in one.words:
            spaces = [kind for space, kind in _KINDS.items() if space in one.spaces]
            if spaces:
                for name in one.names:
                    note(one, scope + name, max(spaces), False)
    return names


def _plain(names: dict[str, _Known]) -> list[str]:
    return [name for name, one in names.items() if one.kind == _KERNEL and not one.asked and not one.extern_c]


def _entries_of(
    built: Path, units: Sequence[Unit], known: Sequence[dict[str, _Known]], texts: Sequence[HostText]
) -> list[tuple[Symbol, str, _Known]]:
    """The symbols of the library that are kernels or variables, each with its unit."""
    numbers = {f"unit{number}.cpp": one.name for number, one in enumerate(texts)}
    result = []
    for symbol in symbols(built):
        name = symbol.name.partition("<")[0]
        own = numbers.get(symbol.file, "")
        for unit, names in zip(units, known, strict=True):
            one = names.get(name)
            if one is None and symbol.tagged and unit.code_makers:  # a macro made it
                one = _Known(_KERNEL, True, unit.place(_first(unit, name)), template="<" in symbol.name)
            if one and one.template != ("<" in symbol.name):
                continue  # a function of the host that is called like the template
            if one and (own in ("", unit.name)) and (one.kind == _KERNEL) == (symbol.kind == "function"):
                if error := refusal(unit, symbol.name):
                    raise error
                result.append((symbol, unit.name, one))
                break
    return result


def _first(unit: Unit, name: str) -> int:
    """The first place of the text that has a kernel's name, 0 for none."""
    place = re.search(rf"\b{re.escape(name.rpartition('::')[2])}\b", unit.code)
    return place.start() if place else 0


def _image(
    unit: Unit, expressions: Sequence[str], options: Sequence[str], check: bool | str | None, arch: str | None
) -> tuple[str, Image]:
    if (arch or ("sim" if backend() == "sim" else "")) == "sim":
        text = device_text(unit, lambda name: name in sim_headers.names(), expressions)
    else:
        text = nvrtc_words.PRELUDE + device_text(unit, nvrtc_words.has_header, expressions)
        options = [*options, "-default-device"]  # constructors of the host's stay declared
    try:
        image = compile_source(
            text,
            name=unit.name,
            options=list(options),
            arch=arch,
            name_expressions=list(dict.fromkeys(expressions)),
            check=check,
        )
    except CompileError as error:
        raise at_class(unit, error) from None
    return unit.name, image


def _entry(symbol: Symbol, unit: str, one: _Known, image: Image) -> Entry:
    name = expression(symbol.name) if one.asked else symbol.name
    name = image.symbol(name if one.kind == _KERNEL else f"&{name}")
    return Entry(symbol.offset, one.kind, name.removeprefix("&"), unit, symbol.nbytes, *one.place)
