"""CUB's collectives of neighbours, counts, merge sorts and warps' memory on the simulated device, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from check_run import run
from cub_source import EACH, source

import pygpukit as gp
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.compile.nvrtc import get_nvrtc_version

FLAGS, DIFFERENCE, SHUFFLE, HISTOGRAM, RUNS, MERGE, WARP_MERGE, WARP_EXCHANGE, WARP_LOAD, WARP_STORE = (
    "block/block_discontinuity.cuh", "block/block_adjacent_difference.cuh", "block/block_shuffle.cuh",
    "block/block_histogram.cuh", "block/block_run_length_decode.cuh", "block/block_merge_sort.cuh",
    "warp/warp_merge_sort.cuh", "warp/warp_exchange.cuh", "warp/warp_load.cuh", "warp/warp_store.cuh",
)  # fmt: skip
UNEQUAL = "[](int a, int b) { return a != b; }"
APART = "[](int a, int b, int at) { return a / 8 != b / 8 || at % 32 == 0; }"
LESS = "[](int a, int b) { return a >> 2 < b >> 2; }"  # those of a four are equal
MINUS = "[](int a, int b) { return 2 * a - b; }"
BOTH = "for (int i = 0; i < 3; ++i) out[3 * t + i] = 2 * to[i] + more[i];"
D, A, S, X = (
    "cub::BlockDiscontinuity<int, 96>", "cub::BlockAdjacentDifference<int, 96>", "cub::BlockShuffle<int, 96>",
    "cub::WarpExchange<int, 3>",
)  # fmt: skip
OUT_OF_ROOM = -(2**31)  # what no kernel writes


def heads(a: np.ndarray, before: int | None = None) -> np.ndarray:
    return np.append(True if before is None else a[0] != before, a[1:] != a[:-1])


def tails(a: np.ndarray, after: int | None = None) -> np.ndarray:
    return np.append(a[1:] != a[:-1], True if after is None else a[-1] != after)


def apart(a: np.ndarray) -> np.ndarray:
    return np.append(True, (a[1:] // 8 != a[:-1] // 8) | (np.arange(1, 288) % 32 == 0))


def left(a: np.ndarray, first: int, valid: int = 288) -> np.ndarray:
    return np.where(np.arange(288) < valid, np.append(first, 2 * a[1:] - a[:-1]), a)


def right(a: np.ndarray, last: int, valid: int = 289) -> np.ndarray:
    return np.where(np.arange(288) < valid - 1, np.append(2 * a[:-1] - a[1:], last), a)


def merged(a: np.ndarray, valid: int, other: int) -> np.ndarray:
    order = np.argsort(a[:valid] // 4, kind="stable")
    return np.append(a[:valid][order], np.full(len(a) - valid, other))


def by_warps(a: np.ndarray) -> np.ndarray:
    return a.reshape(3, 96)


Case = tuple[str, str, str, Callable[[np.ndarray], Any]]
FLAG_CASES: list[Case] = [
    (FLAGS, D, f"Collective(room).FlagHeads(to, many, {UNEQUAL}); {EACH}", heads),
    (FLAGS, D, f"Collective(room).FlagHeads(to, many, {UNEQUAL}, 7); {EACH}", lambda a: heads(a, 7)),
    (FLAGS, D, f"Collective(room).FlagHeads(to, many, {APART}); {EACH}", apart),
    (FLAGS, D, f"Collective().FlagTails(to, many, {UNEQUAL}); {EACH}", tails),
    (FLAGS, D, f"Collective(room).FlagTails(to, many, {UNEQUAL}, 9); {EACH}", lambda a: tails(a, 9)),
    (FLAGS, D, f"int more[3]; Collective(room).FlagHeadsAndTails(to, more, many, {UNEQUAL}); {BOTH}",
     lambda a: 2 * heads(a) + tails(a)),
    (FLAGS, D, f"int more[3]; Collective(room).FlagHeadsAndTails(to, more, 9, many, {UNEQUAL}); {BOTH}",
     lambda a: 2 * heads(a) + tails(a, 9)),
    (FLAGS, D, f"int more[3]; Collective(room).FlagHeadsAndTails(to, 3, more, many, {UNEQUAL}); {BOTH}",
     lambda a: 2 * heads(a, 3) + tails(a)),
    (FLAGS, D, f"int more[3]; Collective(room).FlagHeadsAndTails(to, 3, more, 9, many, {UNEQUAL}); {BOTH}",
     lambda a: 2 * heads(a, 3) + tails(a, 9)),
    (DIFFERENCE, A, f"Collective(room).SubtractLeft(many, to, {MINUS}); {EACH}", lambda a: left(a, a[0])),
    (DIFFERENCE, A, f"Collective(room).SubtractLeft(many, many, {MINUS}, 5); for (int i : {{0, 1, 2}}) to[i] = many[i];"
     + EACH, lambda a: left(a, 2 * a[0] - 5)),
    (DIFFERENCE, A, f"Collective(room).SubtractLeftPartialTile(many, to, {MINUS}, n); {EACH}",
     lambda a: left(a, a[0], 200)),
    (DIFFERENCE, A, f"Collective(room).SubtractLeftPartialTile(many, to, {MINUS}, n, 5); {EACH}",
     lambda a: left(a, 2 * a[0] - 5, 200)),
    (DIFFERENCE, A, f"Collective(room).SubtractRight(many, to, {MINUS}); {EACH}", lambda a: right(a, a[-1])),
    (DIFFERENCE, A, f"Collective(room).SubtractRight(many, to, {MINUS}, 5); {EACH}",
     lambda a: right(a, 2 * a[-1] - 5)),
    (DIFFERENCE, A, f"Collective(room).SubtractRightPartialTile(many, to, {MINUS}, n); {EACH}",
     lambda a: right(a, a[-1], 200)),
    (SHUFFLE, S, "all = -1; Collective(room).Offset(x, all, -5); out[t] = all;",
     lambda a: np.append(np.full(5, -1), a[:91])),
    (SHUFFLE, S, "Collective(room).Rotate(x, all, 40); out[t] = all;", lambda a: np.roll(a[:96], -40)),
    (SHUFFLE, S, f"to[0] = -1; Collective(room).Up(many, to, all); {EACH} if (t == 4) out[288] = all;",
     lambda a: np.concatenate([[-1], a[:-1], a[-1:]])),
    (SHUFFLE, S, f"to[2] = -1; Collective().Down(many, to, all); {EACH} if (t == 4) out[288] = all;",
     lambda a: np.concatenate([a[1:], [-1], a[:1]])),
]  # fmt: skip
COUNT_CASES: list[Case] = [
    (HISTOGRAM, f"cub::BlockHistogram<int, 96, 3, 40, cub::BLOCK_HISTO_{algorithm}>",
     f"__shared__ {counter} bins[40]; {code} __syncthreads(); if (t < 40) out[t] = bins[t];", value)
    for algorithm, counter in (("ATOMIC", "int"), ("ATOMIC", "unsigned"), ("SORT", "unsigned short"))
    for code, value in {
        "Collective(room).Histogram(many, bins);": lambda a: np.bincount(a, minlength=40),
        "Collective all_of(room); all_of.InitHistogram(bins); __syncthreads(); all_of.Composite(many, bins);"
        " __syncthreads(); all_of.Composite(many, bins);": lambda a: 2 * np.bincount(a, minlength=40),
    }.items()
] + [
    (RUNS, "cub::BlockRunLengthDecode<int, 96, 3, 4>",
     "unsigned lengths[3], total; for (int i = 0; i < 3; ++i) lengths[i] = many[i] % 5; int at[4], four[4];"
     "Collective decoded(room, many, lengths, total); for (unsigned begin = 0; begin < 288; begin += 384) {"
     "decoded.RunLengthDecode(four, at, begin); for (int i = 0; i < 4; ++i) if (begin + 4 * t + i < 288)"
     "out[begin + 4 * t + i] = four[i] + 100 * at[i]; } out[288] = total;",
     lambda a: np.append((np.repeat(a, a % 5) + 100 * np.concatenate([np.arange(n) for n in a % 5]))[:288],
                         (a % 5).sum())),
    (RUNS, "cub::BlockRunLengthDecode<int, 96, 3, 3>",
     f"int begins[3] = {{6 * t, 6 * t + 2, 6 * t + 4}}; Collective(room, many, begins).RunLengthDecode(to, 10); {EACH}",
     lambda a: np.repeat(a, 2)[10:298]),
]  # fmt: skip
WARP_CASES: list[Case] = [
    (WARP_EXCHANGE, X, f"Collective(room[t / 32]).BlockedToStriped(many, to); {EACH}",
     lambda a: by_warps(a).reshape(3, 3, 32).transpose(0, 2, 1)),
    (WARP_EXCHANGE, "cub::WarpExchange<int, 3, 16>", f"Collective(room[t / 16]).StripedToBlocked(many, to); {EACH}",
     lambda a: a.reshape(6, 16, 3).transpose(0, 2, 1)),
    (WARP_EXCHANGE, X, "int places[3]; for (int i = 0; i < 3; ++i) places[i] = 95 - 3 * (t % 32) - i;"
     f"Collective(room[t / 32]).ScatterToStriped(many, to, places); {EACH}",
     lambda a: by_warps(a)[:, ::-1].reshape(3, 3, 32).transpose(0, 2, 1)),
    *((WARP_LOAD, f"cub::WarpLoad<int, 3, cub::WARP_LOAD_{algorithm}, {width}>",
       f"Collective(room[t / {width}]).Load(in + t / {width} * {3 * width}, to, {3 * width - 7}, -1); {EACH}",
       lambda a, width=width, striped=algorithm == "STRIPED": loaded(a, width, striped))
      for algorithm in ("DIRECT", "STRIPED", "VECTORIZE", "TRANSPOSE") for width in (32, 8)),
    *((WARP_STORE, f"cub::WarpStore<int, 3, cub::WARP_STORE_{algorithm}>",
       "Collective(room[t / 32]).Store(out + t / 32 * 96, many, 90);",
       lambda a, striped=algorithm == "STRIPED": stored(a, striped))
      for algorithm in ("DIRECT", "STRIPED", "VECTORIZE", "TRANSPOSE")),
]  # fmt: skip


def loaded(a: np.ndarray, width: int, striped: bool) -> np.ndarray:
    rows = a.reshape(-1, 3 * width).copy()
    rows[:, -7:] = -1
    return rows.reshape(-1, 3, width).transpose(0, 2, 1) if striped else rows


def stored(a: np.ndarray, striped: bool) -> np.ndarray:
    rows = by_warps(a).reshape(3, 32, 3).transpose(0, 2, 1).reshape(3, 96) if striped else by_warps(a)
    return np.where(np.arange(96) < 90, rows, OUT_OF_ROOM)


ALL = [*FLAG_CASES, *COUNT_CASES, *WARP_CASES]


def computed(header: str, collective: str, code: str, values: np.ndarray, threads: int, check: bool) -> np.ndarray:
    out = gp.from_numpy(np.full(289, OUT_OF_ROOM, "int32"))
    gp.jit(source(header, collective, code), "k", check=check)[1, threads](gp.from_numpy(values), out, 200)
    return out.to_numpy()


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("case", ALL, ids=[f"{case[1]} {case[2].split(';')[0]}" for case in ALL])
def test_a_collective_gives_what_numpy_does(case: Case, check: bool) -> None:
    header, collective, code, reference = case
    values = np.random.default_rng().integers(0, 40, 288).astype("int32")
    expected = np.ravel(reference(values))
    assert computed(header, collective, code, values, 96, check)[: expected.size].tolist() == expected.tolist()


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("valid", [192, 130, 1, 0])
@pytest.mark.parametrize("pairs", [False, True])
def test_merge_sort_of_a_block_keeps_equal_keys_in_order(valid: int, pairs: bool, check: bool) -> None:
    values = np.random.default_rng().integers(-50, 50, 288).astype("int32")
    call = "many, to" if pairs else "many"
    code = f"""for (int i = 0; i < 3; ++i) to[i] = 3 * t + i;
  Collective(room).{"Sort" if valid == 192 else "StableSort"}({call}, {LESS}{f", {valid}, 99" if valid < 192 else ""});
  for (int i = 0; i < 3; ++i) {{ out[3 * t + i] = many[i]; }}
  {"if (t == 0) out[192] = to[0];" if pairs and valid else ""}"""
    found = computed(MERGE, f"cub::BlockMergeSort<int, 64, 3{', int' if pairs else ''}>", code, values, 64, check)
    assert found[:192].tolist() == merged(values[:192], valid, 99).tolist()
    if pairs and valid:
        assert found[192] == np.argsort(values[:valid] // 4, kind="stable")[0]


@pytest.mark.parametrize("width", [32, 8])
def test_merge_sort_of_warps_takes_values_along(width: int) -> None:
    values = np.random.default_rng().integers(-50, 50, 288).astype("int32")
    code = f"""for (int i = 0; i < 3; ++i) to[i] = 3 * (t % {width}) + i;
  Collective(room[t / {width}]).Sort(many, to, {LESS}); {EACH}"""
    found = computed(WARP_MERGE, f"cub::WarpMergeSort<int, 3, {width}, int>", code, values, 96, True)
    rows = values.reshape(-1, 3 * width)
    assert found[:288].reshape(rows.shape).tolist() == np.argsort(rows // 4, axis=1, kind="stable").tolist()


def test_a_missing_barrier_before_the_room_is_used_again_is_found() -> None:
    flag = f"Collective(room).FlagHeads(to, many, {UNEQUAL});"
    code = f"{flag} BARRIER {flag} {EACH}"
    values = gp.from_numpy(np.arange(288, dtype="int32"))
    for barrier, kind in (("__syncthreads();", None), ("", "race")):
        found = run(source(FLAGS, D, code.replace("BARRIER", barrier)), 1, 96, values, gp.zeros(289, "int32"), 0)
        assert (found and found.kind) == kind


@pytest.mark.skipif(get_nvrtc_version() is None, reason="NVRTC is not installed (extra cuda13)")
@pytest.mark.turns(4)
@pytest.mark.parametrize("case", ALL, ids=[f"{case[1]} {case[2].split(';')[0]}" for case in ALL])
def test_nvrtc_takes_the_same_sources(case: Case) -> None:
    compile_source(source(*case[:3]), arch="sm_90a")
