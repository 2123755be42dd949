"""Compiles every built-in kernel for one architecture into the kernel cache, each as operations ask for it.

    PYGPUKIT_CACHE_DIR=... python tools/fill_cache.py sm_90a

Test runs on a device use thousands of kernels once each: compiled one by one they would take longer than the tests.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygpukit.kernels import KernelSpec

os.environ["PYGPUKIT_BACKEND"] = "sim"  # compiling needs no device


@cache
def kernels() -> list[KernelSpec]:
    from pygpukit.kernels.registry import catalogue

    return [unit.spec.of(expression) for unit in catalogue() for expression in unit.expressions]


def compile_one(job: tuple[str, int]) -> None:
    from pygpukit.kernels.builder import compile_unit
    from pygpukit.kernels.registry import Unit

    arch, number = job
    spec = kernels()[number]
    compile_unit(Unit(spec, (spec.expression,)), arch)


def main() -> int:
    arch = sys.argv[1]
    begin = time.monotonic()
    jobs = [(arch, number) for number in range(len(kernels()))]
    with ProcessPoolExecutor() as pool:
        compiled = sum(1 for _ in pool.map(compile_one, jobs, chunksize=8))
    print(f"{compiled} kernels for {arch} in {time.monotonic() - begin:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
