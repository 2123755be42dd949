"""count(): how many bytes a launch moves and how many floating-point operations it does, by running it on the
simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pygpukit._core import native
from pygpukit.core.array import GPUArray
from pygpukit.core.factory import from_numpy
from pygpukit.core.stream import synchronize
from pygpukit.jit.kernel import JITKernel
from pygpukit.jit.sim_flops import COUNTS_FLOPS


@dataclass(frozen=True)
class Counts:
    """What one launch did, as its compiled code did it.

    global_load_bytes, global_store_bytes: of every access to arrays and to variables of the device, caches not
    considered; an atomic both loads and stores. shared_bytes: loads and stores of shared memory. flops: additions,
    subtractions, multiplications, divisions and square roots count 1, fused multiply-adds 2; minima, comparisons,
    conversions and the functions of the C library (exp, sin, ...) count nothing; None where the machine's instructions
    are not known (anything but x86-64). A value that the compiler keeps in a register is loaded once, as on a GPU.
    """

    global_load_bytes: int
    global_store_bytes: int
    shared_bytes: int
    flops: int | None


def count(kernel: JITKernel, config: Any, args: Sequence[Any]) -> Counts:
    """Run the kernel once with `config` (what stands in its brackets) and `args` on the simulation, and count.

    Exact and deterministic. Arrays have their values again afterwards. Raises ValueError where the kernel is not
    compiled for the simulation, KernelCheckError when the kernel does what it must not, and what a launch raises.
    """
    counting = kernel.in_mode("count")
    arrays = {id(one): one for one in args if isinstance(one, GPUArray)}
    before = {key: np.array(one.to_numpy()) for key, one in arrays.items()}
    synchronize()
    native.sim_take_traffic()
    try:
        counting[config](*args)
        synchronize()
    finally:
        for key, one in arrays.items():
            one[...] = from_numpy(before[key])
    loads, stores, shared_loads, shared_stores, flops = native.sim_take_traffic()
    return Counts(loads, stores, shared_loads + shared_stores, flops if COUNTS_FLOPS else None)
