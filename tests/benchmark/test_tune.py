"""`pygpukit tune`: times are fitted, the table has what plans read, and the simulated device says why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import cli
from pygpukit.benchmark import tune
from pygpukit.kernels.planning import planning
from pygpukit.ops import plans
from pygpukit.ops.matmul.mma import aligned, fp8
from pygpukit.ops.matmul.mma.block import Block
from pygpukit.ops.nn.attention import mma
from pygpukit.ops.nn.conv import mma as conv


def test_times_are_found_again() -> None:
    rng = np.random.default_rng()
    for _ in range(20):
        fixed, alone, step = (float(x) for x in rng.uniform((1, 0.3, 0.1), (9, 2, 1)))
        ramp = float(rng.integers(0, 33)) / 4
        block = Block(128, 64, 64, 2, 2, 3, 2, fixed, alone, step, ramp)
        times = [block.time_us(m, n, k, 1, 84) for m, n, k in tune.PRODUCTS]
        bare = Block(128, 64, 64, 2, 2, 3, 2)
        found = tune.timed(bare, tune.PRODUCTS, times, 84)
        assert found.numbers() == bare.numbers()
        told = [found.time_us(m, n, k, 1, 84) for m, n, k in tune.PRODUCTS]
        assert np.allclose(told, times, rtol=1e-2)


@pytest.mark.parametrize("arch", ["sm_80", "sm_89"])
def test_plans_follow_what_was_measured(arch: str) -> None:
    """A timer that likes each block and prompt less than the one before."""
    count = 0

    def time(call: Callable[[], object]) -> float:
        nonlocal count
        count += 1
        return 1000.0 / count

    with planning(arch, compiles=True):
        images = [(1, 128, 9, 64, 3), (2, 256, 5, 32, 1), (1, 128, 7, 130, 3)]
        tables = tune.tables(time, 84, [(64, 64, 64), (130, 64, 256), (70, 70, 1000)], images)
        assert set(tables["matmul"]) == {"mma", "mma tf32", *(["mma fp8"] if arch == "sm_89" else [])}
        before = aligned.blocks()
        with plans.using(tables):
            for itemsize in (2, 4):
                found = [one.alone_us for one in aligned.blocks(itemsize)]
                listed = tables["matmul"]["mma" if itemsize == 2 else "mma tf32"]
                assert found == [one["alone_us"] for one in listed]
            assert aligned.blocks() != before
            assert [one.numbers() for one in aligned.blocks()] == [one.numbers() for one in before]
            for itemsize in (2, 4):
                measured = tables["convolution"]["mma"][str(itemsize)]
                assert [asdict(one) for one in conv.blocks(itemsize)] == measured
            assert mma.block(64) == mma.BLOCKS[64][-1] and mma.block(128) == mma.BLOCKS[128][-1]
            if arch == "sm_89":
                assert [one.step_us for one in fp8.blocks()] == [one["step_us"] for one in tables["matmul"]["mma fp8"]]
        assert mma.block(64) == mma.BLOCKS[64][0] and aligned.blocks() == before


def test_as_many_figures_as_are_told() -> None:
    with planning("sm_89", compiles=True):
        times: list[Callable[[], object]] = []
        tune.tables(
            lambda call: float(times.append(call) or len(times)),
            84,
            tune.PRODUCTS[:1] * len(tune.PRODUCTS),
            tune.CONVOLUTIONS[:1] * len(tune.CONVOLUTIONS),
        )
        assert len(times) == len(tune.figures())


def test_a_convolution_is_measured_as_it_is_made(kernels_on_sim: None) -> None:
    """On the simulator: what is timed fills the result, with the block's own kernel, at whole steps of k."""
    for count, channels, side, filters, kernel in tune.CONVOLUTIONS:
        assert all(channels % block.depth == 0 for itemsize in (2, 4) for block in conv.blocks(itemsize))
        assert filters % 8 == 0 and kernel % 2 and count and side
    launched: list[tuple[int, ...]] = []
    block = conv.blocks(2)[-1]
    call = tune._convolution((1, 16, 3, 16, 3), "bfloat16", block)
    with pytest.MonkeyPatch.context() as patch:
        told = conv.launch
        patch.setattr(conv, "launch", lambda spec, *rest: (launched.append(rest[0]), told(spec, *rest)))
        call()
    assert launched == [(block.tiles(9, 16), 1, 1)]


@pytest.mark.parametrize("entry", [{"rows": 48}, {"rows": 96, "columns": 64, "depth": 64, "down": 2, "across": 2,
                                                  "stages": 3, "blocks": 1}])  # fmt: skip
def test_a_block_of_convolutions_that_is_none_is_refused(entry: dict[str, int]) -> None:
    wrong = {"convolution": {"mma": {"2": [entry]}}}
    with plans.using(wrong), pytest.raises(ValueError, match=r"the table of plans .*mma\.sync.*; measure again"):
        conv.blocks(2)


def test_a_block_of_attention_that_is_none_is_refused() -> None:
    wrong = {"attention": {"mma": {"64": {"queries": 96, "warps": 4}}}}
    with plans.using(wrong), pytest.raises(ValueError, match=r"'queries': 96.*it is .*128.*; measure again"):
        mma.block(64)


def test_the_simulated_device_says_why_it_is_not_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tune", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert not said.out and "nothing is measured: the simulated device computes with NumPy" in said.err
    assert not list(tmp_path.iterdir()) and gp.backend() == "sim"


def test_own_tables_come_before_those_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "NVIDIA H100 80GB HBM3"
    monkeypatch.delenv(plans.VARIABLE, raising=False)
    monkeypatch.setenv("PYGPUKIT_CACHE_DIR", str(tmp_path))
    assert plans.own_folder() == tmp_path / "plans" and plans.find(name) == plans.SHIPPED / plans.file_name(name)
    plans.own_folder().mkdir()
    (plans.own_folder() / plans.file_name(name)).write_text('{"matmul": {}}')
    assert plans.find(name) == tmp_path / "plans" / plans.file_name(name)
