"""Which cases of the suite a device refuses to slice, by the reason; all others slice."""

from __future__ import annotations

REFUSED = {
    "grid_jacobi": "GridSync",
    "reduce_grid": "GridSync",
    "convolution_1d": "ModuleVariable",
    "device_global": "ModuleVariable",
    "managed_total": "ModuleVariable",
    "polynomial": "ModuleVariable",
    "reduce_last_block": "ModuleVariable",
}
