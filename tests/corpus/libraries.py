"""Cases: names and headers that come with CUDA: libcu++'s barriers and atomics, complex numbers, runtime types."""

from __future__ import annotations

import numpy as np

from corpus.case import ROUNDING, Case, Values, blank, floats, integers

CASES: list[Case] = []
Rng = np.random.Generator


def _barrier(rng: Rng) -> Values:
    return {"in_": integers(rng, -1000, 1000, 3, 5, 64), "out": blank((3, 64), "int32"), "rounds": 5}


CASES += [
    Case(
        "barrier_split", 3, 64, _barrier,
        lambda in_, rounds, **_: {"out": (in_ - in_[..., ::-1] * np.arange(2, rounds + 2)[:, None]).sum(1)},
    )
]  # fmt: skip


def _stages(rng: Rng) -> Values:
    return {"in_": integers(rng, -1000, 1000, 3, 7, 32), "sums": blank((3, 32), "int32"), "tiles": 7}


CASES += [
    Case(
        "pipeline_stages", 3, 64, _stages,
        lambda in_, tiles, **_: {"sums": (in_[..., ::-1] * np.arange(1, tiles + 1)[:, None]).sum(1)},
    )
]  # fmt: skip


def _own_pipeline(rng: Rng) -> Values:
    values = integers(rng, -1000, 1000, 3, 5, 32, 4).astype("float32")
    return {"in_": values, "out": blank((3, 32, 4), "float32"), "tiles": 5}


CASES += [Case("pipeline_thread", 3, 32, _own_pipeline, lambda in_, **_: {"out": in_.sum(1)})]


def _atomic_ref(rng: Rng) -> Values:
    n = 515
    values = integers(rng, -(10**6), 10**6, n)
    return {"in_": values, "counts": np.zeros(8, "uint32"), "largest": np.full(1, -(2**31), "int32"), "n": n}


CASES += [
    Case(
        "atomic_ref", 5, 128, _atomic_ref,
        lambda in_, **_: {"counts": np.bincount(in_ & 7, minlength=8), "largest": in_.max(keepdims=True)},
    )
]  # fmt: skip


def _slots(rng: Rng) -> Values:
    return {"in_": integers(rng, -1000, 1000, 3, 128), "out": blank((3, 2), "int32")}


CASES += [
    Case("semaphore_slots", 3, 128, _slots, lambda in_, **_: {"out": in_.sum(1)[:, None] * np.array([1, 2])}),
]


def _status(rng: Rng) -> Values:
    n = 259
    values = floats(rng, n)
    values[::17] = np.inf
    values[1::40] = 1.0
    return {"in_": values, "codes": blank(n, "int32"), "n": n}


CASES += [
    Case(
        "status_codes", 3, 96, _status,
        lambda in_, **_: {"codes": np.where(in_ > 1, 700, np.where(in_ >= 0, 0, 1)) + 2},
    )
]  # fmt: skip


def _lists(rng: Rng) -> Values:
    n, length = 67, 6
    return {"in_": integers(rng, -100, 100, n, length), "out": blank(n, "int32"), "length": length, "n": n}


CASES += [
    Case(
        "linked_lists", 3, 32, _lists,
        lambda in_, length, **_: {"out": in_ @ 3 ** np.arange(length)},
    )
]  # fmt: skip


def _weights(rng: Rng) -> Values:
    n = 131
    return {"x": integers(rng, -50, 50, n).astype("float32"), "out": blank((n, 2), "float32"), "n": n}


CASES += [
    Case(
        "listed_weights", 3, 64, _weights,
        lambda x, **_: {"out": np.stack([0.5 * x + 4, x * x + 2 * x + 3], 1)},
    )
]  # fmt: skip


def _managed(rng: Rng) -> Values:
    n = 261
    return {"in_": integers(rng, -1000, 1000, n), "out": blank(1, "int32"), "arrived": np.zeros(1, "uint32"), "n": n}


CASES += [
    Case("managed_total", 5, 64, _managed, lambda in_, **_: {"out": in_.sum(), "arrived": 5}),
]


def _quotient(rng: Rng) -> Values:
    n = 203
    a, b = (floats(rng, n, 2).view("complex64")[:, 0] for _ in range(2))
    return {"a": a, "b": b, "out": blank(n, "complex64"), "size": blank(n, "float32"), "n": n}


def _quotient_reference(a, b, **_):
    a, b = a.astype("complex128"), b.astype("complex128")
    return {"out": a / b * b.conj() + (1 - 2j), "size": np.abs(a - 2 * b)}


CASES += [Case("complex_quotient", 2, 128, _quotient, _quotient_reference, tolerance=1e-6, reason=ROUNDING)]


def _pairs(rng: Rng) -> Values:
    n = 201
    a, b = (integers(rng, -1000, 1000, n, 2).astype("float32") for _ in range(2))
    return {"a": a, "b": b, "out": blank((n, 2), "float32"), "n": n}


CASES += [Case("later_names", 2, 128, _pairs, lambda a, b, **_: {"out": a + 2 * b})]


def _labels(rng: Rng) -> Values:
    n = 203
    return {
        "labels": integers(rng, 0, 5, n), "values": integers(rng, -1000, 1000, n),
        "sums": integers(rng, -10, 10, 5), "n": n,
    }  # fmt: skip


CASES += [
    Case(
        "labeled_sums", 4, 64, _labels,
        lambda labels, values, sums, **_: {"sums": sums + np.bincount(labels, values, 5).astype("int32")},
    )
]  # fmt: skip


def _polynomial(rng: Rng) -> Values:
    n, degree = 131, 4
    return {
        "coefficients": integers(rng, -5, 6, degree + 1, 2).astype("float32"),
        "z": integers(rng, -6, 7, n, 2).astype("float32"),
        "out": blank((n, 4), "float32"), "degree": degree, "n": n,
    }  # fmt: skip


def _polynomial_reference(coefficients, z, **_):
    coefficients, z = (one.astype("float64").view("complex128")[:, 0] for one in (coefficients, z))
    value, slope = np.polyval(coefficients, z), np.polyval(np.polyder(coefficients), z)
    return {"out": np.stack([value.real, value.imag, slope.real, slope.imag], 1)}


CASES += [Case("horner_complex", 3, 64, _polynomial, _polynomial_reference)]


def _words(rng: Rng) -> Values:
    n = 203
    words = rng.integers(0, 1 << 32, n, dtype="uint64").astype("uint32") >> rng.integers(0, 32, n).astype("uint32")
    words[:2] = 0, 0xFFFFFFFF
    return {"words": words, "out": blank((n, 4), "uint32"), "n": n}


def _word(x: int) -> list[int]:
    count = bin(x).count("1")
    turn = count % 32
    low = (x & -x).bit_length() - 1 if x else 32
    return [count, x.bit_length(), low, (x << turn | x >> (32 - turn)) & 0xFFFFFFFF]


CASES += [Case("bit_runs", 2, 128, _words, lambda words, **_: {"out": [_word(int(x)) for x in words]})]


def _points(rng: Rng) -> Values:
    n, points_n = 67, 77
    queries, points = (integers(rng, -1000, 1000, count, 2).astype("float32") for count in (n, points_n))
    return {"queries": queries, "points": points, "nearest": blank(n, "int32"), "points_n": points_n, "n": n}


CASES += [
    Case(
        "nearest_point", 3, 32, _points,
        lambda queries, points, **_: {"nearest": ((queries[:, None] - points) ** 2).sum(2).argmin(1)},
    )
]  # fmt: skip


def _rounds(rng: Rng) -> Values:
    return {"in_": integers(rng, -1000, 1000, 3, 48), "out": blank((3, 48), "int32"), "rounds": 4}


CASES += [
    Case(
        "barrier_rounds", 3, 48, _rounds,
        lambda in_, rounds, **_: {"out": in_ * sum(2 ** (k + 1) - 1 for k in range(rounds))},
    )
]  # fmt: skip
