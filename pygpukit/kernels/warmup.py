"""`pygpukit warmup`: built-in kernels are compiled into the cache, each as operations ask for it, by all processors."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

from pygpukit.core.progress import Progress
from pygpukit.kernels import needed
from pygpukit.kernels.spec import KernelSpec

_CHUNK = 4  # kernels that a process takes at a time


def command(args: argparse.Namespace) -> int:
    """Compile what was asked. Exit code 1, and one sentence, where that cannot be."""
    try:
        for model in args.models:
            print(warm_model(model, args.arch))
        if args.family or args.all or not args.models:
            print(warm(args.family or ([] if args.all else ["matmul"]), args.arch))
    except (ValueError, RuntimeError) as error:
        print(f"pygpukit warmup: {error}", file=sys.stderr)
        return 1
    return 0


def warm(families: Iterable[str], arch: str | None = None) -> str:
    """Compile the kernels of some folders of pygpukit/ops, of all for none, and say what was done. arch: None for the
    current device's. Raises ValueError for an unknown folder or without a device and arch, CompileError, NvrtcError."""
    from pygpukit.jit.compile import tile

    arch = arch or _own_arch()
    numbers = _of(list(families))
    left_out = [n for n in numbers if kernels()[n].front_end == "tile"] if tile.missing() else []
    jobs = [(arch, n) for n in numbers if n not in set(left_out)]
    vars(sys.modules["__main__"]).setdefault("__spec__", None)  # spawning reads it, and IPython's %reset deletes it
    # Compiling needs no device, and a process that has one open cannot be forked.
    with (
        Progress(f"compiling for {arch}", len(jobs), things="kernels") as bar,
        ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=_without_device) as pool,
    ):
        for _ in pool.map(_compile, jobs, chunksize=_CHUNK):
            bar.add(1)
    said = f"{len(jobs)} kernels for {arch} are in the cache"
    return f"{said}; {len(left_out)} were left out: {tile.missing()}" if left_out else said


def warm_model(model: str, arch: str | None = None) -> str:
    """Compile the kernels that a model launches first, and say what was done. Raises ValueError for a model whose
    kernels are not listed, or without a device and arch, RuntimeError for a kernel that cannot be compiled."""
    if model not in needed.listed():
        known = ", ".join(needed.listed())
        raise ValueError(f"the kernels of {model!r} are not listed; those of {known} are")
    arch = arch or _own_arch()
    coming = needed.Coming(model, arch)
    coming.wait()
    if coming.failed:
        raise RuntimeError(f"{model}: {coming.failed}")
    return f"{coming.total} kernels of {model} for {arch} are in the cache"


@cache
def kernels() -> list[KernelSpec]:
    """Every listed kernel, one by one."""
    from pygpukit.kernels.registry import catalogue

    return [unit.spec.of(expression) for unit in catalogue() for expression in unit.expressions]


def _own_arch() -> str:
    import pygpukit as gp
    from pygpukit._core import native
    from pygpukit.jit.compile import nvrtc

    if gp.backend() != "cuda":
        raise ValueError(f"there is no device to compile for ({gp.backend().reason}); name one: --arch sm_90a")
    return nvrtc.device_arch(native.current_device())


def _of(families: list[str]) -> list[int]:
    """Numbers of the kernels in these folders."""
    folder = [spec.source.rpartition("/")[0].removeprefix("ops/") for spec in kernels()]
    for family in families:
        if not any(_inside(one, family) for one in folder):
            known = ", ".join(sorted(set(folder)))
            raise ValueError(f"there are no kernels in {family!r}; there are some in {known}")
    return [n for n, one in enumerate(folder) if not families or any(_inside(one, family) for family in families)]


def _inside(folder: str, family: str) -> bool:
    return folder == family or folder.startswith(f"{family}/")


def _without_device() -> None:
    os.environ["PYGPUKIT_BACKEND"] = "sim"


def _compile(job: tuple[str, int]) -> None:
    from pygpukit.kernels.builder import compile_unit
    from pygpukit.kernels.registry import Unit

    arch, number = job
    spec = kernels()[number]
    compile_unit(Unit(spec, (spec.expression,)), arch)
