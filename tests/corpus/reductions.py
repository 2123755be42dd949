"""Cases: scans, reductions, votes, histograms and compaction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corpus.case import ROUNDING, Case, Values, blank, floats, integers, sorted_front

CASES: list[Case] = []
Rng = np.random.Generator


def _blocks(values, size: int, fill=0):
    """One row for each block of `size` elements."""
    return np.pad(values, (0, -len(values) % size), constant_values=fill).reshape(-1, size)


def _in_out(n: int) -> Callable[[Rng], Values]:
    return lambda rng: {"in_": integers(rng, -1000, 1000, n), "out": blank(n, "int32"), "n": n}


def _scan_of_blocks(size: int) -> Callable[..., Values]:
    return lambda in_, n, **_: {"out": _blocks(in_, size).cumsum(1).ravel()[:n]}


CASES += [
    Case("scan_hillis_steele", 4, 64, _in_out(233), _scan_of_blocks(64), shared_bytes=4 * 64),
    Case("scan_warp", 3, 128, _in_out(128 * 2 + 77), _scan_of_blocks(128)),
]


def _blelloch(rng: Rng) -> Values:
    n = 2 * 128 + 37
    return {"in_": integers(rng, -1000, 1000, n), "out": blank(n, "int32"), "totals": blank(3, "int32"), "n": n}


def _blelloch_reference(in_, n, **_):
    blocks = _blocks(in_, 128)
    return {"out": (blocks.cumsum(1) - blocks).ravel()[:n], "totals": blocks.sum(1)}


CASES += [Case("scan_blelloch", 3, 64, _blelloch, _blelloch_reference)]


def _look_back(rng: Rng) -> Values:
    n = 64 * 8 + 39
    return {
        "in_": integers(rng, -1000, 1000, n), "out": blank(n, "int32"), "ticket": np.zeros(1, "int32"),
        "states": np.zeros(9, "int32"), "partials": blank(9, "int32"), "completes": blank(9, "int32"), "n": n,
    }  # fmt: skip


def _look_back_reference(in_, completes, **_):
    sums = _blocks(in_, 64).sum(1)
    complete = np.arange(9) % 4 == 3
    return {
        "out": in_.cumsum(), "ticket": 9, "states": np.where(complete, 2, 1), "partials": sums,
        "completes": np.where(complete, sums.cumsum(), completes),
    }  # fmt: skip


CASES += [Case("scan_look_back", 9, 64, _look_back, _look_back_reference)]


def _reduce_tree(rng: Rng) -> Values:
    n = 64 * 4 + 19
    return {"in_": floats(rng, n), "out": blank(5, "float32"), "n": n}


CASES += [
    Case(
        "reduce_tree", 5, 64, _reduce_tree, lambda in_, **_: {"out": _blocks(in_.astype("float64"), 64).sum(1)},
        shared_bytes=4 * 64, tolerance=1e-6, reason=ROUNDING,
    )
]  # fmt: skip


def _reduce_shuffle(rng: Rng) -> Values:
    return {"in_": integers(rng, -1000, 1000, 1001), "sum": np.array([17], "int32"), "n": 1001}


CASES += [Case("reduce_shuffle", 3, 128, _reduce_shuffle, lambda in_, sum, **_: {"sum": sum + in_.sum()})]


def _reduce_last_block(rng: Rng) -> Values:
    n = 1511
    # Of one sign: a sum near zero of larger numbers says nothing of the adding.
    return {"in_": np.abs(floats(rng, n)), "parts": blank(7, "float32"), "sum": blank(1, "float32"), "n": n}


def _last_block_reference(in_, **_):
    parts = _blocks(_blocks(in_.astype("float64"), 64).sum(1), 7).sum(0)
    return {"parts": parts, "sum": in_.sum(dtype="float64")}


CASES += [Case("reduce_last_block", 7, 64, _reduce_last_block, _last_block_reference, tolerance=3e-6, reason=ROUNDING)]


def _reduce_grid(rng: Rng) -> Values:
    n = 1203
    return {"in_": integers(rng, -1000, 1000, n), "parts": blank(5, "int32"), "sum": blank(1, "int32"), "n": n}


CASES += [
    Case(
        "reduce_grid", 5, 64, _reduce_grid,
        lambda in_, **_: {"parts": _blocks(_blocks(in_, 64).sum(1), 5).sum(0), "sum": in_.sum()}, cooperative=True,
    )
]  # fmt: skip


def _argmax(rng: Rng) -> Values:
    values = integers(rng, 0, 60, 6, 211, dtype="float32")  # small integers, so that there are equals
    values[0, 0] = values[1, 210] = 60  # the greatest at either end
    return {"in_": values, "out": blank(6, "int32"), "columns": 211}


CASES += [Case("argmax", 6, 64, _argmax, lambda in_, **_: {"out": in_.argmax(1)})]


def _segments(rng: Rng) -> Values:
    offsets = np.concatenate([[3], 3 + rng.integers(1, 90, 13).cumsum()]).astype("int32")
    return {
        "in_": integers(rng, -1000, 1000, int(offsets[-1]) + 5), "offsets": offsets, "sums": blank(13, "int64"),
        "segments": 13
    }  # fmt: skip


CASES += [
    Case(
        "reduce_segmented", 4, 128, _segments,
        lambda in_, offsets, **_: {"sums": np.add.reduceat(in_, offsets)[:-1]},
    )
]  # fmt: skip


def _reduce_volatile(rng: Rng) -> Values:
    n = 64 * 3 - 13
    return {"in_": integers(rng, -1000, 1000, n), "out": blank(6, "int32"), "n": n}


CASES += [Case("reduce_volatile", 3, 64, _reduce_volatile, lambda in_, **_: {"out": _blocks(in_, 32).sum(1)})]


def _dot_tile(rng: Rng) -> Values:
    shape = (21, 29)
    return {
        "a": integers(rng, -100, 100, *shape), "b": integers(rng, -100, 100, *shape), "out": blank(21, "int32"),
        "rows": 21,
        "columns": 29,
    }  # fmt: skip


CASES += [Case("dot_tile", 3, 64, _dot_tile, lambda a, b, **_: {"out": (a * b).sum(1)})]


def _warp_extremes(rng: Rng) -> Values:
    n = 4 * 32 + 1
    return {
        "in_": integers(rng, -10000, 10000, n), "low": blank(5, "int32"), "high": blank(5, "int32"),
        "sum": blank(5, "int32"), "bits": blank(5, "uint32"), "n": n,
    }  # fmt: skip


def _warp_extremes_reference(in_, **_):
    same, zeros = _blocks(in_, 32, in_[-1]), _blocks(in_, 32)
    return {
        "low": same.min(1), "high": same.max(1), "sum": zeros.sum(1),
        "bits": np.bitwise_xor.reduce(zeros, 1).view("uint32")
    }  # fmt: skip


CASES += [Case("warp_extremes", 3, 64, _warp_extremes, _warp_extremes_reference)]


def _barrier_votes(rng: Rng) -> Values:
    n = 64 * 4 - 5
    values = integers(rng, 0, 100, n)
    values[64:128] = 90  # all of one block's, and none of another's
    values[128:192] = 10
    return {
        "in_": values, "count": blank(4, "int32"), "all": blank(4, "int32"), "any": blank(4, "int32"), "limit": 50,
        "n": n
    }  # fmt: skip


def _barrier_votes_reference(in_, limit, **_):
    above = _blocks(in_ > limit, 64)
    return {"count": above.sum(1), "all": above.all(1), "any": above.any(1)}


CASES += [Case("barrier_votes", 4, 64, _barrier_votes, _barrier_votes_reference)]


def _ballot_runs(rng: Rng) -> Values:
    n = 5 * 32 - 9
    values = integers(rng, 0, 2, n)
    values[40] = 7
    values[64:96] += 1
    return {
        "in_": values, "run": blank(n, "int32"), "any_zero": blank(5, "int32"), "all_small": blank(5, "int32"), "n": n
    }  # fmt: skip


def _ballot_runs_reference(in_, n, **_):
    run = np.zeros(n, int)
    for i in range(n):
        run[i] = run[i - 1] + 1 if i % 32 and in_[i] == in_[i - 1] else 0
    return {
        "run": run, "any_zero": (_blocks(in_, 32, 1) == 0).any(1), "all_small": (_blocks(in_, 32, 1) < 3).all(1)
    }  # fmt: skip


CASES += [Case("ballot_runs", 3, 64, _ballot_runs, _ballot_runs_reference)]


def _tile_scan(rng: Rng) -> Values:
    n = 7 * 16 - 5
    return {"in_": integers(rng, -100, 100, n), "out": blank(n, "int32"), "odd": blank(7, "uint32"), "n": n}


def _tile_scan_reference(in_, n, **_):
    tiles = _blocks(in_, 16)
    return {"out": tiles.cumsum(1).ravel()[:n], "odd": (tiles % 2 != 0) @ (1 << np.arange(16))}


CASES += [Case("tile_scan", 2, 64, _tile_scan, _tile_scan_reference)]


def _bytes(rng: Rng) -> Values:
    n = 1009
    return {"data": integers(rng, 0, 256, n, dtype="uint8"), "bins": integers(rng, 0, 9, 256, dtype="uint32"), "n": n}


def _bytes_reference(data, bins, **_):
    return {"bins": bins + np.bincount(data, minlength=256)}


def _keys(rng: Rng) -> Values:
    return {"keys": integers(rng, 0, 11, 401), "bins": np.zeros(11, "uint32"), "n": 401}


CASES += [
    Case("histogram_global", 8, 128, _bytes, _bytes_reference),
    Case("histogram_shared", 3, 96, _bytes, _bytes_reference),
    Case("histogram_warp", 7, 64, _keys, lambda keys, **_: {"bins": np.bincount(keys, minlength=11)}),
]


def _kmeans(rng: Rng) -> Values:
    return {
        "points": integers(rng, -100, 100, 203, 2), "centres": integers(rng, -100, 100, 5, 2),
        "labels": blank(203, "int32"),
        "sums": np.zeros((5, 3), "int32"), "n": 203,
    }  # fmt: skip


def _kmeans_reference(points, centres, **_):
    labels = ((points[:, None].astype(int) - centres) ** 2).sum(2).argmin(1)
    own = labels[:, None] == np.arange(5)
    return {"labels": labels, "sums": np.column_stack([own.sum(0), own.T @ points])}


CASES += [Case("kmeans_assign", 4, 64, _kmeans, _kmeans_reference)]


def _front(values, size: int, fill):
    """The values at the front of an output of which the rest stays as it was."""
    return np.concatenate([values, fill[len(values) : size]])


def _compact_warp(rng: Rng) -> Values:
    n = 437
    values = floats(rng, n)
    values[[0, -1]] = 0.5, 1.5  # the ends are kept
    return {"in_": values, "out": blank(n, "float32"), "count": np.zeros(1, "int32"), "n": n}


def _compact_warp_reference(in_, out, n, **_):
    kept = in_[in_ > 0]
    return {"out": _front(kept, n, out), "count": len(kept)}


def _sorted_kept(out, count, **_):
    return {"out": np.nan_to_num(sorted_front(out, count), nan=-1.0)}


CASES += [Case("compact_warp", 7, 64, _compact_warp, _compact_warp_reference, normalise=_sorted_kept)]


def _compact_scan(rng: Rng) -> Values:
    n = 64 * 3 + 11
    values = integers(rng, -1000, 1000, n)
    values[[0, -1]] = 3, 5  # the ends are kept
    return {"in_": values, "out": blank(n, "int32"), "count": blank(1, "int32"), "n": n}


def _compact_scan_reference(in_, out, n, **_):
    kept = in_[in_ % 2 != 0]
    return {"out": _front(kept, n, out), "count": len(kept)}


CASES += [Case("compact_scan", 1, 64, _compact_scan, _compact_scan_reference)]


def _coalesced_counter(rng: Rng) -> Values:
    n = 307
    values = integers(rng, 0, 1000, n)
    values[[0, -1]] = 3, 6  # the ends are kept
    return {"in_": values, "kept": np.full(n, -1, "int32"), "count": np.zeros(1, "int32"), "n": n}


def _coalesced_reference(in_, kept, n, **_):
    found = in_[in_ % 3 == 0]
    return {"kept": _front(found, n, kept), "count": len(found)}


CASES += [
    Case(
        "coalesced_counter", 5, 64, _coalesced_counter, _coalesced_reference,
        normalise=lambda kept, count, **_: {"kept": sorted_front(kept, count)},
    )
]  # fmt: skip
