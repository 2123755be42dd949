"""Functions that test_worker.py runs in a worker process."""

from __future__ import annotations

import os
import time
from typing import Any

import pygpukit as gp
from pygpukit._core import native

SCALE = """
extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
"""


def add_one(array: Any) -> None:
    """In place, by a built-in operation and a copy."""
    native.copy(array, gp.add(array, gp.ones(array.shape, dtype=array.dtype)))


def scale(array: Any, factor: float) -> None:
    """In place, by a kernel compiled here."""
    gp.jit(SCALE, func="scale")(array, factor=factor, n=array.size)


def add_into(a: Any, b: Any, out: Any) -> None:
    native.copy(out, gp.add(a, b))


def keep(array: Any) -> None:
    """The array outlives the call."""
    kept.append(array)


def kept_total() -> float:
    return float(kept[-1].to_numpy().sum())


kept: list[Any] = []


def total(*arrays: Any, scale: float = 1.0) -> float:
    return scale * sum(float(a.to_numpy().sum()) for a in arrays)


def describe(array: Any) -> list[Any]:
    return [list(array.shape), array.dtype.name]


def echo(value: Any) -> Any:
    return value


def unsendable() -> object:
    return object()


def fail(*_arrays: Any) -> None:
    raise LookupError("no such thing")


def ids() -> dict[str, int]:
    return {"pid": os.getpid(), "parent": os.getppid()}


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def leave(code: int) -> None:
    os._exit(code)


def backend() -> str:
    return str(gp.backend())


not_a_function = 7
