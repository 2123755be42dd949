"""How far a result is from librosa's in float64: as a part of what is allowed, or as elements that differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]
# (ours, librosa's, how much finer than in float32) -> (error as a part of what is allowed, elements that differ, all)
Verdict = Callable[[Values, Values, float], tuple[float, int, int]]
BUDGET = 0.005  # of elements of functions that jump, over all rounds


def _fits(found: Values, wanted: Values) -> bool:
    """Of one shape, and finite in the same places."""
    if found.shape != wanted.shape:
        return False
    return found.dtype.kind in "biu" or bool((np.isfinite(found) == np.isfinite(wanted)).all())


def near(gate: float) -> Verdict:
    """The root mean square of the difference over that of the result."""

    def judged(found: Values, wanted: Values, fineness: float) -> tuple[float, int, int]:
        if not _fits(found, wanted):
            return np.inf, 0, 0
        finite = np.isfinite(wanted)
        apart, scale = (np.sqrt((np.abs(x) ** 2).sum()) for x in (found[finite] - wanted[finite], wanted[finite]))
        allowed = gate * fineness * scale
        return float(apart / allowed) if allowed else (np.inf if apart > 1e-12 else 0.0), 0, 0

    return judged


def within(gate: float) -> Verdict:
    """The largest difference, for results with a scale of their own."""

    def judged(found: Values, wanted: Values, fineness: float) -> tuple[float, int, int]:
        if not _fits(found, wanted):
            return np.inf, 0, 0
        finite = np.isfinite(wanted)
        return float(np.abs(found[finite] - wanted[finite]).max(initial=0) / (gate * fineness)), 0, 0

    return judged


def exact(found: Values, wanted: Values, fineness: float) -> tuple[float, int, int]:
    """The same elements."""
    return (0.0 if found.shape == wanted.shape and np.array_equal(found, wanted) else np.inf), 0, 0


def mostly(tolerance: float) -> Verdict:
    """Elements that may differ by tolerance, all but a budget of them: of functions that jump."""

    def judged(found: Values, wanted: Values, fineness: float) -> tuple[float, int, int]:
        if found.shape != wanted.shape:
            return np.inf, 0, 0
        same = np.isclose(found, wanted, rtol=1e-6, atol=tolerance, equal_nan=True)
        return 0.0, int((~same).sum()), same.size

    return judged


def places(step: float) -> Verdict:
    """Positions: how many of either have none of the other's within a step."""

    def judged(found: Values, wanted: Values, fineness: float) -> tuple[float, int, int]:
        a, b = (np.sort(np.atleast_1d(x).ravel().astype(float)) for x in (found, wanted))
        if not a.size or not b.size:
            return 0.0, a.size + b.size, a.size + b.size
        apart = np.abs(a[:, None] - b[None, :])
        lonely = int((apart.min(1) > step * 1.001).sum() + (apart.min(0) > step * 1.001).sum())
        return 0.0, lonely, a.size + b.size

    return judged
