"""One launch under NVIDIA's profilers: the program found, the launch made again in a child of it, its table read."""

from __future__ import annotations

import base64
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pygpukit._core import native
from pygpukit.core.errors import GPUError
from pygpukit.jit.launch.unit import Unit
from pygpukit.worker.remote import portable, unit_arguments

TOOLS = {"ncu": "Nsight Compute", "nsys": "Nsight Systems"}
_FOLDERS = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute", "/opt/nvidia/nsight-systems")
_TIMEOUT_S = 600
_NSYS_LAUNCHES = 10
_CHILD = "pygpukit.worker.nsight_launch"
_MAX_CHARS = 2000  # of a tool's words in an error


@dataclass(frozen=True)
class Metric:
    """A figure of a profiler: the section of its report, its name, its unit and its value as the program wrote them."""

    section: str
    name: str
    unit: str
    value: str


@dataclass(frozen=True)
class Profiled:
    """A profiler's report of one kernel. tool: "ncu" or "nsys"."""

    tool: str
    kernel: str
    metrics: tuple[Metric, ...]

    def __str__(self) -> str:
        width = max((len(one.name) for one in self.metrics), default=0)
        lines, section = [f"{TOOLS[self.tool]}: {self.kernel}"], ""
        for one in self.metrics:
            if one.section != section:
                section = one.section
                lines.append(section)
            lines.append(f"  {one.name:<{width}}  {one.value} {one.unit}".rstrip())
        return "\n".join(lines)


@dataclass(frozen=True)
class Launched:
    """A launch that can be made again elsewhere: its unit, kernel, configuration and arguments."""

    unit: Unit
    kernel: str
    grid: Sequence[int]
    block: Sequence[int]
    shared_bytes: int
    values: Sequence[Any]


def find(tool: str) -> str:
    """The program. Raises GPUError, saying where it was looked for and what installs it."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    folders = [Path(home) / "bin"] if home else []
    for place in map(Path, _FOLDERS):
        folders += [place, *sorted(place.glob("*"), reverse=True)]  # each version has a folder, the newest comes first
    program = shutil.which(tool) or shutil.which(tool, path=os.pathsep.join(map(str, folders)))
    if program is None:
        raise GPUError(
            f"--{tool} runs the kernel under {TOOLS[tool]}, and there is no program {tool} on PATH, in CUDA_HOME/bin, "
            f"{_FOLDERS[0]} or below /opt/nvidia; install {TOOLS[tool]}, which CUDA's toolkit has, or add its folder "
            "to PATH"
        )
    return program


def profiled(tool: str, program: str, launched: Launched) -> Profiled:
    """The report of one launch, made on copies of its arrays in a child process of the program.

    Raises GPUError with the program's last words where it, or the launch, failed or no kernel was seen.
    """
    with tempfile.TemporaryDirectory(prefix="pygpukit-nsight-") as name:
        folder = Path(name)
        _save(folder, launched, 1 if tool == "ncu" else _NSYS_LAUNCHES)
        child = [sys.executable, "-m", _CHILD, name]
        read = _ncu if tool == "ncu" else _nsys
        metrics = read(program, folder, launched.kernel, child)
    if not metrics:
        raise GPUError(f"--{tool}: {TOOLS[tool]} saw no launch of {launched.kernel}; it sees those of a GPU alone")
    return Profiled(tool, launched.kernel, metrics)


def ncu_metrics(text: str) -> tuple[Metric, ...]:
    """The figures in what `ncu --csv --page details` wrote, without its own talk and rules that have no figure."""
    rows = _rows(text, "ID")
    return tuple(
        Metric(row.get("Section Name") or "", row["Metric Name"], row.get("Metric Unit") or "", row["Metric Value"])
        for row in rows
        if row.get("Metric Name") and row.get("Metric Value")
    )


def nsys_metrics(text: str, kernel: str) -> tuple[Metric, ...]:
    """The figures of a kernel in what `nsys stats --report cuda_gpu_kern_sum --format csv` wrote."""
    metrics = []
    for row in _rows(text, "Time (%)"):
        if (row.get("Name") or "").partition("(")[0] == kernel:
            for title, value in row.items():
                head, _, unit = title.partition(" (")
                if title not in ("Name", "Time (%)") and value:
                    metrics.append(Metric("launches", head, unit.rstrip(")"), value))
    return tuple(metrics)


def _rows(text: str, first: str) -> list[Mapping[str, str]]:
    """The rows of the table whose head begins with a column, without lines that are none of its."""
    lines = [line for line in text.replace("\0", "").splitlines() if line.strip() and not line.startswith("==")]
    starts = [number for number, line in enumerate(lines) if line.replace('"', "").startswith(f"{first},")]
    if not starts:
        return []
    head, *rows = csv.reader(lines[starts[0] :])
    return [dict(zip(head, row, strict=False)) for row in rows]


def _ncu(program: str, folder: Path, kernel: str, child: list[str]) -> tuple[Metric, ...]:
    log = folder / "ncu.csv"
    only = ["--kernel-name-base", "function", "--kernel-name", kernel.partition("<")[0].rpartition("::")[2]]
    _run([program, "--csv", "--page", "details", "--log-file", str(log), *only, "--launch-count", "1", *child], log)
    return ncu_metrics(log.read_text(encoding="utf-8", errors="replace") if log.is_file() else "")


def _nsys(program: str, folder: Path, kernel: str, child: list[str]) -> tuple[Metric, ...]:
    report = folder / "report"
    _run([program, "profile", "--trace", "cuda,nvtx", "--force-overwrite", "true", "--output", str(report), *child])
    stats = [program, "stats", "--report", "cuda_gpu_kern_sum", "--format", "csv", "--output", "-"]
    return nsys_metrics(_run([*stats, f"{report}.nsys-rep"]), kernel)


def _run(command: list[str], log: Path | None = None) -> str:
    """Run the program: its standard output. Raises GPUError where it failed."""
    tool = Path(command[0]).name
    path = os.pathsep.join(place for place in sys.path if place)
    environment = {**os.environ, "PYTHONPATH": path}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        raise GPUError(f"{tool} had not ended after {_TIMEOUT_S} s, and was stopped") from None
    except OSError as error:
        raise GPUError(f"{command[0]} cannot be run: {error}") from None
    words = done.stdout + done.stderr
    if log is not None and log.is_file():
        words += log.read_text(encoding="utf-8", errors="replace")
    if "ERR_NVGPUCTRPERM" in words:
        raise GPUError(
            f"{tool}: the driver of this machine lets only administrators read performance counters "
            "(ERR_NVGPUCTRPERM); an administrator loads it with "
            "NVreg_RestrictProfilingToAdminUsers=0, or runs the notebook"
        )
    if done.returncode:
        raise GPUError(f"{tool} ended with {done.returncode}: {words.strip()[-_MAX_CHARS:]}")
    return done.stdout


def _save(folder: Path, launched: Launched, launches: int) -> None:
    """All of a launch, for the child: JSON, and the bytes of each array in a file."""
    values: list[Any] = []
    for number, value in enumerate(launched.values):
        sent = portable(launched.kernel, value)
        if isinstance(sent, native.ArrayBase):
            whole = value.clone()
            data = native.view(whole, (whole.nbytes,), (1,), 0, "uint8").to_numpy() if whole.size else b""
            (folder / f"array{number}").write_bytes(bytes(data))
            sent = {"array": f"array{number}", "shape": list(whole.shape), "dtype": str(whole.dtype)}
        values.append(sent)
    call = {
        "source": launched.unit.source,
        "arguments": unit_arguments(launched.unit),
        "image": base64.b64encode(launched.unit.image.to_bytes()).decode(),
        "kernel": launched.kernel,
        "grid": list(launched.grid),
        "block": list(launched.block),
        "shared_bytes": launched.shared_bytes,
        "values": values,
        "launches": launches,
    }
    (folder / "call.json").write_text(json.dumps(call), encoding="utf-8")
