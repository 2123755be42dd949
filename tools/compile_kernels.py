"""Compiles every built-in kernel with NVRTC for every supported architecture; needs no GPU. Stops at an error."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor

ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")

Job = tuple[str, str, tuple[str, ...], tuple[str, ...]]


def compile_one(job: Job) -> tuple[str, int]:
    """(architecture, image bytes). In a process of its own: NVRTC compiles one unit at a time in each."""
    from pygpukit.jit.builtin import source
    from pygpukit.jit.compiler import compile_source

    arch, key, expressions, options = job
    image = compile_source(source(key), name=key, options=options, arch=arch, name_expressions=expressions)
    if not image.image:
        raise RuntimeError(f"{key} for {arch}: the compiler returned no image")
    return arch, len(image.image)


def main() -> int:
    from pygpukit.jit.builtin import catalogue

    units = list(catalogue())
    jobs: list[Job] = [(arch, *unit) for arch in ARCHITECTURES for unit in units]
    begin = time.monotonic()
    sizes = dict.fromkeys(ARCHITECTURES, 0)
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
