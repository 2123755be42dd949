"""NVIDIA's samples as they are, and how many of them run: `python -m bench.samples --samples DIR`.

DIR is a checkout of them (github.com/NVIDIA/cuda-samples). Each is built and run by `pygpukit run`, with its own
sources and its own check."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import pygpukit as gp
from pygpukit.benchmark.environment import environment

_GRAPHICS = re.compile(r"find_package\((OpenGL|GLUT|EGL|Vulkan|MPI|OpenMP|FreeImage|NVSCI)\b")
_LINKED = re.compile(r"CUDA::(\w+)")
_PROGRAM = re.compile(r"add_executable\(\s*(\S+)\s+([^)]*)\)")
_MACROS = re.compile(r"target_compile_definitions\(\s*\S+\s+(?:PRIVATE|PUBLIC)\s+([^)]*)\)")
_OTHER_CODE = re.compile(r'#\s*include\s*[<"](thrust/|cub/|boost/|nvtx3/|curand|cublas|cufft|d3d|GL/)')
_SOURCES = (".cu", ".cpp", ".c", ".cc")
_FAILED = re.compile(r"\bFAILED\b|[Tt]est failed|Result = FAIL\b")
_WAIVED = 2  # EXIT_WAIVED: the sample finds the machine wanting
_NO_TIME = 124
_SPARE_S = 120.0  # for the compiler, beyond the limit of the run
# On the simulated device: smaller sizes, by the samples' own options.
_SMALLER = {
    "FDTD3d": "--dimx=48 --dimy=48 --dimz=48 --timesteps=1",
    "NV12toBGRandResize": "-input=data/test640x480.nv12 -width=640 -height=480 -dst_width=64 -dst_height=48 -batch=1",
    "eigenvalues": "-matrix-size=256 -iters-timing=1",
    "globalToShmemAsyncCopy": "-wA=128 -hA=128 -wB=128 -hB=128",
    "matrixMul": "-wA=64 -hA=64 -wB=64 -hB=64",
    "p2pBandwidthLatencyTest": "--numElems=1000",
    "reduction": "--n=16384",
    "reductionMultiBlockCG": "--n=16384",
    "transpose": "-dimX=128 -dimY=128",
}
PASSED, WAIVED, TIME, FAILED = "passed", "waived", "out of time", "failed"


@dataclass(frozen=True)
class Sample:
    """devices: what its check asks for."""

    name: str
    folder: Path
    sources: tuple[Path, ...]
    macros: tuple[str, ...]
    links: str
    devices: int


@dataclass(frozen=True)
class Row:
    name: str
    links: str
    result: str
    seconds: float
    reason: str = ""


def samples(checkout: Path, driver: bool) -> Iterator[Sample]:
    """Those that link the runtime alone, by their CMakeLists.txt: no graphics, no OpenMP, no MPI, no library beyond it,
    no header of Thrust, CUB, Boost, NVTX or another in their own files. driver: those of libcuda and NVRTC, too."""
    tests = json.loads((checkout / "test_args.json").read_text())
    allowed = {"cudart", "cudart_static"} | ({"cuda_driver", "nvrtc"} if driver else set())
    for listing in sorted((checkout / "Samples").glob("[0-6]_*/*/CMakeLists.txt")):
        folder = listing.parent
        # What a platform alone builds is no line of this one's.
        text = re.sub(r"#.*", "", listing.read_text())
        program = _PROGRAM.search(text)
        links = set(_LINKED.findall(text))
        if program is None or _GRAPHICS.search(text) or not links <= allowed:
            continue
        sources = tuple(folder / word for word in program[2].split() if word.endswith(_SOURCES))
        own = [path for path in folder.rglob("*") if path.suffix in (*_SOURCES, ".h", ".cuh", ".hpp")]
        if not sources or any(_OTHER_CODE.search(path.read_text(errors="replace")) for path in own):
            continue
        macros = tuple(word.removeprefix("-D") for line in _MACROS.findall(text) for word in line.split())
        beyond = sorted(links - {"cudart", "cudart_static"})
        devices = int(tests.get(folder.name, {}).get("min_gpus", 1))
        yield Sample(folder.name, folder, sources, macros, ", ".join(beyond) or "runtime", devices)


def run(sample: Sample, checkout: Path, limit_s: float) -> Row:
    """Build it, run it in its folder, read its check."""
    folders = [checkout / "Common", sample.folder, *sorted(p for p in sample.folder.glob("inc*") if p.is_dir())]
    command = [sys.executable, "-m", "pygpukit", "run", *map(str, sample.sources), "--timeout", str(limit_s)]
    command += [word for folder in folders for word in ("-I", str(folder))]
    command += [word for macro in sample.macros for word in ("-D", macro)]
    environment = {**os.environ}
    if gp.backend() == "sim":
        command += ["--", *_SMALLER.get(sample.name, "").split()]
        environment |= {"PYGPUKIT_SIM_DEVICES": str(sample.devices), "PYGPUKIT_SIM_TIMEOUT_S": f"{limit_s:g}"}
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=sample.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=limit_s + _SPARE_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Row(sample.name, sample.links, TIME, time.perf_counter() - began, "the compiler took too long")
    seconds = time.perf_counter() - began
    result = {0: PASSED, _WAIVED: WAIVED, _NO_TIME: TIME}.get(done.returncode, FAILED)
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if result == PASSED and (bad := next((line for line in lines if _FAILED.search(line)), "")):
        return Row(sample.name, sample.links, FAILED, seconds, bad[:200])
    reason = "" if result == PASSED else f"exit code {done.returncode}: {' / '.join(lines[-3:])[:400]}"
    return Row(sample.name, sample.links, result, seconds, reason)


def main() -> None:
    """Run them, and tell the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=Path, required=True, metavar="DIR", help="a checkout of NVIDIA/cuda-samples")
    parser.add_argument("--limit", type=float, default=180.0, metavar="S", help="of each run, in seconds (%(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once (%(default)s)")
    parser.add_argument("--budget", type=float, metavar="S", help="begin none after so many seconds")
    parser.add_argument("--driver", action="store_true", help="also those that use libcuda or NVRTC")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these alone")
    parser.add_argument("--list", action="store_true", help="tell which they are, and run none")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here")
    args = parser.parse_args()
    checkout = args.samples.resolve()
    chosen = [one for one in samples(checkout, args.driver) if not args.only or one.name in args.only]
    if args.list:
        print("\n".join(f"{one.name} ({one.links})" for one in chosen), f"\n{len(chosen)} samples")
        return
    began = time.perf_counter()
    rows: list[Row] = []

    def timed(one: Sample) -> Row | None:
        if args.budget is not None and time.perf_counter() - began > args.budget:
            return None
        return run(one, checkout, args.limit)

    with ThreadPoolExecutor(max_workers=args.jobs) as pool:
        for row in pool.map(timed, chosen):
            if row is None:
                continue
            rows.append(row)
            print(f"{row.result:12} {row.seconds:6.1f} s  {row.name}  {row.reason}", flush=True)
    counts = {result: sum(row.result == result for row in rows) for result in (PASSED, WAIVED, TIME, FAILED)}
    print(f"{counts[PASSED]} of {len(rows)} passed;", ", ".join(f"{n} {word}" for word, n in counts.items()))
    print(f"{len(chosen) - len(rows)} not begun")
    if args.json:
        args.json.write_text(
            json.dumps({"environment": environment(), "rows": [asdict(row) for row in rows]}, indent=1)
        )


if __name__ == "__main__":
    main()
