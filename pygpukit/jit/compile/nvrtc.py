"""NVRTC as the package sees it: found and opened on first use, version, options, warm-up, driver requirements."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from pygpukit._core import native
from pygpukit.core.errors import NvrtcError, NvrtcErrorCode
from pygpukit.jit.locate import cache_directory, cuda_headers, nvrtc_candidates

__all__ = [
    "MIN_DRIVER_VERSION",
    "MIN_DRIVER_VERSION_STR",
    "MIN_SM_VERSION",
    "MIN_SM_VERSION_STR",
    "NvrtcErrorCode",
    "check_driver_compatibility",
    "get_driver_requirements",
    "get_nvrtc_path",
    "get_nvrtc_version",
    "get_warmup_error",
    "is_nvrtc_available",
    "is_warmup_done",
    "warmup",
]

MIN_DRIVER_VERSION = 12000
MIN_DRIVER_VERSION_STR = "12.0"
MIN_SM_VERSION = 80
MIN_SM_VERSION_STR = "SM 8.0 (Ampere)"

REMEDY = 'python -m pip install "pygpukit[cuda13]"'
_BUNDLED_HEADERS_SINCE = (13, 3)
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
                _opened = native.nvrtc_open(nvrtc_candidates())
            except NvrtcError as error:
                reason = error.args[0] if error.args else "not found"
                raise NvrtcError(
                    f"NVRTC JIT compiler not available ({reason}); install it with: {REMEDY}", NvrtcErrorCode.NotLoaded
                ) from None
        return _opened


def identity() -> bytes:
    """What tells one NVRTC from another in a cache key: names and sizes of its files, not where they lie.

    Opens nothing where the library is a file, so that a cached kernel costs no loading of a compiler.
    """
    library = _library()
    if library is None:
        return "nvrtc {}.{}".format(*open_nvrtc()[1]).encode()
    return " ".join(f"{file.name}:{file.stat().st_size}" for file in (library, *_builtins(library))).encode()


def header_options() -> list[str]:
    """Options that make cuda_fp16.h and the like available: they travel inside NVRTC 13.3 and later; an older one
    needs those of a toolkit or of the runtime's wheel."""
    version = open_nvrtc()[1]
    if version >= _BUNDLED_HEADERS_SINCE:
        return [f"--use-bundled-headers={cache_directory() / 'headers-{}.{}'.format(*version)}"]
    return [f"-I{folder}" for folder in cuda_headers()]


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
    """What tells one set of CUDA headers from another in a cache key: nothing where NVRTC brings its own."""
    return b"" if _version_by_name() >= _BUNDLED_HEADERS_SINCE else _sizes(tuple(cuda_headers()))


@cache
def _sizes(folders: tuple[Path, ...]) -> bytes:
    if not folders:
        return b""
    files = [file for folder in folders for pattern in ("cuda_*.h*", "nv/*") for file in folder.glob(pattern)]
    return f" cuda headers {sum(file.stat().st_size for file in files)}".encode()


def _library() -> Path | None:
    """The file that is open, or would be opened first; None when the dynamic loader finds it by a plain name."""
    names = nvrtc_candidates() if _opened is None else [_opened[0]]
    return next((path.resolve() for path in map(Path, names) if path.is_file()), None)


def _builtins(library: Path) -> list[Path]:
    """The library's second half, whose name has the full version: libnvrtc-builtins.so.13.5."""
    return sorted(library.parent.glob("*nvrtc-builtins*"))


def _version_by_name() -> tuple[int, int]:
    library = _library()
    for file in _builtins(library) if library is not None and _opened is None else ():
        found = re.search(r"\.so\.(\d+)\.(\d+)", file.name) or re.search(r"64_(\d+)(\d)\.dll", file.name)
        if found:
            return int(found[1]), int(found[2])
    return open_nvrtc()[1]


def device_arch(device: int) -> str:
    """The exact architecture of a device, "sm_90a" for one of compute capability 9.0."""
    info = native.device_info(device)
    number = 10 * int(info["compute_major"]) + int(info["compute_minor"])
    return f"sm_{number}{'a' if number in _ARCH_SPECIFIC else ''}"


def nvrtc_status() -> str:
    """One sentence: which compiler will be used, or what to install."""
    from pygpukit.core.backend import backend

    try:
        if backend() == "sim":
            from pygpukit.jit.compile import simulator

            return simulator.compiler_identity()
        path, (major, minor) = open_nvrtc()
    except Exception as error:
        return str(error)
    return f"NVRTC {major}.{minor} ({path})"


def is_nvrtc_available() -> bool:
    """True when jit() can compile: NVRTC opens, or on the simulation a C++ compiler is there. Never raises."""
    from pygpukit.core.backend import backend

    try:
        if backend() == "sim":
            from pygpukit.jit.compile import simulator

            return bool(simulator.find_compiler())
        return bool(open_nvrtc())
    except Exception:
        return False


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


class _Warmup:
    """The one warm-up of a process."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.error: Exception | None = None
        self._lock = threading.Lock()

    def run(self, callback: Callable[[], None] | None) -> bool:
        from pygpukit.jit.compile.compiler import compile_uncached

        with self._lock:
            if not self.done.is_set():
                try:
                    compile_uncached('extern "C" __global__ void warmup() {}', name="warmup")
                    self.error = None
                except Exception as error:  # kept for get_warmup_error(); warm-up itself never raises
                    self.error = error
                self.done.set()
        if callback is not None:
            callback()
        return self.error is None


_warmup = _Warmup()


def warmup(background: bool = False, callback: Callable[[], None] | None = None) -> bool:
    """Load the compiler and compile an empty kernel, so that the first real one is quick.

    Returns whether it worked; in the background True at once, and `callback()` is called from the thread at the end.
    Never raises; see get_warmup_error().
    """
    if background:
        threading.Thread(target=_warmup.run, args=(callback,), name="pygpukit-warmup", daemon=True).start()
        return True
    return _warmup.run(callback)


def is_warmup_done() -> bool:
    """True once a warm-up has ended, well or not."""
    return _warmup.done.is_set()


def get_warmup_error() -> Exception | None:
    """Why the warm-up failed, None when it did not."""
    return _warmup.error if _warmup.done.is_set() else None
