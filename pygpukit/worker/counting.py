"""count(): how many bytes a launch moves and how many floating-point operations it does, by running it on the
simulation."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pygpukit._core import native
from pygpukit.array.array import GPUArray
from pygpukit.array.factory import from_numpy
from pygpukit.core.backend import is_sim
from pygpukit.core.errors import GPUError
from pygpukit.core.stream import synchronize
from pygpukit.jit.compile.sim_flops import COUNTS_FLOPS
from pygpukit.jit.launch import configuration
from pygpukit.jit.launch.kernel import JITKernel
from pygpukit.worker.remote import KernelWorker, RemoteUnit, exception_of, portable

_worker = KernelWorker("counting", backend="sim")


@dataclass(frozen=True)
class Counts:
    """Counts of one launch, as its compiled code did it.

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

    Exact and deterministic. On the simulation the kernel runs in this process and arrays have their values again
    afterwards; on cuda it runs in a worker process, on copies (count_in_worker()). It finds the __device__ and
    __constant__ variables as they are; pointers that they or structures hold mean nothing in the worker.

    Raises CompilerNotFound, CompileError when the kernel does not compile for the simulation, KernelCheckError when it
    does what it must not, GPUError when the copies do not fit into the host's memory, and what a launch raises.
    """
    return _count_here(kernel, config, args) if is_sim() else count_in_worker(kernel, config, args)


def _count_here(kernel: JITKernel, config: Any, args: Sequence[Any]) -> Counts:
    counting = kernel.simulated("count")
    arrays = {id(one): one for one in args if isinstance(one, GPUArray)}
    before = {key: np.array(one.to_numpy()) for key, one in arrays.items()}
    for name, array in _variables(kernel).items():
        native.copy(counting.globals[name].array(), array)
    synchronize()
    native.sim_take_traffic()
    try:
        counting[config](*args)
        synchronize()
    finally:
        for key, one in arrays.items():
            one[...] = from_numpy(before[key])
    return _counts(native.sim_take_traffic())


def count_in_worker(kernel: JITKernel, config: Any, args: Sequence[Any]) -> Counts:
    """count() in a worker process on the simulation, whatever backend this process has: on host copies of the arrays.

    An interrupt ends the worker; the next call starts another.
    """
    grid, block, shared_bytes, _ = configuration.parse(kernel.name, config)
    counting = kernel.simulated("count")
    title = f"{kernel.name}[{grid}, {block}] counted on the simulation"
    variables = _variables(kernel)
    call = {
        "unit": "",
        "kernel": kernel.name,
        "grid": list(grid),
        "block": list(block),
        "shared_bytes": shared_bytes,
        "cooperative": False,
        "cluster": None,
        "variables": list(variables),
    }
    remote = RemoteUnit(counting.unit, _worker)
    values = [*(portable(title, value) for value in args), *variables.values()]
    answer = _worker.call("count", remote, call | {"unit": remote.name}, values)
    if answer["error"] is not None:
        raise exception_of(answer["error"], f"{title}: {answer['error']['message']}")
    return _counts(answer["traffic"])


def _variables(kernel: JITKernel) -> dict[str, GPUArray]:
    """The variables that can have been written, as they are in the module that launches use."""
    variables = {}
    for name, variable in kernel.unit.globals.items():
        if not variable.constant:
            with contextlib.suppress(GPUError):  # the compiler left it out: nothing uses it
                variables[name] = variable.array()
    return variables


def _counts(traffic: Sequence[int]) -> Counts:
    loads, stores, shared_loads, shared_stores, flops = traffic
    return Counts(loads, stores, shared_loads + shared_stores, flops if COUNTS_FLOPS else None)
