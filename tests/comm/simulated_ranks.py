"""Groups of simulated devices for tests, each in a process of its own."""

from __future__ import annotations

import pytest
from alone import alone

import pygpukit as gp

WAIT_S = 55.0  # of a rank for another one; the simulator ends a kernel after 60
BOUND_S = 45.0  # in which a group must have ended instead, on a busy machine, with what it compiles; it promises two
SIMULATED = pytest.mark.skipif("gp.backend() != 'sim'", reason="the devices are simulated")


def on(devices: int, test: str, function: str, *words: str) -> None:
    """A function of the file `test` in a process of its own with so many devices."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYGPUKIT_SIM", raising=False)
        patch.setenv("PYGPUKIT_SIM_DEVICES", str(devices))
        patch.setenv("PYGPUKIT_CHECK", "0")
        alone(test, function, *words)


def group() -> gp.comm.Group:
    """Of all devices; kernels are compiled without optimisation, which takes the least time."""
    from pygpukit.jit.compile import simulator

    simulator._FLAGS = tuple(flag if flag != "-O2" else "-O0" for flag in simulator._FLAGS)  # the process is our own
    return gp.comm.Group(timeout=WAIT_S)
