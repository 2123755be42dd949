"""Collectives of simulated devices beside NumPy: every type, sizes that fit nothing, views, graphs, one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulated_ranks import SIMULATED, group, on

import pygpukit as gp
from pygpukit.comm import collectives, planning
from pygpukit.ops import host

TYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
STORED = ["float8_e4m3", "float8_e5m2", "int4", "float4_e2m1"]
UFUNCS: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def drawn(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Numbers as the host has them: of all sizes, with NaN among the larger arrays of floats."""
    if dtype in (*STORED, "bfloat16"):
        values = np.asarray(rng.standard_normal(shape), "float32")
        return gp.from_numpy(values).astype(dtype).to_numpy()
    kind = np.dtype(dtype).kind
    if kind in "fc":
        values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if kind == "c" else 0)
        values = np.asarray(values)
        if kind == "f" and values.size > 6:
            values.reshape(-1)[rng.integers(values.size)] = np.nan
        return values.astype(dtype)
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def reduced(rows: list[np.ndarray[Any, Any]], dtype: str, op: str) -> np.ndarray[Any, Any]:
    """Of all ranks in their order, in the type that the kernels add up in."""
    wide = rows
    if dtype == "bfloat16":
        wide = [(row.astype("uint32") << 16).view("float32") for row in rows]
    elif dtype == "float16":
        wide = [row.astype("float32") for row in rows]
    with np.errstate(all="ignore"):
        result = wide[0]
        for row in wide[1:]:
            result = UFUNCS[op](result, row)
    return host.bfloat16_bits(result) if dtype == "bfloat16" else result.astype(dtype)


def same(actual: gp.GPUArray, expected: np.ndarray[Any, Any], dtype: str) -> None:
    values = actual.to_numpy()
    assert actual.dtype == dtype and values.shape == expected.shape
    if dtype == "bfloat16":  # NaN has many bits
        values, expected = ((one.astype("uint32") << 16).view("float32") for one in (values, expected))
    assert np.array_equal(values, expected, equal_nan=values.dtype.kind in "fc")


def viewed(x: gp.GPUArray, form: int) -> gp.GPUArray:
    """The same elements, contiguous or as one of several views."""
    if form == 0 or not x.size:
        return x
    if form == 1:  # every second element of a larger array
        wide = gp.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    shifted = gp.zeros(x.size + 3, x.dtype)[1:-2]  # contiguous, at no multiple of a pack
    shifted[:] = x.reshape(-1)
    return shifted.reshape(x.shape)


def numbers(first: str, step: str) -> None:
    """All collectives of some types against NumPy."""
    ranks = group()
    size = ranks.size
    rng = np.random.default_rng()

    def one(rank: gp.comm.Rank, dtype: str, rows: list[Any], op: str, root: int, form: int) -> None:
        x = viewed(gp.from_numpy(rows[rank.index]), form)
        if x.dtype != dtype:  # a type that NumPy lacks, as its bits
            x = (x if x.is_contiguous() else x.clone()).view(dtype)
        flat = x.reshape(-1) if form == 0 else x[0] if x.shape[0] else x
        own = [row.reshape(-1) if form == 0 else row[0] if row.shape[0] else row for row in rows]
        if dtype not in STORED:
            out = gp.full_like(flat, 1)
            assert rank.all_reduce(flat, op, out=out) is out
            same(out, reduced(own, dtype, op), dtype)
            same(rank.reduce_scatter(x, op), reduced([row[rank.index] for row in rows], dtype, op), dtype)
            clone = flat.clone()
            same(rank.all_reduce(clone, op, out=clone), reduced(own, dtype, op), dtype)
        same(rank.all_gather(flat), np.stack(own), dtype)
        same(rank.broadcast(flat, root), own[root], dtype)
        same(rank.all_to_all(x), np.stack([row[rank.index] for row in rows]), dtype)
        if rank.size > 1:  # around the ranks
            after, before = (rank.index + 1) % size, (rank.index - 1) % size
            if rank.index == 0:
                rank.send(flat, after)
                same(rank.recv(flat, before), own[before], dtype)
            else:
                passed = rank.recv(flat, before)
                rank.send(flat, after)
                same(passed, own[before], dtype)
        rank.barrier()

    types = [*TYPES, *STORED][int(first) :: int(step)]
    for dtype in types:
        for count in (0, 1, 7, int(rng.integers(900, 1500))):
            op = "sum" if dtype.startswith("complex") else str(rng.choice(["sum", "max", "min"]))
            rows = [drawn(dtype, (size, count), rng) for _ in range(size)]
            ranks.run(one, dtype, rows, op, int(rng.integers(size)), int(rng.integers(3)))
    ranks.close()


def added() -> None:
    """Sums onto float32, by one shot and by two: rounded to the type of x first, so that both have the same bits."""
    ranks = group()
    rng = np.random.default_rng()

    def one(rank: gp.comm.Rank, rows: list[Any], base: Any, form: int) -> Any:
        x, onto = viewed(gp.from_numpy(rows[rank.index]), form).astype(dtype), gp.from_numpy(base)
        assert rank.all_reduce(x, onto=onto) is onto
        again = gp.from_numpy(base)
        collectives.add_twice(
            x.contiguous(), again, rank._peers, rank._call("all_reduce", f"{x.size} twice"), rank.size
        )
        assert np.array_equal(again.to_numpy(), onto.to_numpy())
        return onto.to_numpy()

    for dtype in ("float32", "bfloat16"):
        for count, form in ((0, 0), (1, 0), (37, 1), (1000, 0), (4099, 2)):
            rows = [rng.standard_normal(count).astype("float32") for _ in range(ranks.size)]
            if dtype == "bfloat16":
                rows = [gp.from_numpy(row).astype(dtype).astype("float32").to_numpy() for row in rows]
            base = rng.standard_normal(count).astype("float32")
            total = rows[0]
            for row in rows[1:]:
                total = total + row
            expected = base + gp.from_numpy(total).astype(dtype).astype("float32").to_numpy()
            for found in ranks.run(one, rows, base, form):
                assert np.array_equal(found, expected), (dtype, count)

    def refused(rank: gp.comm.Rank) -> None:
        x = gp.ones(3)
        for arguments in ({"op": "max"}, {"out": gp.ones(3)}):
            with pytest.raises(gp.InvalidSpecError, match="onto= takes a sum of float32 or bfloat16"):
                rank.all_reduce(x, onto=gp.ones(3), **arguments)
        with pytest.raises(gp.InvalidSpecError, match="x is int32"):
            rank.all_reduce(gp.ones(3, "int32"), onto=gp.ones(3))
        with pytest.raises(gp.DTypeError, match="onto has type bfloat16"):
            rank.all_reduce(x, onto=gp.ones(3, "bfloat16"))
        with pytest.raises(gp.ShapeError, match="onto has shape"):
            rank.all_reduce(x, onto=gp.ones(4))

    ranks.run(refused)


@SIMULATED
@pytest.mark.parametrize("devices", [2, 3])
def test_sums_are_added_onto_float32(devices: int) -> None:
    on(devices, __file__, "added")


@SIMULATED
@pytest.mark.parametrize(("devices", "first"), [(2, 0), (3, 1), (8, 2), (2, 3), (4, 4), (5, 5)])
def test_collectives_give_what_numpy_gives(devices: int, first: int) -> None:
    on(devices, __file__, "numbers", str(first), "6")


def two_shots() -> None:
    """Sizes from which on ranks take two shots, and parts go through the windows in several rounds."""
    ranks = group()
    rng = np.random.default_rng()
    for count in (1 << 17, 400_001) if ranks.size > 2 else ((8 << 20) // 4 + 5,):
        rows = [rng.standard_normal(count).astype("float32") for _ in range(ranks.size)]
        assert gp.comm.plan(4 * count, size=ranks.size).algorithm == planning.TWO_SHOT
        expected = reduced(rows, "float32", "sum")
        for result in ranks.run(lambda rank, rows=rows: rank.all_reduce(gp.from_numpy(rows[rank.index]))):
            same(result, expected, "float32")
    assert rounds(ranks) >= (4 if ranks.size > 2 else 2)

    def sent(rank: gp.comm.Rank) -> gp.GPUArray | None:
        """More than the windows take at once, by one rank to another and on."""
        x = gp.from_numpy(rows[0])
        if rank.index:
            x = rank.recv(x, rank.index - 1)
        if rank.index + 1 < rank.size:
            rank.send(x, rank.index + 1)
        return x

    same(ranks.run(sent)[-1], rows[0], "float32")


def rounds(ranks: gp.comm.Group) -> int:
    """How often the first channel of rank 0 has met the others."""
    window = ranks._windows._memory[0].to_numpy()
    return int(window[256:260].view("uint32")[0])


@SIMULATED
@pytest.mark.parametrize("devices", [2, 3])
def test_large_sums_take_two_shots(devices: int) -> None:
    on(devices, __file__, "two_shots")


def one_thread() -> None:
    """Without run(): launches of all ranks before anybody waits; then the same as graphs, replayed."""
    ranks = group()
    rng = np.random.default_rng()
    rows = [rng.standard_normal(777).astype("float32") for _ in range(ranks.size)]
    xs = [gp.from_numpy(row, device=rank.device) for row, rank in zip(rows, ranks.ranks, strict=True)]
    expected = reduced(rows, "float32", "sum")
    for _ in range(20):
        xs = [rank.broadcast(x, root=rank.size - 1) for rank, x in zip(ranks.ranks, xs, strict=True)]
    assert [x.device for x in xs] == list(ranks.devices)
    for x in xs:
        same(x, rows[-1], "float32")
    xs = [gp.from_numpy(row, device=rank.device) for row, rank in zip(rows, ranks.ranks, strict=True)]
    graphs, results = [], []
    for rank, x in zip(ranks.ranks, xs, strict=True):
        with rank, gp.Stream().capture() as graph:
            y = rank.all_reduce(x)
            results.append((y, rank.all_gather(y * 2)))
        graphs.append(graph)
    for replay in range(5):
        for rank, x, row in zip(ranks.ranks, xs, rows, strict=True):
            with rank:
                x[:] = gp.from_numpy(row * (replay + 1))
        ranks.launch(graphs)
        total = reduced([row * np.float32(replay + 1) for row in rows], "float32", "sum")
        for y, gathered in results:
            same(y, total, "float32")
            same(gathered, np.stack([total * 2] * ranks.size), "float32")
        for rank, x in zip(ranks.ranks, xs, strict=True):  # between replays, by their own calls
            rank.all_reduce(x, out=x)
    assert expected.shape == (777,)


@SIMULATED
@pytest.mark.parametrize("devices", [2, 3])
def test_one_thread_may_walk_over_the_ranks_and_replay_their_graphs(devices: int) -> None:
    on(devices, __file__, "one_thread")


def streams() -> None:
    """Each call on a stream of its own that nobody keeps: a rank's calls go one after the other all the same."""
    ranks = group()
    rows = [np.random.default_rng(rank).standard_normal(20_001).astype("float32") for rank in range(ranks.size)]

    def work(rank: gp.comm.Rank) -> list[gp.GPUArray]:
        x, results = gp.from_numpy(rows[rank.index]), []
        for _ in range(10):
            with gp.Stream():
                results.append(rank.all_reduce(x))
        results.append(rank.all_reduce(x))
        rank.synchronize()
        return results

    expected = reduced(rows, "float32", "sum")
    for results in ranks.run(work):
        for result in results:
            same(result, expected, "float32")


@SIMULATED
def test_calls_on_several_streams_keep_their_order() -> None:
    on(2, __file__, "streams")


def repeats(count: str) -> None:
    """One result however often, in rounds of all collectives; and no memory that stays."""
    ranks = group()
    rng = np.random.default_rng()
    rows = [rng.standard_normal((ranks.size, 501)).astype("float16") for _ in range(ranks.size)]

    def work(rank: gp.comm.Rank) -> list[bytes]:
        x = gp.from_numpy(rows[rank.index])
        seen = set()
        free = []
        for turn in range(int(count)):
            y = rank.all_reduce(x)
            z = rank.reduce_scatter(x, "max")
            if turn % 10 == 9:
                seen.add(y.to_numpy().tobytes() + z.to_numpy().tobytes())
                free.append(gp.get_memory_info()[0])
        assert free[-1] >= min(free[:2]), free
        return sorted(seen)

    results = ranks.run(work)
    assert all(len(one) == 1 for one in results)
    assert results[0][0][: rows[0].nbytes] == reduced(rows, "float16", "sum").tobytes()


@SIMULATED
def test_a_thousand_rounds_give_one_result() -> None:
    on(2, __file__, "repeats", "500")


@SIMULATED
@pytest.mark.slow
@pytest.mark.turns(14)
def test_thousands_of_rounds_leave_nothing() -> None:
    on(2, __file__, "repeats", "2500")
