"""Compiles every built-in kernel with NVRTC for every supported architecture; needs no GPU. Stops at an error.

    python tools/compile_kernels.py [--arch sm_90a ...] [--bundle [FILE]]

With --bundle the images are kept in one file for machines that have a driver but no NVRTC (pygpukit/jit/bundle.py);
without a name, in the package, from where every wheel that is built afterwards takes it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")

Unit = tuple[str, tuple[str, ...], tuple[str, ...]]
Job = tuple[str, Unit]


def compile_one(job: Job) -> tuple[str, Unit, bytes]:
    """(architecture, unit, entry). In a process of its own: NVRTC compiles one unit at a time in each."""
    from pygpukit.jit.builtin import source
    from pygpukit.jit.compile.compiler import compile_source

    arch, unit = job
    key, expressions, options = unit
    image = compile_source(source(key), name=key, options=options, arch=arch, name_expressions=expressions)
    if not image.image:
        raise RuntimeError(f"{key} for {arch}: the compiler returned no image")
    return arch, unit, image.to_bytes()


def main() -> int:
    from pygpukit.jit import bundle
    from pygpukit.jit.builtin import catalogue
    from pygpukit.jit.cache.image import Image, from_bytes

    parser = argparse.ArgumentParser(description="Compile every built-in kernel.")
    parser.add_argument("--arch", nargs="+", default=ARCHITECTURES, choices=ARCHITECTURES)
    parser.add_argument("--bundle", type=Path, nargs="?", const=bundle.PACKAGED, help="keep the images in this file")
    wanted = parser.parse_args()
    units = list(catalogue())
    jobs: list[Job] = [(arch, unit) for arch in wanted.arch for unit in units]
    begin = time.monotonic()
    sizes = dict.fromkeys(wanted.arch, 0)

    def images() -> Iterator[tuple[str, Unit, Image]]:
        with ProcessPoolExecutor() as pool:
            for arch, unit, entry in pool.map(compile_one, jobs, chunksize=4):
                image = from_bytes(entry, b"", "compiled", {})
                sizes[arch] += len(image.image)
                yield arch, unit, image

    if wanted.bundle is None:
        compiled = sum(1 for _ in images())
    else:
        compiled = bundle.write(wanted.bundle, images())
    kernels = sum(len(expressions) for _, expressions, _ in units)
    for arch, size in sizes.items():
        print(f"{arch:<8} {kernels} kernels in {len(units)} units, {size / 1e6:.2f} MB")
    print(f"{compiled} units in {time.monotonic() - begin:.1f} s")
    if wanted.bundle is not None:
        print(f"{wanted.bundle}: {wanted.bundle.stat().st_size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
