"""Stored: a matrix in the form in which its file has it, or can be put beside each other when it is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class Stored(NamedTuple):
    """kind: the name of its type (models/dequantise.py). rows: a reader of its rows, of blocks their bytes.
    is_transposed: whether those are the columns of its values. order: int32, which column of its values each stored one
    is; None where they are in their order."""

    kind: str
    rows: Callable[[], np.ndarray[Any, Any]]
    is_transposed: bool = False
    order: np.ndarray[Any, Any] | None = None
