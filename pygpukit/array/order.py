"""The memory orders that NumPy's functions name: "C" rows, "F" columns; "A" and "K" whichever the array has."""

from __future__ import annotations

from typing import Any


def columns(order: str | None, array: Any = None) -> bool:
    """True where order asks for columns first. Raises ValueError for what is no order."""
    if order in ("C", None) or (order in ("A", "K") and array is None):
        return False
    if order == "F":
        return True
    if order not in ("A", "K"):
        raise ValueError(f"order is {order!r}; it must be 'C', 'F', 'A' or 'K'")
    return not array.is_contiguous() and bool(array.T.is_contiguous())
