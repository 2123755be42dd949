"""Which kernel makes a product on each device: as recorded in choice.json. What is recorded decides speed and bits.

Where a choice is meant to change, `python tests/ops/matmul/test_choice.py` records it anew: look at what differs.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

import pygpukit as gp
from pygpukit.core.dtypes import as_dtype
from pygpukit.jit.compile import nvrtc, tile
from pygpukit.kernels import builder
from pygpukit.kernels.planning import planning
from pygpukit.ops.matmul.choose import by_name, choose
from pygpukit.ops.matmul.layout.operand import Operand
from pygpukit.ops.matmul.problem import Problem

RECORD = Path(__file__).with_name("choice.json")
DEVICES = {  # name, clock, memory clock, bus
    "sm_80": ("NVIDIA A100-SXM4-80GB", 1_410_000, 1_593_000, 5120),
    "sm_89": ("NVIDIA GeForce RTX 4090", 2_520_000, 10_501_000, 384),
    "sm_90a": ("NVIDIA H100 80GB HBM3", 1_755_000, 2_619_000, 5120),
}
FAMILIES = {
    "half": ("bfloat16", "bfloat16"),
    "tf32": ("float32", "float32"),
    "int8": ("int8", "int32"),
    "fp8": ("float8_e4m3", "float32"),
    "decoded": ("bfloat16", "float32"),
    "float32": ("float32", "float32"),
    "float64": ("float64", "float64"),
}
SHAPES = [
    (1, 1, 1), (1, 4096, 4096), (16, 4096, 4096), (17, 1000, 1001), (64, 64, 4096), (100, 100, 100), (512, 512, 512),
    (1, 4095, 4097), (333, 777, 129), (1000, 1000, 1000), (2048, 2048, 2048), (4096, 64, 1024), (4093, 4099, 4101),
    (8192, 8192, 8192), (0, 8, 8), (2, 70000, 40000),
]  # fmt: skip
LAYOUTS = ("nn", "nt", "tn", "padded", "stack")
ALONG_K = ("tf32", "int8", "fp8", "decoded")  # whose layout decides nothing


def problems() -> Iterator[tuple[str, Problem]]:
    """By names. Transposed operands, rows that begin anywhere, 64 products at once."""
    for family, (dtype, result) in FAMILIES.items():
        layouts = LAYOUTS[1:2] if family in ALONG_K else LAYOUTS
        for (m, n, k), layout in ((shape, layout) for shape in SHAPES for layout in layouts):
            size = as_dtype(dtype).itemsize
            batch = (64,) if layout == "stack" else ()
            a, b = Operand.dense((*batch, m, k), size), Operand.dense((*batch, k, n), size)
            if layout == "nt":
                b = Operand.dense((n, k), size).transposed()
            elif layout == "tn":
                a = Operand.dense((k, m), size).transposed()
            elif layout == "padded":
                a = a._replace(strides=((k + 3) * size, size), address=size % 16)
            tensor = family if family not in ("float32", "float64") else None
            problem = Problem(tensor, as_dtype(dtype), as_dtype(result), a, b)
            yield f"{family} {m}x{n}x{k} {layout}", problem


def chosen(arch: str, tiles: bool) -> dict[str, str]:
    """The backend, the tile and the kernel of every problem."""
    name, clock, memory, bus = DEVICES[arch]
    with (
        patch.object(nvrtc, "missing", lambda: ""),
        patch.object(tile, "missing", lambda: "" if tiles else "there is no tileiras"),
        patch.object(builder, "is_bundled", lambda spec: False),
        warnings.catch_warnings(),
        planning(arch, name=name, clock_khz=clock, memory_clock_khz=memory, memory_bus_bits=bus),
    ):
        warnings.simplefilter("ignore", RuntimeWarning)
        found = {}
        for name, p in problems():
            plan = choose(p)
            found[name] = f"{plan.backend} {plan.tile} {plan.kernel.__name__.removeprefix('pygpukit.ops.matmul.')}"
            assert plan.reason and choose(p) == plan
            if arch != "sm_90a" and 0 not in p.extents:
                with pytest.raises(gp.GPUError, match="backend='hopper'"):
                    by_name("matmul", "hopper", p)
        return found


def every() -> dict[str, dict[str, str]]:
    """By device, and whether tile kernels can be compiled."""
    return {
        f"{arch}{'' if tiles else ' without tiles'}": chosen(arch, tiles) for arch in DEVICES for tiles in (True, False)
    }


@pytest.mark.skipif("gp.backend() == 'cuda'", reason="devices are pretended on the simulated one")
def test_choices_are_those_on_record() -> None:
    gp.ones(1)
    recorded, found = json.loads(RECORD.read_text()), every()
    assert recorded.keys() == found.keys()
    for device, kernels in found.items():
        differing = {name: (recorded[device].get(name), kernel) for name, kernel in kernels.items()}
        assert {name: pair for name, pair in differing.items() if pair[0] != pair[1]} == {}, device


if __name__ == "__main__":
    gp.ones(1)
    RECORD.write_text(json.dumps(every(), indent=0) + "\n")
