"""The named intervals of an octave: Pythagorean, and just intonation of small primes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Values = np.ndarray[Any, Any]

_PRIMES = {"ji3": (3,), "ji5": (3, 5), "ji7": (3, 5, 7)}
NAMES = ("equal", "pythagorean", *_PRIMES)


def ratios(name: str, count: int) -> Values:
    """count ratios from 1 up to below 2, rising, float64.

    "equal": equal temperament. "pythagorean": powers of 3/2. "ji3", "ji5", "ji7": the ratios of primes up to 3, 5, 7
    that Tenney's crystal growth finds ("On crystal growth in harmonic space", 2008). Raises ValueError for other names.
    """
    import numpy as np

    if name == "equal":
        return 2.0 ** (np.arange(count) / count)
    if name == "pythagorean":
        octaves = np.arange(count) * math.log2(3)
    elif name in _PRIMES:
        octaves = np.array(_grown(count, np.log2(_PRIMES[name])), float) @ np.log2(_PRIMES[name])
    else:
        known = ", ".join(map(repr, NAMES))
        raise ValueError(f"vqt: intervals are {name!r}; use one of {known}, or give an octave's ratios")
    return 2.0 ** np.sort(octaves % 1)


def _grown(count: int, logs: Values) -> list[tuple[int, ...]]:
    """Ratios by their primes' exponents: each next one is nearest to all before, in sum; of equals the simplest."""
    import numpy as np

    def apart(a: tuple[int, ...], b: tuple[int, ...]) -> float:
        return float(np.around(np.abs(np.subtract(a, b)) @ logs, 6))

    one = (0,) * len(logs)
    steps = [tuple(sign * (i == k) for i in range(len(logs))) for k in range(len(logs)) for sign in (1, -1)]
    grown, edge = [one], list(steps)
    while len(grown) < count:
        best, lowest = 0, math.inf
        for place, point in enumerate(edge):
            far = sum(apart(point, other) for other in grown)
            simpler = np.abs(point) @ logs < np.abs(edge[best]) @ logs
            if far < lowest or (np.isclose(far, lowest) and simpler):
                best, lowest = place, far
        chosen = edge.pop(best)
        grown.append(chosen)
        for step in steps:
            beside = tuple(int(x) for x in np.add(chosen, step))
            if beside not in grown and beside not in edge:
                edge.append(beside)
    return grown
