"""Folders of 8-bit weights: the numbers that codes and scales mean, in every layout; others are refused by name."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.quantised_folders import e4m3

from pygpukit.core.errors import ModelFileError
from pygpukit.models import open_checkpoint
from pygpukit.models.dequantise import named

SPELLINGS = {np.dtype(np.float32): "F32", np.dtype(np.int8): "I8", np.dtype(np.uint8): "U8", np.dtype(np.int32): "I32"}
Arrays = dict[str, tuple[str, np.ndarray]]


def folder(path: Path, tensors: dict[str, Any], **quantisation: Any) -> Path:
    """tensors: arrays, or (spelling, bytes as uint8)."""
    header: dict[str, Any] = {}
    data = b""
    for name, value in tensors.items():
        kind, array = value if isinstance(value, tuple) else (SPELLINGS[value.dtype], value)
        raw = array.tobytes()
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.mkdir(exist_ok=True)
    (path / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    config: dict[str, Any] = {"model_type": "llama"}
    if quantisation:
        config["quantization_config"] = quantisation
    (path / "config.json").write_text(json.dumps(config))
    return path


RNG = np.random.default_rng(4)
CODES = RNG.integers(0, 256, (300, 200)).astype(np.uint8)
CODES[CODES & 127 == 127] = 0  # no NaN
FLOATS = np.vectorize(e4m3)(np.arange(256)).astype(np.float32)
INTS = RNG.integers(-128, 128, (300, 200)).astype(np.int8)


def scales(*shape: int) -> np.ndarray:
    return RNG.uniform(0.001, 0.1, shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (300,), (300, 1)])
@pytest.mark.parametrize("suffix", ["weight_scale", "weight_scale_inv"])
def test_a_scale_for_all_or_for_each_row(tmp_path: Path, shape: tuple[int, ...], suffix: str) -> None:
    scale = scales(*shape)
    tensors = {"a.weight": ("F8_E4M3", CODES), f"a.{suffix}": scale, "a.input_scale": scales(), "b.weight": scale}
    model = open_checkpoint(folder(tmp_path / "m", tensors, quant_method="fp8"))
    assert set(model.names()) == {"a.weight", "b.weight"}
    want = FLOATS[CODES] * (scale.reshape(-1, 1) if scale.size > 1 else scale.reshape(()))
    np.testing.assert_array_equal(model.read("a.weight"), want)
    assert model.dtype("a.weight").name == "float32"


def test_blocks(tmp_path: Path) -> None:
    for block, given in (((128, 128), {"weight_block_size": [128, 128]}), ((128, 128), {}), ((100, 64), None)):
        counts = -(-300 // block[0]), -(-200 // block[1])
        scale = scales(*counts)
        quantisation = {"quant_method": "fp8", **({"weight_block_size": list(block)} if given is None else given)}
        tensors = {"a.weight": ("F8_E4M3", CODES), "a.weight_scale_inv": scale}
        model = open_checkpoint(folder(tmp_path / "m", tensors, **quantisation))
        rows, columns = np.arange(300) // block[0], np.arange(200) // block[1]
        np.testing.assert_array_equal(model.read("a.weight"), FLOATS[CODES] * scale[rows][:, columns])


def test_groups_and_zero_points_of_compressed_tensors(tmp_path: Path) -> None:
    scale, zero = scales(300, 5), RNG.integers(-9, 9, (300, 5)).astype(np.int8)
    tensors = {"a.weight": INTS, "a.weight_scale": scale, "a.weight_zero_point": zero}
    groups = {"group_0": {"weights": {"num_bits": 8, "type": "int"}}}
    quantisation = {"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": groups}
    model = open_checkpoint(folder(tmp_path / "m", tensors, **quantisation))
    of = np.arange(200) // 40
    want = (INTS.astype(np.float32) - zero[:, of]) * scale[:, of]
    np.testing.assert_array_equal(model.read("a.weight"), want)
    assert model.names() == ("a.weight",)


def test_int8_of_bitsandbytes(tmp_path: Path) -> None:
    most = scales(300) * 100
    tensors = {"a.weight": INTS, "a.SCB": most, "a.weight_format": np.zeros((), np.uint8)}
    quantisation = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    model = open_checkpoint(folder(tmp_path / "m", tensors, **quantisation))
    want = INTS.astype(np.float32) * most[:, None] / np.float32(127)
    np.testing.assert_array_equal(model.read("a.weight"), want)
    tensors["a.weight_format"] = np.ones((), np.uint8)
    with pytest.raises(ModelFileError, match="weight_format"):
        open_checkpoint(folder(tmp_path / "m", tensors, **quantisation))


def test_powers_of_two_for_blocks_of_32(tmp_path: Path) -> None:
    codes = CODES[:, :192]
    exponents = RNG.integers(100, 140, (300, 6)).astype(np.uint8)
    tensors = {"a.weight": ("F8_E4M3", codes), "a.weight_scale": exponents}
    quantisation = {"quant_method": "compressed-tensors", "format": "mxfp8-quantized"}
    model = open_checkpoint(folder(tmp_path / "m", tensors, **quantisation))
    want = FLOATS[codes] * 2.0 ** (np.repeat(exponents, 32, axis=1).astype(np.float64) - 127)
    np.testing.assert_array_equal(model.read("a.weight"), want)


@pytest.mark.parametrize(
    ("shape", "block"), [((), 128), ((300, 1), 128), ((3, 2), 128), ((300, 8), 32), ((300, 16), None)]
)
def test_blocks_have_the_same_numbers(tmp_path: Path, shape: tuple[int, ...], block: int | None) -> None:
    rng = np.random.default_rng(3)
    codes = (
        np.where(np.arange(300 * 256) % 128 == 127, 0, np.arange(300 * 256) % 256).astype(np.uint8).reshape(300, 256)
    )
    for kind, name in (("F8_E4M3", "FP8"), ("I8", "I8")):
        scale = rng.uniform(0.001, 0.1, shape).astype(np.float32)
        tensors = {"a.weight": (kind, codes), "a.weight_scale": scale}
        model = open_checkpoint(folder(tmp_path / "m", tensors, quant_method="fp8"))
        stored = model.stored("a.weight")
        if block is None:
            assert stored is None
            continue
        assert stored is not None
        assert stored.kind == f"{name}_{block}"
        of = named(stored.kind)
        values = of.decoded(stored.rows().reshape(-1, of.bytes)).reshape(300, 256)
        np.testing.assert_array_equal(values, model.read("a.weight"))


def test_scales_count_without_a_configuration(tmp_path: Path) -> None:
    scale = scales(300)
    model = open_checkpoint(folder(tmp_path / "m", {"a.weight": INTS, "a.weight_scale": scale}))
    np.testing.assert_array_equal(model.read("a.weight"), INTS.astype(np.float32) * scale[:, None])
    plain = open_checkpoint(folder(tmp_path / "n", {"a.weight": ("F8_E4M3", CODES)}))
    np.testing.assert_array_equal(plain.read("a.weight", plain.dtype("a.weight")), CODES)


@pytest.mark.parametrize(
    ("tensors", "quantisation", "named"),
    [
        ({"a.weight": INTS}, {}, "'a.weight' is int8 and has no scale"),
        ({"a.weight": CODES}, {}, "'a.weight' is uint8"),
        ({"a.weight": ("F8_E4M3", CODES)}, {"quant_method": "fp8"}, "no scale"),
        ({"a.qweight": CODES}, {"quant_method": "gptq", "bits": 5}, "to 5 bits"),
        ({"a.weight": CODES}, {"quant_method": "bitsandbytes", "load_in_4bit": True}, "load_in_4bit"),
        ({"a.weight": CODES}, {"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, "W4A8_AWQ"),
        ({"a.weight": CODES}, {"quant_method": "compressed-tensors", "format": "marlin-24"}, "marlin-24"),
        ({"a.weight": CODES}, {"quant_method": ["fp8"]}, "quantised by"),
        ({"a.weight": CODES}, {"quant_method": "fp8", "weight_block_size": [0, 1]}, "weight_block_size"),
    ],
)
def test_other_layouts_are_refused_by_name(
    tmp_path: Path, tensors: dict[str, Any], quantisation: dict[str, Any], named: str
) -> None:
    with pytest.raises(ModelFileError, match=named):
        open_checkpoint(folder(tmp_path / "m", tensors, **quantisation))


def test_scales_that_do_not_fit(tmp_path: Path) -> None:
    for shape in ((7,), (7, 1), (3, 3), (2, 2, 2), (0,)):
        tensors = {"a.weight": ("F8_E4M3", CODES), "a.weight_scale": scales(*shape)}
        with pytest.raises(ModelFileError, match=r"'a\.weight_scale' "):
            open_checkpoint(folder(tmp_path / "m", tensors, quant_method="fp8"))
