"""NVRTC as the package sees it: found and opened on first use, version, options, warm-up, driver requirements."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pygpukit._core import native
from pygpukit.core.device import device_facts
from pygpukit.core.errors import NvrtcError, NvrtcErrorCode
from pygpukit.core.extras import install_command
from pygpukit.jit import toolchain
from pygpukit.jit.locate import cache_directory
from pygpukit.jit.toolchain import BUNDLED_HEADERS_SINCE

__all__ = [
    "MIN_DRIVER_VERSION",
    "MIN_DRIVER_VERSION_STR",
    "MIN_SM_VERSION",
    "MIN_SM_VERSION_STR",
    "check_driver_compatibility",
    "get_driver_requirements",
    "get_nvrtc_path",
    "get_nvrtc_version",
]

MIN_DRIVER_VERSION = 12000
MIN_DRIVER_VERSION_STR = "12.0"
MIN_SM_VERSION = 80
MIN_SM_VERSION_STR = "SM 8.0 (Ampere)"

_TRACE_SINCE = (12, 8)
_BUILT_IN_HEADER = "__nv_nvrtc"
_ARCH_SPECIFIC = frozenset({90, 100, 103, 110, 120, 121})  # devices whose own instructions need the suffix "a"

_lock = threading.Lock()
_opened: tuple[str, tuple[int, int]] | None = None


def open_nvrtc() -> tuple[str, tuple[int, int]]:
    """(path, version) of NVRTC, opened now if it was not yet. Raises NvrtcError(NotLoaded) with what to install."""
    global _opened
    with _lock:
        if _opened is None:
            try:
                _opened = native.nvrtc_open(toolchain.nvrtc_candidates())
            except NvrtcError as error:
                reason = error.args[0] if error.args else "not found"
                raise NvrtcError(
                    f"NVRTC JIT compiler not available ({reason}); install it with: {install_command('cuda')}",
                    NvrtcErrorCode.NotLoaded,
                ) from None
            toolchain.opened(*_opened)
        return _opened


def missing() -> str:
    """Why NVRTC cannot be used, and what to install; "" where it can."""
    try:
        open_nvrtc()
    except NvrtcError as error:
        return str(error)
    return ""


def identity() -> bytes:
    """The words that tell one NVRTC from another in a cache key: names and sizes of its files, not where they lie.

    Opens nothing where the library is a file, so that a cached kernel costs no loading of a compiler.
    """
    used = toolchain.taken()
    if used is None:
        return "nvrtc {}.{}".format(*open_nvrtc()[1]).encode()
    halves = [one.resolve() for one in (used.nvrtc, used.builtins) if one is not None]
    return " ".join(f"{file.name}:{file.stat().st_size}" for file in halves if file.is_file()).encode()


def header_options() -> list[str]:
    """Options that make cuda_fp16.h and the like available: they travel inside NVRTC 13.3 and later; with an older one
    come those of its version, of a toolkit or of the runtime's wheel."""
    version = open_nvrtc()[1]
    if version >= BUNDLED_HEADERS_SINCE:
        return [f"--use-bundled-headers={cache_directory() / 'headers-{}.{}'.format(*version)}"]
    return [f"-I{folder}" for folder in _headers()]


def lacks_libcudacxx() -> str:
    """Why a source cannot include libcu++ (<cuda/std/...>), and what to install; "" where it can, or without NVRTC."""
    if missing():
        return ""
    version = open_nvrtc()[1]
    if version >= BUNDLED_HEADERS_SINCE or any((one / "cuda" / "std" / "cassert").is_file() for one in _headers()):
        return ""
    reason = "libcu++ is not beside NVRTC {}.{}".format(*version)
    return f"{reason}; install it with: {install_command('cccl')}"


def untraceable() -> str:
    """Why this NVRTC cannot tell which headers it reads; "" when it can."""
    if open_nvrtc()[1] >= _TRACE_SINCE:
        return ""
    return "this NVRTC cannot tell which headers it reads; version {}.{} can".format(*_TRACE_SINCE)


@contextlib.contextmanager
def header_trace(read: list[str] | None) -> Iterator[list[str]]:
    """Options that make one compile tell the header files it reads; they are appended to `read` afterwards.

    NVRTC has no list of dependencies, but its time trace has an event for every header. Nothing is traced for None.
    """
    if read is None:
        yield []
        return
    import tempfile  # and what it imports: a kernel from the cache does without

    with tempfile.TemporaryDirectory(prefix="pygpukit-trace-") as folder:
        yield [f"--fdevice-time-trace={folder}/trace"]
        trace = Path(folder, "trace.json")
        events = json.loads(trace.read_bytes())["traceEvents"] if trace.is_file() else []  # none after a failed compile
    headers = (event["args"]["detail"] for event in events if event.get("name") == "Processing Header File")
    read += [name for name in headers if not name.startswith(_BUILT_IN_HEADER)]


def header_identity() -> bytes:
    """The words that tell one set of CUDA headers from another in a cache key: none where NVRTC brings its own."""
    used = toolchain.taken()
    version = open_nvrtc()[1] if used is None else used.version
    return b"" if version >= BUNDLED_HEADERS_SINCE else _sizes(_headers())


def _headers() -> tuple[Path, ...]:
    used = toolchain.taken()
    return () if used is None else used.headers


@cache
def _sizes(folders: tuple[Path, ...]) -> bytes:
    if not folders:
        return b""
    files = [file for folder in folders for pattern in ("cuda_*.h*", "nv/*") for file in folder.glob(pattern)]
    return f" cuda headers {sum(file.stat().st_size for file in files)}".encode()


def device_arch(device: int) -> str:
    """The exact architecture of a device, "sm_90a" for one of compute capability 9.0."""
    info = device_facts(device)
    number = 10 * int(info["compute_major"]) + int(info["compute_minor"])
    return f"sm_{number}{'a' if number in _ARCH_SPECIFIC else ''}"


def get_nvrtc_path() -> str | None:
    """The NVRTC library's path (or the name that the dynamic loader found), None when there is none."""
    try:
        return open_nvrtc()[0]
    except NvrtcError:
        return None


def get_nvrtc_version() -> tuple[int, int] | None:
    """(major, minor) of NVRTC, None when there is none."""
    try:
        return open_nvrtc()[1]
    except NvrtcError:
        return None


def get_driver_requirements() -> dict[str, str]:
    """The least driver and device that the cuda backend takes."""
    return {"min_driver_version": MIN_DRIVER_VERSION_STR, "min_sm_version": MIN_SM_VERSION_STR}


def check_driver_compatibility() -> tuple[bool, str]:
    """(usable, one sentence): whether a CUDA driver with a supported device answers. Opens no backend."""
    reason = native.cuda_probe()
    return (True, "a CUDA driver with a supported device answered") if reason is None else (False, reason)
