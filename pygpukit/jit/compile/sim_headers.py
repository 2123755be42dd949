"""The folder with the CUDA headers of the simulator, and its headers in the form that g++ reads fastest.

The headers are this package's own, so that a file in the cache folder that differs from them is damaged: before every
compile all are looked at, and written again where need be. One that has changed since it was read is read again.
Most of a small kernel's compile time is reading these headers: a precompiled header halves it. A process that compiles
more than once makes one in the background, beside the headers in the cache folder; where it does not fit a
later compile, because of its macros, the compiler itself reads the text.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path

from pygpukit.core.files import read_regular
from pygpukit.jit.compile.sim_macros import without_macros
from pygpukit.jit.locate import cache_directory

PRELUDE = "pk_cuda_sim.h"  # what every kernel includes first
END = "pk_sim_end.h"  # and what it includes after the macros of the command line

# Headers that a kernel source may include, by the one that has all they hold.
_OTHER_HEADERS = {
    "pk_sim_limits.h": (
        "cfloat", "climits", "cmath", "cstddef", "cstdint", "cstdio", "cstdlib", "cstring", "ctime",
        "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h", "float.h", "limits.h", "math.h",
        "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "time.h", "vector_functions.h", "vector_types.h",
        "builtin_types.h", "channel_descriptor.h", "cuda_device_runtime_api.h", "device_atomic_functions.h",
        "device_functions.h", "driver_types.h", "host_defines.h", "math_functions.h", "sm_20_atomic_functions.h",
        "sm_20_intrinsics.h", "sm_30_intrinsics.h", "sm_32_atomic_functions.h", "sm_32_intrinsics.h",
        "sm_35_atomic_functions.h", "sm_35_intrinsics.h", "sm_60_atomic_functions.h", "sm_61_intrinsics.h",
        "texture_types.h", "surface_types.h", "library_types.h", "common_functions.h", "device_types.h",
        "inttypes.h", "cinttypes",
        "crt/host_defines.h", "crt/math_functions.h",
    ),
    "pk_sim_assert.h": ("assert.h", "cassert", "cuda/std/cassert"),
    "pk_sim_groups.h": (
        "cooperative_groups/memcpy_async.h", "cooperative_groups/reduce.h", "cooperative_groups/scan.h",
    ),
    "curand_kernel.h": (
        "curand.h", "curand_globals.h", "curand_lognormal.h", "curand_mrg32k3a.h", "curand_normal.h",
        "curand_philox4x32_x.h", "curand_poisson.h", "curand_uniform.h",
    ),
    "pk_sim_runtime.h": ("cuda.h",),
    "pk_sim_nv_target.h": ("nv/target",),
    "pk_sim_cuda_types.h": (
        "cuda/std/cfloat", "cuda/std/climits", "cuda/std/cstddef", "cuda/std/cstdint", "cuda/std/initializer_list",
        "cuda/std/cstdlib", "cuda/std/ctime", "cuda/std/limits", "cuda/std/memory", "cuda/std/type_traits",
        "cuda/std/utility",
    ),
    "pk_sim_cuda_concepts.h": ("cuda/std/concepts",),
    "pk_sim_cuda_numbers.h": ("cuda/std/numbers",),
    "pk_sim_cuda_functions.h": (
        "cuda/bit", "cuda/cmath", "cuda/functional", "cuda/std/bit", "cuda/std/cmath", "cuda/std/cstring",
        "cuda/std/functional",
    ),
    "pk_sim_cuda_iterator.h": ("cuda/std/iterator",),
    "pk_sim_cuda_algorithm.h": ("cuda/std/algorithm",),
    "pk_sim_cuda_numeric.h": ("cuda/numeric", "cuda/std/numeric"),
    "pk_sim_cuda_values.h": ("cuda/std/complex", "cuda/std/optional", "cuda/std/span"),
    "pk_sim_cuda_tuple.h": ("cuda/std/array", "cuda/std/tuple"),
    "pk_sim_cuda_variant.h": ("cuda/std/expected", "cuda/std/variant"),
    "pk_sim_cuda_containers.h": ("cuda/std/bitset", "cuda/std/inplace_vector"),
    "pk_sim_cuda_mdspan.h": ("cuda/std/mdspan",),
    "pk_sim_cuda_atomic.h": ("cuda/atomic", "cuda/std/atomic"),
    "pk_sim_cuda_barrier.h": (
        "cuda/barrier", "cuda/latch", "cuda/semaphore", "cuda/std/barrier", "cuda/std/latch", "cuda/std/semaphore",
    ),
    "pk_sim_cuda_pipeline.h": ("cuda/pipeline", "cuda_pipeline.h", "cuda_pipeline_primitives.h"),
    "pk_sim_cub_reduce.h": ("cub/block/block_reduce.cuh",),
    "pk_sim_cub_scan.h": ("cub/block/block_scan.cuh",),
    "pk_sim_cub_memory.h": (
        "cub/block/block_exchange.cuh", "cub/block/block_load.cuh", "cub/block/block_store.cuh",
    ),
    "pk_sim_cub_sort.h": ("cub/block/block_radix_sort.cuh",),
    "pk_sim_cub_neighbours.h": (
        "cub/block/block_adjacent_difference.cuh", "cub/block/block_discontinuity.cuh", "cub/block/block_shuffle.cuh",
    ),
    "pk_sim_cub_counts.h": ("cub/block/block_histogram.cuh", "cub/block/block_run_length_decode.cuh"),
    "pk_sim_cub_merge.h": ("cub/block/block_merge_sort.cuh", "cub/warp/warp_merge_sort.cuh"),
    "pk_sim_cub_warp.h": ("cub/warp/warp_reduce.cuh", "cub/warp/warp_scan.cuh"),
    "pk_sim_cub_warp_memory.h": (
        "cub/warp/warp_exchange.cuh", "cub/warp/warp_load.cuh", "cub/warp/warp_store.cuh",
    ),
    "pk_sim_cub.h": ("cub/thread/thread_operators.cuh", "cub/thread/thread_reduce.cuh"),
    "pk_sim_cub_host.h": ("cub/cub.cuh",),
}  # fmt: skip

_KEPT_PRECOMPILED = 8  # about 9 MB each; more while they are in use
_IN_USE_SECONDS = 3600.0
_UNUSED_SECONDS = 30 * 24 * 3600.0  # then the headers of another version go

_lock = threading.Lock()
_asked: dict[str, int] = {}  # how often this process compiled with the flags
_Stamp = tuple[int, ...]
_ready: dict[tuple[Path, str], _Stamp | None] = {}  # the flags' precompiled header as it was found intact
_verified: dict[str, _Stamp] = {}  # files as they were found to hold what they should


def folder() -> Path:
    """Where the headers lie, whole: `simulator` in the cache folder, by content; a folder of this process where that
    fails."""
    place = os.getpid(), cache_directory()
    built = _folder(*place)
    try:
        _mend(built)
    except OSError:  # somebody emptied the cache folder, or it cannot be written any more
        _folder.cache_clear()
        with _lock:
            _ready.clear()
        built = _folder(*place)
        _mend(built)
    return built


@cache
def digest() -> str:
    """Of all headers: it names their folder, and is in the key of every image."""
    hasher = blake2b(digest_size=16)
    for name, text in sorted(_header_files().items()):
        hasher.update(f"{name}\0{text}\0".encode())
    return hasher.hexdigest()


@cache
def names() -> frozenset[str]:
    """The names that a source may include which stand in for CUDA's headers, or are the simulator's own."""
    from pygpukit.jit.compile import headers

    return frozenset(_header_files()) - frozenset(headers.own())


@cache
def _folder(process: int, root: Path) -> Path:
    try:
        return _shared(root / "simulator")
    except OSError:  # read-only, full, or somebody else's: the kernel cache says so
        own = Path(tempfile.mkdtemp(prefix="pygpukit-sim-headers-"))
        atexit.register(_remove, own, process)
        return _fill(own)


def _mend(headers: Path) -> None:
    """Writes every header that is not as it should be again, and takes away what does not belong there. Raises
    OSError where that cannot be done, or the folder is gone."""
    files, folders = _header_files(), _header_folders()
    damaged = [name for name, text in files.items() if not _holds(f"{headers}/{name}", text)]
    for within in ("", *folders):
        with os.scandir(f"{headers}/{within}") as entries:
            paths = [f"{within}/{entry.name}" if within else entry.name for entry in entries]
        damaged += [name for name in paths if name not in files and name not in folders and name != "precompiled"]
    for name in damaged:
        _discard(headers / name, name in files)
        if name in files:
            _write(headers / name, files[name], headers.parent)
    if damaged:
        shutil.rmtree(headers / "precompiled", ignore_errors=True)  # it may have been made of them
        with _lock:
            _ready.clear()


def _holds(path: str, text: str) -> bool:
    """True where the file holds that text; read only when it has changed since it was found to."""
    try:
        stamp = _stamp(path)
        if _verified.get(path) == stamp:
            return True
        whole = read_regular(path) == text.encode()
    except OSError:
        return False
    if whole:
        _verified[path] = stamp
    return whole


def _stamp(path: str | Path) -> _Stamp:
    """The stamp that changes when a file does. Raises OSError unless it is a regular file."""
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path} is not a regular file")
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _discard(path: Path, replaced: bool) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif not replaced:
        path.unlink(missing_ok=True)


def _write(path: Path, text: str, aside: Path) -> None:
    """At once: another process may be reading the file of that name. aside: a folder to make it in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix="making-", dir=aside)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode())
    Path(temporary).replace(path)


def _remove(own: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(own, ignore_errors=True)


def _shared(parent: Path) -> Path:
    """The folder of these contents. Raises OSError where others may write to it."""
    target = parent / digest()
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if hasattr(os, "getuid"):
        state = parent.stat()
        if state.st_uid != os.getuid() or state.st_mode & 0o022:
            raise PermissionError(f"{parent} can be written by others")
    if not target.is_dir():
        filled = _fill(Path(tempfile.mkdtemp(prefix="making-", dir=parent)))
        try:
            filled.rename(target)
        except OSError:
            shutil.rmtree(filled, ignore_errors=True)
            if not target.is_dir():
                raise
        _forget_old(parent, target)
    os.utime(target)
    return target


def _forget_old(parent: Path, kept: Path) -> None:
    for other in parent.iterdir():
        with contextlib.suppress(OSError):
            if other != kept and time.time() - other.stat().st_mtime > _UNUSED_SECONDS:
                shutil.rmtree(other)


def _fill(target: Path) -> Path:
    for name, text in _header_files().items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(text.encode())
    return target


@cache
def _header_files() -> dict[str, str]:
    """Those that stand in for CUDA's, and those of the built-in kernels."""
    from pygpukit._core import native
    from pygpukit.jit.compile import headers

    files = {name: f"#include <{included}>\n" for included, names in _OTHER_HEADERS.items() for name in names}
    files |= {name: headers.text(path) for name, path in headers.own().items()}
    prefix = "sim/include/"
    shim = {name.removeprefix(prefix): text for name, text in native.sources().items() if name.startswith(prefix)}
    return files | without_macros({name: text for name, text in shim.items() if name.endswith(".h")})


@cache
def _header_folders() -> frozenset[str]:
    """The folders that headers lie in, below that of all."""
    return frozenset(parent.as_posix() for name in _header_files() for parent in Path(name).parents if parent.name)


def compiler_environment() -> dict[str, str]:
    """Messages in English with plain quotes, whatever the user's language; and no folders that no option names."""
    environment = {**os.environ, "LC_ALL": "C"}
    for variable in ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"):
        environment.pop(variable, None)
    return environment


def is_precompiled(path: str) -> bool:
    """True for a file that the compiler read if it is a precompiled header: the headers in it are listed beside it."""
    return path.endswith(".gch")


def prelude(headers: Path, command: Sequence[str], identity: str) -> Path:
    """The header that a kernel compiled with these flags includes first; precompiled where that is at hand.

    `headers`: folder(). `command` is the compiler and every flag of the compile but the kernel's own; `identity` says
    which compiler it is. The second time that a process asks for the same it has the header precompiled in the
    background.
    """
    key = blake2b("\0".join((identity, *command)).encode(), digest_size=8).hexdigest()
    precompiled = headers / "precompiled" / key
    with _lock:
        ready = _as_before(precompiled, _ready.get((headers, key))) or _intact(precompiled)
        _ready[headers, key] = ready
        _asked[key] = _asked.get(key, 0) + 1
        makes_it = not ready and _asked[key] == 2
    if makes_it:
        aside = (list(command), headers, key)
        threading.Thread(target=_precompile, args=aside, name="pygpukit-precompile", daemon=True).start()
    return precompiled / PRELUDE if ready else headers / PRELUDE


def _as_before(place: Path, stamp: _Stamp | None) -> _Stamp | None:
    """The stamp, if it is still that of the precompiled header; marks it as in use."""
    try:
        if stamp is None or _stamps(place) != stamp:
            return None
        os.utime(place)
    except OSError:
        return None
    return stamp


def _stamps(place: Path) -> _Stamp:
    return _stamp(place / f"{PRELUDE}.gch") + _stamp(place / PRELUDE)


def _intact(place: Path) -> _Stamp | None:
    """The stamp of a precompiled header that is the same as when it was made: a damaged one can end the compiler."""
    try:
        stamp = _stamps(place)
        whole = read_regular(place / f"{PRELUDE}.digest") == _digest(place)
        os.utime(place)
    except OSError:
        return None
    if not whole:
        shutil.rmtree(place, ignore_errors=True)
    return stamp if whole else None


def _digest(place: Path) -> bytes:
    contents = [read_regular(place / f"{PRELUDE}.gch"), read_regular(place / PRELUDE)]
    return blake2b(b"\0".join(contents), digest_size=16).hexdigest().encode()


def _precompile(command: list[str], headers: Path, key: str) -> None:
    # Whatever fails here costs time only: the text is still there.
    parent = headers / "precompiled"
    with contextlib.suppress(OSError):
        parent.mkdir(exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix="making-", dir=parent))
        try:
            (building / PRELUDE).write_text(f"#include <{PRELUDE}>\n")
            precompiled = building / f"{PRELUDE}.gch"
            with subprocess.Popen(
                [*command, "-x", "c++-header", "-I", str(headers), str(building / PRELUDE), "-o", str(precompiled),
                 "-MD", "-MF", os.devnull],  # which makes it remember its files
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=compiler_environment(), start_new_session=True,
            ) as process:  # fmt: skip
                ended = atexit.register(process.kill)
                status = process.wait()
                atexit.unregister(ended)
            if status == 0:
                (building / f"{PRELUDE}.digest").write_bytes(_digest(building))
                building.rename(parent / key)  # fails when another process was first
                _keep_latest(parent)
        finally:
            shutil.rmtree(building, ignore_errors=True)


def _keep_latest(parent: Path) -> None:
    """Takes away those not used lately, if there are many; also what a process that died left half made."""
    by_age = sorted((path.stat().st_mtime, path) for path in parent.iterdir())
    for used, path in by_age[:-_KEPT_PRECOMPILED]:
        if time.time() - used > _IN_USE_SECONDS:
            shutil.rmtree(path, ignore_errors=True)
