"""All families of the sweep: between them they have every source of the catalogue."""

from __future__ import annotations

from sweep import elementwise, moving, networks, order, reductions
from sweep.engine import Family

FAMILIES: tuple[Family, ...] = (
    elementwise.FAMILY,
    reductions.REDUCTIONS,
    reductions.ROWS,
    order.SCANS,
    order.SORTS,
    order.SELECTS,
    moving.MOVING,
    *networks.FAMILIES,
)
