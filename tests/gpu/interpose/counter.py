"""Builds the counting libcuda.so.1, starts processes under it, and reads its counters from inside such a process.

folder = build(tmp_path)
subprocess.run([sys.executable, "script.py"], env=environment(folder, real_libcuda()))
# in script.py:
counts()["cuLaunchKernel.calls"]
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("libcuda_count.cpp")
_UNKNOWN = 2**64 - 1


def build(folder: Path) -> Path:
    """Compile the shim with g++ as folder/libcuda.so.1; returns the folder. Raises CalledProcessError."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", str(SOURCE)]
    subprocess.run([*command, "-o", str(folder / "libcuda.so.1"), "-ldl", "-lpthread"], check=True)
    return folder


def real_libcuda() -> str:
    """Absolute path of the libcuda.so.1 that this process loads. Raises OSError when there is none."""
    ctypes.CDLL("libcuda.so.1")
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "/libcuda.so" in line:
            return line[line.index("/") :]
    raise OSError("libcuda.so.1 is loaded, but not named in /proc/self/maps")


def environment(folder: Path, real: str, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Environment of a process whose libcuda.so.1 is the shim in `folder` over the library `real`."""
    path = os.pathsep.join(filter(None, [str(folder), base.get("LD_LIBRARY_PATH", "")]))
    return {**base, "LD_LIBRARY_PATH": path, "PK_REAL_LIBCUDA": real}


def _shim() -> ctypes.CDLL:
    shim = ctypes.CDLL("libcuda.so.1")
    if not hasattr(shim, "pk_count_get"):
        raise RuntimeError("libcuda.so.1 of this process is not the counting one: start it with environment()")
    shim.pk_count_get.restype = ctypes.c_uint64
    shim.pk_count_name.restype = shim.pk_count_requested.restype = ctypes.c_char_p
    return shim


def _names(function: ctypes._NamedFuncPointer) -> list[str]:
    names: list[str] = []
    while (name := function(ctypes.c_uint64(len(names)))) is not None:
        names.append(name.decode())
    return names


def counts() -> dict[str, int]:
    """NAME.calls, NAME.failed, NAME.bytes; live.bytes, peak.bytes, live.handles; conflict.calls (must be 0)."""
    shim = _shim()
    keys = [f"{name}.{what}" for name in _names(shim.pk_count_name) for what in ("calls", "failed", "bytes")]
    keys += ["live.bytes", "peak.bytes", "live.handles", "conflict.calls"]
    values = {key: int(shim.pk_count_get(key.encode())) for key in keys}
    assert _UNKNOWN not in values.values(), values
    return values


def requested() -> list[str]:
    """Every driver symbol that this process asked for, in order."""
    return _names(_shim().pk_count_requested)
