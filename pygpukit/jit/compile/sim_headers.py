"""The folder with the CUDA headers of the simulator, and its headers in the form that g++ reads fastest.

Most of a small kernel's compile time is reading these headers: a precompiled header halves it. A process that compiles
more than once makes one in the background, beside the headers in the cache folder; where it does not fit a
later compile, because of its macros, the compiler itself reads the text.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path

from pygpukit.jit.locate import cache_directory

PRELUDE = "pk_cuda_sim.h"  # what every kernel includes first

# Headers that a kernel source may include, by the one that has all they hold.
_OTHER_HEADERS = {
    "pk_sim_limits.h": (
        "assert.h", "cassert", "cfloat", "climits", "cmath", "cstddef", "cstdint", "cstdio", "cuda_runtime.h",
        "device_launch_parameters.h", "float.h", "limits.h", "math.h", "stddef.h", "stdint.h", "stdio.h",
    ),
    "pk_sim_groups.h": (
        "cooperative_groups/memcpy_async.h", "cooperative_groups/reduce.h", "cooperative_groups/scan.h",
    ),
}  # fmt: skip

_KEPT_PRECOMPILED = 8  # about 9 MB each; more while they are in use
_IN_USE_SECONDS = 3600.0
_UNUSED_SECONDS = 30 * 24 * 3600.0  # then the headers of another version go

_lock = threading.Lock()
_asked: dict[str, int] = {}  # how often this process compiled with the flags
_ready: dict[tuple[Path, str], bool] = {}  # whether the flags' precompiled header was found, and found intact


def folder() -> Path:
    """Where the headers lie: `simulator` in the cache folder, by content; a folder of this process where that fails."""
    place = os.getpid(), cache_directory()
    if not (_folder(*place) / PRELUDE).is_file():  # somebody emptied the cache folder
        _folder.cache_clear()
        with _lock:
            _ready.clear()
    return _folder(*place)


@cache
def _folder(process: int, root: Path) -> Path:
    files = _header_files()
    digest = blake2b(digest_size=8)
    for name, text in sorted(files.items()):
        digest.update(f"{name}\0{text}\0".encode())
    try:
        return _shared(root / "simulator", digest.hexdigest(), files)
    except OSError:  # read-only, full, or somebody else's: the kernel cache says so
        own = Path(tempfile.mkdtemp(prefix="pygpukit-sim-headers-"))
        atexit.register(_remove, own, process)
        return _fill(own, files)


def _remove(own: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(own, ignore_errors=True)


def _shared(parent: Path, digest: str, files: dict[str, str]) -> Path:
    """The folder of these contents, made at once or not at all. Raises OSError where others may write to it."""
    target = parent / digest
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if hasattr(os, "getuid"):
        state = parent.stat()
        if state.st_uid != os.getuid() or state.st_mode & 0o022:
            raise PermissionError(f"{parent} can be written by others")
    if not (target / PRELUDE).is_file():
        made = _fill(Path(tempfile.mkdtemp(prefix="making-", dir=parent)), files)
        try:
            made.rename(target)
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
            if not (target / PRELUDE).is_file():
                raise
        _forget_old(parent, target)
    os.utime(target)
    return target


def _forget_old(parent: Path, kept: Path) -> None:
    for other in parent.iterdir():
        with contextlib.suppress(OSError):
            if other != kept and time.time() - other.stat().st_mtime > _UNUSED_SECONDS:
                shutil.rmtree(other)


def _fill(target: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (target / name).parent.mkdir(exist_ok=True)
        (target / name).write_text(text)
    return target


def _header_files() -> dict[str, str]:
    """Those that stand in for CUDA's, and those of the built-in kernels."""
    from pygpukit._core import native
    from pygpukit.jit.compile import headers

    files = {name: f"#include <{included}>\n" for included, names in _OTHER_HEADERS.items() for name in names}
    files |= {name: headers.text(path) for name, path in headers.own().items()}
    prefix = "sim/include/"
    shim = {name.removeprefix(prefix): text for name, text in native.sources().items() if name.startswith(prefix)}
    return files | {name: text for name, text in shim.items() if name.endswith(".h")}


def compiler_environment() -> dict[str, str]:
    """Messages in English with plain quotes, whatever the user's language; and no folders that no option names."""
    environment = {**os.environ, "LC_ALL": "C"}
    for variable in ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"):
        environment.pop(variable, None)
    return environment


def is_precompiled(path: str) -> bool:
    """Whether a file that the compiler read is a precompiled header: the headers in it are listed beside it."""
    return path.endswith(".gch")


def prelude(command: Sequence[str], identity: str) -> Path:
    """The header that a kernel compiled with these flags includes first; precompiled where that is at hand.

    `command` is the compiler and every flag of the compile but the kernel's own; `identity` says which compiler it is.
    The second time that a process asks for the same it has the header precompiled in the background.
    """
    key = blake2b("\0".join((identity, *command)).encode(), digest_size=8).hexdigest()
    headers = folder()
    made = headers / "precompiled" / key
    with _lock:
        if (ready := _ready.get((headers, key))) is None:
            ready = _ready[headers, key] = _intact(made)
        elif ready:
            ready = _touched(made)
        _asked[key] = _asked.get(key, 0) + 1
        makes_it = not ready and _asked[key] == 2
    if makes_it:
        aside = (list(command), headers, key)
        threading.Thread(target=_precompile, args=aside, name="pygpukit-precompile", daemon=True).start()
    return made / PRELUDE if ready else headers / PRELUDE


def _touched(made: Path) -> bool:
    """Whether it is still there; marks it as in use."""
    try:
        os.utime(made)
    except OSError:
        return False
    return True


def _intact(made: Path) -> bool:
    """Whether there is a precompiled header, the same as when it was made: a damaged one can end the compiler."""
    try:
        whole = (made / f"{PRELUDE}.digest").read_text() == _digest((made / f"{PRELUDE}.gch").read_bytes())
        os.utime(made)
    except OSError:
        return False
    if not whole:
        shutil.rmtree(made, ignore_errors=True)
    return whole


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _precompile(command: list[str], headers: Path, key: str) -> None:
    # Whatever fails here costs time only: the text is still there.
    parent = headers / "precompiled"
    with contextlib.suppress(OSError):
        parent.mkdir(exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix="making-", dir=parent))
        try:
            (made / PRELUDE).write_text(f"#include <{PRELUDE}>\n")
            precompiled = made / f"{PRELUDE}.gch"
            with subprocess.Popen(
                [*command, "-x", "c++-header", "-I", str(headers), str(made / PRELUDE), "-o", str(precompiled),
                 "-MD", "-MF", os.devnull],  # which makes it remember its files
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=compiler_environment(), start_new_session=True,
            ) as process:  # fmt: skip
                ended = atexit.register(process.kill)
                status = process.wait()
                atexit.unregister(ended)
            if status == 0:
                (made / f"{PRELUDE}.digest").write_text(_digest(precompiled.read_bytes()))
                made.rename(parent / key)  # fails when another process was first
                with _lock:
                    _ready[headers, key] = True
                _keep_latest(parent)
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _keep_latest(parent: Path) -> None:
    """Takes away those not used lately, if there are many; also what a process that died left half made."""
    by_age = sorted((path.stat().st_mtime, path) for path in parent.iterdir())
    for used, path in by_age[:-_KEPT_PRECOMPILED]:
        if time.time() - used > _IN_USE_SECONDS:
            shutil.rmtree(path, ignore_errors=True)
