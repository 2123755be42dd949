"""What fp4 with scales of blocks is, by its definition: float64, and one number after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]
NUMBERS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # of E2M1, by their codes
# Of E4M3, by their codes, without sign and NaN.
SCALES = np.array([(code % 8 + 8 * (code > 7)) * 2.0 ** (max(code // 8, 1) - 10) for code in range(127)])


def nearest(values: Values, numbers: Values) -> Values:
    """Codes of the nearest numbers, the even one from the middle, the largest beyond."""
    upper = np.clip(np.searchsorted(numbers, values), 1, len(numbers) - 1)
    up, down = numbers[upper] - values, values - numbers[upper - 1]
    return np.where((down > up) | ((down == up) & (upper % 2 == 0)), upper, upper - 1)


def quantised(x: Values, block: int, powers: bool, scale: float | None = None) -> tuple[Values, Values, np.float32]:
    """(codes, one a byte; scales of blocks; scale of all) of float32 numbers. powers: MXFP4."""
    rows, k = x.shape
    filled = np.zeros((rows, -(-k // block) * block), np.float32)
    filled[:, :k] = x
    blocks = filled.reshape(rows, -1, block)
    most = np.abs(blocks).max(axis=-1)
    usable = np.where(np.isfinite(most), most, np.float32(0))
    of_all = np.float32(1 if scale is None else scale)
    if powers:
        exponents = [max(np.frexp(float(one))[1] - 3, -127) if one else -127 for one in usable.ravel()]
        scales = np.ldexp(1.0, exponents).reshape(usable.shape)
    else:
        if scale is None:
            of_all = np.abs(x[np.isfinite(x)]).max(initial=np.float32(0)) / np.float32(2688) or np.float32(1)
        scales = SCALES[nearest((usable / of_all / np.float32(6)).astype(np.float64), SCALES)]
    step = scales.astype(np.float32) * of_all
    with np.errstate(all="ignore"):
        codes = nearest(np.nan_to_num((np.abs(blocks) / step[..., None]).astype(np.float64)), NUMBERS)
    codes = np.where((step > 0)[..., None] & np.isfinite(most)[..., None], codes | 8 * np.signbit(blocks), 0)
    return codes.reshape(rows, -1), np.where(np.isfinite(most), scales, np.nan), of_all


def numbers_of(codes: Values, scales: Values, of_all: float) -> Values:
    """What they stand for, in float64."""
    values = np.where(codes & 8, -1, 1) * NUMBERS[codes & 7]
    return values * scales.repeat(codes.shape[1] // scales.shape[1], axis=1) * float(of_all)


def packed(codes: Values) -> Values:
    """Two codes a byte."""
    return (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
