"""Convolutions along one axis with fewer products, by Toom and Cook, on the simulated device.

m results of r taps need m r products; m + r - 1 do, between values of polynomials at as many points, one of them at
infinity. What is added before and after is little beside the sums over the channels, which are matrix products. Longer
kernels are several parts of r = m taps, one tile apart, so that they share what was made of the input. The rounding of
these sums is larger than that of plain ones, 2 times with 4 taps and 20 with 6 (7e-6 of the results' size): for models
that allow it. A result's bits depend on its place, too.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_POINTS = (0, 1, -1, Fraction(1, 2), Fraction(-1, 2), 2, -2, Fraction(1, 4), Fraction(-1, 4), 4)
_KINDS = ((3, 6, 3), (8, 4, 4), (12, 6, 6))  # up to so many taps: results m, taps r of a part
_SEEN = 1 << 20  # elements of a block's values: they stay in the processor's cache
MAX_TAPS = _KINDS[-1][0]


class FewerProducts:
    """A weight (out, in, taps), float32, of at most MOST_TAPS taps, made ready."""

    def __init__(self, weight: Array) -> None:
        filters, channels, self._taps = weight.shape
        self._m, self._r = next((m, r) for max_taps, m, r in _KINDS if self._taps <= max_taps)
        self._parts = -(-self._taps // self._r)
        self._results, of_taps, self._of_input = _matrices(self._m, self._r)
        wide = np.zeros((filters, channels, self._parts * self._r))
        wide[:, :, : self._taps] = weight
        values = wide.reshape(filters, channels, self._parts, self._r) @ of_taps.T
        self._weight = np.ascontiguousarray(values.transpose(3, 2, 0, 1).astype(np.float32))

    def __call__(self, x: Array, bias: Array | None, padding: int, dilation: int, out: Array | None = None) -> Array:
        """x (in, places), float32, gives out (out, places'), made where it is None: stride 1, zeros on both sides."""
        channels, places = x.shape
        length = places + 2 * padding - dilation * (self._taps - 1)
        out = np.empty((self._weight.shape[2], length), np.float32) if out is None else out
        for phase in range(min(dilation, length)):  # places that see each other
            mine = -(-(length - phase) // dilation)
            tiles = -(-mine // self._m)
            seen = np.zeros((channels, (tiles + self._parts) * self._m + self._r), np.float32)
            first = max(0, -((phase - padding) // dilation))  # of those that are inside
            inside = x[:, phase + first * dilation - padding :: dilation][:, : seen.shape[1] - first]
            seen[:, first : first + inside.shape[1]] = inside
            self._phase(seen, tiles, out[:, phase::dilation], bias)
        return out

    def _phase(self, seen: Array, tiles: int, out: Array, bias: Array | None) -> None:
        points, parts, filters, channels = self._weight.shape
        step = max(64, _SEEN // (points * max(filters, channels)))
        # One block after the other: the products of NumPy have threads of their own, which would wait for each other.
        for start in range(0, tiles, step):
            count, line = min(step, tiles - start), seen.strides[1]
            windows = np.lib.stride_tricks.as_strided(
                seen[:, start * self._m :],
                (points, channels, count + parts - 1),
                (line, seen.strides[0], line * self._m),
            )
            rows = np.ascontiguousarray(windows).reshape(points, -1)
            values = (self._of_input @ rows).reshape(points, channels, -1)
            sums = self._weight[:, 0] @ values[:, :, :count]
            for part in range(1, parts):
                sums += self._weight[:, part] @ values[:, :, part : part + count]
            results = (self._results @ sums.reshape(points, -1)).reshape(self._m, filters, count)
            if bias is not None:
                results += bias[:, None]
            target = out[:, start * self._m : (start + count) * self._m]
            flat = results.transpose(1, 2, 0).reshape(filters, -1)
            target[...] = flat[:, : target.shape[1]]


@cache
def _matrices(m: int, r: int) -> tuple[Array, Array, Array]:
    """From values of the product to m results, from r taps to their values, from m + r - 1 inputs to theirs."""
    points = [Fraction(point) for point in _POINTS[: m + r - 2]]
    results, taps, inputs = [], [], []
    for point in points:
        others = [other for other in points if other != point]
        scale = Fraction(1)
        for other in others:
            scale *= point - other
        taps.append([point**k / scale for k in range(r)])
        results.append([point**k for k in range(m)])
        inputs.append(_with_roots(others))
    taps.append([Fraction(k == r - 1) for k in range(r)])
    results.append([Fraction(k == m - 1) for k in range(m)])
    inputs.append(_with_roots(points))
    size = m + r - 1
    of_input, of_taps = np.zeros((size, size)), np.array(taps, np.float64)
    for row, one in zip(of_input, inputs, strict=True):
        row[: len(one)] = [float(c) for c in one]
    # Both of one size, by powers of two: nothing is rounded by that.
    balance = 2.0 ** np.round(np.log2(np.sqrt(np.abs(of_input).max(1) / np.abs(of_taps).max(1))))[:, None]
    return (
        np.ascontiguousarray(np.array(results, np.float64).T.astype(np.float32)),
        of_taps * balance,
        (of_input / balance).astype(np.float32),
    )


def _with_roots(roots: list[Fraction]) -> list[Fraction]:
    """The polynomial that is zero at these, its coefficients from the lowest."""
    coefficients = [Fraction(1)]
    for root in roots:
        coefficients = [
            low - root * here
            for low, here in zip([Fraction(0), *coefficients], [*coefficients, Fraction(0)], strict=True)
        ]
    return coefficients
