"""Tables of what was measured on a device: found, refused, written; without one the rules hold."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pygpukit.benchmark import plans as command
from pygpukit.benchmark.conv_cases import SMALL
from pygpukit.core import backend
from pygpukit.core.dtypes import as_dtype, bfloat16, float32
from pygpukit.ops import plans
from pygpukit.ops.nn.attention import tiles as attention
from pygpukit.ops.nn.conv import gathered, tile
from pygpukit.ops.nn.conv import tiles as conv


def test_a_table_is_found_by_its_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(plans.VARIABLE, raising=False)
    monkeypatch.setattr(plans, "SHIPPED", tmp_path / "shipped")
    name = plans.file_name("NVIDIA H100 80GB HBM3")
    assert name == "nvidia-h100-80gb-hbm3.json" and plans.find("NVIDIA H100 80GB HBM3") is None
    (tmp_path / "shipped").mkdir()
    (tmp_path / "own").mkdir()
    (tmp_path / "shipped" / name).write_text('{"attention": {"together_mib": 4}}')
    monkeypatch.setenv(plans.VARIABLE, str(tmp_path / "own"))
    assert plans.find("NVIDIA H100 80GB HBM3") == tmp_path / "shipped" / name
    (tmp_path / "own" / name).write_text('{"attention": {"together_mib": 8}}')
    path = plans.find("NVIDIA H100 80GB HBM3")
    assert path == tmp_path / "own" / name and plans.find("NVIDIA H200") is None
    assert plans.read(path, "attention") == {"together_mib": 8} and plans.read(path, "convolution") == {}
    monkeypatch.setenv(plans.VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"PYGPUKIT_PLANS is .*nowhere.*make it, or unset"):
        plans.find("NVIDIA H200")


@pytest.mark.parametrize("text", ["", "[]", '{"attention": 3}', '{"attention"', "\0"])
def test_what_is_no_table_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "card.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"card\.json.*measure again"):
        plans.read(path, "attention")


@pytest.mark.parametrize("listed", [[{}], [3], 3, [{"places": "128"}], [{"places": 1, "wide": 1}], [{"places": True}]])
def test_what_is_no_tile_is_refused(listed: Any) -> None:
    with plans.using({"convolution": {"half": listed}}), pytest.raises(ValueError, match="the table of plans"):
        conv.tiles(bfloat16)
    for value in ("2", -1, None, float("nan"), True):
        with plans.using({"attention": {"together_mib": value}}), pytest.raises(ValueError, match="has together_mib"):
            attention.together(1, 1, 1)


def test_shipped_tables_name_tiles_that_there_are() -> None:
    for path in plans.SHIPPED.glob("*.json"):
        with plans.using({family: plans.read(path, family) for family in command.FAMILIES}):
            assert all(conv.tiles(dtype) for dtype in conv.ALL)
            assert all(attention.measured(width) for width in attention.TILES)


def test_without_a_table_convolutions_follow_the_rule() -> None:
    for dtype in (bfloat16, as_dtype("float32")):
        assert conv.tiles(dtype) == conv.RULE[dtype] == conv.ALL[dtype]
        for one in conv.tiles(dtype):
            assert one.places % one.wide == 0 and one.fixed_us > 0 and one.wave_us > 0 and one.step_us > 0
    wide, square = conv.ALL[bfloat16][:2]
    assert [one.blocks(2, 17, 130, 300) for one in (wide, square)] == [2 * 17 * 2 * 2, 2 * 2 * 17 * 2]


def test_a_table_decides_the_tile_of_convolutions() -> None:
    fast = asdict(conv.ALL[bfloat16][-1]) | {"step_us": 0.1}
    slow = asdict(conv.ALL[bfloat16][0]) | {"step_us": 0.1, "wave_us": 9.0, "fixed_us": 2.0}
    before = conv.tiles(bfloat16)
    with plans.using({"convolution": {"half": [slow, fast]}}):
        found = conv.tiles(bfloat16)
        assert [one.filters for one in found] == [256, 64]
        assert found[0].time_us(1, 1, 128, 256, 9, 100, 3, 1) == pytest.approx(2 + 3 * (9 + 18 * 0.1))
        assert conv.tiles(as_dtype("float32")) == conv.RULE[as_dtype("float32")]
    assert conv.tiles(bfloat16) == before == conv.RULE[bfloat16]
    wrong = {"convolution": {"half": [slow | {"depth": 48}]}}
    with plans.using(wrong), pytest.raises(ValueError, match=r"\(128, 128, 256, 48, 8\).*there are kernels for"):
        conv.tiles(bfloat16)


def test_no_table_changes_the_keys_of_a_tile_of_attention() -> None:
    for width, every in attention.TILES.items():
        assert len({one.keys for one in every}) == 1, "they decide bits"
        assert attention.measured(width) == every[:1]
        wrong = {"attention": {"tiles": {str(width): [asdict(every[0]) | {"keys": 2 * every[0].keys}]}}}
        with plans.using(wrong), pytest.raises(ValueError, match="there are kernels for"):
            attention.measured(width)
    first, second = attention.TILES[64]
    listed = [asdict(first) | {"step_us": 1.0, "block_us": 1.0}, asdict(second) | {"step_us": 0.6, "block_us": 1.0}]
    with plans.using({"attention": {"tiles": {"64": listed}}}):
        assert attention.fastest(64, 16, 8192, 8192, True, 132).queries == 64
        assert attention.fastest(64, 1, 128, 128, True, 132).kernel == second.kernel
    assert attention.fastest(64, 16, 8192, 8192, True, 132) == first


@pytest.mark.parametrize(("queries", "keys"), [(128, 128), (2048, 2048), (333, 1001), (1, 700), (500, 77)])
def test_the_work_of_attention_is_counted(queries: int, keys: int) -> None:
    one = attention.TILES[64][0]
    ends = [min(i + one.queries, queries) - 1 for i in range(0, queries, one.queries)]
    steps = sum(-(-max(end + keys - queries + 1, 0) // one.keys) for end in ends)
    assert one.work(3, queries, keys, False)[1] == 3 * len(ends) * -(-keys // one.keys)
    blocks, found, most = one.work(3, queries, keys, True)
    assert blocks == 3 * len(ends) and most == -(-keys // one.keys)
    assert abs(found - 3 * steps) <= blocks  # the last tile of queries may not be whole


def test_heads_that_begin_together_share_keys_and_fit_the_cache() -> None:
    mib = 1 << 20
    assert attention.together_mib() == 10.7, "a third of the simulated device's cache"
    assert attention.together(32, 1, mib) == 10 and attention.together(32, 4, mib) == 32
    assert attention.together(64, 4, 5 * mib) == 8 and attention.together(8, 4, 100 * mib) == 4
    assert attention.together(1, 1, 0) == 1
    with plans.using({"attention": {"together_mib": 0}}):
        assert attention.together(32, 4, mib) == 1


def test_factors_are_fitted_and_none_is_negative() -> None:
    rng = np.random.default_rng()
    rows = np.column_stack([np.ones(9), rng.integers(1, 90, 9), rng.integers(1, 900, 9)]).astype(float)
    assert command.fitted(rows.tolist(), (rows @ [3.0, 0.5, 0.25]).tolist()) == pytest.approx((3.0, 0.5, 0.25), 1e-2)
    factors = command.fitted(rows.tolist(), (rows @ [0.0, 0.5, 0.0] + rng.random(9) * 1e-3).tolist())
    assert min(factors) >= 0 and factors[1] == pytest.approx(0.5, 1e-2)


def test_what_is_measured_becomes_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def time(call: Any) -> float:
        call()
        calls.append(attention.together_mib())
        return 10.0 - 4 * (attention.together_mib() == 8) + len(calls) % 2

    convolution = command.convolution(time, SMALL[:3], 4)
    prompts = [(2, 40, True), (1, 20, False), (1, 70, True)]
    found = command.attention(time, prompts, [(2, 30), (1, 9)], 4)
    assert [len(convolution[kind]) for kind in ("half", "tf32")] == [len(conv.ALL[t]) for t in (bfloat16, float32)]
    assert list(found["tiles"]) == ["64"] and len(found["tiles"]["64"]) == 2
    assert found["together_mib"] == 8
    every = sum(len(conv.ALL[dtype]) for dtype in (bfloat16, float32))
    blocks = sum(len(gathered.RULE[dtype]) for dtype in (bfloat16, float32))
    assert len(calls) == 3 * (every + blocks) + 3 * 2 + 2 * 4
    monkeypatch.setattr(command, "measured", lambda families, short: {"device": "A card"} | {families[0]: convolution})
    monkeypatch.setattr(command, "device", lambda: "A card")
    monkeypatch.setattr(backend, "is_sim", lambda: False)
    monkeypatch.setattr(tile, "missing", lambda: "")
    (tmp_path / "a-card.json").write_text(json.dumps({"attention": found}))
    assert command.main(["--out", str(tmp_path), "--family", "convolution"]) == 0
    written = (tmp_path / "a-card.json").read_text()
    read = json.loads(written)
    assert read == {"device": "A card", "attention": found, "convolution": convolution}
    assert sum('"places"' in line for line in written.splitlines()) == every, "a tile a line"
    with plans.using({family: plans.read(tmp_path / "a-card.json", family) for family in command.FAMILIES}):
        assert gathered.blocks(bfloat16)[0].step_us == convolution["gathered half"][0]["step_us"]
        assert len(conv.tiles(bfloat16)) == len(conv.ALL[bfloat16]) and len(attention.measured(64)) == 2
    monkeypatch.setattr(tile, "missing", lambda: "no assembler")
    with pytest.raises(SystemExit):
        command.main(["--out", str(tmp_path)])


def test_the_simulated_device_has_no_table(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(plans.VARIABLE, raising=False)
    assert plans.table("attention") == {}
    for arguments, message in ((["--out", str(tmp_path)], "simulated device"), ([], "name a folder with --out")):
        with pytest.raises(SystemExit) as stop:
            command.main(arguments)
        assert stop.value.code == 2 and message in capsys.readouterr().err
