"""The order in which CUTLASS's persistent blocks take the tiles of a product, and its divisions by multiplication."""

from __future__ import annotations

from typing import NamedTuple

_TURNS = 3  # at most 2 to the power of this lines of tiles take turns


class Raster(NamedTuple):
    """Tiles of a product, clusters of a line of them. Lines go along m or along n; 2^swizzle of them, which
    divides how many there are, take turns."""

    product: int
    line: int
    swizzle: int
    along_m: bool


def of(m: int, n: int, products: int, rows: int, columns: int, cluster: int) -> Raster:
    """The order for tiles of rows x columns, by clusters of so many tiles below each other."""
    down, across = -(-m // rows), -(-n // columns)
    down += -down % cluster
    along_m = across > down
    lines = across if along_m else down // cluster
    swizzle = next(power for power in range(_TURNS, -1, -1) if lines % (1 << power) == 0)
    return Raster(down * across, down // cluster if along_m else across, swizzle, along_m)


def division(divisor: int) -> dict[str, int]:
    """The fields of a division: for a dividend x of 63 bits, x // divisor is (x + more) multiplier / 2^64 / 2^shift,
    and x / 2^shift where the multiplier is 0."""
    shift = divisor.bit_length() - 1
    if divisor == 1 << shift:
        return {"divisor": divisor, "multiplier": 0, "shift": shift, "more": 0}
    power = 1 << shift
    multiplier, low = ((power << 64) + power) // divisor, (power << 64) // divisor
    return {"divisor": divisor, "multiplier": multiplier, "shift": shift, "more": int(multiplier == low)}
