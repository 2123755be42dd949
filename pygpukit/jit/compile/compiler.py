"""compile_source(): the one way from CUDA source to an image. Key, cache, NVRTC or the simulator's compiler, store.

What only a compile needs, or a unit that reads files, is imported where it is needed: a kernel from the cache in a new
process does not pay for it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core import doing, records
from pygpukit.core.backend import backend, refuse_inherited
from pygpukit.core.cached import cached_property
from pygpukit.core.errors import CompileError, NvrtcError, NvrtcErrorCode
from pygpukit.core.text import storable
from pygpukit.jit.cache import lookup
from pygpukit.jit.cache.image import Image
from pygpukit.jit.cache.store import folder, keep, kernel_cache, key_of, note, reason, remember
from pygpukit.jit.compile import headers as header_sets
from pygpukit.jit.compile import nvrtc, tile
from pygpukit.jit.compile.check import check_mode, step_limit
from pygpukit.jit.compile.headers import HeaderSet
from pygpukit.jit.compile.options import Options, parse_options
from pygpukit.jit.compile.refused import refuse_nesting, refuse_special_files
from pygpukit.jit.cutlass import units as cutlass
from pygpukit.jit.source import program
from pygpukit.jit.source.signature import includes, scan, scan_variables

_SOURCES = {"compiled": 0, "uncached": 0, "memory": 1, "disk": 2}
_STANDARD = "--std=c++17"
# What nvcc has without an #include, by the host's <math.h>, and the simulator, too. libcu++ brings its own.
_MATH_MACROS = {"INFINITY": "__builtin_bit_cast(float, 0x7f800000)", "NAN": "__builtin_bit_cast(float, 0x7fffffff)"}
_WITH_MATH_MACROS = ("cuda/", "cub/", "thrust/", "cute/", "cutlass/")


def compile_source(
    source: str,
    *,
    name: str = "kernel",
    options: Sequence[str] = (),
    defines: Mapping[str, object] | None = None,
    arch: str | None = None,
    name_expressions: Sequence[str] = (),
    check: bool | str | None = None,
    headers: Sequence[HeaderSet] = (),
) -> Image:
    """Compile CUDA C++ for the open backend, or take the result from the cache.

    `name` is the file name in diagnostics. `arch` defaults to the current device's; "sm_90a" and the like compile with
    NVRTC even where there is no such device, "sim" with the simulator's compiler. A unit that reads files of its own
    (-I, -include, #include "x" of an existing file) is found again while these files are the same, wherever they lie
    (jit/cache/manifest.py). Processes that need the same image at once compile it once. Writes one COMPILE record.
    `check`: True or "memory" (no races) for checked mode, on the simulation only; None as PYGPUKIT_CHECK says.
    `headers`: sets that the source includes from; they are part of the key by their digest and are not read for a hit.

    Raises CompileError with diagnostics, NvrtcError (NotLoaded says what to install), ValueError for bad options, and
    DriverError in a process that was forked after the device was opened. Releases the GIL while it compiles; Ctrl-C
    stops it.
    """
    refuse_inherited(f"compiling {name}")
    start_ns = time.perf_counter_ns()
    request = _request(
        source,
        name=name,
        options=options,
        defines=defines,
        arch=arch,
        name_expressions=name_expressions,
        check=check,
        headers=headers,
    )
    return _recorded(name, _cached(request), time.perf_counter_ns() - start_ns)


def find_image(source: str, arguments: Mapping[str, Any]) -> Image | None:
    """The image that compile_source(source, **arguments) would take from the cache; None where it would compile."""
    start_ns = time.perf_counter_ns()
    request = _request(source, **arguments)
    image = None if request.unknowable else _find(request)
    return None if image is None else _recorded(request.name, image, time.perf_counter_ns() - start_ns)


def adopt_image(image: Image, name: str, duration_ns: int) -> Image:
    """Takes over what another process's compile_source() returned, as if this one had called it."""
    if image.key and kernel_cache().get(image.key) is None:  # that process could not write to the disk
        keep(image.key, image.to_bytes())
    return _recorded(name, image, duration_ns)


def target_arch(source: str, arguments: Mapping[str, Any]) -> str:
    """The architecture that compile_source(source, **arguments) compiles for; "sim" for the simulated device."""
    return _request(source, **arguments).arch


def _recorded(name: str, image: Image, duration_ns: int) -> Image:
    image = replace(image, changed=tuple(note(name, image)))
    _core.ring_push(
        records.COMPILE,
        name=_core.intern(name),
        a=duration_ns,
        b=_SOURCES[image.origin],
        c=len(image.image),
    )
    return image


def compile_uncached(source: str, *, name: str = "kernel") -> Image:
    """Compile for the open backend, past the cache: what a warm-up needs."""
    return _request(source, name=name, check=False).compile()


def _cached(request: _Request) -> Image:
    """The image from the cache, or compiled and stored there."""
    if request.unknowable:
        return replace(request.compile(), origin="uncached", parts=request.settled().parts, reason=request.unknowable)

    image = _find(request)
    if image is None:
        from pygpukit.jit.cache.flight import single_flight

        with single_flight(folder() / "locks", request.key):
            image = _find(request, stored=True)  # another process may have been quicker
            if image is None:
                image = _compile_by_files(request) if request.reads_files else _compile(request)
    return image


def _find(request: _Request, stored: bool = False) -> Image | None:
    """The image in the cache. `stored`: look past this process's memory."""
    if request.reads_files:
        from pygpukit.jit.cache import lookup_files

        return lookup_files.find_by_files(request.key, request.parts, request.folders(), stored)
    return lookup.find(request.key, request.parts, stored)


def _compile(request: _Request) -> Image:
    image = request.compile()
    settled = request.settled()
    why = reason(settled.parts)
    remember(settled.parts)
    return lookup.store(settled.key, replace(image, parts=settled.parts, reason=why))


def _compile_by_files(request: _Request) -> Image:
    from pygpukit.jit.cache import lookup_files, manifest

    folders = request.folders()
    for _ in range(2):
        since_ns = manifest.file_clock_ns()
        read: list[str] = []
        image = request.compile(read)
        request = request.settled()
        key, parts = request.key, request.parts
        try:
            files = manifest.learn(request.source, request.options.pre_includes, read, folders, request.own_folders())
        except manifest.Unknowable as unknowable:
            return replace(image, origin="uncached", parts=parts, reason=str(unknowable))
        if not manifest.written_since(files, folders, since_ns):
            image = replace(image, parts=parts, reason=lookup_files.reason_by_files(key, folders) or reason(parts))
            remember(parts)
            return lookup_files.store_by_files(key, image, files, folders)
    return replace(image, origin="uncached", parts=parts, reason="a header was written while the unit compiled")


@dataclass(frozen=True)
class _Request:
    """One unit to compile with NVRTC for `arch`, or with the simulator when arch is "sim". What follows from it is
    worked out once, when it is asked for."""

    source: str
    name: str
    options: Options
    arch: str
    expressions: tuple[str, ...]
    check: bool | str = False
    step_limit: int = 0
    header_sets: tuple[HeaderSet, ...] = ()

    @property
    def kind(self) -> str:
        return "sim" if self.arch == "sim" else "nvrtc"

    @property
    def key(self) -> bytes:
        """Under what its image is in the cache."""
        return self._identity[0]

    @property
    def parts(self) -> dict[str, str]:
        """The parts that the key is made of, in short digests."""
        return self._identity[1]

    @cached_property
    def _tile(self) -> bool:
        """The unit holds tile kernels. Raises ValueError for one that holds others too: they are compiled apart."""
        if "__tile_global__" not in self.source:
            return False
        kinds = {kernel.tile: kernel.name for kernel in scan(self.source, self.options.defines)}
        if len(kinds) > 1:
            raise ValueError(
                f"{self.name} has the tile kernel {kinds[True]!r} and the kernel {kinds[False]!r}; a source has tile "
                "kernels or others, not both: put one of them into a source of its own"
            )
        return True in kinds

    @cached_property
    def _wants_cutlass(self) -> bool:
        folders: list[str | Path] = [
            self._current_folder(),
            *self.options.folders,
            *(one.folder for one in self.header_sets),
        ]
        return cutlass.included((name for names in self._includes for name in names), folders)

    @cached_property
    def _cutlass(self) -> HeaderSet | None:
        """The headers of CUTLASS, where the unit includes them and they are here."""
        return cutlass.header_set() if self._wants_cutlass else None

    @cached_property
    def _every_set(self) -> tuple[HeaderSet, ...]:
        return (*self.header_sets, *([self._cutlass] if self._cutlass else []))

    @cached_property
    def _identity(self) -> tuple[bytes, dict[str, str]]:
        own = [_digest(self.headers)] if self.headers else []
        cuda = [nvrtc.header_identity()] if self.kind == "nvrtc" and any(self._includes) else []
        return key_of(
            {
                "kind": self.kind.encode(),
                "arch": self.arch.encode(),
                "name": self.name.encode(),
                "source": self.source.encode(),
                "options": self.options.content(),
                "name expressions": "\0".join(sorted(self.expressions)).encode(),
                **({"check": str(self.check).encode()} if self.check else {}),
                **({"step limit": str(self.step_limit).encode()} if self.step_limit else {}),
                "compiler": self._compiler,
                "headers": b"".join((*own, *cuda, *(one.identity for one in self._every_set))),
            }
        )

    @cached_property
    def _compiler(self) -> bytes:
        return self._compiler_now()

    def _compiler_now(self) -> bytes:
        if self.kind == "sim":
            return _simulator_identity()
        return nvrtc.identity() + (tile.identity() if self._tile else b"")

    def settled(self) -> _Request:
        """The request as it is known after a compile: only an open compiler tells for certain which it is."""
        return self if self._compiler == self._compiler_now() else replace(self)

    @cached_property
    def _includes(self) -> tuple[list[str], list[str]]:
        return includes(self.source, self.options.defines)

    @cached_property
    def reads_files(self) -> bool:
        """True when files outside the key may change the result."""
        if self.options.reads_files or self._probes():
            return True
        # The simulator's compiler looks in the current folder before it looks among ours.
        outside = [one for one in self._includes[0] if self.kind == "sim" or one not in self.headers]
        return any((self._current_folder() / header).exists() for header in outside)

    def _probes(self) -> bool:
        """The source asks for the existence of a file."""
        if "__has_include" not in self.source:
            return False
        from pygpukit.jit.cache import manifest

        return manifest.probes(self.source)

    @cached_property
    def unknowable(self) -> str:
        """Why nothing tells which files the compiler reads; "" when it does, or reads none."""
        if not self.reads_files:
            return ""
        if self.options.opaque:
            return "nothing tells which files --use-pch, --pch-dir or --use-bundled-headers read"
        return nvrtc.untraceable() if self.kind == "nvrtc" else ""

    def folders(self) -> dict[str, Path]:
        """Where files are looked for."""
        from pygpukit.jit.cache import manifest

        return manifest.search_path(self._current_folder(), self.options.folders, self.options.pre_includes)

    def _current_folder(self) -> Path:
        return Path.cwd() / (Path(self.name).parent if self.kind == "nvrtc" else "")

    def own_folders(self) -> list[Path]:
        """Folders whose files are part of the key by what they belong to: the compiler, or a header set."""
        sets = [one.folder for one in self._every_set]
        if self.kind == "sim":
            return [*_simulator().header_folders(), *sets, *(Path(option[2:]) for option in self._set_options)]
        options = nvrtc.header_options()
        return [Path(flag[2:] if flag.startswith("-I") else flag.partition("=")[2]) for flag in options] + sets

    @cached_property
    def headers(self) -> dict[str, str]:
        """The package's own device headers that the source reaches."""
        return header_sets.reached(name for names in self._includes for name in names)

    @cached_property
    def _set_options(self) -> list[str]:
        return [f"-I{self._folder_of(one)}" for one in self._every_set]

    def _folder_of(self, one: HeaderSet) -> Path:
        """Where the compiler reads a set."""
        if one is not self._cutlass or self.kind != "sim":
            return one.folder
        from pygpukit.jit.cutlass import simulated

        return simulated.folder(one)

    def compile(self, read: list[str] | None = None) -> Image:
        """The image; appends the files that the compiler read to `read` when it is given."""
        if refused := program.refusal(self.source, self.name, self.options.defines):
            raise _error(self.name, refused, self.source)
        if self._wants_cutlass and self._cutlass is None:
            raise _error(self.name, cutlass.refusal(self.source, self.name), self.source)
        if self.reads_files:
            refuse_special_files(self.source, self.name, self.options.pre_includes, self.folders())
        doing.say(f"Compiling {self.name}")
        try:
            return self._simulate(read) if self.kind == "sim" else self._nvrtc(read)
        except CompileError as error:
            if error.diagnostics or not error.log.strip():  # what it says is all that there is
                raise
            raise _error(self.name, error.log, self.source) from None

    def _nvrtc(self, read: list[str] | None) -> Image:
        nvrtc.open_nvrtc()
        if self._tile:
            tile.require()
        enabled = [tile.FLAG] if self._tile else []
        flags = [f"--gpu-architecture={self.arch}", *enabled, *self._standard()]
        flags += [*self._math_macros(), *self.options.compiler_flags()]
        texts = self.headers
        if self._cutlass is not None:
            flags += cutlass.nvrtc_flags(self.arch, self.options.flags, self.options.defines)
            texts = {**texts, **cutlass.nvrtc_texts(self._cutlass.folder)}
        flags += self._set_options
        if any(self._includes):
            flags += nvrtc.header_options()
        # Variables by expression too: that keeps those that no kernel uses, and tells the symbols of all.
        # NVRTC keeps a managed one, whose address is no constant to it.
        known = scan_variables(self.source, self.options.defines)
        managed = {one.expression: one.symbol for one in known if one.space == "__managed__"}
        variables = [one.expression for one in known if one.expression not in managed]
        read_before: list[str] | None = None if read is None else []
        with nvrtc.header_trace(read_before) as traced:
            status, log, cubin, ptx, symbols, tile_ir = native.nvrtc_compile(
                self.source, self.name, [*flags, *traced], texts, [*self.expressions, *variables]
            )
        if read is not None:
            read += [file for file in read_before or () if file not in texts]
        if status == NvrtcErrorCode.Compilation:
            raise _error(self.name, log, self.source)
        if status != NvrtcErrorCode.Success:
            raise NvrtcError(f"compiling {self.name} failed: {log.strip() or 'no message'}", status, log)
        symbols |= managed
        if self._tile:
            cubin, remarks = tile.assemble(tile_ir, self.arch, self.name)
            return Image("nvrtc", self.arch, cubin, "", log + remarks, symbols)
        return Image("nvrtc", self.arch, cubin, ptx.rstrip(b"\0").decode(), log, symbols)

    def _standard(self) -> list[str]:
        """The option for the version of C++, where the caller gave none."""
        has_standard = any(flag.startswith(("--std", "-std")) for flag in self.options.flags)
        return [] if has_standard else [tile.STANDARD if self._tile else _STANDARD]

    def _math_macros(self) -> list[str]:
        """Options for those of _MATH_MACROS that the source does not define itself."""
        if any(name.startswith(_WITH_MATH_MACROS) for names in self._includes for name in names):
            return []
        defined, guarded = (re.findall(rf"#\s*{word}\s+(INFINITY|NAN)\b", self.source) for word in ("define", "ifndef"))
        own = {*self.options.defines, *({*defined} - {*guarded})}
        return [f"-D{name}={value}" for name, value in _MATH_MACROS.items() if name not in own]

    def _simulate(self, read: list[str] | None) -> Image:
        image = _simulator().compile(
            self.source,
            name=self.name,
            options=[*self._standard(), *self.options.flags, *self._set_options],
            defines=[f"{macro}={value}" for macro, value in self.options.defines.items()],
            name_expressions=self.expressions,
            read=read,
            check=self.check,
            step_limit=self.step_limit,
        )
        return Image("sim", "sim", image.image, "", image.log, {})


def _request(
    source: str,
    *,
    name: str = "kernel",
    options: Sequence[str] = (),
    defines: Mapping[str, object] | None = None,
    arch: str | None = None,
    name_expressions: Sequence[str] = (),
    check: bool | str | None = None,
    headers: Sequence[HeaderSet] = (),
) -> _Request:
    """compile_source()'s arguments as a request."""
    refuse_nesting(source, name)
    parsed = parse_options(options, defines, arch)
    target = parsed.arch
    if target is None:
        target = "sim" if backend() == "sim" else nvrtc.device_arch(native.current_device())
    expressions = tuple(dict.fromkeys(map(storable, name_expressions)))
    mode = check_mode(check, target)
    steps = step_limit() if mode else 0
    return _Request(storable(source), storable(name), parsed, target, expressions, mode, steps, tuple(headers))


def _error(name: str, log: str, source: str) -> CompileError:
    from pygpukit.jit.compile.diagnostics import compile_error  # a compile that works does not pay for reading logs

    return compile_error(name, log, source)


def _simulator() -> ModuleType:
    from pygpukit.jit.compile import simulator

    return simulator


@cache
def _simulator_identity() -> bytes:
    """The host compiler, its options, the text of the headers that stand in for CUDA's, and what translates sources."""
    from pygpukit.jit.compile import sim_translation

    simulator = _simulator()
    about = {
        "headers": simulator.sim_headers.digest(),
        "options": simulator.ALL_FLAGS,
        "translation": sim_translation.digest(),
    }
    return str(simulator.compiler_identity()).encode() + b" " + _digest(about)


def _digest(texts: Mapping[str, str]) -> bytes:
    """A digest of named texts."""
    flat = [piece.encode() for name in sorted(texts) for piece in (name, texts[name])]
    return _core.KernelCache.digest(flat).hex().encode()
