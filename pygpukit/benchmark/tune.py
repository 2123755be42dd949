"""`pygpukit tune`: measures the blocks of the kernels by mma.sync on this machine's device, and writes its table.

Products choose their blocks by these times, and convolutions by theirs; of attention the faster block of each width is
named.
Nothing that decides bits is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from math import exp, log
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from .plans import fitted, text

if TYPE_CHECKING:
    from ..array.array import GPUArray
    from ..ops.matmul.mma.block import Block

Shape = tuple[int, int, int]
Image = tuple[int, int, int, int, int]
Timer = Callable[[Callable[[], object]], float]  # microseconds of a call

# m, n, k: few and many tiles, short and long sums.
PRODUCTS: tuple[Shape, ...] = (
    (64, 4096, 4096), (256, 4096, 1024), (512, 4096, 4096), (1024, 1024, 1024), (1024, 1024, 4096),
    (2048, 2048, 512), (2048, 2048, 2048), (4096, 4096, 1024), (4096, 4096, 4096),
)  # fmt: skip
# Images, channels, rows as columns, filters, rows of the kernel as columns; padded to the same size. Whole steps of k.
CONVOLUTIONS: tuple[Image, ...] = (
    (1, 128, 28, 128, 3), (8, 128, 56, 128, 3), (32, 256, 14, 256, 3), (32, 512, 7, 512, 3),
    (32, 1024, 14, 256, 1), (32, 256, 56, 128, 1), (4, 512, 28, 1024, 1), (1, 640, 64, 640, 3),
)  # fmt: skip
PROMPTS = ((16, 577, False), (32, 2048, True), (16, 4096, True))  # heads, positions, causal
_CONVOLVED = {2: "bfloat16", 4: "float32"}  # types by their bytes
_RAMPS = tuple(quarter / 4 for quarter in range(33))


def command(args: argparse.Namespace) -> int:
    """Measure and write the table; its path is printed. Exit code 1, and one sentence, where that cannot be."""
    from .._core import native
    from ..core.backend import ensure, is_sim
    from ..core.progress import Progress
    from ..ops import plans
    from ..ops.matmul.mma import aligned
    from .environment import environment
    from .operators import device_us

    ensure()
    why = "the simulated device computes with NumPy: it has no tensor cores to measure" if is_sim() else ""
    if why := why or aligned.missing():
        print(f"pygpukit tune: nothing is measured: {why}; run it on a machine with a GPU and NVRTC", file=sys.stderr)
        return 1
    info = native.device_info(native.current_device())
    folder: Path = args.out or plans.own_folder()
    path = folder / plans.file_name(str(info["name"]))
    try:
        known = path if path.is_file() else plans.find(str(info["name"]))
        kept = {} if known is None else json.loads(known.read_text(encoding="utf-8"))
        folder.mkdir(parents=True, exist_ok=True)
        with Progress(f"measuring {info['name']}", len(figures()), things="figures") as bar:

            def time(call: Callable[[], object]) -> float:
                bar.add(1)
                return median(device_us(call, args.short))

            measured = tables(time, int(info["multiprocessor_count"]))
    except (OSError, ValueError) as error:
        print(f"pygpukit tune: {error}", file=sys.stderr)
        return 1
    names = {"device": info["name"], "multiprocessors": info["multiprocessor_count"]}
    names["pygpukit"] = environment()["pygpukit"]
    families = {family: kept.get(family, {}) | parts for family, parts in measured.items()}
    path.write_text(text(kept | names | families), encoding="utf-8")
    print(path)
    return 0


def figures() -> list[tuple[str, Any]]:
    """The subject of a measurement: a block, or one of attention, and a shape, an image or a prompt."""
    from ..ops.nn.attention import mma
    from ..ops.nn.conv import mma as conv

    products = [(part, shape) for part, every, _ in _parts() for _ in every for shape in PRODUCTS]
    convolved = [
        ("convolution", image) for itemsize in _CONVOLVED for _ in conv.blocks(itemsize) for image in CONVOLUTIONS
    ]
    chosen = [every for every in mma.BLOCKS.values() if len(every) > 1]
    return products + convolved + [("attention", prompt) for every in chosen for _ in every for prompt in PROMPTS]


def tables(
    time: Timer,
    multiprocessors: int,
    shapes: Sequence[Shape] = PRODUCTS,
    images: Sequence[Image] = CONVOLUTIONS,
) -> dict[str, dict[str, Any]]:
    """The parts of the table of the open device."""
    products = {
        part: [
            asdict(timed(block, shapes, [time(product(*shape, block)) for shape in shapes], multiprocessors))
            for block in every
        ]
        for part, every, product in _parts()
    }
    convolved = {"mma": convolutions(time, multiprocessors, images)}
    return {"matmul": products, "convolution": convolved, "attention": {"mma": attention(time)}}


def convolutions(time: Timer, multiprocessors: int, images: Sequence[Image]) -> dict[str, Any]:
    """The blocks of convolutions with their times, by bytes of an element."""
    from ..ops.nn.conv import mma

    shapes = [(count * side**2, filters, kernel**2 * channels) for count, channels, side, filters, kernel in images]
    return {
        str(itemsize): [
            asdict(timed(block, shapes, [time(_convolution(image, dtype, block)) for image in images], multiprocessors))
            for block in mma.blocks(itemsize)
        ]
        for itemsize, dtype in _CONVOLVED.items()
    }


def timed(block: Block, shapes: Iterable[Shape], times: Sequence[float], multiprocessors: int) -> Block:
    """The block with its times, fitted to those of products."""
    work = [
        (-(-k // block.depth), -(-block.tiles(m, n) // multiprocessors)) for m, n, k in shapes
    ]  # steps, tiles of a multiprocessor
    best = None
    for ramp in _RAMPS:
        rows = [(1.0, steps + ramp, (steps + ramp) * (each - 1)) for steps, each in work]
        factors = fitted(rows, times)
        predicted = [sum(a * b for a, b in zip(row, factors, strict=True)) for row in rows]
        wrong = mean(abs(x / y - 1) for x, y in zip(predicted, times, strict=True))
        if best is None or wrong < best[0]:
            best = wrong, factors, ramp
    assert best is not None
    fixed, alone, step = best[1]
    return replace(block, fixed_us=fixed, alone_us=alone, step_us=step, ramp=best[2])


def attention(time: Timer, prompts: Sequence[tuple[int, int, bool]] = PROMPTS) -> dict[str, Any]:
    """Of each width with a choice the block that is fastest on geometric mean."""
    from ..ops import plans
    from ..ops.nn.attention import mma

    chosen: dict[str, Any] = {}
    for width, every in mma.BLOCKS.items():
        if len(every) == 1:
            continue
        calls = [_prompt(heads, positions, width, causal) for heads, positions, causal in prompts]
        means = []
        for one in every:
            with plans.using({mma.FAMILY: {"mma": {str(width): one.choice()}}}):
                means.append(exp(mean(log(time(call)) for call in calls)))
        chosen[str(width)] = every[means.index(min(means))].choice()
    return chosen


def _prompt(heads: int, positions: int, dim: int, causal: bool) -> Callable[[], object]:
    import pygpukit as gp

    from ..ops.nn.attention import mma, simt
    from ..ops.nn.attention.extras import FAR, Extras
    from ..ops.nn.attention.problem import Call, Problem

    q, k, v, out = (gp.random.randn(heads, positions, dim, dtype="bfloat16") for _ in range(4))
    more = Extras(0 if causal else FAR, FAR, None, None, 0.0, None)
    call = Call(q, k, v, out, simt.factor(0, dim), None, more)
    p = Problem.of(call)
    return lambda: mma.run(p, call, mma.tiling(p))


def _convolution(image: Image, dtype: str, block: Block) -> Callable[[], object]:
    import pygpukit as gp

    from ..ops.nn.conv import mma
    from ..ops.nn.conv.settings import Settings, channels_first

    count, channels, side, filters, kernel = image
    x = gp.random.randn(count, side, side, channels, dtype=dtype)
    w = gp.random.randn(1, filters, kernel, kernel, channels, dtype=dtype)
    out = gp.empty((count, side, side, filters), dtype)
    settings = Settings(1, (1, 1), (kernel // 2, kernel // 2), (1, 1), (side, side), None)
    return lambda: mma.convolve(channels_first(x), w, None, channels_first(out), out, settings, block)


def _parts() -> list[tuple[str, tuple[Block, ...], Callable[..., Callable[[], object]]]]:
    """Parts of the table, their blocks, and what makes a call of m, n, k and a block."""
    from ..core import device
    from ..ops.matmul.mma import aligned, fp8
    from ..ops.matmul.problem import FP8_SINCE

    parts = [("mma", aligned.blocks(2), _half), ("mma tf32", aligned.blocks(4), _tf32)]
    return [*parts, ("mma fp8", fp8.blocks(), _fp8)] if device.current().capability >= FP8_SINCE else parts


def _half(m: int, n: int, k: int, block: Block) -> Callable[[], object]:
    return _product(m, n, k, block, "bfloat16")


def _tf32(m: int, n: int, k: int, block: Block) -> Callable[[], object]:
    return _product(m, n, k, block, "float32")


def _product(m: int, n: int, k: int, block: Block, dtype: str) -> Callable[[], object]:
    from ..ops.matmul.mma import aligned

    a, b, out = _operands(m, n, k, dtype)
    return lambda: aligned.product(a, b, out, block)


def _fp8(m: int, n: int, k: int, block: Block) -> Callable[[], object]:
    from ..ops.matmul.mma import fp8
    from ..ops.matmul.tile.fp8 import Scale

    a, b, out = _operands(m, n, k, "bfloat16")
    left, right = (x.astype("float8_e4m3") for x in (a, b.T))
    one = Scale(None, 1, (0, 0))
    return lambda: fp8.product(left, right.T, one, one, out, block)


def _operands(m: int, n: int, k: int, dtype: str) -> tuple[GPUArray, GPUArray, GPUArray]:
    """a, b, which lies along k, and the result."""
    import pygpukit as gp

    a, b = (gp.random.randn(*shape, dtype=dtype) for shape in ((m, k), (n, k)))
    return a, b.T, gp.empty((m, n), dtype)
