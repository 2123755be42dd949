"""GGUF: every type as the gguf package reads it, names and rows as Hugging Face has them, malformed files refused."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf as reference
import model_files
import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import ModelFileError
from pygpukit.models import open_checkpoint
from pygpukit.models.dequantise import BLOCKS
from pygpukit.models.gguf import GGUFFile

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("number", [number for number, block in BLOCKS.items() if block.decode])
def test_quantised_types_have_the_bits_of_the_gguf_package(tmp_path: Path, number: int) -> None:
    block = BLOCKS[number]
    for rows, per_row in ((1, 1), (3, 5), (0, 2), (2100, 1)):  # the last needs several chunks of the larger blocks
        shape = (rows, per_row * block.elements)
        raw = RNG.integers(0, 256, (rows, per_row * block.bytes), dtype=np.uint8)
        tensors = {"x": (block.name, shape, raw.tobytes())}
        (tmp_path / "q").write_bytes(model_files.gguf({}, tensors))
        with np.errstate(all="ignore"):
            # It cannot take what is empty.
            want = reference.dequantize(raw, reference.GGMLQuantizationType(number)) if rows else np.empty(0)
        got = GGUFFile(tmp_path / "q").read("x")
        assert got.dtype == np.float32 and got.shape == shape
        wanted = want.astype(np.float32).reshape(shape)
        same = got.view(np.uint32) == wanted.view(np.uint32)
        assert np.all(same | (np.isnan(got) & np.isnan(wanted)))  # the bits of a NaN say nothing


@pytest.mark.parametrize("name", ["Q8_0", "Q5_0", "Q5_1", "Q4_0", "Q4_1"])
def test_what_the_gguf_package_quantises_comes_back_close(tmp_path: Path, name: str) -> None:
    values = RNG.standard_normal((7, 96)).astype(np.float32)
    raw = reference.quantize(values, reference.GGMLQuantizationType[name])
    (tmp_path / "q").write_bytes(model_files.gguf({}, {"x": (name, values.shape, raw.tobytes())}))
    error = np.abs(GGUFFile(tmp_path / "q").read("x").astype(np.float64) - values).max()
    assert error < {"Q8_0": 0.02, "Q5_0": 0.2, "Q5_1": 0.12, "Q4_0": 0.4, "Q4_1": 0.25}[name]


def test_plain_types_are_views_of_the_file(tmp_path: Path) -> None:
    tensors = {
        "single": ("F32", (3, 2), np.arange(6, dtype="<f4").tobytes()),
        "half": ("F16", (5,), np.arange(5, dtype="<f2").tobytes()),
        "brain": ("BF16", (1, 1, 1, 4), np.array([0x3F80, 0x4000, 0xC000, 0], "<u2").tobytes()),
        "scalar": ("F32", (), np.float32(7).tobytes()),
    }
    (tmp_path / "p").write_bytes(model_files.gguf({"general.alignment": 64}, tensors, align=64))
    file = GGUFFile(tmp_path / "p")
    assert np.array_equal(file.read("single"), np.arange(6).reshape(3, 2))
    assert file.read("half").dtype == np.float16 and file.read("brain").tolist() == [[[[0x3F80, 0x4000, 0xC000, 0]]]]
    assert file.read("scalar") == 7 and file.read("scalar").shape == ()
    assert not file.read("single").flags.writeable


def test_what_the_gguf_package_writes_is_read(tmp_path: Path) -> None:
    writer = reference.GGUFWriter(tmp_path / "w", "llama")
    writer.add_block_count(3)
    writer.add_float64("x.double", 1.5)
    writer.add_int64("x.long", -(1 << 40))
    writer.add_array("x.list", [1.0, 2.5])
    writer.add_bool("x.yes", True)
    writer.add_token_list(["a", "\u00e9", ""])
    writer.add_tensor("one", np.arange(12, dtype=np.float32).reshape(3, 4))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = GGUFFile(tmp_path / "w")
    assert (
        file.fields["llama.block_count"] == 3 and file.fields["x.list"] == [1.0, 2.5] and file.fields["x.yes"] is True
    )
    assert file.fields["x.double"] == 1.5 and file.fields["x.long"] == -(1 << 40)
    assert file.fields["tokenizer.ggml.tokens"] == ["a", "\u00e9", ""]
    assert file.read("one").tolist() == np.arange(12).reshape(3, 4).tolist()


def permuted(weights: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """Rows as llama.cpp's converter orders them: of each head's two halves, in turns."""
    return weights.reshape(heads, 2, len(weights) // heads // 2, -1).swapaxes(1, 2).reshape(weights.shape)


def test_llama_reads_as_hugging_face_has_it(tmp_path: Path) -> None:
    tensors = model_files.tensors(model_files.LLAMA_SHAPES)
    want = {}
    for name, heads in (("blk.0.attn_q.weight", 4), ("blk.0.attn_k.weight", 2)):
        kind, shape, raw = tensors[name]
        want[name] = np.frombuffer(raw, "<f4").reshape(shape)
        tensors[name] = (kind, shape, permuted(want[name], heads).tobytes())
    (tmp_path / "m.gguf").write_bytes(
        model_files.gguf({**model_files.LLAMA, **model_files.tokenizer_fields()}, tensors)
    )
    model = open_checkpoint(tmp_path / "m.gguf")
    layer = "model.layers.0."
    assert set(model.names()) == {
        "model.embed_tokens.weight", "model.norm.weight", layer + "input_layernorm.weight",
        *(f"{layer}self_attn.{part}_proj.weight" for part in "qkvo"), layer + "post_attention_layernorm.weight",
        *(f"{layer}mlp.{part}_proj.weight" for part in ("gate", "up", "down")),
    }  # fmt: skip
    assert np.array_equal(model.read(layer + "self_attn.q_proj.weight"), want["blk.0.attn_q.weight"])
    assert np.array_equal(model.read(layer + "self_attn.k_proj.weight"), want["blk.0.attn_k.weight"])
    assert model.shape(layer + "self_attn.k_proj.weight") == (16, 32)
    assert model.dtype("model.norm.weight") == gp.float32
    assert model.read("model.norm.weight", gp.bfloat16).dtype == np.uint16
    with pytest.raises(KeyError):
        model.read("blk.0.attn_q.weight")
    assert model.name == "m"
    want_config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 263, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 64, "rms_norm_eps": np.float32(1e-5),
        "rope_theta": 10000.0, "rope_scaling": None,
        "tie_word_embeddings": True, "attention_bias": False, "bos_token_id": 260, "eos_token_id": 261,
    }  # fmt: skip
    assert {key: model.config[key] for key in want_config} == want_config
    assert model.generation == {"bos_token_id": 260, "eos_token_id": 261}
    assert model.tokenizer().encode("hello<|b|>") == [259, 261]
    model.close()


def test_gpt2_matrices_are_turned_back(tmp_path: Path) -> None:
    shapes = {
        "token_embd.weight": (11, 8), "position_embd.weight": (16, 8), "output_norm.weight": (8,),
        "output_norm.bias": (8,),
        "blk.0.attn_qkv.weight": (24, 8), "blk.0.attn_qkv.bias": (24,),
        "blk.0.attn_output.weight": (8, 8),
        "blk.0.ffn_up.weight": (32, 8), "blk.0.ffn_down.weight": (8, 32),
    }  # fmt: skip
    fields = {
        "general.architecture": "gpt2", "gpt2.block_count": 1, "gpt2.context_length": 16, "gpt2.embedding_length": 8,
        "gpt2.attention.head_count": 2, "gpt2.attention.layer_norm_epsilon": 1e-5,
    }  # fmt: skip
    tensors = model_files.tensors(shapes)
    (tmp_path / "g.gguf").write_bytes(model_files.gguf(fields, tensors))
    model = open_checkpoint(tmp_path / "g.gguf")
    stored = np.frombuffer(tensors["blk.0.attn_qkv.weight"][2], "<f4").reshape(24, 8)
    assert model.shape("h.0.attn.c_attn.weight") == (8, 24)
    got = model.read("h.0.attn.c_attn.weight")
    assert np.array_equal(got, stored.T) and got.flags.c_contiguous
    assert model.shape("h.0.mlp.c_proj.weight") == (32, 8) and model.shape("wpe.weight") == (16, 8)
    assert model.config["n_inner"] == 32 and model.config["n_head"] == 2 and model.config["vocab_size"] == 11
    with pytest.raises(ModelFileError, match="no tokenizer"):
        model.tokenizer()


def llama3_divisors(head_dim: int, theta: float, factor: float) -> np.ndarray[Any, Any]:
    """As Meta's reference has them: waves longer than 8192 slowed by factor, those under 2048 not, smooth between."""
    divisors = []
    for pair in range(0, head_dim, 2):
        wave = 2 * np.pi * theta ** (pair / head_dim)
        if wave < 8192 / 4:
            divisors.append(1.0)
        elif wave > 8192 / 1:
            divisors.append(factor)
        else:
            smooth = (8192 / wave - 1) / (4 - 1)
            divisors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(divisors)


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_llama3_scaling_is_told_from_the_divisors_it_keeps(tmp_path: Path, factor: float) -> None:
    fields = {**model_files.LLAMA, "llama.rope.freq_base": 500000.0, "llama.attention.key_length": 128}
    shapes = {**model_files.LLAMA_SHAPES, "blk.0.attn_q.weight": (512, 32), "blk.0.attn_k.weight": (256, 32)}
    divisors = llama3_divisors(128, 500000.0, factor).astype("<f4")
    tensors = {**model_files.tensors(shapes), "rope_freqs.weight": ("F32", (64,), divisors.tobytes())}
    (tmp_path / "l.gguf").write_bytes(model_files.gguf(fields, tensors))
    assert open_checkpoint(tmp_path / "l.gguf").config["rope_scaling"] == {
        "rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }  # fmt: skip
    tensors["rope_freqs.weight"] = ("F32", (64,), (divisors * np.linspace(1, 2, 64)).astype("<f4").tobytes())
    (tmp_path / "l.gguf").write_bytes(model_files.gguf(fields, tensors))
    found = open_checkpoint(tmp_path / "l.gguf").config["rope_scaling"]
    assert found["rope_type"] == "divided"
    np.testing.assert_array_equal(found["divisors"], (divisors * np.linspace(1, 2, 64)).astype("<f4"))


HEAD = b"GGUF" + struct.pack("<I", 3)
ONE = {"x": ("F32", (2,), b"12345678")}
MALFORMED = {
    "another magic": b"GGML" + bytes(40),
    "four bytes": b"GGUF",
    "version 1": b"GGUF" + struct.pack("<I", 1) + bytes(40),
    "big-endian": b"GGUF" + struct.pack(">I", 3) + bytes(40),
    "more tensors than bytes": HEAD + struct.pack("<QQ", 1 << 60, 0),
    "more fields than bytes": HEAD + struct.pack("<QQ", 0, 1 << 60),
    "a text past the end": HEAD + struct.pack("<QQQ", 0, 1, 1 << 62) + bytes(20),
    "a list past the end": HEAD + struct.pack("<QQ", 0, 1) + model_files.text("k") + struct.pack("<IIQ", 9, 4, 1 << 61),
    "a list of lists": HEAD + struct.pack("<QQ", 0, 1) + model_files.text("k") + struct.pack("<IIQ", 9, 9, 0),
    "a type that is none": HEAD + struct.pack("<QQ", 0, 1) + model_files.text("k") + struct.pack("<IQ", 77, 0),
    "text that is no UTF-8": HEAD + struct.pack("<QQQ", 0, 1, 1) + b"\xff" + struct.pack("<II", 4, 0),
    "a key twice": HEAD + struct.pack("<QQ", 0, 2) + (model_files.text("k") + model_files.field(1)) * 2,
    "data cut": model_files.gguf({}, ONE)[:-1],
    "an alignment of zero": model_files.gguf({"general.alignment": 0}, ONE),
    "an alignment of 24": model_files.gguf({"general.alignment": 24}, ONE),
    "an alignment in words": model_files.gguf({"general.alignment": "32"}, ONE),
    "rows that are no blocks": model_files.gguf({}, {"x": ("Q8_0", (33,), bytes(34))}),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_file_is_refused_by_name(tmp_path: Path, case: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(MALFORMED[case])
    with pytest.raises(ModelFileError, match=r"m\.gguf"):
        GGUFFile(path)


def test_a_type_that_is_not_read_is_named(tmp_path: Path) -> None:
    data = bytearray(model_files.gguf({}, ONE))
    at = data.index(struct.pack("<IQIQ", 1, 2, 0, 0)) + 12
    data[at : at + 4] = struct.pack("<I", 22)
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(ModelFileError, match=r"'x' is stored as IQ2_S; what is read is F32, F16, Q4_0"):
        GGUFFile(tmp_path / "m")


def test_overlapping_tensors_are_refused(tmp_path: Path) -> None:
    data = bytearray(model_files.gguf({}, {"x": ("F32", (8,), bytes(32)), "y": ("F32", (8,), bytes(32))}))
    at = data.index(struct.pack("<IQIQ", 1, 8, 0, 32)) + 16
    data[at : at + 8] = bytes(8)
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(ModelFileError, match="'x' and 'y' overlap"):
        GGUFFile(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"general.architecture": "mamba"}, "architecture is 'mamba'; what is read is llama"),
        ({"general.architecture": 3}, "architecture is 3"),
        ({"llama.block_count": "one"}, "block_count is 'one'"),
        ({"llama.attention.head_count": 0}, "head_count is 0"),
        ({"llama.attention.head_count": 5}, "not those of 5 heads"),
        ({"llama.rope.scaling.type": "odd"}, "scaling.type is 'odd'"),
    ],
)
def test_metadata_that_make_no_model(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        open_checkpoint(model_files.llama(tmp_path / "m.gguf", **change))


def test_a_missing_field_and_a_strange_tensor_are_named(tmp_path: Path) -> None:
    fields = {key: value for key, value in model_files.LLAMA.items() if key != "llama.context_length"}
    (tmp_path / "m.gguf").write_bytes(model_files.gguf(fields, model_files.tensors(model_files.LLAMA_SHAPES)))
    with pytest.raises(ModelFileError, match=r"has no 'context_length'"):
        open_checkpoint(tmp_path / "m.gguf")
    shapes = {**model_files.LLAMA_SHAPES, "blk.0.ffn_gate_exps.weight": (2, 64, 32)}
    (tmp_path / "m.gguf").write_bytes(model_files.gguf(model_files.LLAMA, model_files.tensors(shapes)))
    with pytest.raises(ModelFileError, match="ffn_gate_exps"):
        open_checkpoint(tmp_path / "m.gguf")


@pytest.mark.parametrize(
    ("change", "scaling"),
    [
        ({"rope.scaling.factor": 4.0}, {"rope_type": "linear", "factor": 4.0}),
        ({"rope.scale_linear": 4.0}, {"rope_type": "linear", "factor": 4.0}),
        ({"rope.scale_linear": 4.0, "rope.scaling.factor": 2.0}, {"rope_type": "linear", "factor": 2.0}),
        ({"rope.scaling.type": "linear", "rope.scaling.factor": 0.0}, None),
        ({"rope.scaling.type": "none", "rope.scaling.factor": 4.0}, None),
        ({"rope.scaling.attn_factor": 1.0, "rope.dimension_count": 8, "attention.value_length": 8}, None),
        (
            {
                "rope.scaling.type": "yarn",
                "rope.scaling.factor": 4.0,
                "rope.scaling.original_context_length": 16,
                "rope.scaling.yarn_beta_fast": 24.0,
            },
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 24.0},
        ),
    ],
)
def test_rope_scaling_is_read_as_llama_cpp_does(
    tmp_path: Path, change: dict[str, Any], scaling: dict[str, Any] | None
) -> None:
    fields = {f"llama.{key}": value for key, value in change.items()}
    assert open_checkpoint(model_files.llama(tmp_path / "m.gguf", **fields)).config["rope_scaling"] == scaling


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rope.scaling.attn_factor", 1.5),
        ("rope.dimension_count", 4),
        ("attention.value_length", 16),
        ("attention.scale", 0.5),
        ("attention.causal", False),
        ("logit_scale", 0.25),
        ("final_logit_softcapping", 30.0),
        ("expert_count", 8),
        ("rope.scaling.type", "longrope"),
        ("rope.scaling.factor", -2.0),
        ("attention.head_count", [4, 4]),
    ],
)
def test_metadata_that_would_change_the_arithmetic_are_refused(tmp_path: Path, key: str, value: Any) -> None:
    with pytest.raises(ModelFileError, match=key):
        open_checkpoint(model_files.llama(tmp_path / "m.gguf", **{f"llama.{key}": value}))


def test_metadata_that_nobody_knows_are_told_once(tmp_path: Path) -> None:
    path = model_files.llama(tmp_path / "m.gguf", **{"llama.wibble": 3, "general.other": 3})
    with pytest.warns(UserWarning, match=r"'wibble'$"):
        open_checkpoint(path)
    open_checkpoint(path)


def test_divisors_of_any_kind_are_used(tmp_path: Path) -> None:
    import pygpukit as gp

    divisors = np.array([1.0, 3.0, 2.0, 9.5], "<f4")
    tensors = {**model_files.tensors(model_files.LLAMA_SHAPES), "rope_freqs.weight": ("F32", (4,), divisors.tobytes())}
    (tmp_path / "m.gguf").write_bytes(model_files.gguf(model_files.LLAMA, tensors))
    model = gp.llm.load(tmp_path / "m.gguf", progress=False)
    angles = np.arange(64)[:, None] * 10000.0 ** (-np.arange(0, 8, 2) / 8) / divisors
    np.testing.assert_allclose(model.engine.network.rope_tables[0].to_numpy(), np.cos(angles), atol=1e-6)
    with pytest.raises(ModelFileError, match="rope_freqs"):
        fields = {**model_files.LLAMA, "llama.rope.scaling.factor": 2.0}
        (tmp_path / "m.gguf").write_bytes(model_files.gguf(fields, tensors))
        open_checkpoint(tmp_path / "m.gguf")


@pytest.mark.parametrize(("kind", "more"), [("eot", "<|a|>"), ("eom", "<|c|>")])
def test_end_tokens_of_turns_and_messages(tmp_path: Path, kind: str, more: str) -> None:
    fields = model_files.tokenizer_fields()
    tokens = fields["tokenizer.ggml.tokens"]
    path = model_files.llama(tmp_path / "m.gguf", **{f"tokenizer.ggml.{kind}_token_id": tokens.index(more)})
    ends = open_checkpoint(path).generation["eos_token_id"]
    assert ends == [tokens.index("<|b|>"), tokens.index(more)]
