"""Which element of a matrix a lane holds in mma.sync, as the tables of the PTX manual state it, one by one."""

from __future__ import annotations

from collections.abc import Callable

Place = tuple[int, int]
Rule = Callable[[int, int, int], Place]  # group (lane / 4), thread in group (lane % 4), number of the element


def _low(condition: bool, value: int, further: int) -> int:
    return value if condition else value + further


# By shape and bits of an element: a, b.
OPERANDS: dict[tuple[int, int, int, int], tuple[Rule, Rule]] = {
    (16, 8, 8, 16): (
        lambda g, t, i: (_low(i < 2, g, 8), t * 2 + (i & 1)),
        lambda g, t, i: (t * 2 + i, g),
    ),
    (16, 8, 16, 16): (
        lambda g, t, i: (_low(i < 2 or 4 <= i < 6, g, 8), _low(i < 4, t * 2 + (i & 1), 8)),
        lambda g, t, i: (_low(i < 2, t * 2 + (i & 1), 8), g),
    ),
    (16, 8, 4, 32): (
        lambda g, t, i: (_low(i == 0, g, 8), t),
        lambda g, t, i: (t, g),
    ),
    (16, 8, 8, 32): (
        lambda g, t, i: (_low(i in (0, 2), g, 8), _low(i < 2, t, 4)),
        lambda g, t, i: (_low(i == 0, t, 4), g),
    ),
    (16, 8, 4, 64): (
        lambda g, t, i: (_low(i == 0, g, 8), t),
        lambda g, t, i: (t, g),
    ),
    (16, 8, 8, 64): (
        lambda g, t, i: (_low(i in (0, 2), g, 8), _low(i < 2, t, 4)),
        lambda g, t, i: (_low(i == 0, t, 4), g),
    ),
    (16, 8, 16, 64): (
        lambda g, t, i: (_low(i % 2 == 0, g, 8), i * 2 + t if i % 2 == 0 else i * 2 - 2 + t),
        lambda g, t, i: (t + i * 4, g),
    ),
    (16, 8, 16, 8): (
        lambda g, t, i: (_low(i < 4, g, 8), t * 4 + (i & 3)),
        lambda g, t, i: (t * 4 + i, g),
    ),
    (16, 8, 32, 8): (
        lambda g, t, i: (_low(i < 4 or 8 <= i < 12, g, 8), _low(i < 8, t * 4 + (i & 3), 16)),
        lambda g, t, i: (_low(i < 4, t * 4 + (i & 3), 16), g),
    ),
    (16, 8, 32, 4): (
        lambda g, t, i: (_low(i < 8, g, 8), t * 8 + (i & 7)),
        lambda g, t, i: (t * 8 + i, g),
    ),
    (16, 8, 64, 4): (
        lambda g, t, i: (_low(i < 8 or 16 <= i < 24, g, 8), _low(i < 16, t * 8 + (i & 7), 32)),
        lambda g, t, i: (_low(i < 8, t * 8 + (i & 7), 32), g),
    ),
    (16, 8, 128, 1): (
        lambda g, t, i: (_low(i < 32, g, 8), t * 32 + (i & 31)),
        lambda g, t, i: (t * 32 + i, g),
    ),
    (16, 8, 256, 1): (
        lambda g, t, i: (_low(i < 32 or 64 <= i < 96, g, 8), _low(i < 64, t * 32 + (i & 31), 128)),
        lambda g, t, i: (_low(i < 32, t * 32 + (i & 31), 128), g),
    ),
    (8, 8, 4, 64): (lambda g, t, i: (g, t), lambda g, t, i: (t, g)),
    (8, 8, 16, 8): (lambda g, t, i: (g, t * 4 + i), lambda g, t, i: (t * 4 + i, g)),
    (8, 8, 32, 4): (lambda g, t, i: (g, t * 8 + i), lambda g, t, i: (t * 8 + i, g)),
    (8, 8, 128, 1): (lambda g, t, i: (g, t * 32 + i), lambda g, t, i: (t * 32 + i, g)),
}


def sums(m: int) -> Rule:
    """Of c and d, by rows of the tile."""
    if m == 8:
        return lambda g, t, i: (g, t * 2 + i)
    return lambda g, t, i: (_low(i < 2, g, 8), t * 2 + (i & 1))


# m8n8k4 of halves: each of four groups of lanes makes a product of its own.


def quarter(lane: int) -> int:
    """Which of the four products a lane takes part in."""
    return lane % 16 // 4


def quarter_left(layout: str, lane: int, i: int) -> Place:
    """Of a."""
    if layout == "row":
        return _low(lane < 16, lane % 4, 4), i
    return _low(lane < 16, i % 4, 4), lane % 4


def quarter_right(layout: str, lane: int, i: int) -> Place:
    """Of b."""
    if layout == "row":
        return lane % 4, _low(lane < 16, i, 4)
    return i, _low(lane < 16, lane % 4, 4)


def quarter_sums(bits: int, lane: int, i: int) -> Place:
    """Of c and d."""
    if bits == 16:
        return _low(lane < 16, lane % 4, 4), i
    return _low(lane < 16, (lane & 1) + (i & 2), 4), (i & 4) + (lane & 2) + (i & 1)
