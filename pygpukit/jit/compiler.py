"""compile_source(): the one way from CUDA source to an image. Key, cache, NVRTC or the simulator's compiler, store."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.backend import backend
from pygpukit.core.errors import CompileError, NvrtcError, NvrtcErrorCode
from pygpukit.jit import nvrtc
from pygpukit.jit.cache import kernel_cache, key_of, note
from pygpukit.jit.image import Image, from_bytes
from pygpukit.jit.nvrtc import nvrtc_status
from pygpukit.jit.options import Options, parse_options
from pygpukit.jit.signature import includes

__all__ = ["compile_source", "compile_uncached", "nvrtc_status"]

_RECORD_COMPILE = 48
_SOURCES = {"compiled": 0, "uncached": 0, "memory": 1, "disk": 2}
_STANDARD = "--std=c++17"
_HEADER_SUFFIXES = (".h", ".cuh", ".hpp")


def compile_source(
    source: str,
    *,
    name: str = "kernel",
    options: Sequence[str] = (),
    defines: Mapping[str, object] | None = None,
    arch: str | None = None,
    name_expressions: Sequence[str] = (),
) -> Image:
    """Compile CUDA C++ for the open backend, or take the result from the cache.

    `name` is the file name in diagnostics. `arch` defaults to the current device's; "sm_90a" and the like compile with
    NVRTC even where there is no such device, "sim" with the simulator's compiler. Units that read files of their own
    (-I, -include, #include "x" of an existing file) are compiled every time. Writes one COMPILE record.

    Raises CompileError with diagnostics, NvrtcError (NotLoaded says what to install), ValueError for bad options.
    Releases the GIL while it compiles; Ctrl-C stops it.
    """
    start_ns = time.perf_counter_ns()
    request = _request(source, name, options, defines, arch, name_expressions)
    key, parts = key_of(request.parts())
    if request.reads_files():
        image = replace(request.compile(), origin="uncached", parts=parts)
    else:
        image = _look_up(key, parts) or _compile_and_store(request)
    image = replace(image, changed=tuple(note(name, image)))
    _core.ring_push(
        _RECORD_COMPILE,
        name=_core.intern(name),
        a=time.perf_counter_ns() - start_ns,
        b=_SOURCES[image.origin],
        c=len(image.image),
    )
    return image


def compile_uncached(source: str, *, name: str = "kernel") -> Image:
    """Compile for the open backend, past the cache: what a warm-up needs."""
    return _request(source, name, (), None, None, ()).compile()


def _look_up(key: bytes, parts: dict[str, str]) -> Image | None:
    entry = kernel_cache().get(key)
    if entry is None:
        return None
    payload, origin = entry
    try:
        return from_bytes(payload, key, origin, parts)
    except (ValueError, KeyError):  # written by something else: a miss
        kernel_cache().remove(key)
        return None


def _compile_and_store(request: _Request) -> Image:
    image = request.compile()
    key, parts = key_of(request.parts())  # once more: which compiler it is, is certain only after it was opened
    kernel_cache().put(key, image.to_bytes())
    return replace(image, key=key, parts=parts)


@dataclass(frozen=True)
class _Request:
    """One unit to compile with NVRTC for `arch`, or with the simulator when arch is "sim"."""

    source: str
    name: str
    options: Options
    arch: str
    expressions: tuple[str, ...]

    @property
    def kind(self) -> str:
        return "sim" if self.arch == "sim" else "nvrtc"

    def parts(self) -> dict[str, bytes]:
        return {
            "kind": self.kind.encode(),
            "arch": self.arch.encode(),
            "name": self.name.encode(),
            "source": self.source.encode(),
            "options": self.options.content(),
            "name expressions": "\0".join(sorted(self.expressions)).encode(),
            "compiler": nvrtc.identity() if self.kind == "nvrtc" else _simulator_identity(),
            "headers": _digest(self.headers())
            + (nvrtc.header_identity() if self.kind == "nvrtc" and self._includes() else b""),
        }

    def _includes(self) -> bool:
        return any(includes(self.source, self.options.defines))

    def reads_files(self) -> bool:
        """True when something outside the key may change the result."""
        if self.options.reads_files:
            return True
        bundled = self.headers()
        quoted, _ = includes(self.source, self.options.defines)
        return any(header not in bundled and Path(header).exists() for header in quoted)

    def headers(self) -> dict[str, str]:
        """The package's own device headers that the source reaches."""
        if self.kind == "sim":
            return {}
        found: dict[str, str] = {}
        waiting = [name for names in includes(self.source, self.options.defines) for name in names]
        while waiting:
            name = waiting.pop()
            text = _device_headers().get(name)
            if text is not None and name not in found:
                found[name] = text
                waiting += [inner for names in includes(text) for inner in names]
        return found

    def compile(self) -> Image:
        try:
            return self._simulate() if self.kind == "sim" else self._nvrtc()
        except CompileError as error:
            if error.diagnostics:
                raise
            raise _error(self.name, error.log, self.source) from None

    def _nvrtc(self) -> Image:
        nvrtc.open_nvrtc()
        standard = [] if any(flag.startswith(("--std", "-std")) for flag in self.options.flags) else [_STANDARD]
        flags = [f"--gpu-architecture={self.arch}", *standard, *self.options.compiler_flags()]
        if self._includes():
            flags += nvrtc.header_options()
        status, log, cubin, ptx, symbols = native.nvrtc_compile(
            self.source, self.name, flags, self.headers(), list(self.expressions)
        )
        if status == NvrtcErrorCode.Compilation:
            raise _error(self.name, log, self.source)
        if status != NvrtcErrorCode.Success:
            raise NvrtcError(f"compiling {self.name} failed: {log.strip() or 'no message'}", status, log)
        return Image("nvrtc", self.arch, cubin, ptx.rstrip(b"\0").decode(), log, symbols)

    def _simulate(self) -> Image:
        made = _simulator().compile(
            self.source,
            name=self.name,
            options=self.options.flags,
            defines=[f"{macro}={value}" for macro, value in self.options.defines.items()],
            name_expressions=self.expressions,
        )
        return Image("sim", "sim", made.image, "", made.log, {})


def _request(
    source: str,
    name: str,
    options: Sequence[str],
    defines: Mapping[str, object] | None,
    arch: str | None,
    expressions: Sequence[str],
) -> _Request:
    parsed = parse_options(options, defines, arch)
    target = parsed.arch
    if target is None:
        target = "sim" if backend() == "sim" else nvrtc.device_arch(native.current_device())
    return _Request(source, name, parsed, target, tuple(dict.fromkeys(expressions)))


def _error(name: str, log: str, source: str) -> CompileError:
    from pygpukit.jit.diagnostics import compile_error  # a compile that works does not pay for reading logs

    return compile_error(name, log, source)


def _simulator() -> ModuleType:
    from pygpukit.jit import simulator

    return simulator


@cache
def _simulator_identity() -> bytes:
    """The host compiler and the text of the headers that stand in for CUDA's."""
    shim = {name: text for name, text in native.sources().items() if name.startswith("sim/include/")}
    return str(_simulator().compiler_identity()).encode() + b" " + _digest(shim)


@cache
def _device_headers() -> dict[str, str]:
    prefix = "kernels/"
    return {
        name[len(prefix) :]: text
        for name, text in native.sources().items()
        if name.startswith(prefix) and name.endswith(_HEADER_SUFFIXES)
    }


def _digest(texts: Mapping[str, str]) -> bytes:
    """A digest of named texts; "" for none."""
    if not texts:
        return b""
    flat = [piece.encode() for name in sorted(texts) for piece in (name, texts[name])]
    return _core.KernelCache.digest(flat).hex().encode()
