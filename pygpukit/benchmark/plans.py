"""`python -m pygpukit.benchmark.plans`: measures once what the plans of convolution and attention choose from.

It writes the device's table (pygpukit/ops/plans). Nothing that decides bits is measured: not the backend, nor how many
keys a tile of attention has.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from math import exp, log, prod
from pathlib import Path
from statistics import mean, median
from typing import Any

from .conv_cases import Case, cases
from .operators import device_us

FAMILIES = ("convolution", "attention")
# ResNet-50's, Whisper's and Kokoro's that differ most: many and few places, channels and places of the kernel.
CONVOLUTIONS = (
    "ResNet-50 1x1, 64 to 64 of 56x56", "ResNet-50 3x3, 64 to 64 of 56x56", "ResNet-50 1x1, 256 to 1024 of 14x14",
    "ResNet-50 3x3, 256 to 256 of 14x14", "ResNet-50 3x3, 512 to 512 of 7x7", "ResNet-50 1x1, 2048 to 512 of 7x7",
    "ResNet-50 3x3, 128 to 128 of 56x56, stride 2", "Whisper large-v3, first", "Whisper large-v3, second",
    "Kokoro 256 channels, 7 wide, dilation 3", "Kokoro 128 channels, 3 wide, dilation 1", "Kokoro up by 6",
)  # fmt: skip
PROMPTS = ((32, 512, True), (32, 2048, True), (16, 8192, True), (32, 2048, False))  # heads, positions, causal
ORDERS = ((32, 2048), (32, 4096), (16, 8192))  # heads, positions of prompts that measure the order of blocks
ORDERED_DIM = 128
BETTER = 0.98  # of the time: what is not the default must be so much faster

Timer = Callable[[Callable[[], object]], float]  # microseconds of a call


def convolution(time: Timer, measured: Sequence[Case], count: int) -> dict[str, Any]:
    """The times of each tile and block, from every case by each of them. count: multiprocessors."""
    from ..core.dtypes import bfloat16, float32
    from ..ops import plans
    from ..ops.nn.conv import gathered, tiles
    from .conv import convolution as convolution_of

    chosen: dict[str, Any] = {}
    for kind, dtype in (("bfloat16", bfloat16), ("tf32", float32)):
        calls = [(case, convolution_of(case, kind, "last")[0]) for case in measured]
        part = chosen[tiles.KINDS[dtype]] = []
        for one in tiles.ALL[dtype]:
            rows, times = [], []
            with plans.using({tiles.FAMILY: {tiles.KINDS[dtype]: [asdict(one)], gathered.KINDS[dtype]: []}}):
                for case, call in calls:
                    rows.append(_waves(one, case, count))
                    times.append(time(call))
            fixed, wave, step = fitted(rows, times)
            part.append(asdict(replace(one, fixed_us=fixed, wave_us=wave, step_us=step)))
        kind = gathered.KINDS[dtype]
        chosen[kind] = []
        plain = [(_places(case), call) for case, call in calls if not case.transposed]
        for block in gathered.RULE[dtype]:
            passed = [block.work(*places, dtype.itemsize, count) for places, _ in plain]
            with plans.using({tiles.FAMILY: {kind: [asdict(block)]}}):
                step, turn, wave, fixed = fitted(passed, [time(call) for _, call in plain])
            chosen[kind].append(asdict(replace(block, step_us=step, turn_us=turn, wave_us=wave, fixed_us=fixed)))
    return chosen


def _places(case: Case) -> tuple[int, tuple[int, ...]]:
    """Of the result, and the weight's shape by groups."""
    groups = case.setting("groups")
    return case.x[0] * prod(case.out[2:]), (groups, case.w[0] // groups, *case.w[2:], case.w[1])


def _waves(one: Any, case: Case, count: int) -> tuple[float, float, float]:
    """(1, waves, steps of all waves) of a case by a tile."""
    every = case.setting("stride") if case.transposed else 1
    groups, dimensions = case.setting("groups"), len(case.x) - 2
    rows, columns = (-(-extent // every) for extent in ((1,) * (2 - dimensions) + case.out[2:]))
    images, taps = case.x[0], prod(-(-k // every) for k in case.w[2:])
    if prod(case.w[2:]) == case.setting("stride") == 1:  # the places of all images are one row
        images, rows, columns = 1, 1, images * rows * columns
    waves = -(-one.blocks(images, rows, columns, case.out[1] // groups) * groups * every**dimensions // count)
    return 1.0, waves, waves * one.steps(taps, case.x[1] // groups)


def attention(
    time: Timer, prompts: Sequence[tuple[int, int, bool]], orders: Sequence[tuple[int, int]], count: int
) -> dict[str, Any]:
    """The times of tiles where there is a choice, and the order of blocks."""
    from ..ops import plans
    from ..ops.nn.attention import tiles

    chosen: dict[str, Any] = {"tiles": {}}
    for width, every in tiles.TILES.items():
        if len(every) == 1:
            continue
        listed = chosen["tiles"][str(width)] = []
        calls = [_prompt(heads, n, width, causal) for heads, n, causal in prompts]
        for one in every:
            rows, times = [], []
            with plans.using({tiles.FAMILY: {"tiles": {str(width): [asdict(one)]}}}):
                for (heads, n, causal), call in zip(prompts, calls, strict=True):
                    blocks, steps, _ = one.work(heads, n, n, causal)
                    rows.append((1.0, blocks / (count * one.resident), steps / (count * one.resident)))
                    times.append(time(call))
            fixed, block, step = fitted(rows, times)
            listed.append(asdict(replace(one, fixed_us=fixed, block_us=block, step_us=step)))
    ordered = [_prompt(heads, n, ORDERED_DIM, True) for heads, n in orders]
    chosen["together_mib"] = _best(time, ordered, "together_mib", (tiles.together_mib(), 0, 8, 32))
    return chosen


def _prompt(heads: int, positions: int, dim: int, causal: bool) -> Callable[[], object]:
    import pygpukit as gp

    q, k, v = (gp.random.randn(heads, positions, dim, dtype="bfloat16") for _ in range(3))
    out = gp.empty(q.shape, "bfloat16")
    operation = gp.sdpa_causal if causal else gp.sdpa
    return lambda: operation(q, k, v, out=out)


def _best(time: Timer, calls: Sequence[Callable[[], object]], name: str, values: Sequence[float]) -> float:
    """The value of a choice that is fastest on geometric mean; the first one, unless another is clearly faster."""
    from ..ops import plans
    from ..ops.nn.attention import tiles

    means = {}
    for value in values:
        with plans.using({tiles.FAMILY: {name: value}}):
            means[value] = exp(mean(log(time(call)) for call in calls))
    fastest = min(means, key=lambda value: means[value])
    return fastest if means[fastest] < BETTER * means[values[0]] else values[0]


def fitted(rows: Sequence[Sequence[float]], times: Sequence[float]) -> tuple[float, ...]:
    """Factors of the columns that tell the times, by least squares of relative errors; none is below 0."""
    import numpy as np

    table = np.asarray(rows, np.float64) / np.asarray(times, np.float64)[:, None]
    kept, factors = list(range(table.shape[1])), np.zeros(table.shape[1])
    while kept:
        some = np.linalg.lstsq(table[:, kept], np.ones(len(table)), rcond=None)[0]
        if some.min() >= 0:
            factors[kept] = some
            break
        kept.pop(int(some.argmin()))
    return tuple(float(f"{factor:.4g}") for factor in factors)


def text(tables: dict[str, Any]) -> str:
    """A table as JSON, a tile a line."""
    return "\n".join(_lines(tables, "")) + "\n"


def _lines(value: Any, indent: str) -> Iterator[str]:
    """A part on one line if it holds no further ones."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(one, (dict, list)) for one in inner):
        yield json.dumps(value)
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield opening
    names = [f"{json.dumps(name)}: " for name in value] if isinstance(value, dict) else [""] * len(value)
    for i, (name, one) in enumerate(zip(names, inner, strict=True)):
        first, *rest = _lines(one, indent + "  ")
        lines = [f"{indent}  {name}{first}", *rest]
        lines[-1] += "," if i + 1 < len(names) else ""
        yield from lines
    yield indent + closing


def measured(families: Sequence[str], short: bool) -> dict[str, Any]:
    """The table of the open device. short: half the convolutions, fewest samples."""
    from .._core import native
    from .environment import environment

    info = native.device_info(native.current_device())
    count = int(info["multiprocessor_count"])
    tables: dict[str, Any] = {"device": device(), "multiprocessors": count}
    tables["pygpukit"] = str(environment()["pygpukit"])

    def time(call: Callable[[], object]) -> float:
        return median(device_us(call, short))

    if "convolution" in families:
        by_name = {case.name: case for case in cases("full")}
        tables["convolution"] = convolution(time, [by_name[name] for name in CONVOLUTIONS[:: 2 if short else 1]], count)
    if "attention" in families:
        tables["attention"] = attention(time, PROMPTS, ORDERS, count)
    return tables


def device() -> str:
    """The open device's name."""
    from .._core import native

    return str(native.device_info(native.current_device())["name"])


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="python -m pygpukit.benchmark.plans",
        description="Measure what convolution and attention choose from, and write it as the table of this device.",
    )
    p.add_argument("--out", type=Path, metavar="FOLDER", help="where the table goes (default: $PYGPUKIT_PLANS)")
    p.add_argument("--family", action="append", choices=FAMILIES, help="only this one; the table's others stay")
    p.add_argument("--short", action="store_true", help="half the convolutions, and the fewest samples")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0; 2 on the simulated device, and where there is no folder or no tile kernel."""
    from ..core.backend import ensure, is_sim
    from ..ops import plans
    from ..ops.nn.attention import tile as attention_tile
    from ..ops.nn.conv import tile as conv_tile

    p = parser()
    args = p.parse_args(argv)
    folder = args.out or (Path(named) if (named := os.environ.get(plans.VARIABLE)) else None)
    if folder is None:
        p.error(f"name a folder with --out, or by the environment variable {plans.VARIABLE}")
    ensure()
    if is_sim():
        p.error("the simulated device has no tensor cores to measure: run this on a GPU")
    if missing := conv_tile.missing() or attention_tile.missing():
        p.error(missing)
    folder.mkdir(parents=True, exist_ok=True)
    path, kept = folder / plans.file_name(device()), {}
    if path.is_file():
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            p.error(f"{path} is no table of plans ({error}): remove it")
    merged = kept | measured(args.family or FAMILIES, args.short)
    path.write_text(text(merged), encoding="utf-8")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
