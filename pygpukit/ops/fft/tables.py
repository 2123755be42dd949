"""Tables of exp(-2 pi i k / n), correct to the last bit, and where the device keeps them.

The angles are exact fractions of a turn. Cosines and sines of a coarse and a fine part are summed in integers of 160
bits; what they give together is computed in pairs of floats, of some 100 bits, and rounded once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from math import isqrt
from threading import Lock
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array.factory import from_numpy
from pygpukit.core.dtypes import DataType
from pygpukit.core.stream import current_stream

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

    Pair = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]

_BITS = 160
_TWO_PI = 0x6487ED5110B4611A62633145C06E0E68948127044  # 2 pi, with _BITS bits after the point
_MAX_BYTES = 256 << 20
_SPLIT = 134217729.0  # 2**27 + 1: parts of a float whose products are exact


class Tables:
    """Arrays on the device by what they are of, as long as together they are not too large: the longest unused goes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Any, GPUArray] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Any, make: Callable[[], np.ndarray[Any, Any]]) -> GPUArray:
        """The array of that key on the current device. The first to ask waits until it is there, for all streams."""
        key = (native.current_device(), key)
        with self._lock:
            cached = self._kept.get(key)
            if cached is not None:
                self._kept.move_to_end(key)
                return cached
        session = native.swap_session(None)  # it serves whoever asks later, too: it counts for no context
        try:
            cached = from_numpy(make())
            current_stream().synchronize()
        finally:
            native.swap_session(session)
        with self._lock:
            self._kept[key] = cached
            while len(self._kept) > 1 and sum(one.nbytes for one in self._kept.values()) > self._max_bytes:
                self._kept.popitem(last=False)
        return cached

    def clear(self) -> None:
        """Let go of all arrays; they are made again when they are asked for."""
        with self._lock:
            self._kept.clear()


TABLES = Tables(_MAX_BYTES)


def steps(radices: tuple[int, ...], dtype: DataType, packed: bool, chirp: int = 0) -> GPUArray:
    """fft.cuh's table for the steps of a transform; packed: and exp(-pi i k / n) for the k below its length n; chirp:
    and the chirp_spectrum() of that many elements.

    The step after radices whose product is `done` has exp(-2 pi i j k / (done radix)) at element k done + j, so that
    neighbouring threads read neighbouring elements.
    """
    import numpy as np

    def make() -> np.ndarray[Any, Any]:
        parts, done = [np.ones(1, np.complex128)], 1
        for radix in radices:
            k, j = np.arange(1, radix)[:, None], np.arange(done)
            parts.append(turns((k * j).ravel(), done * radix))
            done *= radix
        if packed:
            parts.append(turns(np.arange(done), 2 * done))
        if chirp:
            parts.append(_chirp_spectrum(chirp, done))
        return np.concatenate(parts).astype(dtype.to_numpy_dtype())

    return TABLES.get(("steps", radices, dtype, packed, chirp), make)


def whole_roots(rows: int, columns: int, dtype: DataType) -> GPUArray:
    """exp(-2 pi i j k / (rows columns)) at element j columns + k."""
    import numpy as np

    def make() -> np.ndarray[Any, Any]:
        n = rows * columns
        by_turn = turns(np.arange(n), n).astype(dtype.to_numpy_dtype())
        return by_turn[np.arange(rows)[:, None] * np.arange(columns)].ravel()

    return TABLES.get(("whole", rows, columns, dtype), make)


def split_roots(n: int, fine: int, dtype: DataType) -> GPUArray:
    """exp(-2 pi i k / n) for the k below `fine`, and then for its multiples up to n."""
    import numpy as np

    def make() -> np.ndarray[Any, Any]:
        k = np.concatenate([np.arange(fine), np.arange(0, n, fine)])
        return turns(k, n).astype(dtype.to_numpy_dtype())

    return TABLES.get(("split", n, fine, dtype), make)


def chirp(n: int, dtype: DataType) -> GPUArray:
    """exp(-pi i k**2 / n) for k from 0 to n - 1."""
    return TABLES.get(("chirp", n, dtype), lambda: _chirp(n).astype(dtype.to_numpy_dtype()))


def chirp_spectrum(n: int, length: int, dtype: DataType) -> GPUArray:
    """The transform of the conjugate chirp from -(n - 1) to n - 1, in `length` elements, divided by that length."""
    key = ("spectrum", n, length, dtype)
    return TABLES.get(key, lambda: _chirp_spectrum(n, length).astype(dtype.to_numpy_dtype()))


def turns(k: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """exp(-2 pi i k / n) of integers from 0 to n - 1, in complex128, each part rounded correctly."""
    import numpy as np

    # Into the first eighth of a turn, in eighths of n, so that symmetric values are the same bits.
    angle, eighth = 8 * k % n, 8 * k // n
    angle = np.where(eighth % 2, n - angle, angle)
    cosine, sine = _first_eighth(angle, 8 * n)
    cosine, sine = np.where((eighth + 1) // 2 % 2, sine, cosine), np.where((eighth + 1) // 2 % 2, cosine, sine)
    result = np.empty(k.shape, np.complex128)
    result.real = np.where((eighth + 2) // 4 % 2, -cosine, cosine)
    result.imag = np.where(eighth < 4, -sine, sine)
    return result + 0.0  # no zero is negative


def _chirp(n: int) -> np.ndarray[Any, Any]:
    import numpy as np

    k = np.arange(n, dtype=np.int64)
    return turns(k * k % (2 * n), 2 * n)


def _chirp_spectrum(n: int, length: int) -> np.ndarray[Any, Any]:
    import numpy as np

    half = _chirp(n).conj()
    whole = np.zeros(length, np.complex128)
    whole[:n] = half
    whole[length - n + 1 :] = half[:0:-1]
    return np.fft.fft(whole) / length


def _first_eighth(k: np.ndarray[Any, Any], n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Cosine and sine of 2 pi k / n, k at most n / 8."""
    step = isqrt(n // 8) + 1
    (c1, s1), (c2, s2) = _pairs(k // step * step, n), _pairs(k % step, n)
    cosine, sine = _sum(_product(c1, c2), _product(_negative(s1), s2)), _sum(_product(s1, c2), _product(c1, s2))
    return cosine[0], sine[0]


def _pairs(k: np.ndarray[Any, Any], n: int) -> tuple[Pair, Pair]:
    """Cosine and sine of 2 pi k / n as pairs of floats: the nearest one, and what it lacks."""
    import numpy as np

    values, places = np.unique(k, return_inverse=True)
    exact = [_exact(int(value), n) for value in values]
    cosine, sine = (
        (np.array([high for high, _ in part])[places], np.array([low for _, low in part])[places])
        for part in ([_pair(one[i]) for one in exact] for i in (0, 1))
    )
    return cosine, sine


def _pair(number: int) -> tuple[float, float]:
    high = number / (1 << _BITS)
    over, under = high.as_integer_ratio()
    return high, (number - over * ((1 << _BITS) // under)) / (1 << _BITS)


def _exact(k: int, n: int) -> tuple[int, int]:
    """Cosine and sine of 2 pi k / n as integers with _BITS bits after the point, by their series."""
    angle = _TWO_PI * k // n
    term, sums, i = 1 << _BITS, [0, 0, 0, 0], 0
    while term:
        sums[i % 4] += term
        i += 1
        term = (term * angle >> _BITS) // i
    return sums[0] - sums[2], sums[1] - sums[3]


# ---- sums and products of pairs: T. J. Dekker, "A floating-point technique for extending the available precision" ----


def _negative(a: Pair) -> Pair:
    return -a[0], -a[1]


def _sum(a: Pair, b: Pair) -> Pair:
    high = a[0] + b[0]
    part = high - a[0]
    return _normal(high, (a[0] - (high - part)) + (b[0] - part) + a[1] + b[1])


def _product(a: Pair, b: Pair) -> Pair:
    high = a[0] * b[0]
    (a1, a2), (b1, b2) = _parts(a[0]), _parts(b[0])
    return _normal(high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2 + a[0] * b[1] + a[1] * b[0])


def _normal(high: np.ndarray[Any, Any], low: np.ndarray[Any, Any]) -> Pair:
    total = high + low
    return total, low - (total - high)


def _parts(a: np.ndarray[Any, Any]) -> Pair:
    """Two numbers of half the digits, whose sum is a."""
    scaled = _SPLIT * a
    high = scaled - (scaled - a)
    return high, a - high
