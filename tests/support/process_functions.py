"""Functions that tests submit to partitions of isolation "process"."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pygpukit as gp

SOURCE = """
extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
extern "C" __global__ void wild(float* x) { x[threadIdx.x + 1000000000LL] = 1; }
extern "C" __global__ void skewed(char* x) { *(volatile float*)(x + 1) = 1; }
extern "C" __global__ void trapped() { __trap(); }
extern "C" __global__ void spin(volatile int* x) { while (x[0] == 0); }
"""


class OwnError(Exception):
    """No type that another process can know."""


def echo(*args: Any, **kwargs: Any) -> Any:
    return args[0] if len(args) == 1 and not kwargs else (args, kwargs)


def pid() -> int:
    return os.getpid()


def fail(text: str) -> None:
    raise LookupError(text, 3)


def fail_in_its_own_way() -> None:
    raise OwnError("mine")


def doubled(x: Any) -> Any:
    return gp.add(x, x)


def divide_by_zero(x: Any) -> float:
    return float(x.to_numpy()[0]) / 0


def scale(x: Any, factor: float) -> None:
    gp.jit(SOURCE, func="scale")(x, factor=factor, n=x.size)


SCALED = 300  # more than a limit of a twentieth lets through at once


def scale_until(x: Any, file: str) -> None:
    """Once the file is there, SCALED launches one after another."""
    wait_for(file)
    kernel = gp.jit(SOURCE, func="scale")
    for _ in range(SCALED):
        kernel(x, factor=1.0, n=x.size)
    gp.synchronize()


def fault(kernel: str = "wild") -> None:
    """A kernel that the device does not survive."""
    arguments = {"trapped": (), "skewed": (gp.zeros(64, dtype="int8"),)}.get(kernel, (gp.zeros(64),))
    gp.jit(SOURCE, func=kernel)[2, 32](*arguments)
    gp.synchronize()


def spin_for_ever() -> None:
    gp.jit(SOURCE, func="spin")[1, 1](gp.zeros(1, dtype="int32"))
    gp.synchronize()


def leave(code: int) -> None:
    os._exit(code)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def wait_for(file: str) -> str:
    """Returns when the file is there, or after a minute."""
    end = time.monotonic() + 60
    while not Path(file).exists() and time.monotonic() < end:
        time.sleep(0.01)
    return "waited"


def fault_the_first_time(marker: str) -> str:
    """Faults unless the file is there, which it makes."""
    if not Path(marker).exists():
        Path(marker).touch()
        fault()
    return "the second time"


def allocate(nbytes: int) -> int:
    return int(gp.empty((nbytes,), dtype="uint8").nbytes)


def several(x: Any) -> dict[str, Any]:
    """Arrays of every origin: an argument, a view of one, new ones, one not contiguous, one without elements."""
    new = gp.add(x, x)
    return {"same": x, "view": x[1:3], "new": new, "again": new, "turned": gp.ones((2, 3)).T, "none": gp.zeros((0, 4))}


def say(text: str) -> None:
    print(text)
