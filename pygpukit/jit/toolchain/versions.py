"""Which version a part is of, as cheaply as it can be told: by a name, a header, a wheel's record, or its own word."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

Version = tuple[int, int]
_TIME_LIMIT_S = 20.0
# What a part's wheel is called, for CUDA 13 and before.
_WHEELS = {"nvrtc": "nvidia_cuda_nvrtc", "tileiras": "nvidia_cuda_tileiras", "ptxas": "nvidia_cuda_nvcc"}


def of_builtins(name: str) -> Version | None:
    """Of NVRTC's second half by its file name: libnvrtc-builtins.so.13.5, nvrtc-builtins64_135.dll."""
    match = re.search(r"\.so\.(\d+)\.(\d+)", name) or re.search(r"64_(\d+)(\d)\.dll", name)
    return (int(match[1]), int(match[2])) if match else None


@cache
def of_headers(folder: Path) -> Version | None:
    """Of CUDA's headers in a folder; None where their version is not said."""
    for name, macro in (("cuda_runtime_api.h", "CUDART_VERSION"), ("cuda.h", "CUDA_VERSION")):
        file = folder / name
        if file.is_file():
            text = file.read_text(encoding="utf-8", errors="replace")
            if match := re.search(rf"^#\s*define\s+{macro}\s+(\d+)", text, re.MULTILINE):
                return int(match[1]) // 1000, int(match[1]) % 1000 // 10
    return None


def of_program(program: Path, wheels: Path | None) -> Version | None:
    """Of a program: of its wheel, or as it says itself; None where it says nothing."""
    if (version := of_wheel(program.stem, wheels)) is not None:
        return version
    return _said(program, program.stat().st_mtime_ns)


def of_wheel(part: str, wheels: Path | None) -> Version | None:
    """Of the wheel that brought a part, None where there is none, or more than one."""
    if wheels is None or part not in _WHEELS:
        return None
    records = [*wheels.glob(f"{_WHEELS[part]}-*.dist-info"), *wheels.glob(f"{_WHEELS[part]}_cu*-*.dist-info")]
    matches = {re.search(r"-(\d+)\.(\d+)[.\d]*\.dist-info$", record.name) for record in records}
    versions = {(int(one[1]), int(one[2])) for one in matches if one is not None}
    return versions.pop() if len(versions) == 1 else None


@cache
def _said(program: Path, _: int) -> Version | None:
    try:
        done = subprocess.run(
            [str(program), "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIME_LIMIT_S
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"release (\d+)\.(\d+)", done.stdout + done.stderr)
    return (int(match[1]), int(match[2])) if match else None
