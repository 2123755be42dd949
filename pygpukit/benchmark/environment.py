"""Where a run was measured: device, driver, clocks, processor, versions."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "cupy-cuda13x", "cuda-core", "torch", "triton", "nvidia-cuda-nvrtc", "ipykernel", "jupyterlab")


@dataclass
class GPUInfo:
    """The measured device. On the simulation the name says so and the versions are empty."""

    name: str
    sm_major: int
    sm_minor: int
    memory_gb: float
    driver_version: str = ""
    cuda_version: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def get_gpu_info() -> GPUInfo:
    """The current device. Opens the backend."""
    from .._core import native
    from ..core.backend import ensure

    ensure()
    info = native.device_info(native.current_device())
    cuda = int(info["driver_version"])
    return GPUInfo(
        name=str(info["name"]),
        sm_major=int(info["compute_major"]),
        sm_minor=int(info["compute_minor"]),
        memory_gb=round(info["total_memory_bytes"] / 1e9, 2),
        driver_version=_nvidia_smi("driver_version") if cuda else "",
        cuda_version=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else "",
    )


def _output(command: list[str], cwd: Path | None = None) -> str:
    """Standard output of a short command, or "" where it is absent or fails: its absence is itself the record."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, cwd=cwd, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _nvidia_smi(fields: str) -> str:
    return _output(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]).partition("\n")[0]


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _commit() -> str:
    """Of the checkout that holds the package, or PYGPUKIT_GIT: an installed wheel cannot tell what it was made of."""
    root = Path(__file__).resolve().parents[2]
    described = _output(["git", "describe", "--always", "--dirty", "--tags"], root) if (root / ".git").exists() else ""
    return described or os.environ.get("PYGPUKIT_GIT", "")


def environment() -> dict[str, Any]:
    """Everything a reader needs to judge a figure. Opens the backend."""
    import pygpukit

    from .._core import native
    from ..core.backend import ensure

    ensure()
    on_cuda = native.backend_name() == "cuda"
    return {
        "pygpukit": pygpukit.__version__,
        "git": _commit(),
        "backend": native.backend_name(),
        "clocks": _nvidia_smi("clocks.sm,clocks.mem,temperature.gpu,power.draw") if on_cuda else "",
        "cpu": _processor(),
        "cores": os.cpu_count() or 0,
        "platform": platform.platform(),
        "python": sys.version.split()[0],
        "packages": _versions(),
        # A path says something about one machine only.
        "variables": {
            k: "a path" if os.sep in v else v for k, v in sorted(os.environ.items()) if k.startswith("PYGPUKIT_")
        },
    }
