"""Cases: sorting, merging, searching, hashing, graphs and dynamic programming."""

from __future__ import annotations

import numpy as np

from corpus.case import Case, Values, blank, integers, sorted_front

CASES: list[Case] = []
Rng = np.random.Generator


def _bitonic(rng: Rng) -> Values:
    n = 3 * 128 - 31
    return {"in_": integers(rng, -(10**6), 10**6, n), "out": blank(n, "int32"), "n": n}


CASES += [
    Case(
        "bitonic_sort", 3, 128, _bitonic,
        lambda in_, **_: {"out": np.concatenate([np.sort(in_[k : k + 128]) for k in range(0, len(in_), 128)])},
    )
]  # fmt: skip


def _odd_even(rng: Rng) -> Values:
    return {"data": integers(rng, -30000, 30000, 61, dtype="int16"), "n": 61}


CASES += [Case("odd_even_sort", 1, 32, _odd_even, lambda data, **_: {"data": np.sort(data)}, shared_bytes=2 * 61)]


def _radix(n: int):
    return lambda rng: {
        "in_": rng.integers(0, 2**32, n, dtype=np.uint32), "out": blank(n, "uint32"), "shift": 6, "n": n
    }  # fmt: skip


def _radix_reference(in_, shift, **_):
    return {"out": in_[np.argsort(in_ >> np.uint32(shift) & np.uint32(3), kind="stable")]}


CASES += [
    Case("radix_pass", 1, 128, _radix(117), _radix_reference),
    Case("radix_pass", 1, 128, _radix(128), _radix_reference, variant="of a full block"),
]


def _merge(rng: Rng) -> Values:
    a, b = np.sort(integers(rng, 0, 120, 151)), np.sort(integers(rng, 0, 120, 133))
    return {"a": a, "b": b, "out": blank(284, "int32"), "a_count": 151, "b_count": 133}


CASES += [Case("merge_sorted", 3, 64, _merge, lambda a, b, **_: {"out": np.sort(np.concatenate([a, b]))})]


def _hash(rng: Rng) -> Values:
    return {
        "keys": integers(rng, 1, 90, 301, dtype="uint32"), "table": np.zeros(101, "uint32"),
        "counts": np.zeros(101, "int32"),
        "slots": 101, "n": 301,
    }  # fmt: skip


def _hash_reference(keys, **_):
    found, counts = np.unique(keys, return_counts=True)
    return {"table": np.pad(found, (101 - len(found), 0)), "counts": np.pad(counts, (101 - len(found), 0))}


def _sorted_slots(table, counts, **_):
    order = np.lexsort((counts, table))
    return {"table": table[order], "counts": counts[order]}


CASES += [Case("hash_insert", 5, 64, _hash, _hash_reference, normalise=_sorted_slots)]


def _string(rng: Rng) -> Values:
    text = integers(rng, 97, 99, 307, dtype="int8")
    return {
        "text": text, "pattern": text[100:104].copy(), "found": blank(307, "uint8"), "count": np.zeros(1, "int32"),
        "length": 307, "width": 4,
    }  # fmt: skip


def _string_reference(text, pattern, **_):
    found = np.zeros(len(text), "uint8")
    found[: len(text) - 3] = (np.lib.stride_tricks.sliding_window_view(text, 4) == pattern).all(1)
    return {"found": found, "count": found.sum()}


CASES += [Case("string_search", 5, 64, _string, _string_reference, shared_bytes=4)]


def _graph(rng: Rng, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    degrees = rng.integers(1, 9, nodes)
    starts = np.concatenate([[0], degrees.cumsum()]).astype("int32")
    return starts, integers(rng, 0, nodes, int(starts[-1]))


def _bfs(rng: Rng) -> Values:
    starts, neighbours = _graph(rng, 151)
    frontier = rng.permutation(151)[:37].astype("int32")
    distances = np.full(151, -1, "int32")
    distances[frontier] = 4
    return {
        "starts": starts, "neighbours": neighbours, "distances": distances, "frontier": frontier,
        "next": np.full(151, -1, "int32"), "next_count": np.zeros(1, "int32"), "level": 5, "count": 37,
    }  # fmt: skip


def _bfs_reference(starts, neighbours, distances, frontier, next, level, **_):
    reached = np.unique(np.concatenate([neighbours[starts[k] : starts[k + 1]] for k in frontier]))
    fresh = reached[distances[reached] == -1]
    after = distances.copy()
    after[fresh] = level
    return {"distances": after, "next": np.concatenate([fresh, next[len(fresh) :]]), "next_count": len(fresh)}


def _sorted_next(next, next_count, **_):
    return {"next": sorted_front(next, next_count)}


CASES += [Case("bfs_step", 2, 32, _bfs, _bfs_reference, normalise=_sorted_next)]


def _floyd(rng: Rng) -> Values:
    weights = integers(rng, 1, 100, 3, 13, 13)
    weights[rng.random(weights.shape) < 0.6] = 10**6
    return {"weights": weights, "distances": blank((3, 13, 13), "int32")}


def _floyd_reference(weights, **_):
    table = weights.copy()
    for via in range(13):
        table = np.minimum(table, table[:, :, via : via + 1] + table[:, via : via + 1, :])
    return {"distances": table}


CASES += [Case("floyd_warshall", 3, (13, 13), _floyd, _floyd_reference)]


def _words(rng: Rng) -> Values:
    a, b = integers(rng, 97, 101, 47, dtype="int8"), integers(rng, 97, 101, 41, dtype="int8")
    return {"a": a, "b": b, "out": blank(1, "int32"), "a_length": 47, "b_length": 41}


def _edit_reference(a, b, **_):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        last, row = row, [i + 1]
        for j, y in enumerate(b):
            row.append(min(last[j] + (x != y), last[j + 1] + 1, row[j] + 1))
    return {"out": row[-1]}


CASES += [Case("edit_distance", 1, 64, _words, _edit_reference)]


def _pairs(rng: Rng) -> Values:
    return {
        "a": integers(rng, 0, 4, 5, 19, dtype="uint8"), "b": integers(rng, 0, 4, 5, 19, dtype="uint8"),
        "out": blank(5, "int32")
    }  # fmt: skip


def _common_length(a, b) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        last, row = row, [0]
        for j, y in enumerate(b):
            row.append(last[j] + 1 if x == y else max(last[j + 1], row[j]))
    return row[-1]


CASES += [
    Case("lcs", 5, 19, _pairs, lambda a, b, **_: {"out": [_common_length(x, y) for x, y in zip(a, b, strict=True)]})
]
