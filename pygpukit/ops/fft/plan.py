"""The plan of a transform: the radices of a kernel, and the lengths that longer ones are put together from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt, prod

RADICES = (16, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2)
# Radices of lengths that take fewer steps with larger ones, in single precision.
CHOSEN = {3000: (15, 20, 10), 16384: (32, 32, 16)}
_PRIMES = (2, 3, 5, 7, 11, 13)
# Elements that a block transforms on every supported device, by their bytes; what its shared memory holds at once.
LONGEST = {8: 16384, 16: 4096}
AT_ONCE = {8: 8192, 16: 4096}
_MAX_THREADS = 1024
_MAX_WIDE_THREADS = 512  # where each has many registers
_THREADS = 128  # of a block, where transforms are short
_WIDE_THREADS, _WIDE_LINES, _WIDE_BYTES = 512, 16, 72 << 10  # where neighbouring threads have neighbouring transforms


@dataclass(frozen=True)
class Plan:
    """One kernel. lines: transforms of a block, and of one whose transforms lie side by side in memory."""

    radices: tuple[int, ...]
    itemsize: int

    @property
    def length(self) -> int:
        """Elements of a transform."""
        return prod(self.radices)

    @property
    def threads(self) -> int:
        """Threads of a transform."""
        return self.length // max(self.radices)

    def lines(self, side_by_side: bool) -> int:
        """Transforms of a block; more where those lie side by side in memory, which is read in pieces of them."""
        if not side_by_side:
            return max(_THREADS // self.threads, 1)
        lines = 1
        while (
            lines < max(_WIDE_LINES, _THREADS // self.threads)
            and 2 * lines * self.threads <= _WIDE_THREADS
            and self.shared_bytes(2 * lines) <= _WIDE_BYTES
        ):
            lines *= 2
        return lines

    def shared_bytes(self, lines: int) -> int:
        """Shared memory of a block; fft.cuh: Shared."""
        size = self.itemsize if self.length <= AT_ONCE[self.itemsize] else self.itemsize // 2
        return lines * ((self.length + (self.length // self.gap_after if self.gap_after else 0)) | 1) * size

    @property
    def gap_after(self) -> int:
        """After how many elements shared memory has a gap, 0 for no gaps; fft.cuh: gap_after()."""
        first = self.radices[0]
        if first % 4 == 0:
            return first if 16 % first else 16
        return 16 if first == 2 else 0


def smooth(n: int) -> bool:
    """True when kernels transform n, or what it is put together from: its prime factors are at most 13."""
    for p in _PRIMES:
        while n % p == 0:
            n //= p
    return n == 1


def held(n: int, itemsize: int, at_once: bool = False) -> bool:
    """True when a block transforms the smooth length n; at_once: and its shared memory holds it in the end."""
    max_threads = _MAX_THREADS if n <= AT_ONCE[itemsize] else _MAX_WIDE_THREADS
    return n <= (AT_ONCE if at_once else LONGEST)[itemsize] and plan(n, itemsize).threads <= max_threads


@lru_cache(maxsize=4096)
def plan(n: int, itemsize: int) -> Plan:
    """The kernel for a smooth length that one block holds: as few radices as there can be, the largest one small."""
    chosen = CHOSEN.get(n, ()) if itemsize == 8 else ()
    return Plan(chosen or _radices(n) or (1,), itemsize)


@lru_cache(maxsize=4096)
def _radices(n: int, largest: int = RADICES[0]) -> tuple[int, ...]:
    """Falling radices whose product is n; () for 1, and for a length that radices up to the largest do not make."""
    factorisations: list[tuple[int, ...]] = []
    for radix in RADICES:
        if radix <= largest and n % radix == 0:
            rest = _radices(n // radix, radix)
            if n == radix or rest:
                factorisations.append((radix, *rest))
    return min(factorisations, key=lambda one: (len(one), one), default=())


def longest_held(n: int, itemsize: int) -> int:
    """The largest divisor of the smooth length n that a block transforms."""
    return next(d for d in range(min(n, LONGEST[itemsize]), 0, -1) if n % d == 0 and held(d, itemsize))


@lru_cache(maxsize=1024)
def halves(n: int) -> tuple[int, int]:
    """Two lengths of about the same size whose product is the smooth length n."""
    first = next(d for d in range(isqrt(n), 0, -1) if n % d == 0)
    return n // first, first


@lru_cache(maxsize=1024)
def padded(n: int, itemsize: int) -> int:
    """The length of transforms that convolve n elements with a chirp: at least 2 n - 1.

    One of little arithmetic while a block holds it, else a power of two, which two kernels transform best.
    """
    min_length = 2 * n - 1
    power = 1 << (min_length - 1).bit_length()
    lengths = [m for m in range(min_length, min(power, LONGEST[itemsize]) + 1) if smooth(m) and held(m, itemsize)]
    return min(lengths, key=lambda m: m * (sum(_prime_factors(m)) + 8 * len(plan(m, itemsize).radices)), default=power)


def _prime_factors(n: int) -> list[int]:
    """Of a smooth length."""
    return next(([p, *_prime_factors(n // p)] for p in _PRIMES if n % p == 0), [])
