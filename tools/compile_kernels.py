"""Compiles every built-in kernel with NVRTC for every supported architecture; needs no GPU. Stops at an error.

    python tools/compile_kernels.py [--arch sm_90a ...] [--part K/N] [--bundle [FILE] | --minutes N] [--simt] [--loops]

With --part one of N units is compiled, from the one with number K on, which begins at 0. With --simt tile kernels are
left out: NVRTC before 13.3 has no front end for them. With --minutes a part, another at each --turn, is compiled for
that long, and what was left out is said. With --bundle the images are kept in one file for machines that have a driver
but no NVRTC (pygpukit/kernels/bundle.py); without a name, in the package, from where each wheel built afterwards
takes it. With --loops it says which loops touch local memory, as spilled registers do, and stops at a kernel that is
held to be free of that (tools/spills.py); that needs nvdisasm.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import spills

if TYPE_CHECKING:
    from pygpukit.jit.cache.image import Image
    from pygpukit.kernels.registry import Unit

ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")

Job = tuple[str, int, bool]  # architecture, a unit's number in the catalogue, and whether its loops are looked at


@cache
def units() -> list[Unit]:
    from pygpukit.kernels.registry import catalogue

    return list(catalogue())


def compile_one(job: Job) -> tuple[str, int, bytes]:
    """(architecture, unit, entry). In a process of its own: NVRTC compiles one unit at a time in each."""
    from pygpukit.jit.inspect.cubin import read_cubin
    from pygpukit.kernels.builder import compile_unit

    arch, number, loops = job
    unit = units()[number]
    image = compile_unit(unit, arch)
    if not image.image:
        raise RuntimeError(f"{unit} for {arch}: the compiler returned no image")
    if unit.spec.front_end == "tile" and (
        spilled := [k for k, v in read_cubin(image.image).kernels.items() if v.local_bytes]
    ):
        raise RuntimeError(f"{unit} for {arch}: registers are spilled by {', '.join(spilled)}: choose another tile")
    if loops and unit.spec.front_end == "simt":
        spills.check(unit, image)
    return arch, number, image.to_bytes()


def part(text: str) -> slice:
    """The units that "1/3" names: number 1 and every third one after it. Raises ValueError."""
    which, every = map(int, text.split("/"))
    if not 0 <= which < every:
        raise ValueError(f"{text}: the first number is at least 0 and below the second")
    return slice(which, None, every)


def in_turn(jobs: list[Job], turn: str) -> list[Job]:
    """The jobs in an order that follows from the turn, each job early in some of them."""
    return sorted(jobs, key=lambda job: blake2b(f"{turn} {job}".encode()).digest())


def compile_part(jobs: list[Job], minutes: float) -> list[Job]:
    """Compile one after the other, several at once, until the time is up; those that were left out."""
    end, waiting = time.monotonic() + 60 * minutes, iter(jobs)
    done: list[Job] = []

    def until_then() -> Iterator[Job]:
        for job in waiting:
            if time.monotonic() > end:
                return
            done.append(job)
            yield job

    with ProcessPoolExecutor() as pool:
        todo = until_then()
        for job in todo:
            # A few at a time: what is handed over is compiled to its end.
            batch = [job, *(one for _, one in zip(range(7), todo, strict=False))]
            list(pool.map(compile_one, batch))
    return [job for job in jobs if job not in set(done)]


def main() -> int:
    from pygpukit.jit.cache.image import from_bytes
    from pygpukit.kernels import bundle

    parser = argparse.ArgumentParser(description="Compile every built-in kernel.")
    parser.add_argument("--arch", nargs="+", default=ARCHITECTURES, choices=ARCHITECTURES)
    parser.add_argument("--bundle", type=Path, nargs="?", const=bundle.PACKAGED, help="keep the images in this file")
    parser.add_argument("--minutes", type=float, help="compile a part, for that long")
    parser.add_argument("--turn", default="0", help="with --minutes: another turn compiles another part")
    parser.add_argument(
        "--part", type=part, default=slice(None), metavar="K/N", help="compile one of N units, from K on"
    )
    parser.add_argument(
        "--simt", action="store_true", help="leave tile kernels out, which NVRTC before 13.3 cannot compile"
    )
    parser.add_argument("--loops", action="store_true", help="look for local memory in loops, with nvdisasm")
    arguments = parser.parse_args()
    if arguments.bundle is not None and (arguments.minutes is not None or arguments.simt):
        parser.error("--bundle holds every kernel of an architecture: it goes without --minutes and --simt")
    chosen = range(len(units()))[arguments.part]
    kept = [n for n in chosen if not arguments.simt or units()[n].spec.front_end == "simt"]
    jobs: list[Job] = [(arch, n, arguments.loops) for arch in arguments.arch for n in kept if units()[n].is_ahead(arch)]
    begin = time.monotonic()
    if arguments.minutes is not None:
        left = compile_part(in_turn(jobs, arguments.turn), arguments.minutes)
        print(f"{len(jobs) - len(left)} of {len(jobs)} units in {time.monotonic() - begin:.0f} s; left out today:")
        for (arch, source), count in sorted(Counter((arch, units()[n].source) for arch, n, _ in left).items()):
            print(f"  {arch:<8} {source}: {count}")
        return 0
    sizes = dict.fromkeys(arguments.arch, 0)

    def images() -> Iterator[tuple[str, Unit, Image]]:
        with ProcessPoolExecutor() as pool:
            for arch, number, entry in pool.map(compile_one, jobs, chunksize=4):
                image = from_bytes(entry, b"", "compiled", {})
                sizes[arch] += len(image.image)
                yield arch, units()[number], image

    if arguments.bundle is None:
        compiled = sum(1 for _ in images())
    else:
        compiled = bundle.write(arguments.bundle, images())
    for arch, size in sizes.items():
        ahead = [units()[n] for one, n, _ in jobs if one == arch]
        kernels = sum(len(unit.expressions) for unit in ahead)
        print(f"{arch:<8} {kernels} kernels in {len(ahead)} units, {size / 1e6:.2f} MB")
    print(f"{compiled} units in {time.monotonic() - begin:.1f} s")
    if arguments.bundle is not None:
        print(f"{arguments.bundle}: {arguments.bundle.stat().st_size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
