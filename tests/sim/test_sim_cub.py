"""CUB's collectives of warps and blocks on the simulated device: each header by itself, each name against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from check_run import run
from cub_source import EACH, ITEMS, THREADS, source

import pygpukit as gp
from pygpukit.core.errors import CompileError
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.compile.nvrtc import get_nvrtc_version

ONE = "out[t] = x;"
FIRST = "if (t == 0) out[0] = x;"
MAXIMUM = "[](auto a, auto b) { return a < b ? b : a; }"
PREFIX = "struct { int sum; int operator()(int all) { int before = sum; sum += all; return before; } } before = {7};"


def shifted(sums: np.ndarray, first: int = 0) -> np.ndarray:
    """Running results without each own value."""
    return np.concatenate([[first], sums[:-1]])


def warps(values: np.ndarray) -> np.ndarray:
    return values[:THREADS].reshape(3, 32)


# (header, collective, code, what the first values of the output are)
REDUCE, SCAN = "block/block_reduce.cuh", "block/block_scan.cuh"
WARP_REDUCE, WARP_SCAN = "warp/warp_reduce.cuh", "warp/warp_scan.cuh"
R, S, W, P = (
    "cub::BlockReduce<int, 96>", "cub::BlockScan<int, 96>", "cub::WarpReduce<int>", "cub::WarpScan<int>",
)  # fmt: skip
WARP_FIRST = "if (t % 32 == 0) out[t / 32] = x;"
CASES = [
    (REDUCE, R, f"x = Collective(room).Sum(x); {FIRST}", lambda a: a[:96].sum()),
    (REDUCE, R, f"x = Collective(room).Sum(x, 41); {FIRST}", lambda a: a[:41].sum()),
    (REDUCE, R, f"x = Collective(room).Sum(many); {FIRST}", lambda a: a.sum()),
    (REDUCE, "cub::BlockReduce<int, 96, cub::BLOCK_REDUCE_RAKING>",
     f"x = Collective(room).Reduce(many, {MAXIMUM}); {FIRST}", lambda a: a.max()),
    (REDUCE, "cub::BlockReduce<int, 8, cub::BLOCK_REDUCE_WARP_REDUCTIONS, 4, 3>",
     f"x = Collective().Reduce(x, {MAXIMUM}, 70); {FIRST}", lambda a: a[:70].max()),
    (SCAN, S, f"Collective(room).InclusiveSum(x, x); {ONE}", lambda a: a[:96].cumsum()),
    (SCAN, S, f"Collective(room).ExclusiveSum(x, x, all); {ONE} out[96] = all;",
     lambda a: np.append(shifted(a[:96].cumsum()), a[:96].sum())),
    (SCAN, S, f"Collective(room).InclusiveScan(x, x, {MAXIMUM}); {ONE}", lambda a: np.maximum.accumulate(a[:96])),
    (SCAN, S, f"Collective(room).ExclusiveScan(x, x, 5, {MAXIMUM}, all); {ONE}",
     lambda a: shifted(np.maximum.accumulate(np.maximum(a[:96], 5)), 5)),
    (SCAN, S, f"Collective(room).ExclusiveScan(x, x, {MAXIMUM}); if (t) out[t - 1] = x;",
     lambda a: np.maximum.accumulate(a[:95])),
    (SCAN, S, f"Collective(room).InclusiveSum(many, to, all); {EACH} if (t == 95) out[288] = all;",
     lambda a: np.append(a.cumsum(), a.sum())),
    (SCAN, S, f"Collective(room).ExclusiveSum(many, to); {EACH}", lambda a: shifted(a.cumsum())),
    (SCAN, S, f"Collective(room).ExclusiveSum(many, many); for (int i = 0; i < 3; ++i) to[i] = many[i]; {EACH}",
     lambda a: shifted(a.cumsum())),
    (SCAN, S, f"Collective(room).InclusiveScan(many, to, {MAXIMUM}); {EACH}", lambda a: np.maximum.accumulate(a)),
    (SCAN, S, f"Collective(room).ExclusiveScan(many, to, -2000, {MAXIMUM}); {EACH}",
     lambda a: shifted(np.maximum.accumulate(a), -2000)),
    (SCAN, S, f"{PREFIX} Collective(room).ExclusiveSum(x, x, before); {ONE} if (t == 0) out[96] = before.sum;",
     lambda a: np.append(7 + shifted(a[:96].cumsum()), 7 + a[:96].sum())),
    (SCAN, S, f"{PREFIX} Collective(room).InclusiveSum(many, to, before); {EACH}", lambda a: 7 + a.cumsum()),
    (WARP_REDUCE, W, f"x = Collective(room[t / 32]).Sum(x); {WARP_FIRST}", lambda a: warps(a).sum(1)),
    (WARP_REDUCE, W, f"x = Collective(room[t / 32]).Sum(x, 9); {WARP_FIRST}", lambda a: warps(a)[:, :9].sum(1)),
    (WARP_REDUCE, W, f"x = Collective(room[t / 32]).Reduce(many, {MAXIMUM}); {WARP_FIRST}",
     lambda a: a.reshape(3, 96).max(1)),
    (WARP_REDUCE, "cub::WarpReduce<int, 8>", "x = Collective(room[t / 8]).Sum(x); if (t % 8 == 0) out[t / 8] = x;",
     lambda a: a[:96].reshape(12, 8).sum(1)),
    (WARP_SCAN, P, f"Collective(room[t / 32]).InclusiveSum(x, x); {ONE}", lambda a: warps(a).cumsum(1)),
    (WARP_SCAN, P, f"Collective(room[t / 32]).ExclusiveScan(x, x, 3, {MAXIMUM}); {ONE}",
     lambda a: [shifted(np.maximum.accumulate(np.maximum(row, 3)), 3) for row in warps(a)]),
    (WARP_SCAN, "cub::WarpScan<int, 16>", f"Collective(room[t / 16]).ExclusiveSum(x, x, all); {ONE} out[t] += all;",
     lambda a: [shifted(row.cumsum()) + row.sum() for row in a[:96].reshape(6, 16)]),
    (WARP_SCAN, P, f"int with; Collective(room[t / 32]).Scan(x, with, x, {MAXIMUM}); out[t] = with;",
     lambda a: np.maximum.accumulate(warps(a), 1)),
    (WARP_SCAN, P, f"x = Collective(room[t / 32]).Broadcast(x, 5); {ONE}", lambda a: np.repeat(warps(a)[:, 5], 32)),
]  # fmt: skip
LOADS = [
    ("block/block_load.cuh", f"cub::BlockLoad<int, 96, 3, cub::BLOCK_LOAD_{algorithm}>",
     f"Collective(room).Load(in, to, n, -1); {EACH}",
     (lambda a: np.append(a[:200], np.full(88, -1)).reshape(3, 96).T) if algorithm == "STRIPED"
     else (lambda a: np.append(a[:200], np.full(88, -1))))
    for algorithm in ("DIRECT", "STRIPED", "VECTORIZE", "TRANSPOSE", "WARP_TRANSPOSE", "WARP_TRANSPOSE_TIMESLICED")
]  # fmt: skip
STORES = [
    ("block/block_store.cuh", f"cub::BlockStore<int, 96, 3, cub::BLOCK_STORE_{algorithm}>",
     "Collective(room).Store(out, many, n);",
     (lambda a: a.reshape(96, 3).T.ravel()[:200]) if algorithm == "STRIPED" else (lambda a: a[:200]))
    for algorithm in ("DIRECT", "STRIPED", "VECTORIZE", "TRANSPOSE", "WARP_TRANSPOSE", "WARP_TRANSPOSE_TIMESLICED")
]  # fmt: skip
E_ = "cub::BlockExchange<int, 96, 3>"
BY_WARP = (0, 2, 1)
EXCHANGES = [
    ("block/block_exchange.cuh", E_, f"Collective(room).{code}; {EACH}", value)
    for code, value in {
        "BlockedToStriped(many, to)": lambda a: a.reshape(3, 96).T,
        "StripedToBlocked(many, to)": lambda a: a.reshape(96, 3).T,
        "BlockedToWarpStriped(many, to)": lambda a: a.reshape(3, 3, 32).transpose(BY_WARP),
        "WarpStripedToBlocked(many, to)": lambda a: a.reshape(3, 32, 3).transpose(BY_WARP),
    }.items()
] + [
    ("block/block_exchange.cuh", E_,
     f"int places[3] = {{287 - 3 * t, 286 - 3 * t, 285 - 3 * t}}; Collective(room).{name}(many, to, places); {EACH}",
     value)
    for name, value in {
        "ScatterToBlocked": lambda a: a[::-1], "ScatterToStriped": lambda a: a[::-1].reshape(3, 96).T,
    }.items()
]  # fmt: skip
ALL = [*CASES, *LOADS, *STORES, *EXCHANGES]


def block(collective: str) -> int | tuple[int, ...]:
    return (8, 4, 3) if ", 4, 3>" in collective else THREADS


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("case", ALL, ids=[f"{case[1]} {case[2].split(';')[0]}" for case in ALL])
def test_a_collective_gives_what_numpy_does(case: tuple, check: bool) -> None:
    header, collective, code, reference = case
    if ", 4, 3>" in collective:
        code = f"const int rank = t + 8 * (threadIdx.y + 4 * threadIdx.z); x = in[rank]; {code}".replace(
            "if (t == 0)", "if (rank == 0)"
        )
    values = np.random.default_rng().integers(-999, 999, THREADS * ITEMS).astype("int32")
    out = gp.from_numpy(np.full(THREADS * ITEMS + 1, -(2**31), "int32"))
    kernel = gp.jit(source(header, collective, code), "k", check=check)
    kernel[1, block(collective)](gp.from_numpy(values), out, 200)
    expected = np.ravel(reference(values))
    assert out.to_numpy()[: expected.size].tolist() == expected.tolist()


KEYS = {
    "int": "int32", "unsigned": "uint32", "float": "float32", "double": "float64", "short": "int16",
    "unsigned char": "uint8", "long long": "int64",
}  # fmt: skip


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("kind", KEYS)
def test_block_radix_sort_sorts_keys_of_every_type(kind: str, down: bool) -> None:
    rng, dtype = np.random.default_rng(), np.dtype(KEYS[kind])
    keys = np.frombuffer(rng.bytes(288 * dtype.itemsize), dtype).copy()
    if dtype.kind == "f":
        keys = rng.standard_normal(288).astype(dtype)
        keys[:4] = 0, -0.0, np.inf, -np.inf
    out = gp.from_numpy(np.full(289, 1, dtype))
    name = "SortDescending" if down else "Sort"
    code = f"Collective(room).{name}(many); for (int i = 0; i < 3; ++i) out[3 * t + i] = many[i];"
    text = source("block/block_radix_sort.cuh", f"cub::BlockRadixSort<{kind}, 96, 3>", code, kind)
    gp.jit(text, "k", check=True)[1, THREADS](gp.from_numpy(keys), out, 0)
    expected = np.sort(keys)[::-1] if down else np.sort(keys)
    assert np.array_equal(out.to_numpy()[:288], expected)


@pytest.mark.parametrize("striped", [False, True])
@pytest.mark.parametrize("bits", [(0, 32), (3, 9)])
def test_block_radix_sort_keeps_equal_keys_in_order_and_takes_values_along(
    bits: tuple[int, int], striped: bool
) -> None:
    keys = np.random.default_rng().integers(0, 300, 288).astype("int32")
    out = gp.zeros(289, "int32")
    name = "SortBlockedToStriped" if striped else "Sort"
    code = f"for (int i = 0; i < 3; ++i) to[i] = 3 * t + i; Collective(room).{name}(many, to, {bits[0]}, {bits[1]});"
    text = source("block/block_radix_sort.cuh", "cub::BlockRadixSort<int, 96, 3, int>", code + EACH)
    gp.jit(text, "k", check=True)[1, THREADS](gp.from_numpy(keys), out, 0)
    digits = keys if bits == (0, 32) else keys >> bits[0] & (1 << bits[1] - bits[0]) - 1
    order = np.argsort(digits, kind="stable")
    found = out.to_numpy()[:288]
    assert (found.reshape(96, 3).T.ravel() if striped else found).tolist() == order.tolist()


def test_sums_of_floats_are_those_of_a_warps_tree_and_then_of_the_warps() -> None:
    values = np.random.default_rng().standard_normal(288).astype("float32")
    out = gp.zeros(289, "float32")
    code = f"x = Collective(room).Sum(x); {FIRST}"
    gp.jit(source(REDUCE, "cub::BlockReduce<float, 96>", code, "float"), "k")[1, THREADS](gp.from_numpy(values), out, 0)
    tree = values[:96].reshape(3, 32)
    while tree.shape[1] > 1:
        tree = tree[:, ::2] + tree[:, 1::2]
    assert out.to_numpy()[0] == tree[0, 0] + tree[1, 0] + tree[2, 0]


def test_a_missing_barrier_between_two_collectives_of_one_room_is_found() -> None:
    code = f"x = Collective(room).Sum(x); {{}} all = Collective(room).Sum(many[0]); {FIRST} out[1 + t] = all;"
    values = gp.from_numpy(np.arange(288, dtype="int32"))
    for barrier, kind in (("__syncthreads();", None), ("", "race")):
        found = run(source(REDUCE, R, code.format(barrier)), 1, THREADS, values, gp.zeros(289, "int32"), 0)
        assert (found and found.kind) == kind


@pytest.mark.skipif(get_nvrtc_version() is None, reason="NVRTC is not installed (extra cuda13)")
@pytest.mark.turns(4)
@pytest.mark.parametrize("header", sorted({case[0] for case in ALL} | {"block/block_radix_sort.cuh"}))
def test_nvrtc_takes_the_same_sources(header: str) -> None:
    for name, collective, code, _ in ALL:
        if name == header:
            compile_source(source(name, collective, code), arch="sm_90a")
            break
    else:
        code = "Collective(room).Sort(many); out[t] = many[0];"
        compile_source(source(header, "cub::BlockRadixSort<int, 96, 3>", code), arch="sm_90a")


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("block/block_topk.cuh", "block_topk.cuh"),
        ("device/device_reduce.cuh", "device_reduce.cuh"),
        ("cub.cuh", "collective's own header"),
    ],
)
def test_what_there_is_not_is_an_error_that_names_it(header: str, told: str) -> None:
    with pytest.raises(CompileError, match=told):
        compile_source(f"#include <cub/{header}>\n__global__ void k() {{}}", arch="sim")
