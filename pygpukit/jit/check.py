"""Which kernels are compiled in checked mode: check= of jit(), Unit and compile_source(), and PYGPUKIT_CHECK."""

from __future__ import annotations

import os

CHECK_VARIABLE = "PYGPUKIT_CHECK"
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
