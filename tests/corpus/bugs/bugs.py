"""Kernels with one mistake each, what the checked mode must say of it, and what the corrected kernel computes.

Each entry of BUGS is a file beside this one. With the macro FIXED it is the corrected kernel. The line that a finding
must name ends in `// BUG` (a kernel that never ends may be stopped at any of several); where two accesses or two
barriers conflict, the other line ends in `// AND` and the finding's message names it too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
Place = tuple[int, int, int]


def at(x: int, y: int = 0, z: int = 0) -> frozenset[Place]:
    """One thread or block."""
    return frozenset({(x, y, z)})


def among(x: Iterable[int]) -> frozenset[Place]:
    """Any of these threads: who is told of depends on who went first."""
    return frozenset((one, 0, 0) for one in x)


@dataclass(frozen=True)
class Addresses:
    """An argument: an array of the device addresses of `rows`; those of `freed` are given back before the launch."""

    rows: tuple[np.ndarray, ...]
    freed: tuple[int, ...]


@dataclass(frozen=True)
class Bug:
    """One mistake. thread, block: any of these. index: the element of `array`, or one of these; None: of no array.

    grid, block_size, shared_bytes, arguments: the launch, the same for the corrected kernel. Arrays are NumPy's.
    result: what the corrected kernel leaves in the parameters that it writes, exact unless `tolerance` says otherwise.
    """

    name: str
    kind: str
    kernel: str
    grid: int | tuple[int, ...]
    block_size: int | tuple[int, ...]
    arguments: tuple[Any, ...]
    result: Mapping[int, np.ndarray]
    thread: frozenset[Place]
    block: frozenset[Place] = field(default_factory=lambda: at(0))
    array: str = ""
    index: int | range | None = None
    shared_bytes: int = 0
    tolerance: float = 0.0
    timeout_s: float | None = None

    @property
    def source(self) -> str:
        return (FOLDER / f"{self.name}.cu").read_text()

    @property
    def lines(self) -> list[int]:
        """Lines that a finding may name."""
        return self._marked("// BUG")

    @property
    def indices(self) -> Collection[int | None]:
        return self.index if isinstance(self.index, range) else (self.index,)

    @property
    def other_lines(self) -> list[int]:
        """Lines that its message must name."""
        return self._marked("// AND")

    def _marked(self, marker: str) -> list[int]:
        return [number for number, line in enumerate(self.source.splitlines(), 1) if line.endswith(marker)]


def _ints(n: int, low: int = 0, high: int = 100, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, n, dtype=np.int32)


def _floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Whole numbers, so that sums are exact."""
    return np.random.default_rng(seed).integers(0, 64, shape).astype(np.float32)


def _bytes(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, n, dtype=np.uint8)


def _zeros(n: int | tuple[int, ...], dtype: Any = np.int32) -> np.ndarray:
    return np.zeros(n, dtype)


def _first_repeat(values: np.ndarray) -> tuple[int, int]:
    """(position, value) of the first value that was there before."""
    seen: set[int] = set()
    for position, value in enumerate(values.tolist()):
        if value in seen:
            return position, value
        seen.add(value)
    raise ValueError("no value occurs twice")


def _out_of_bounds() -> Iterable[Bug]:
    kind = "out of bounds"
    x, y = _floats(1000), _floats(1000, seed=1)
    yield Bug("bounds_saxpy", kind, "saxpy", 4, 256, (2.0, x, y, 1000), {2: 2 * x + y},
              at(232), at(3), "x", 1000)  # fmt: skip

    lengths = _ints(200, 1, 9)
    yield Bug("bounds_row_offsets", kind, "row_offsets", 1, 256, (lengths, _zeros(200), 200),
              {1: np.cumsum(lengths) - lengths}, at(200), at(0), "offsets", 200)  # fmt: skip

    x = _floats(500)
    smooth = np.zeros_like(x)
    smooth[1:-1] = 0.25 * x[:-2] + 0.5 * x[1:-1] + 0.25 * x[2:]
    yield Bug("bounds_stencil_left", kind, "smooth", 4, 128, (x, np.zeros_like(x), 500), {1: smooth},
              at(0), at(0), "in", -1)  # fmt: skip

    x = _floats(16, 32)
    right = x.copy()
    for first in (0, 16):
        right[:, first : first + 15] = x[:, first + 1 : first + 16]
    yield Bug("bounds_tile_column", kind, "mean_right", (2, 1), (16, 16), (x, np.zeros_like(x), 32),
              {1: 0.5 * (x + right)}, at(15), at(0), "tile", 16)  # fmt: skip

    x = _floats(256)
    padded = np.pad(x, 1)
    yield Bug("bounds_shared_halo", kind, "laplace", 2, 128, (x, np.zeros_like(x), 256),
              {1: padded[:-2] - 2 * x + padded[2:]}, at(127), at(0), "line", 129)  # fmt: skip

    x = _floats(512)
    yield Bug("bounds_dynamic_padding", kind, "reverse_blocks", 2, 256, (x, np.zeros_like(x)),
              {1: x.reshape(2, 256)[:, ::-1].ravel()}, at(249), at(0), "values", 256, shared_bytes=1024)  # fmt: skip

    x = _floats(16, 48)
    yield Bug("bounds_transpose", kind, "transpose", (3, 1), (16, 16), (x, _zeros((48, 16), np.float32), 48, 16),
              {1: x.T}, at(0), at(1), "in", 768)  # fmt: skip

    x = _floats(8, 128)
    yield Bug("bounds_pitch", kind, "invert", (4, 1), (32, 8), (x, _zeros((8, 100), np.float32), 100, 8, 512),
              {1: 1 - x[:, :100]}, at(0, 2), at(0), "in", 1024)  # fmt: skip

    keys = np.sort(_ints(300, 1, 200_000))
    wrapped = (keys * np.int32(40503)).astype(np.int64)
    first = int(np.argmax(np.fmod(wrapped, 61) < 0))
    counts = np.bincount(wrapped.astype(np.uint32) % 61, minlength=61).astype(np.int32)
    yield Bug("bounds_hash", kind, "count_slots", 3, 128, (keys, _zeros(61), 300, 61), {1: counts},
              at(first % 128), at(first // 128), "counts", int(np.fmod(wrapped[first], 61)))  # fmt: skip

    n, step = 31_000, 70_000
    positions = np.arange(n, dtype=np.int64) * step
    x = np.arange((positions[-1] >> 16) + 1, dtype=np.int16)
    first = int(np.argmax(positions >= 2**31))
    yield Bug("bounds_resample", kind, "resample", -(-n // 256), 256, (x, _zeros(n, np.int16), n, step),
              {1: x[positions >> 16]}, at(first % 256), at(first // 256), "in",
              int((positions[first] - 2**32) >> 16))  # fmt: skip

    x = _ints(1024)
    yield Bug("bounds_neighbour_array", kind, "reverse", 4, 256, (x, _zeros(1024), _zeros(1024), 1024),
              {1: x[::-1], 2: np.ones(1024, np.int32)}, at(0), at(0), "out", 1024)  # fmt: skip

    a, b = _floats(16, 20), _floats(20, 16, seed=1)
    yield Bug("bounds_matmul_edge", kind, "matmul", (1, 1), (16, 16), (a, b, _zeros((16, 16), np.float32), 16, 16, 20),
              {2: a @ b}, at(0, 4), at(0), "b", 320)  # fmt: skip

    x = _ints(1022)
    columns = np.pad(x, (0, 2)).reshape(2, 128, 4).sum(axis=(0, 2), dtype=np.int32)
    yield Bug("bounds_unrolled_sum", kind, "sum_columns", 1, 128, (x, _zeros(128), 1022), {1: columns},
              at(127), at(0), "x", 1022)  # fmt: skip

    rows = 64
    dense = np.where(np.random.default_rng(2).random((rows, rows)) < 0.1, _floats(rows, rows), 0).astype(np.float32)
    row, column = np.nonzero(dense)
    starts = np.searchsorted(row, np.arange(rows + 1)).astype(np.int32)
    x = _floats(rows, seed=3)
    matrix = (starts, column.astype(np.int32), dense[row, column])
    yield Bug("bounds_sparse_row", kind, "spmv", 1, 64, (*matrix, x, np.zeros_like(x), rows), {4: dense @ x},
              at(63), at(0), "columns", len(row))  # fmt: skip

    x = _floats(24, 40)
    around = np.pad(x, 1, mode="edge")
    blurred = sum(around[dy : dy + 24, dx : dx + 40] for dy in range(3) for dx in range(3)) / np.float32(9)
    yield Bug("bounds_box_blur", kind, "box_blur", (3, 2), (16, 16), (x, np.zeros_like(x), 40, 24), {1: blurred},
              at(0), at(0), "in", -41, tolerance=1e-6)  # fmt: skip

    x = np.stack([np.random.default_rng(row).permutation(50) for row in range(64)]).astype(np.int32)
    yield Bug("bounds_local_top", kind, "largest", 1, 64, (x, _zeros((64, 4)), 50), {1: -np.sort(-x)[:, :4]},
              at(0), at(0), "best", 4)  # fmt: skip

    taps = np.float32([0.0625, 0.25, 0.375, 0.25, 0.0625])
    x = _floats(205)
    yield Bug("bounds_constant_taps", kind, "filter", 2, 128, (x, _zeros(200, np.float32), 200),
              {1: sum(tap * x[k : k + 200] for k, tap in enumerate(taps))}, at(0), at(0), "taps", 5)  # fmt: skip

    x = _ints(1024)
    yield Bug("bounds_warp_sums", kind, "block_sums", 2, 512, (x, _zeros(2)),
              {1: x.reshape(2, 512).sum(axis=1, dtype=np.int32)}, at(256), at(0), "parts", 8)  # fmt: skip

    x = _floats(1022)
    yield Bug("bounds_vector_tail", kind, "sum_of_four", 1, 256, (x, _zeros(256, np.float32), 1022),
              {1: np.pad(x, (0, 2)).reshape(256, 4).sum(axis=1)}, at(255), at(0), "x", 1022)  # fmt: skip

    data = _bytes(500)
    first = int(np.argmax(data >= 64))
    yield Bug("bounds_bins", kind, "histogram", 4, 128, (data, _zeros(64, np.uint32), 500),
              {1: np.bincount(data // 4, minlength=64).astype(np.uint32)}, at(first), at(0), "bins",
              int(data[first]))  # fmt: skip

    x = _floats(300) - 30
    yield Bug("bounds_null_bias", kind, "activate", 3, 128, (x, None, np.zeros_like(x), 300), {2: np.maximum(x, 0)},
              at(0), at(0), "bias", 0)  # fmt: skip

    x = _ints(1000)
    yield Bug("bounds_grid_stride", kind, "differences", 2, 128, (x, _zeros(1000), 1000),
              {1: np.append(np.diff(x), 0).astype(np.int32)}, at(999 % 256 % 128), at(999 % 256 // 128), "x",
              1000)  # fmt: skip


def _misaligned_and_freed() -> Iterable[Bug]:
    x = _floats(401)
    yield Bug("misaligned_vector", "misaligned", "copy_from", 1, 128, (x, _zeros(400, np.float32), 1, 100),
              {1: x[1:]}, at(0), at(0), "x", 1)  # fmt: skip

    numbers = _ints(100, -10_000, 10_000)
    records = np.zeros(100, np.dtype([("tag", "u1"), ("number", "<i4")]))
    records["number"] = numbers
    yield Bug("misaligned_record", "misaligned", "unpack", 1, 128, (records.view(np.uint8), _zeros(100), 100),
              {1: numbers}, at(0), at(0), "records", 1)  # fmt: skip

    groups, values = _ints(128, 0, 5), np.arange(128, dtype=np.float64)
    sums = np.bincount(groups, values, minlength=5)
    yield Bug("misaligned_shared", "misaligned", "group_sums", 1, 128, (groups, values, _zeros(5, np.float64), 128),
              {2: sums}, at(0), at(0), "memory", 20, shared_bytes=60)  # fmt: skip

    rows = tuple(_floats(256, seed=seed) for seed in range(5))
    alive = np.int32([1, 1, 1, 0, 1])
    yield Bug("freed_row", "use after free", "sum_rows", 1, 32,
              (Addresses(rows, (3,)), alive, _zeros(5, np.float32), 5, 256),
              {2: np.float32([row.sum() for row in rows]) * alive}, at(3), index=0)  # fmt: skip

    x = _ints(64)
    yield Bug("freed_node", "use after free", "list_sums", 1, 64, (x, _zeros(64), 4), {1: 4 * x + 6}, at(0))


def _uninitialised() -> Iterable[Bug]:
    kind = "uninitialised"
    data = _bytes(500)
    bins = np.bincount(data % 32, minlength=32).astype(np.uint32)
    yield Bug("uninitialised_bins", kind, "histogram", 4, 128, (data, _zeros(32, np.uint32), 500), {1: bins},
              at(0), at(0), "bins", int(data[0]) % 32)  # fmt: skip

    x = _ints(512)
    yield Bug("uninitialised_parts", kind, "block_sums", 4, 128, (x, _zeros(4)),
              {1: x.reshape(4, 128).sum(axis=1, dtype=np.int32)}, among(range(4, 32)), at(0), "parts",
              range(4, 32))  # fmt: skip

    x = _floats(258)
    yield Bug("uninitialised_halo", kind, "smooth", 2, 128, (x, _zeros(256, np.float32)),
              {1: 0.25 * x[:-2] + 0.5 * x[1:-1] + 0.25 * x[2:]}, at(127), at(0), "tile", 129)  # fmt: skip

    x = _ints(200)
    yield Bug("uninitialised_tail", kind, "block_sums", 2, 128, (x, _zeros(2), 200),
              {1: np.int32([x[:128].sum(), x[128:].sum()])}, at(8), at(1), "tile", 72)  # fmt: skip

    x = np.arange(512, dtype=np.int32)
    yield Bug("uninitialised_found", kind, "find", 4, 128, (x, _zeros(4), 300, 512), {1: np.int32([-1, -1, 300, -1])},
              at(0), at(0), "found", 0)  # fmt: skip


def _races() -> Iterable[Bug]:
    kind = "race"
    x = _ints(256)
    yield Bug("race_reverse", kind, "reverse_blocks", 2, 128, (x, _zeros(256)),
              {1: x.reshape(2, 128)[:, ::-1].ravel()}, among(range(64)), at(0), "line",
              range(64, 128))  # fmt: skip

    a, b = _floats(16, 16), _floats(16, 16, seed=1)
    yield Bug("race_matmul_tiles", kind, "matmul", (2, 2), (8, 8), (a, b, np.zeros_like(a), 16), {2: a @ b},
              at(1), at(0), "left", 0)  # fmt: skip

    x = _ints(256)
    yield Bug("race_reduction_tree", kind, "block_sums", 4, 64, (x, _zeros(4)),
              {1: x.reshape(4, 64).sum(axis=1, dtype=np.int32)}, at(1), at(0), "tile", 1)  # fmt: skip

    data = _bytes(500)
    thread, value = _first_repeat(data[:128] % 32)
    yield Bug("race_shared_bins", kind, "histogram", 4, 128, (data, _zeros(32, np.uint32), 500),
              {1: np.bincount(data % 32, minlength=32).astype(np.uint32)}, at(thread), at(0), "bins",
              value)  # fmt: skip

    thread, value = _first_repeat(data[:128])
    yield Bug("race_global_bins", kind, "histogram", 4, 128, (data, _zeros(256, np.uint32), 500),
              {1: np.bincount(data, minlength=256).astype(np.uint32)}, at(thread), at(0), "bins", value)  # fmt: skip

    x = _ints(128)
    yield Bug("race_warp_sum", kind, "warp_sums", 2, 64, (x, _zeros(4)),
              {1: x.reshape(4, 32).sum(axis=1, dtype=np.int32)}, at(1), at(0), "values", 1)  # fmt: skip

    x = _floats(256)
    padded = np.pad(x, 1)
    yield Bug("race_in_place_blur", kind, "blur", 4, 64, (x, np.zeros_like(x), 256),
              {1: 0.25 * padded[:-2] + 0.5 * x + 0.25 * padded[2:]}, at(0), at(1), "x", 63)  # fmt: skip

    x = _ints(300, -50, 50)
    positive = np.flatnonzero(x[:128] > 0)
    kept = np.int32(np.arange(300) < (x > 0).sum())
    yield Bug("race_counter", kind, "keep_positive", 3, 128, (x, _zeros(300), _zeros(1), 300),
              {1: kept, 2: np.int32([(x > 0).sum()])}, at(int(positive[1])), at(0), "count", 0)  # fmt: skip

    x = _floats(128)
    diffused = x.reshape(2, 64)
    for _ in range(3):
        diffused = np.float32(0.5) * (diffused + np.roll(diffused, -1, axis=1))
    yield Bug("race_double_buffer", kind, "diffuse", 2, 64, (x, np.zeros_like(x), 3), {1: diffused.ravel()},
              at(0), at(0), "buffer", 65)  # fmt: skip

    x = _ints(256)
    yield Bug("race_last_block", kind, "total", 4, 64, (x, _zeros(4), _zeros(1)),
              {1: x.reshape(4, 64).sum(axis=1, dtype=np.int32), 2: np.int32([x.sum()])}, at(0), at(3), "parts",
              0)  # fmt: skip

    x = _floats(128)
    means = x.reshape(2, 64).mean(axis=1, keepdims=True)
    yield Bug("race_broadcast", kind, "centre", 2, 64, (x, np.zeros_like(x)), {1: (x.reshape(2, 64) - means).ravel()},
              at(1), at(0), "mean", 0)  # fmt: skip

    x = _ints(300, 1, 1000)
    yield Bug("race_maximum", kind, "largest", 3, 128, (x, _zeros(1), 300), {1: np.int32([x.max()])},
              at(1), at(0), "best", 0)  # fmt: skip

    x = _ints(128)
    yield Bug("race_scan", kind, "scan", 2, 64, (x, _zeros(128)),
              {1: np.cumsum(x.reshape(2, 64), axis=1, dtype=np.int32).ravel()}, at(2), at(0), "line", 1)  # fmt: skip

    x = _ints(6)
    yield Bug("race_lock", kind, "locked_sum", 6, 32, (x, _zeros(1), _zeros(1)),
              {1: np.int32([x.sum()]), 2: _zeros(1)}, at(0), at(1), "total", 0)  # fmt: skip

    x = _floats(128) / 16
    powers = np.exp(x.reshape(2, 64) - x.reshape(2, 64).max(axis=1, keepdims=True))
    yield Bug("race_softmax", kind, "softmax", 2, 64, (x, np.zeros_like(x)),
              {1: (powers / powers.sum(axis=1, keepdims=True)).ravel()}, at(1), at(0), "buffer", 0,
              tolerance=1e-6)  # fmt: skip

    x = _ints(128)
    yield Bug("race_sort_step", kind, "sort_blocks", 2, 32, (x, _zeros(128)), {1: np.sort(x.reshape(2, 64)).ravel()},
              at(1), at(0), "line", 2)  # fmt: skip

    yield Bug("race_overlapping_rows", kind, "fill_rows", 3, 32, (_zeros((12, 20)), 20, 12),
              {0: np.repeat(np.arange(12, dtype=np.int32) // 4, 20).reshape(12, 20)}, at(0), at(1), "out",
              80)  # fmt: skip


def _barriers_and_warps() -> Iterable[Bug]:
    kind = "divergent barrier"
    x = _ints(64)
    yield Bug("barrier_in_branch", kind, "fold", 1, 64, (x, _zeros(64)), {1: np.tile(x[:32] + x[32:], 2)},
              among(range(32)))  # fmt: skip

    x = _ints(100)
    yield Bug("barrier_trip_count", kind, "neighbours", 1, 64, (x, _zeros(64), 100),
              {1: np.full(64, x.sum(), np.int32)}, among(range(36)))  # fmt: skip

    x = np.arange(1, 65, dtype=np.int32)
    steps = np.int32([_collatz(int(value)) for value in x])
    yield Bug("barrier_break", kind, "collatz", 1, 64, (x, _zeros(65)), {1: np.append(steps, steps.max())},
              among(range(1, 64)))  # fmt: skip

    kind = "deadlock"
    x = _ints(64)
    yield Bug("deadlock_shuffle_in_branch", kind, "half_sums", 1, 64, (x, _zeros(2)),
              {1: x.reshape(2, 32)[:, :16].sum(axis=1, dtype=np.int32)},
              among([*range(16), *range(32, 48)]))  # fmt: skip

    x = _ints(3)
    yield Bug("deadlock_syncwarp", kind, "first_three", 1, 32, (x, _zeros(3)), {1: 2 * np.roll(x, -1)}, among(range(3)))

    x = _ints(40)
    yield Bug("deadlock_ballot_before_barrier", kind, "count_even", 1, 64, (x, _zeros(1), 40),
              {1: np.int32([(x % 2 == 0).sum()])}, among(range(32, 40)))  # fmt: skip

    kind = "warp mask"
    x = _ints(64)
    yield Bug("warp_half_mask", kind, "swap_pairs", 1, 64, (x, _zeros(64)), {1: x.reshape(32, 2)[:, ::-1].ravel()},
              at(16))  # fmt: skip

    x = _ints(40)
    yield Bug("warp_exited_lane", kind, "warp_sums", 1, 64, (x, _zeros(2), 40),
              {1: np.int32([x[:32].sum(), x[32:].sum()])}, among(range(32, 40)))  # fmt: skip

    x = _ints(48)
    yield Bug("warp_absent_lane", kind, "minus_last", 1, 48, (x, _zeros(48)),
              {1: np.append(x[:32] - x[31], x[32:] - x[47])}, among(range(32, 48)))  # fmt: skip

    kind = "warp matrix"
    x = _floats(2, 16, 16).astype(np.float16)
    squares = x.astype(np.float32) @ x.astype(np.float32).transpose(0, 2, 1)
    yield Bug("matrix_pointer", kind, "squares", 1, 64, (x, _zeros((2, 16, 16), np.float32)), {1: squares},
              among(range(64)))  # fmt: skip
    yield Bug("matrix_part_of_warp", kind, "squares", 1, 32, (x[0], _zeros((16, 16), np.float32), 16), {1: squares[0]},
              among(range(16)))  # fmt: skip
    yield Bug("matrix_line", kind, "squares", 1, 32, (x[0], _zeros((16, 16), np.float32)), {1: squares[0]},
              among(range(32)))  # fmt: skip
    yield Bug("matrix_part_of_fragment", kind, "squares_and_one", 1, 32, (x[0], _zeros((16, 16), np.float32)),
              {1: squares[0] + 1}, among(range(32)))  # fmt: skip
    wide = _floats(16, 48).astype(np.float16)
    tile = wide[:, 16:32].astype(np.float32)
    yield Bug("misaligned_tile", "misaligned", "second_square", 1, 32, (wide, _zeros((16, 16), np.float32)),
              {1: tile @ tile.T}, among(range(32)), array="a", index=17)  # fmt: skip
    yield Bug("race_tile_result", "race", "square_rows", 1, 32, (x[0], _zeros(16, np.float32)), {1: squares[0].sum(1)},
              among(range(32)), array="result", index=range(256))  # fmt: skip
    tall = _floats(40, 16).astype(np.float16)
    yield Bug("bounds_tile_rows", "out of bounds", "copy_tiles", 3, 32, (tall, np.zeros_like(tall), 40), {1: tall},
              among(range(32)), at(2), array="a", index=range(640, 768))  # fmt: skip

    kind = "warp mask"
    x = _ints(32, -50, 50)
    kept = np.where(x > 0, x, 0)
    yield Bug("warp_stale_mask", kind, "rank_positive", 1, 32, (x, _zeros(32)),
              {1: np.where(x > 0, kept.sum(), 0).astype(np.int32)}, among(np.flatnonzero(x <= 0).tolist()))  # fmt: skip


def _collatz(value: int) -> int:
    steps = 0
    while value > 1:
        value = 3 * value + 1 if value % 2 else value // 2
        steps += 1
    return steps


def _arithmetic_and_limits() -> Iterable[Bug]:
    counts = np.int32([3, 2, 0, 4, 0])
    sums = np.int32([30, 8, 0, 44, 0])
    yield Bug("divide_empty_group", "integer division by zero", "means", 1, 32, (sums, counts, _zeros(5), 5),
              {2: np.int32([10, 4, 0, 11, 0])}, at(2))  # fmt: skip

    yield Bug("divide_by_rounded_width", "integer division by zero", "rows_of_level", 1, 64, (_zeros(50), 6, 3, 50),
              {0: _zeros(50)}, at(0))  # fmt: skip

    labels = _ints(100, 1, 11)
    hot = np.zeros((100, 10), np.float32)
    hot[np.arange(100), labels - 1] = 1
    yield Bug("assert_label", "assert", "one_hot", 1, 128, (labels, np.zeros_like(hot), 100, 10), {1: hot},
              at(int(np.argmax(labels == 10))))  # fmt: skip

    values, keys = np.arange(0, 200, 2, dtype=np.int32), np.int32([0, 7, 8, 250])
    yield Bug("endless_search", "time limit", "rank", 1, 32, (values, keys, _zeros(4), 100, 4),
              {2: np.searchsorted(values, keys).astype(np.int32)}, at(1), timeout_s=2.0)  # fmt: skip

    parents = np.int32([0, 0, 1, 1, 5, 4, 4, 7])
    yield Bug("endless_cycle", "time limit", "depths", 1, 32, (parents, _zeros(8), 8),
              {1: np.int32([0, 1, 2, 2, 8, 8, 8, 0])}, at(4), timeout_s=2.0)  # fmt: skip

    x = _ints(64)
    yield Bug("endless_flag", "time limit", "hand_over", 1, 64, (x, _zeros(1), _zeros(64)),
              {1: np.int32([1]), 2: x}, at(1), timeout_s=2.0)  # fmt: skip

    a, b = np.int32([12, 35, 6, 9, 48, 7]), np.int32([18, 21, 4, 0, 36, 7])
    yield Bug("stack_recursion", "stack overflow", "divisors", 1, 32, (a, b, _zeros(6), _zeros(6), 6),
              {2: np.gcd(a, b), 3: _zeros(6)}, at(3))  # fmt: skip


BUGS: list[Bug] = [
    *_out_of_bounds(),
    *_misaligned_and_freed(),
    *_uninitialised(),
    *_races(),
    *_barriers_and_warps(),
    *_arithmetic_and_limits(),
]
