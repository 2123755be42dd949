"""FP8 weights by the documented names: values beside the formula, products beside float64, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from models.quantised_folders import e4m3
from models.test_scaled import folder

import pygpukit as gp
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.models.convert import convert

FLOATS = np.array([e4m3(code) if code & 127 != 127 else np.nan for code in range(256)])


def codes(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    made = rng.integers(0, 256, shape).astype(np.uint8)
    made[made & 127 == 127] = 1
    return made


def meant(code: np.ndarray, scale: np.ndarray, block: tuple[int, int]) -> np.ndarray:
    rows, columns = (np.arange(extent) // size for extent, size in zip(code.shape, block, strict=True))
    return FLOATS[code] * scale.astype(np.float64)[rows][:, columns]


def scales(rng: np.random.Generator, shape: tuple[int, int], block: tuple[int, int]) -> np.ndarray:
    counts = [-(-extent // size) for extent, size in zip(shape, block, strict=True)]
    return rng.uniform(0.001, 0.1, counts).astype(np.float32)


@pytest.mark.parametrize(("shape", "block"), [((256, 384), (128, 128)), ((5, 7), (2, 3)), ((130, 129), (128, 128))])
def test_numbers_of_codes(shape: tuple[int, int], block: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    code, scale = codes(rng, shape), scales(rng, shape, block)
    given = gp.llm.dequantize_fp8_e4m3_block(code, scale, block)
    assert given.dtype == np.float32
    np.testing.assert_array_equal(given, meant(code, scale, block).astype(np.float32))
    brain = convert(scale, gp.float32, gp.bfloat16)
    wide = convert(brain, gp.bfloat16, gp.float32)
    np.testing.assert_array_equal(
        gp.llm.dequantize_fp8_e4m3_block(code, brain, block), meant(code, wide, block).astype(np.float32)
    )
    code[1, 2] = 0x7F
    assert np.isnan(gp.llm.dequantize_fp8_e4m3_block(code, scale, block)[1, 2])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "block"),
    [((256, 384), (128, 128)), ((70, 200), (128, 128)), ((96, 256), (32, 256)), ((6, 130), (1, 128))],
)
def test_a_product_reads_the_codes(shape: tuple[int, int], block: tuple[int, int], dtype: str) -> None:
    rng = np.random.default_rng(5)
    code, scale = codes(rng, shape), scales(rng, shape, block)
    x = gp.from_numpy(rng.standard_normal((2, 3, shape[1])).astype(np.float32)).astype(dtype)
    bias = gp.from_numpy(rng.standard_normal(shape[0]).astype(np.float32)).astype(dtype)
    layer = gp.llm.LinearFP8(gp.from_numpy(code), gp.from_numpy(scale), bias, block)
    assert (layer.out_features, layer.in_features, layer.block_size) == (*shape, block)
    rows, weight = x.astype("float32").to_numpy().astype(np.float64), meant(code, scale, block)
    want = rows @ weight.T + bias.astype("float32").to_numpy()
    out = gp.full(want.shape, 7, dtype)
    assert layer(x, out=out) is out
    room = (np.abs(rows) @ np.abs(weight).T + 1) * (2e-6 if dtype == "float32" else 0)
    room += 0 if dtype == "float32" else np.abs(want) * 2**-7 + 2**-7 * np.abs(rows @ weight.T) + 1e-3
    for given in (layer(x), out):
        assert given.dtype == x.dtype
        assert (np.abs(given.astype("float32").to_numpy() - want) <= room).all()


def test_a_weight_of_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    code, scale = codes(rng, (200, 300)), scales(rng, (200, 300), (128, 128))
    brain = convert(scale, gp.float32, gp.bfloat16)
    tensors = {
        "a.weight": ("F8_E4M3", code), "a.weight_scale_inv": scale,
        "b.weight": ("F8_E4M3", code), "b.weight_scale_inv": ("BF16", brain), "c.weight": scale,
    }  # fmt: skip
    st = gp.llm.SafeTensorsFile(folder(tmp_path / "m", tensors) / "model.safetensors")
    assert [gp.llm.is_fp8_weight(f"{name}.weight", st.tensor_names) for name in "abc"] == [True, True, False]
    for name, kind, steps in (("a", "float32", scale), ("b", "bfloat16", convert(brain, gp.bfloat16, gp.float32))):
        weight, stored = gp.llm.load_fp8_weight_direct(st, f"{name}.weight")
        assert (weight.dtype, stored.dtype) == (gp.float8_e4m3, gp.DataType.from_string(kind))
        np.testing.assert_array_equal(weight.view("uint8").to_numpy(), code)
        np.testing.assert_array_equal(stored.astype("float32").to_numpy(), steps)
        layer = gp.llm.LinearFP8(weight, stored)
        one = layer(gp.from_numpy(np.eye(300, dtype=np.float32))).to_numpy().T
        np.testing.assert_array_equal(one, meant(code, steps, (128, 128)).astype(np.float32))
    with pytest.raises(KeyError, match=r"c\.weight_scale_inv"):
        gp.llm.load_fp8_weight_direct(st, "c.weight")
    with pytest.raises(ShapeError, match=r"scales have shape \(2, 3\), must be \(4, 5\)"):
        gp.llm.load_fp8_weight_direct(st, "a.weight", (64, 64))
    st.close()


def test_what_does_not_fit_is_named() -> None:
    code, scale = gp.zeros((4, 256), "uint8"), gp.ones((1, 2), "float32")
    layer = gp.llm.LinearFP8(code, scale)
    with pytest.raises(ShapeError, match=r"x has shape \(3,\), must be \(..., 256\)"):
        layer(gp.zeros(3))
    with pytest.raises(ShapeError, match=r"bias has shape \(3,\)"):
        gp.llm.LinearFP8(code, scale, gp.zeros(3))
    with pytest.raises(ShapeError, match=r"scales have shape \(1, 2\), must be \(1, 1\)"):
        gp.llm.LinearFP8(code, scale, block_size=(128, 256))
    with pytest.raises(InvalidSpecError, match="multiple of 128"):
        gp.llm.LinearFP8(code, gp.ones((1, 4)), block_size=(4, 64))
    with pytest.raises(InvalidSpecError, match="two whole numbers above 0"):
        gp.llm.LinearFP8(code, scale, block_size=(128, 0))
    with pytest.raises(DTypeError, match="weight_fp8 is float32"):
        gp.llm.LinearFP8(gp.zeros((4, 256)), scale)
    with pytest.raises(DTypeError, match="fp8_bytes is float32"):
        gp.llm.dequantize_fp8_e4m3_block(np.zeros((2, 2), np.float32), np.ones((1, 1), np.float32))
