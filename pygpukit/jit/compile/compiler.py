"""compile_source(): the one way from CUDA source to an image. Key, cache, NVRTC or the simulator's compiler, store.

What only a compile needs, or a unit that reads files, is imported where it is needed: a kernel from the cache in a new
process does not pay for it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pygpukit import _core
from pygpukit.core import records
from pygpukit.core.backend import refuse_inherited
from pygpukit.jit.cache import lookup
from pygpukit.jit.cache.image import Image
from pygpukit.jit.cache.store import folder, keep, kernel_cache, note, reason, remember
from pygpukit.jit.compile.headers import HeaderSet
from pygpukit.jit.compile.request import Request

_SOURCES = {"compiled": 0, "uncached": 0, "memory": 1, "disk": 2}


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
    request = Request.of(
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
    request = Request.of(source, **arguments)
    image = None if request.unknowable else _find(request)
    return None if image is None else _recorded(request.name, image, time.perf_counter_ns() - start_ns)


def adopt_image(image: Image, name: str, duration_ns: int) -> Image:
    """Takes over what another process's compile_source() returned, as if this one had called it."""
    if image.key and kernel_cache().get(image.key) is None:  # that process could not write to the disk
        keep(image.key, image.to_bytes())
    return _recorded(name, image, duration_ns)


def target_arch(source: str, arguments: Mapping[str, Any]) -> str:
    """The architecture that compile_source(source, **arguments) compiles for; "sim" for the simulated device."""
    return Request.of(source, **arguments).arch


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
    return Request.of(source, name=name, check=False).compile()


def _cached(request: Request) -> Image:
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


def _find(request: Request, stored: bool = False) -> Image | None:
    """The image in the cache. `stored`: look past this process's memory."""
    if request.reads_files:
        from pygpukit.jit.cache import lookup_files

        return lookup_files.find_by_files(request.key, request.parts, request.folders(), stored)
    return lookup.find(request.key, request.parts, stored)


def _compile(request: Request) -> Image:
    image = request.compile()
    settled = request.settled()
    why = reason(settled.parts)
    remember(settled.parts)
    return lookup.store(settled.key, replace(image, parts=settled.parts, reason=why))


def _compile_by_files(request: Request) -> Image:
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
