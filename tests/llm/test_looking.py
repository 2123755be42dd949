"""Attention weights that are looked at are those that the model uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llm import tiny

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError
from pygpukit.nn.attention.layer import Attention


@pytest.mark.parametrize("name", sorted({*tiny.CONFIGS} - {"mamba2"}))
def test_the_weights_give_what_attention_gave(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model(name)
    layer = len(model.blocks) - 1
    outputs: list[np.ndarray] = []
    values: list[np.ndarray] = []
    attend = Attention.attend

    def noted(self: Any, rows: Any, cache: Any, buffers: Any) -> None:
        attend(self, rows, cache, buffers)
        outputs.append(buffers.out.to_numpy().astype(np.float64))
        values.append(cache.v[0, :, :19].clone().to_numpy().astype(np.float64))

    monkeypatch.setattr(Attention, "attend", noted)
    ids = [int(one) for one in np.random.default_rng(3).integers(0, model.config.vocab_size, 19)]
    weights = gp.llm.attention(model, ids, layer)
    heads = model.config.num_heads
    assert weights.shape == (heads, 19, 19) and weights.dtype == np.float32
    sums = weights.sum(axis=2)
    assert sums.max() < 1 + 1e-5 and sums.min() < 0.99 if name == "gpt_oss" else np.allclose(sums, 1, atol=1e-5)
    assert not np.triu(weights[0], 1).any()
    v = values[-1]
    repeated = np.repeat(v, heads // v.shape[0], axis=0)
    expected = np.einsum("hts,hsd->thd", weights.astype(np.float64), repeated).reshape(19, -1)
    assert np.allclose(outputs[-1], expected, atol=1e-4)


def test_looking_changes_no_answer_and_refuses_what_is_not_there() -> None:
    model = tiny.model(sorted(tiny.CONFIGS)[0])
    ids = [1, 2, 3, 4, 5]
    before = model.stream(ids, 8).complete().token_ids
    gp.llm.attention(model, [1, 2, 9], 0)
    assert model.stream(ids, 8).complete().token_ids == before
    for layer in (-1, len(model.blocks)):
        with pytest.raises(InvalidSpecError, match="there is no layer"):
            gp.llm.attention(model, ids, layer)
    with pytest.raises(InvalidSpecError, match="up to 1024"):
        gp.llm.attention(model, [1] * 1025, 0)


@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe"])
def test_tokens_go_to_experts_whoever_is_beside_them(name: str) -> None:
    model = tiny.model(name)
    config = model.config
    ids = [int(one) for one in np.random.default_rng(3).integers(0, config.vocab_size, 19)]
    found = gp.llm.routing(model, ids)
    assert sorted(found) == [number for number in range(config.num_layers) if config.is_sparse(number)]
    begun = gp.llm.routing(model, ids[:7])
    for number, (experts, weights) in found.items():
        assert experts.shape == weights.shape == (19, config.num_experts_per_tok)
        assert all(len(set(row)) == len(row) for row in experts.tolist())
        assert (experts >= 0).all() and (experts < config.num_experts).all()
        assert np.allclose(weights.sum(axis=1), 1, atol=1e-6) and (np.diff(weights, axis=1) <= 0).all()
        np.testing.assert_array_equal(begun[number][0], experts[:7])
        np.testing.assert_array_equal(begun[number][1], weights[:7])


def test_a_model_without_experts_says_so() -> None:
    with pytest.raises(InvalidSpecError, match="no mixtures of experts"):
        gp.llm.routing(tiny.model("llama"), [1, 2])
