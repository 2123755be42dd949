"""Which kernels are compiled in checked mode, and how long those may run: check= of jit() and two variables."""

from __future__ import annotations

import os

CHECK_VARIABLE = "PYGPUKIT_CHECK"
STEP_LIMIT_VARIABLE = "PYGPUKIT_SIM_STEP_LIMIT"
_FROM_ENVIRONMENT: dict[str, bool | str] = {"": False, "0": False, "1": True, "memory": "memory"}


def check_mode(check: bool | str | None, arch: str) -> bool | str:
    """False, True, "memory" (no races) or "count" (bytes only) for a unit that is compiled for `arch`.

    None stands for what PYGPUKIT_CHECK says, which concerns the simulation alone. Raises ValueError for anything else,
    and for a check on an architecture that is not the simulation.
    """
    if check is None:
        value = os.environ.get(CHECK_VARIABLE, "")
        if value not in _FROM_ENVIRONMENT:
            raise ValueError(f'{CHECK_VARIABLE} is {value!r}; it must be "1", "memory" or empty')
        return _FROM_ENVIRONMENT[value] if arch == "sim" else False
    if check not in (False, True, "memory", "count"):
        raise ValueError(f'check is {check!r}; it must be True, False or "memory"')
    if check and arch != "sim":
        raise ValueError(
            f"check={check!r}: checked mode runs on the simulation, and this kernel is compiled for {arch}; "
            "start Python with PYGPUKIT_BACKEND=sim to check it"
        )
    return check


def step_limit() -> int:
    """The number of basic blocks that a checked launch may run, as PYGPUKIT_SIM_STEP_LIMIT says; 0 for no limit.

    A basic block is a piece of code without branches; the threads of a launch are counted together. Raises ValueError.
    """
    value = os.environ.get(STEP_LIMIT_VARIABLE) or "0"
    if not value.isascii() or not value.isdecimal() or int(value) >= 2**63:
        raise ValueError(f"{STEP_LIMIT_VARIABLE} is {value!r}; it must be a whole number of steps, 0 for no limit")
    return int(value)
