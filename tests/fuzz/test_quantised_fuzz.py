"""Damaged folders of weights in few bits: an error of the package that names the file, before a weight is read, or
values of the shape that the file has; never more memory than a small multiple of the file's."""

from __future__ import annotations

import copy
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.quantised_folders import LAYOUTS
from models.test_quantised import folder  # with the spellings of all types

from pygpukit.core.errors import InvalidSpecError, ModelFileError
from pygpukit.models import open_checkpoint

SHAPE = (32, 64)
MAX_BYTES = 34 << 20  # 32 of them are room for a configuration; a weight is 8 KiB of float32
SPELLED = {1: ("U8", "I8", "F8_E4M3", "F8_E5M2"), 2: ("F16", "BF16"), 4: ("F32", "I32"), 8: ("I64", "F64")}
NUMBERS = (-1, 0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 128, 1 << 30, 1 << 31, 1 << 40, 1 << 62)


def scaled(stem: str, shape: tuple[int, int], rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any], None]:
    """FP8 by blocks, which LAYOUTS has not."""
    codes = rng.integers(0, 127, shape).astype(np.uint8)
    steps = rng.uniform(0.1, 1, (shape[0] // 16, shape[1] // 16)).astype(np.float32)
    tensors = {f"{stem}.weight": ("F8_E4M3", codes), f"{stem}.weight_scale_inv": steps}
    return tensors, {"quant_method": "fp8", "weight_block_size": [16, 16]}, None


def int8(stem: str, shape: tuple[int, int], rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any], None]:
    """Codes with zero points."""
    codes = rng.integers(-128, 128, shape).astype(np.int8)
    tensors = {f"{stem}.weight": codes, f"{stem}.weight_scale": np.ones((shape[0], 2), np.float32)}
    tensors[f"{stem}.weight_zero_point"] = np.zeros((shape[0], 2), np.int8)
    weights = {"num_bits": 8, "type": "int"}
    config = {"quant_method": "compressed-tensors", "format": "int-quantized"}
    return tensors, {**config, "config_groups": {"group_0": {"weights": weights}}}, None


ALL: dict[str, Any] = {**LAYOUTS, "scaled": scaled, "int8": int8}


def damage(tensors: dict[str, Any], config: dict[str, Any], rng: np.random.Generator) -> str:
    """One thing that is wrong, and its name."""
    name = str(rng.choice(list(tensors)))
    kind = rng.choice(["drop", "rows", "flat", "axes", "type", "values", "field", "gone", "swap"])
    value = tensors[name]
    spelling, array = value if isinstance(value, tuple) else (None, value)
    if kind == "drop":
        del tensors[name]
    elif kind == "rows" and array.ndim:
        keep = int(rng.integers(0, 2 * array.shape[0] + 1))
        array = np.resize(array, (keep, *array.shape[1:]))
    elif kind == "flat":
        array = array.reshape(-1)
    elif kind == "axes":
        array = np.ascontiguousarray(array.T) if array.ndim > 1 else array.reshape(1, 1, -1)
    elif kind == "type":
        spelling = str(rng.choice(SPELLED[array.itemsize]))
    elif kind == "values":
        raw = np.frombuffer(rng.bytes(max(array.nbytes, 1)), np.uint8)[: array.nbytes]
        array = raw.view(array.dtype).reshape(array.shape)
    elif kind == "swap":
        other = str(rng.choice(list(tensors)))
        tensors[name], tensors[other] = tensors[other], tensors[name]
    elif kind in ("field", "gone"):
        holders = [config, *(holder for holder in config.values() if isinstance(holder, dict))]
        holders += [deep["weights"] for holder in holders for deep in holder.values() if "weights" in str(deep)[:12]]
        holder = holders[int(rng.integers(len(holders)))]
        key = str(rng.choice(list(holder)))
        number = int(rng.choice(NUMBERS))
        wrong = [number, None, "no", [number, number], [number], {}, True, float(number), {"weights": number}]
        if kind == "gone":
            del holder[key]
        else:
            holder[key] = wrong[int(rng.integers(len(wrong)))]
        return f"{key} of the configuration"
    if kind not in ("drop", "swap"):
        tensors[name] = array if spelling is None else (spelling, array)
    return f"{kind} of {name}"


def opens(path: Path) -> bool:
    """True if it was read; every weight has the shape that it was said to have."""
    try:
        model = open_checkpoint(path)
    except (ModelFileError, InvalidSpecError) as error:
        assert str(error)
        return False
    for name in model.names():  # what was opened is read: nothing is found out later
        values = model.read(name)
        assert values.shape == model.shape(name)
        stored = model.stored(name)
        if stored is not None:
            assert len(stored.rows()) == model.shape(name)[0]
    model.close()
    return True


def read(path: Path) -> bool:
    """opens(), its memory measured."""
    tracemalloc.start()
    try:
        return opens(path)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MAX_BYTES


@pytest.mark.parametrize("layout", ALL)
def test_one_thing_is_wrong(tmp_path: Path, layout: str) -> None:
    rng = np.random.default_rng(list(ALL).index(layout))
    tensors, config, _ = ALL[layout]("a", SHAPE, rng)
    assert opens(folder(tmp_path / "m", tensors, **config))  # and imports what it needs
    verdicts = []
    for _ in range(40):
        wrong, fields = dict(tensors), copy.deepcopy(config)
        what = damage(wrong, fields, rng)
        try:
            verdicts.append(read(folder(tmp_path / "m", wrong, **fields)))
        except Exception as error:
            raise AssertionError(f"{layout}, {what}: {error!r}") from error
    assert 5 < verdicts.count(False) < 40  # both happen: random codes are codes


@pytest.mark.parametrize("layout", ALL)
def test_bytes_are_missing_or_others(tmp_path: Path, layout: str) -> None:
    rng = np.random.default_rng(100 + list(ALL).index(layout))
    tensors, config, _ = ALL[layout]("a", SHAPE, rng)
    path = folder(tmp_path / "m", tensors, **config)
    assert opens(path)
    whole = (path / "model.safetensors").read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    for place in range(24):
        raw = bytearray(whole)
        if place % 2:
            del raw[int(rng.integers(0, len(raw))) :]
        else:
            for at in rng.integers(0, header, 2):
                raw[at] = int(rng.integers(0, 256))
        (path / "model.safetensors").write_bytes(raw)
        assert not (read(path) and place % 2), "a cut file was read"


def test_blocks_that_are_larger_than_the_weight_cost_no_memory(tmp_path: Path) -> None:
    """A block of 2 to the 31 rows is cut to the weight before its scale is spread."""
    codes, steps = np.full((4, 8), 0x38, np.uint8), np.full((1, 2), 3, np.float32)
    steps[0, 1] = 5
    size = [(1 << 31) - 1, 4]
    path = folder(
        tmp_path / "m", {"a.weight": ("F8_E4M3", codes), "a.weight_scale_inv": steps}, quant_method="fp8",
        weight_block_size=size,
    )  # fmt: skip
    assert json.loads((path / "config.json").read_text())["quantization_config"]["weight_block_size"] == size
    assert opens(path) and read(path)
    expected = np.repeat(np.float32([[3, 5]]), 4, axis=1).repeat(4, axis=0)
    np.testing.assert_array_equal(open_checkpoint(path).read("a.weight"), expected)
