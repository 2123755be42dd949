"""Compiles every built-in kernel with NVRTC for every supported architecture; needs no GPU. Stops at an error.

    python tools/compile_kernels.py [--arch sm_90a ...] [--bundle FOLDER]

With --bundle the images are kept for machines that have a driver but no NVRTC (pygpukit/jit/bundle.py).
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")

Job = tuple[str, str, tuple[str, ...], tuple[str, ...], "Path | None"]


def compile_one(job: Job) -> tuple[str, int]:
    """(architecture, image bytes). In a process of its own: NVRTC compiles one unit at a time in each."""
    from pygpukit.jit import bundle
    from pygpukit.jit.builtin import source
    from pygpukit.jit.compiler import compile_source

    arch, key, expressions, options, target = job
    image = compile_source(source(key), name=key, options=options, arch=arch, name_expressions=expressions)
    if not image.image:
        raise RuntimeError(f"{key} for {arch}: the compiler returned no image")
    if target is not None:
        bundle.put(target, arch, (key, expressions, options), image)
    return arch, len(image.image)


def main() -> int:
    from pygpukit.jit.builtin import catalogue

    parser = argparse.ArgumentParser(description="Compile every built-in kernel.")
    parser.add_argument("--arch", nargs="+", default=ARCHITECTURES, choices=ARCHITECTURES)
    parser.add_argument("--bundle", type=Path, default=None, help="keep the images in this folder")
    wanted = parser.parse_args()
    units = list(catalogue())
    jobs: list[Job] = [(arch, *unit, wanted.bundle) for arch in wanted.arch for unit in units]
    begin = time.monotonic()
    sizes = dict.fromkeys(wanted.arch, 0)
    with ProcessPoolExecutor() as pool:
        for arch, size in pool.map(compile_one, jobs, chunksize=4):
            sizes[arch] += size
    kernels = sum(len(expressions) for _, expressions, _ in units)
    for arch, size in sizes.items():
        print(f"{arch:<8} {kernels} kernels in {len(units)} units, {size / 1e6:.2f} MB")
    print(f"{len(jobs)} units in {time.monotonic() - begin:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
