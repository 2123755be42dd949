"""Compiles every built-in kernel for one architecture into the kernel cache, each as operations ask for it.

    PYGPUKIT_CACHE_DIR=... python tools/fill_cache.py sm_90a

Test runs on a device use thousands of kernels once each: compiled one by one they would take longer than the tests.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

os.environ["PYGPUKIT_BACKEND"] = "sim"  # compiling needs no device


def compile_one(job: tuple[str, str, str, tuple[str, ...]]) -> None:
    from pygpukit.jit.builtin import source
    from pygpukit.jit.compile.compiler import compile_source

    arch, key, expression, options = job
    compile_source(source(key), name=key, options=options, arch=arch, name_expressions=(expression,))


def main() -> int:
    from pygpukit.jit.builtin import catalogue

    arch = sys.argv[1]
    begin = time.monotonic()
    jobs = [(arch, key, expression, options) for key, expressions, options in catalogue() for expression in expressions]
    with ProcessPoolExecutor() as pool:
        compiled = sum(1 for _ in pool.map(compile_one, jobs, chunksize=8))
    print(f"{compiled} kernels for {arch} in {time.monotonic() - begin:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
