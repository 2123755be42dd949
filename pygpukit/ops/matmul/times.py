"""Times of products' tiles for the current device: of its own table, else of an H100, scaled by the device's facts.

They decide speed alone. The table of a device (ops/plans) has them under "matmul", as that of the H100 lists them;
docs/matmul.md says how they are fitted.
"""

from __future__ import annotations

from typing import Any

from pygpukit._core import native
from pygpukit.core import device, pretended
from pygpukit.ops import plans

FAMILY = "matmul"
_H100 = plans.SHIPPED / plans.file_name("NVIDIA H100 80GB HBM3")
# Of an H100, what times go by: multiply-adds of float16 on tensor cores in a clock of a multiprocessor, its clock and
# its memory's bytes in a second.
_RATES = {80: 1024, 86: 512, 89: 512, 90: 2048, 100: 4096, 103: 4096, 120: 512, 121: 512}
_CAPABILITY, _CLOCK_KHZ, _BYTES_PER_S = 90, 1_755_000, 3.35e12
_STEPS, _MEMORY = ("step_us", "wave_us", "alone_us"), ("us_per_mb",)


@plans.follows
def table() -> dict[str, Any]:
    """The parts of a table: "tiles" by family, "hopper", "turns", "cutlass", "skinny", "odd", "mma", "mma tf32",
    "mma fp8". Raises as plans.table()."""
    listed = plans.read(_H100, FAMILY)
    if _is_none():
        return listed
    measured = plans.table(FAMILY)
    steps, memory = _scales(device.current())
    return {part: measured.get(part) or _scaled(entries, steps, memory) for part, entries in listed.items()}


@plans.follows
def source() -> str:
    """Whose times they are, for a plan's reason."""
    if not _is_none() and "tiles" in plans.table(FAMILY):
        return "the device's table"
    alike = _is_none() or device.current().capability == _CAPABILITY
    return "times of an H100" + ("" if alike else ", scaled by the device's facts")


def _is_none() -> bool:
    """There is no device to tell of: kernels are listed before one is open, or it is the simulated one."""
    return pretended.current is None and native.backend_name() != "cuda"


def _scales(facts: device.Facts) -> tuple[float, float]:
    """Factors by which a step, and a byte, take longer than on an H100: 1 on SM 9.0, where times were compared."""
    if facts.capability == _CAPABILITY:
        return 1.0, 1.0
    rate = _RATES.get(facts.capability, _RATES[89])
    steps = _RATES[90] * _CLOCK_KHZ / (rate * facts.clock_khz) if facts.clock_khz > 0 else _RATES[90] / rate
    return steps, _BYTES_PER_S / facts.bandwidth if facts.bandwidth > 0 else 1.0


def _scaled(entries: Any, steps: float, memory: float) -> Any:
    if isinstance(entries, list):
        return [_scaled(entry, steps, memory) for entry in entries]
    if not isinstance(entries, dict):
        return entries
    factors = {**dict.fromkeys(_STEPS, steps), **dict.fromkeys(_MEMORY, memory)}
    return {
        name: value * factors[name] if name in factors else _scaled(value, steps, memory)
        for name, value in entries.items()
    }
