"""Stored: a matrix in the form of its file, or one that its tensors become when they are loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class Int8Rows(NamedTuple):
    """A matrix of int8 whose file has the rows that it is multiplied with rounded to int8, too. codes: its reader;
    scales: that of float32 (rows,); row_scale: what those rows are divided by, None where each has its own scale."""

    codes: Callable[[], np.ndarray[Any, Any]]
    scales: Callable[[], np.ndarray[Any, Any]]
    row_scale: float | None


class Stored(NamedTuple):
    """kind: the name of its type (models/dequantise.py). rows: a reader of its rows, of blocks their bytes.
    is_transposed: whether those are the columns of its values. order: int32, which column of its values each stored one
    is; None where they are in their order. int8: it again, where its products may be of int8."""

    kind: str
    rows: Callable[[], np.ndarray[Any, Any]]
    is_transposed: bool = False
    order: np.ndarray[Any, Any] | None = None
    int8: Int8Rows | None = None
