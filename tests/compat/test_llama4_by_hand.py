"""The documented classes of Llama 4: logits of the formula in float64, tokens of the loaded model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm.test_llama4 import CONFIG, IDS, reference
from llm.tiny_weights import tensors
from models.test_scaled import folder

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError, ShapeError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder(tmp_path / "m", tensors(CONFIG))
    (tmp_path / "m" / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path / "m"


def test_logits_are_those_of_the_formula(path: Path) -> None:
    """Mixtures and dense layers, over more than one chunk, and queries that have grown."""
    model = gp.llm.Llama4Model.from_safetensors(path)
    assert [type(block.mlp).__name__ for block in model.blocks] == ["Llama4MLP", "MoELayer"] * 2
    assert [block.attn.use_rope for block in model.blocks] == [True, True, False, True]
    found = model.forward(IDS[:50]).to_numpy()
    np.testing.assert_allclose(found, reference(CONFIG, tensors(CONFIG), IDS[:50]), atol=2e-5)


def test_tokens_are_those_of_the_loaded_model(path: Path) -> None:
    model = gp.llm.Llama4Model.from_safetensors(path)
    made = gp.llm.generate(model, np.array(IDS[:20]), 12, eos_token_id=-1)
    want = gp.llm.load(path, context=64, progress=False).stream(IDS[:20], 12, ignore_eos=True).complete().token_ids
    assert made.tolist() == IDS[:20] + list(want)
    assert gp.llm.generate(model, IDS[:20], 12, eos_token_id=want[3]).tolist() == IDS[:20] + list(want[:4])


def test_of_a_folder_with_pictures_the_text_is_read(path: Path, tmp_path: Path) -> None:
    """As a file, so by load() and by hand."""
    named = {f"language_model.{name}": values for name, values in tensors(CONFIG).items()}
    folder(tmp_path / "p", named | {"vision_model.weight": np.ones(3, np.float32)})
    (tmp_path / "p" / "config.json").write_text(json.dumps({"model_type": "llama4", "text_config": CONFIG}))
    with pytest.warns(UserWarning, match="left out: 1 tensors of vision_model"):
        model = gp.llm.Llama4Model.from_safetensors(tmp_path / "p")
    plain = gp.llm.Llama4Model.from_safetensors(path)
    assert model.forward(IDS[:9]).to_numpy().tobytes() == plain.forward(IDS[:9]).to_numpy().tobytes()
    with pytest.warns(UserWarning, match="left out: 1 tensors of vision_model"):
        loaded = gp.llm.load(tmp_path / "p", context=64, progress=False)
    want = gp.llm.load(path, context=64, progress=False).stream(IDS[:9], 5, ignore_eos=True).complete().token_ids
    assert loaded.stream(IDS[:9], 5, ignore_eos=True).complete().token_ids == want


def test_a_part_of_a_text_sees_its_own_chunk() -> None:
    config = gp.llm.Llama4Config(
        hidden_size=8, num_attention_heads=2, num_key_value_heads=1, head_dim=4, attention_chunk_size=6
    )
    random = np.random.default_rng(1)

    def weight(*shape: int) -> gp.GPUArray:
        return gp.from_numpy(random.standard_normal(shape).astype(np.float32))

    attention = gp.llm.Llama4Attention(weight(8, 8), weight(4, 8), weight(4, 8), weight(8, 8), config)
    rows, places = weight(9, 8), np.arange(4, 13, dtype=np.int32)
    whole = attention.forward(rows, gp.from_numpy(places)).to_numpy()
    for begin, end in ((0, 2), (2, 8), (8, 9)):  # positions 4 and 5, 6 to 11, 12
        own = attention.forward(rows[begin:end], gp.from_numpy(places[begin:end])).to_numpy()
        np.testing.assert_allclose(whole[begin:end], own, rtol=1e-5, atol=1e-5)


def test_a_configuration_is_read_from_json(path: Path, tmp_path: Path) -> None:
    config = gp.llm.Llama4Config.from_json(path / "config.json")
    assert (config.head_dim, config.attn_scale, config.no_rope_layers) == (16, 0.3, [1, 1, 0, 1])
    (tmp_path / "c.json").write_text(json.dumps({"text_config": {"hidden_size": 64}, "hidden_size": 1}))
    nested = gp.llm.Llama4Config.from_json(tmp_path / "c.json")
    assert (nested.hidden_size, nested.num_hidden_layers) == (64, 48)
    assert [nested.rotates(layer) for layer in range(4)] == [True, True, True, False]


def attention_of(weight: gp.GPUArray, config: gp.llm.Llama4Config) -> gp.llm.Llama4Attention:
    return gp.llm.Llama4Attention(weight, weight, weight, weight, config)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda model, _: model.forward([[1, 2]]), "must be the \\(S,\\) ids"),
        (lambda model, _: model.forward([99]), "from 0 to 98"),
        (lambda model, _: attention_of(gp.ones((3, 8)), model.config), "q_proj has shape"),
        (lambda _, path: gp.llm.Llama4Model.from_safetensors(path), "must be 'llama4_text'"),
    ],
)
def test_what_is_wrong_is_named(path: Path, wrong: Any, message: str) -> None:
    model = gp.llm.Llama4Model.from_safetensors(path)
    (path / "config.json").write_text(json.dumps({**CONFIG, "model_type": "llama"}))
    with pytest.raises((ShapeError, InvalidSpecError), match=message):
        wrong(model, path)
