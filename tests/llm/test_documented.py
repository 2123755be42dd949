"""The documented names of models: what they do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from llm import tiny
from llm.tiny_weights import CONFIGS, tensors

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    safetensors = pytest.importorskip("safetensors.numpy")
    safetensors.save_file(tensors(CONFIGS["llama"]), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama"]))
    return tmp_path


def test_the_documented_example(folder: Path) -> None:
    st = gp.llm.SafeTensorsFile(str(folder / "model.safetensors"))
    spec = gp.llm.detect_model_spec(st.tensor_names)
    assert spec is gp.llm.LLAMA_SPEC
    model = gp.llm.load_model_from_safetensors(folder, dtype="float16", spec=spec)
    output_ids = model.generate([1, 2, 3, 4], max_new_tokens=32)
    assert output_ids[:4] == [1, 2, 3, 4]
    assert len(output_ids) == 36
    model.init_decode_graph(max_seq_len=512)
    kv = model.snapshot_kv_cache()
    model.restore_kv_cache(kv)
    assert model.generate([1, 2, 3, 4], 8, temperature=0.0) == model.generate([1, 2, 3, 4], 8, temperature=0.0)
    model.init_jacobi_decode(lookahead_k=4, max_seq_len=512)


def test_a_call_gives_the_last_layers_output_of_every_token() -> None:
    model = tiny.model("qwen2")
    prompt = [int(x) for x in np.random.default_rng(2).integers(0, 99, 300)]
    hidden, past = model(prompt)
    assert (hidden.shape, past) == ((300, 32), None)
    stream = model.stream(prompt, 1, top=2)
    token = next(stream)
    logits = model.get_logits(hidden[299:]).to_numpy()[0]
    assert int(logits.argmax()) == token.token_id
    with pytest.raises(InvalidSpecError, match="use_cache"):
        model(prompt, use_cache=True)


def test_rotation_on_the_host_is_the_models() -> None:
    cos, sin = gp.llm.precompute_freqs_cis(16, 9)
    q, k = np.random.default_rng(0).standard_normal((2, 9, 3, 16)).astype(np.float32)
    turned = gp.llm.apply_rotary_pos_emb_numpy(q, k, cos, sin)
    ours = [gp.from_numpy(x) for x in (q, k)]
    gp.rope_inplace(*ours, gp.from_numpy(cos), gp.from_numpy(sin))
    for a, b in zip(turned, ours, strict=True):
        np.testing.assert_allclose(a, b.to_numpy(), atol=1e-6)


def test_repacking_and_sampling_on_the_host() -> None:
    model = tiny.model("gpt2")
    before = model.generate([1, 2], 5, temperature=0.0)
    gp.llm.repack_model_weights(model)
    assert model.generate([1, 2], 5, temperature=0.0) == before
    assert gp.llm.sample_token(np.array([0.0, 3.0, 1.0]), temperature=0.0) == 1
