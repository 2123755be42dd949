"""Convolutions in two dimensions by NumPy, place by place of the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]


def convolve(x: Values, w: Values, stride: Any, padding: Any, dilation: Any, groups: int) -> Values:
    """Of images (n, channels, rows, columns) with filters (filters, channels of a group, rows, columns), in float64."""
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    rows, columns = ((x.shape[2 + d] - dilation[d] * (w.shape[2 + d] - 1) - 1) // stride[d] + 1 for d in range(2))
    out = np.zeros((x.shape[0], groups, w.shape[0] // groups, rows, columns))
    for i, j in np.ndindex(w.shape[2:]):
        top, left = i * dilation[0], j * dilation[1]
        seen = x[:, :, top :: stride[0], left :: stride[1]][:, :, :rows, :columns]
        taken = w[:, :, i, j].reshape(groups, -1, w.shape[1])
        out += np.einsum("ngcij,goc->ngoij", seen.reshape(x.shape[0], groups, -1, rows, columns), taken)
    return out.reshape(x.shape[0], -1, rows, columns)
