"""Cases: threads and blocks that wait for one another, and atomics."""

from __future__ import annotations

import numpy as np

from corpus.case import Case, Values, blank, floats, integers

CASES: list[Case] = []
Rng = np.random.Generator


def _producer(rng: Rng) -> Values:
    return {"in_": integers(rng, -1000, 1000, 3, 7, 32), "sums": blank((3, 32), "int32"), "tiles": 7}


CASES += [
    Case(
        "producer_consumer", 3, 64, _producer,
        lambda in_, tiles, **_: {"sums": (in_ * np.arange(1, tiles + 1)[:, None]).sum(1)},
    )
]  # fmt: skip


def _double_buffer(rng: Rng) -> Values:
    return {"in_": integers(rng, 0, 10**6, 3, 5, 32), "out": blank((3, 5, 32), "int32"), "tiles": 5}


CASES += [
    Case(
        "double_buffer", 3, 32, _double_buffer,
        lambda in_, **_: {"out": np.max([np.roll(in_, shift, 2) for shift in (-1, 0, 1)], axis=0)},
    )
]  # fmt: skip


def _spin_lock(rng: Rng) -> Values:
    n = 131
    return {
        "lock": np.zeros(1, "int32"), "state": integers(rng, 0, 100, 2, dtype="int64"),
        "amounts": integers(rng, 0, 1000, n),
        "n": n,
    }  # fmt: skip


CASES += [
    Case("spin_lock", 5, 32, _spin_lock, lambda state, amounts, n, **_: {"state": state + [amounts.sum(), n]}),
]


def _jacobi(rng: Rng) -> Values:
    n = 261
    first = floats(rng, n)
    second = first.copy()
    second[1:-1] = blank(n - 2, "float32")
    return {"first": first, "second": second, "sweeps": 5, "n": n}


def _jacobi_reference(first, sweeps, **_):
    states = [first]
    for _sweep in range(sweeps):
        state = states[-1].copy()
        state[1:-1] = np.float32(0.5) * (states[-1][:-2] + states[-1][2:])
        states.append(state)
    return {"first": states[sweeps - 1], "second": states[sweeps]}


CASES += [Case("grid_jacobi", 5, 64, _jacobi, _jacobi_reference, cooperative=True)]


def _monte_carlo(rng: Rng) -> Values:
    seeds = rng.integers(1, 2**32, 101, dtype=np.uint32)
    return {"seeds": seeds, "inside": np.zeros(1, "uint64"), "tries": 20, "n": 101}


def _monte_carlo_reference(seeds, inside, tries, **_):
    x = seeds.astype("uint64")
    mask = np.uint64(2**32 - 1)
    hits = 0

    def draw(x):
        x = x ^ (x << np.uint64(13) & mask)
        x = x ^ (x >> np.uint64(17))
        return x ^ (x << np.uint64(5) & mask)

    for _try in range(tries):
        x = draw(x)
        first = x >> np.uint64(1)
        x = draw(x)
        second = x >> np.uint64(1)
        hits += int((first * first + second * second < np.uint64(2**62)).sum())
    return {"inside": inside + np.uint64(hits)}


CASES += [Case("monte_carlo", 4, 32, _monte_carlo, _monte_carlo_reference)]


def _atomics(rng: Rng) -> Values:
    values = rng.integers(0, 2**64, 131, dtype=np.uint64) | np.uint64(0x30)
    start = np.array([5, 2**64 - 1, 0, 2**64 - 1, 0, 9, 3], np.uint64)
    return {"in_": values, "out": start, "n": 131}


def _atomics_reference(in_, out, **_):
    product = 3
    for value in in_.tolist():
        product = product * (2 * value + 1) % 2**64
    results = [
        (5 + sum(in_.tolist())) % 2**64, in_.min(), in_.max(), np.bitwise_and.reduce(in_), np.bitwise_or.reduce(in_),
        np.bitwise_xor.reduce(in_) ^ np.uint64(9), product,
    ]  # fmt: skip
    return {"out": np.array([int(x) for x in results], np.uint64)}


CASES += [Case("atomics_64", 3, 64, _atomics, _atomics_reference)]
