"""planning(): what operations and models would launch on a device that is not here. It runs nothing.

Choices follow the architecture and what this machine's toolchain can compile. Arrays are on the simulated device, and
hold whatever their memory held: control flow must not depend on values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core import choices, pretended
from pygpukit.core.backend import backend
from pygpukit.core.errors import BackendUnavailableError

if TYPE_CHECKING:
    from pygpukit.kernels.spec import KernelSpec

# What differs between architectures, as far as choices ask: multiprocessors, and shared memory of a block.
_FACTS = {
    80: (108, 166912),
    86: (84, 101376),
    89: (128, 101376),
    90: (132, 232448),
    100: (148, 232448),
    120: (170, 101376),
}


@contextmanager
def planning(arch: str, compiles: bool = False, **facts: Any) -> Iterator[dict[KernelSpec, None]]:
    """Within it operations choose as on a device of that architecture ("sm_90a"), and what they would launch is in the
    dictionary that it gives. compiles: each of those kernels is compiled, so that one that cannot be is replaced as on
    the device. facts: of that device, in place of those that are known. Only on the simulated device, in one thread.

    Raises ValueError for an architecture without facts, BackendUnavailableError on another backend.
    """
    from pygpukit.kernels import launcher, lost

    if (here := backend()) != "sim":
        raise BackendUnavailableError(
            "plans for another device are made on the simulated one", "sim", f"{here} is open"
        )
    match = re.fullmatch(r"sm_(\d+)[af]?", arch)
    if match is None or int(match[1]) not in _FACTS:
        raise ValueError(f"arch={arch!r}; it is one of {', '.join(f'sm_{one}' for one in _FACTS)}")
    number = int(match[1])
    multiprocessors, shared = _FACTS[number]
    pretending = pretended.Pretended(
        arch,
        {
            **native.device_info(native.current_device()),
            "name": f"a device of {arch}",
            "compute_major": number // 10,
            "compute_minor": number % 10,
            "multiprocessor_count": multiprocessors,
            "max_shared_per_block_optin_bytes": shared,
            **dict.fromkeys(("clock_khz", "memory_clock_khz", "memory_bus_bits"), 0),  # not known
            **facts,
        },
        compiles,
    )
    before = pretended.current, launcher._kernels, lost._lost
    pretended.current, launcher._kernels, lost._lost = pretending, {}, {}
    choices.forget()
    try:
        yield pretending.asked
    finally:
        pretended.current, launcher._kernels, lost._lost = before
        choices.forget()
