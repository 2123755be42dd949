"""NumPy's thirteen methods of quantiles: where in sorted samples a quantile lies, and between which two of them.

Hyndman and Fan, Sample Quantiles in Statistical Packages (1996), has nine of them; the others take the lower, the
higher, the nearest or the middle of the two samples around the linear position.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# Methods that interpolate: (alpha, beta) of n q + alpha + q (1 - alpha - beta) - 1.
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_DISCRETE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
METHODS = (*_DISCRETE, "averaged_inverted_cdf", *_CONTINUOUS, "linear", "midpoint")


class Place(NamedTuple):
    """Positions of two samples, as floats, and the share of the second; without a share the first is the quantile."""

    low: Any
    high: Any
    share: Any


def is_discrete(method: str) -> bool:
    """True where a quantile is one of the samples."""
    return method in _DISCRETE


def place(xp: Any, method: str, n: Any, q: Any) -> Place:
    """Where the quantile q lies in n sorted samples. xp: NumPy, for numbers; our own functions, for n by row."""
    if is_discrete(method):
        index = xp.clip(_sample(xp, method, n, q), 0, n - 1)
        return Place(index, index, None)
    at = _position(xp, method, n, q)
    low = xp.floor(at)
    share = at - low
    if method == "averaged_inverted_cdf":
        share = xp.where(share == 0, 0.5, 1.0)
    elif method == "midpoint":
        share = xp.where(share == 0, 0.0, 0.5)
    above, below = at >= n - 1, at < 0
    return Place(
        xp.where(above, n - 1, xp.where(below, 0, low)), xp.where(above, n - 1, xp.where(below, 0, low + 1)), share
    )


def _position(xp: Any, method: str, n: Any, q: Any) -> Any:
    if method == "averaged_inverted_cdf":
        return n * q - 1
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        return n * q + (alpha + q * (1 - alpha - beta)) - 1
    linear = (n - 1) * q
    return linear if method == "linear" else 0.5 * (xp.floor(linear) + xp.ceil(linear))


def _sample(xp: Any, method: str, n: Any, q: Any) -> Any:
    if method in ("lower", "higher", "nearest"):
        return {"lower": xp.floor, "higher": xp.ceil, "nearest": xp.round}[method]((n - 1) * q)
    at = n * q - 1 if method == "inverted_cdf" else n * q - 1.5
    low = xp.floor(at)
    stays = at == low
    if method == "closest_observation":
        stays = xp.logical_and(stays, low % 2 == 1)
    return xp.where(stays, low, low + 1)
