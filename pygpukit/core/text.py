"""Quantities as people read them."""

from __future__ import annotations


def human_bytes(count: int) -> str:
    """12 MiB, 1.50 GiB: binary units, at most three significant places."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    digits = 0 if value >= 100 or value.is_integer() else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {unit}"
