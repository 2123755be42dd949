"""The blocks that products choose are the fastest of those that were measured, or cost little more."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import pytest
from device_facts import Facts

from pygpukit.core.dtypes import bfloat16
from pygpukit.ops.matmul.cuda_cores import real
from pygpukit.ops.matmul.layout.operand import Operand
from pygpukit.ops.matmul.problem import Problem
from pygpukit.ops.matmul.sm90 import cluster, pingpong
from pygpukit.ops.matmul.tile import gemv as tile_gemv
from pygpukit.ops.matmul.tile import half

MEASURED = Path(__file__).parents[3] / "docs" / "results" / "h100" / "blocks.json"
ROWS = json.loads(MEASURED.read_text())["rows"]


@pytest.fixture(autouse=True)
def _measured_device(facts: Facts) -> None:
    facts(sm_count=132, capability=90)


def by_pairs_turns_or_tiles(row: dict[str, Any]) -> str:
    """Of half precision."""
    batch, m, n, k = (() if row["products"] == 1 else (row["products"],)), row["m"], row["n"], row["k"]
    a = Operand.dense((*batch, *((k, m) if row["a"] == "m" else (m, k))), 2)
    b = Operand.dense((*batch, *((n, k) if row["b"] == "k" else (k, n))), 2)
    a, b = (one.transposed() if along else one for one, along in ((a, row["a"] == "m"), (b, row["b"] == "k")))
    p = Problem("half", bfloat16, bfloat16, a, b)
    if tile_gemv.takes(m, p.a_transposed):
        return "tile"
    times = {"tile": half.time_us(p), "pairs": cluster.time_us(p)}
    if not pingpong.unsupported(p):
        # Of the tiles that this card was measured with: those of 64 x 64 were measured on another.
        tiles = [tile for tile in pingpong.tiles() if str(tile) in row["blocks"] and tile.general >= p.a_transposed]
        times |= {str(tile): tile.time_us(m, n, k, row["products"], 2, 132) for tile in tiles}
    return min(times, key=lambda name: times[name])


def by_real(row: dict[str, Any]) -> str:
    """Of float32 and float64."""
    itemsize = int(row["type"].removeprefix("float")) // 8
    across = int(row["a"] == "m"), int(row["b"] == "n")
    dense = [row["k"] if not other else row[side] for other, side in zip(across, ("m", "n"), strict=True)]
    elements = 2 if any(extent * itemsize % 16 for extent in dense) else 0
    read = across[0] | elements, across[1] | elements
    return "{}x{}".format(*real.block(row["type"], row["products"], row["m"], row["n"], row["k"], read).extents())


@pytest.mark.parametrize(
    ("types", "chosen"), [(["bfloat16"], by_pairs_turns_or_tiles), (["float32", "float64"], by_real)]
)
def test_what_is_chosen_takes_little_more_than_the_fastest(types: list[str], chosen: Any) -> None:
    rows = [row for row in ROWS if row["type"] in types]
    # Blocks that a row lacks were so much slower that they were not measured: to choose one fails by its name.
    longer = [row["blocks"][chosen(row)] / min(row["blocks"].values()) for row in rows]
    assert len(longer) > 20
    assert geometric_mean(longer) < 1.03
    assert sum(one < 1.1 for one in longer) >= len(longer) - 1, longer  # one time of 300^3 stands out
