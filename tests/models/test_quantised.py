"""Folders of GPTQ, AWQ, compressed-tensors, NVFP4 and MXFP4: exactly the numbers that they mean, or an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm.tiny_weights import CONFIGS, tensors
from models.quantised_folders import FP4, LAYOUTS, awq, gptq, packed
from models.test_scaled import SPELLINGS, folder

import pygpukit as gp
from pygpukit.core.errors import ModelFileError
from pygpukit.models import open_checkpoint
from pygpukit.models.dequantise import named
from pygpukit.models.quantised.words import GPTQ
from pygpukit.models.stored import Stored

SPELLINGS[np.dtype(np.int64)] = "I64"
SPELLINGS[np.dtype(np.float16)] = "F16"


def decoded(blocks: Stored, shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    """The values of stored blocks, columns in the order of the weight."""
    block = named(blocks.kind)
    assert not blocks.is_transposed
    found = np.empty(shape, np.float32)
    columns = np.arange(shape[1]) if blocks.order is None else blocks.order
    whole = block.decoded(blocks.rows().reshape(-1, block.bytes)).reshape(shape[0], -1)
    found[:, columns] = whole[:, : shape[1]]
    assert not whole[:, shape[1] :].any()
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(32, 64), (96, 128)])
def test_the_numbers_that_codes_mean(tmp_path: Path, layout: str, shape: tuple[int, int]) -> None:
    stored, config, values = LAYOUTS[layout]("a", shape, np.random.default_rng(shape[0]))
    stored |= {"b.weight": np.ones(3, np.float32), "a.input_global_scale": np.ones(1, np.float32)}
    model = open_checkpoint(folder(tmp_path / "m", stored, **config))
    assert set(model.names()) == {"a.weight", "b.weight"}
    assert model.shape("a.weight") == shape
    np.testing.assert_array_equal(model.read("a.weight"), values)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(32, 256), (96, 192)])
def test_blocks_have_the_same_numbers(tmp_path: Path, layout: str, shape: tuple[int, int]) -> None:
    stored, config, values = LAYOUTS[layout]("a", shape, np.random.default_rng(shape[0]))
    blocks = open_checkpoint(folder(tmp_path / "m", stored, **config)).stored("a.weight")
    several = shape[1] == 256
    expected = {"awq": "I4_128" if several else "I4_32", "nvfp4": "NVFP4", "mxfp4": "MXFP4"}
    fours = "gptq in order", "gptq v2", "gptq", "packed", "packed without zeros"
    eights = "I8Z_128" if several else "I8Z_32"
    expected |= {**dict.fromkeys(fours, expected["awq"]), "gptq of 8": eights, "packed of 8": eights}
    expected |= {"packed of 8 by row": "I8Z_128" if several else "I8Z_32", "modelopt": expected["nvfp4"]}
    assert (None if blocks is None else blocks.kind) == expected.get(layout)
    if blocks is not None:
        np.testing.assert_array_equal(decoded(blocks, shape), values)
        assert (blocks.order is not None) == (layout in ("gptq", "gptq v2", "gptq of 8"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_model_of_such_weights_is_that_of_its_numbers(tmp_path: Path, layout: str) -> None:
    """Products in few bits, the rest as it is: the same logits as from a folder of the values."""
    config = {**CONFIGS["llama"], "hidden_size": 64, "intermediate_size": 128}
    rng = np.random.default_rng(5)
    stored: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    quantisation: dict[str, Any] = {}
    for name, value in tensors(config).items():
        if "_proj" not in name:
            stored[name] = plain[name] = value
            continue
        made, quantisation, values = LAYOUTS[layout](name.removesuffix(".weight"), value.shape, rng)
        stored |= made
        plain[name] = values.astype(np.float32)
    answers = []
    for path, weights, method in ((tmp_path / "q", stored, quantisation), (tmp_path / "p", plain, {})):
        folder(path, weights)
        (path / "config.json").write_text(json.dumps({**config, **({"quantization_config": method} if method else {})}))
        model = gp.llm.load(path, progress=False)
        answers.append(model.get_logits(model([1, 2, 3])[0]).to_numpy())
    assert np.abs(answers[1]).max() > 0.1
    np.testing.assert_array_equal(*answers)


def test_experts_of_gpt_oss(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    blocks = rng.integers(0, 256, (3, 8, 2, 16)).astype(np.uint8)
    scales = rng.integers(100, 140, (3, 8, 2)).astype(np.uint8)
    stored = {"mlp.experts.down_proj_blocks": blocks, "mlp.experts.down_proj_scales": scales}
    model = open_checkpoint(folder(tmp_path / "m", stored, quant_method="mxfp4", modules_to_not_convert=["lm_head"]))
    assert model.names() == ("mlp.experts.down_proj",)
    assert model.shape("mlp.experts.down_proj") == (3, 64, 8)
    values = model.read("mlp.experts.down_proj")
    kept = model.stored("mlp.experts.down_proj")
    assert kept is not None and kept.kind == "MXFP4" and kept.is_transposed
    block = named("MXFP4")
    below = block.decoded(kept.rows().reshape(-1, block.bytes)).reshape(3, 8, 128)
    np.testing.assert_array_equal(below[:, :, :64], values.swapaxes(1, 2))
    assert not below[:, :, 64:].any()
    for expert, out, block, place in ((0, 0, 0, 0), (2, 7, 1, 15), (1, 3, 0, 9)):
        scale = 2.0 ** (int(scales[expert, out, block]) - 127)
        byte = int(blocks[expert, out, block, place])
        assert values[expert, 32 * block + 2 * place, out] == FP4[byte & 15] * scale
        assert values[expert, 32 * block + 2 * place + 1, out] == FP4[byte >> 4] * scale


def test_modelopt_keeps_its_method_in_a_file_of_its_own(tmp_path: Path) -> None:
    stored, _, values = LAYOUTS["modelopt"]("a", (32, 64), np.random.default_rng(7))
    path = folder(tmp_path / "m", stored)
    (path / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "NVFP4"}}))
    np.testing.assert_array_equal(open_checkpoint(path).read("a.weight"), values)


@pytest.mark.parametrize("layout", ["gptq", "gptq_v2"])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("size", [32, 64, 128, 256])  # of a group; 256 are all columns: group_size -1
def test_columns_in_an_order_of_their_own_stay_in_blocks(tmp_path: Path, layout: str, bits: int, size: int) -> None:
    """All codes, zeros to the ends of their range, and a number of rows that fills no word of zeros."""
    rng = np.random.default_rng(size + bits)
    stored, config, values = gptq("a", (37, 256), rng, bits, 256 // size, True, layout)
    model = open_checkpoint(folder(tmp_path / "m", stored, **config))
    np.testing.assert_array_equal(model.read("a.weight"), values)
    blocks = model.stored("a.weight")
    assert blocks is not None and (blocks.order is None) == (size == 256)
    np.testing.assert_array_equal(decoded(blocks, (37, 256)), values)


def test_zeros_reach_the_ends_of_their_range(tmp_path: Path) -> None:
    """Stored less by 1, the largest code of zero is one more than the largest code."""
    for bits in (4, 8):
        stored, config, _ = gptq("a", (32, 64), np.random.default_rng(bits), bits)
        stored["a.qzeros"] = np.stack([np.zeros_like(stored["a.qzeros"][0]), ~np.zeros_like(stored["a.qzeros"][1])])
        model = open_checkpoint(folder(tmp_path / f"{bits}", stored, **config))
        blocks = model.stored("a.weight")
        assert blocks is not None
        values = model.read("a.weight")
        np.testing.assert_array_equal(decoded(blocks, (32, 64)), values)
        group = stored["a.g_idx"]
        assert values[:, group == 0].min() < 0 and values[:, group == 0].max() > 0 and (values[:, group == 1] < 0).all()


def test_groups_of_several_sizes_are_expanded(tmp_path: Path) -> None:
    stored, config, _ = gptq("a", (32, 64), np.random.default_rng(3))
    stored["a.g_idx"] = np.where(np.arange(64) < 24, 0, 1).astype(np.int32)
    assert open_checkpoint(folder(tmp_path / "m", stored, **config)).stored("a.weight") is None


@pytest.mark.parametrize(
    "order",
    [np.arange(63), np.arange(65), np.full(64, 2), np.where(np.arange(64) == 9, -1, 0), np.full(64, 1 << 30)],
)
def test_an_order_that_fits_no_weight_is_refused_before_it_is_read(
    tmp_path: Path, order: np.ndarray[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, config, _ = gptq("a", (32, 64), np.random.default_rng(4))
    stored["a.g_idx"] = order.astype(np.int32)
    monkeypatch.setattr(GPTQ, "parts", lambda *_: pytest.fail("the weight was read"))
    with pytest.raises(ModelFileError, match="g_idx"):
        open_checkpoint(folder(tmp_path / "m", stored, **config))


@pytest.mark.parametrize("kind", ["BF16", "F16", "F32"])
@pytest.mark.parametrize("groups", [1, 2, 8])
def test_int8_with_zeros_stays_in_blocks(tmp_path: Path, kind: str, groups: int) -> None:
    """compressed-tensors' (code - zero) * scale, by its own package's rule; scales of 32 bits are expanded."""
    rng = np.random.default_rng(groups)
    code, zero = rng.integers(-128, 128, (37, 256)).astype(np.int8), rng.integers(-128, 128, (37, groups))
    zero[:2, 0] = -128, 127
    scale = rng.uniform(0.001, 0.02, (37, groups)).astype(np.float16 if kind == "F16" else np.float32)
    bits = (scale.view(np.uint32) >> 16).astype(np.uint16) if kind == "BF16" else scale
    scale = (bits.astype(np.uint32) << 16).view(np.float32) if kind == "BF16" else scale
    stored = {"a.weight": code, "a.weight_scale": (kind, bits), "a.weight_zero_point": zero.astype(np.int8)}
    model = open_checkpoint(folder(tmp_path / "m", stored, quant_method="compressed-tensors", format="int-quantized"))
    group = np.arange(256) // (256 // groups)
    values = (code - zero[:, group]).astype(np.float64) * scale[:, group]
    np.testing.assert_array_equal(model.read("a.weight"), values.astype(np.float32))
    blocks = model.stored("a.weight")
    assert (blocks is None) == (kind == "F32")
    if blocks is not None:
        assert blocks.kind == ("I8Z_32" if groups == 8 else "I8Z_128")
        np.testing.assert_array_equal(decoded(blocks, (37, 256)), values)


def test_an_order_that_says_nothing_is_none(tmp_path: Path) -> None:
    stored, config, values = gptq("a", (32, 64), np.random.default_rng(8), order=False)
    stored["a.g_idx"] = np.full(64, -1, np.int32)
    np.testing.assert_array_equal(open_checkpoint(folder(tmp_path / "m", stored, **config)).read("a.weight"), values)


def damaged(kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    rng = np.random.default_rng(9)
    make = {"gptq": gptq, "awq": awq}.get(kind.split()[0], packed)
    stored, config, _ = make("a", (32, 64), rng)
    if kind == "gptq order":
        stored["a.g_idx"] = np.full(64, 2, np.int32)
    elif kind == "gptq zeros":
        stored["a.qzeros"] = stored["a.qzeros"][:1]
    elif kind == "awq scales":
        del stored["a.scales"]
    elif kind == "packed shape":
        stored["a.weight_shape"] = np.array([32, 99])
    elif kind == "packed rows":
        stored["a.weight_shape"] = np.array([31, 64])
    elif kind == "packed scales":
        stored["a.weight_scale"] = np.ones((31, 2), np.float16)
    return stored, config


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("gptq order", "g_idx"),
        ("gptq zeros", "qzeros"),
        ("awq scales", r"a\.scales"),
        ("packed shape", "weight_packed"),
        ("packed rows", "weight_packed"),
        ("packed scales", "weight_scale"),
    ],
)
def test_tensors_that_do_not_fit_are_named(tmp_path: Path, kind: str, named: str) -> None:
    stored, config = damaged(kind)
    with pytest.raises(ModelFileError, match=named):
        open_checkpoint(folder(tmp_path / "m", stored, **config))


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "gemv"),
        ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}, "marlin"),
        ({"quant_method": "gptq", "bits": 4, "dynamic": {"+:x": {"bits": 8}}}, "dynamic"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized", "transform_config": {"a": 1}}, "transform"),
        *[({"quant_method": name}, f"'{name}'") for name in ("hqq", "aqlm", "quark", "torchao", "eetq", "vptq", "")],
    ],
)
def test_what_is_not_read_is_refused_by_its_name(tmp_path: Path, config: dict[str, Any], named: str) -> None:
    with pytest.raises(ModelFileError, match=named):
        open_checkpoint(folder(tmp_path / "m", {"a.qweight": np.ones((4, 4), np.int32)}, **config))
