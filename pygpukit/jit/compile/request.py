"""One unit to compile: what its key is made of, which files it reads, and how its compiler is called."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core import doing
from pygpukit.core.backend import backend
from pygpukit.core.cached import cached_property
from pygpukit.core.errors import CompileError, NvrtcError, NvrtcErrorCode
from pygpukit.core.text import storable
from pygpukit.jit.cache.image import Image
from pygpukit.jit.cache.store import key_of
from pygpukit.jit.compile import headers as header_sets
from pygpukit.jit.compile import nvrtc, tile
from pygpukit.jit.compile.check import check_mode, step_limit
from pygpukit.jit.compile.headers import HeaderSet
from pygpukit.jit.compile.options import Options, parse_options
from pygpukit.jit.compile.refused import refuse_nesting, refuse_special_files
from pygpukit.jit.cutlass import units as cutlass
from pygpukit.jit.source import program
from pygpukit.jit.source.signature import includes, scan, scan_variables

_STANDARD = "--std=c++17"
# What nvcc has without an #include, by the host's <math.h>, and the simulator, too. libcu++ brings its own.
_MATH_MACROS = {"INFINITY": "__builtin_bit_cast(float, 0x7f800000)", "NAN": "__builtin_bit_cast(float, 0x7fffffff)"}
_WITH_MATH_MACROS = ("cuda/", "cub/", "thrust/", "cute/", "cutlass/")


@dataclass(frozen=True)
class Request:
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

    @classmethod
    def of(
        cls,
        source: str,
        *,
        name: str = "kernel",
        options: Sequence[str] = (),
        defines: Mapping[str, object] | None = None,
        arch: str | None = None,
        name_expressions: Sequence[str] = (),
        check: bool | str | None = None,
        headers: Sequence[HeaderSet] = (),
    ) -> Request:
        """From compile_source()'s arguments. Raises as it does."""
        refuse_nesting(source, name)
        parsed = parse_options(options, defines, arch)
        target = parsed.arch
        if target is None:
            target = "sim" if backend() == "sim" else nvrtc.device_arch(native.current_device())
        expressions = tuple(dict.fromkeys(map(storable, name_expressions)))
        mode = check_mode(check, target)
        steps = step_limit() if mode else 0
        return cls(storable(source), storable(name), parsed, target, expressions, mode, steps, tuple(headers))

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
            return simulator_identity()
        return nvrtc.identity() + (tile.identity() if self._tile else b"")

    def settled(self) -> Request:
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


def _error(name: str, log: str, source: str) -> CompileError:
    from pygpukit.jit.compile.diagnostics import compile_error  # a compile that works does not pay for reading logs

    return compile_error(name, log, source)


def _simulator() -> ModuleType:
    from pygpukit.jit.compile import simulator

    return simulator


@cache
def simulator_identity() -> bytes:
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
