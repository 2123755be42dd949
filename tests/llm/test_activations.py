"""load(activations="int8"): a folder whose activations are rounded to int8, too; beside the formula in float64."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm.stepping import logits_of
from llm.test_same_answers import WAYS, asked
from llm.tiny_weights import CONFIGS, tensors
from models.test_scaled import folder

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.weights import load
from pygpukit.nn.linear.int8 import LinearInt8

CONFIG = {**CONFIGS["llama"], "hidden_size": 64, "intermediate_size": 96}
PROMPT = [5, 9, 60, 2, 17]


def int8_folder(
    path: Path,
    static: bool = False,
    inputs: dict[str, Any] | None = None,
    without: tuple[str, ...] = (),
    layers: int = 2,
    **more: Any,
) -> Path:
    """compressed-tensors' int-quantized: weights of int8 by row. inputs: fields of input_activations."""
    stored: dict[str, Any] = {}
    config = {**CONFIG, "num_hidden_layers": layers}
    for name, value in tensors(config).items():
        if "_proj" not in name:
            stored[name] = value
            continue
        scale = (np.abs(value).max(1, keepdims=True) / 127.5).astype(np.float32)
        stored[name] = np.rint(np.clip(value / scale, -128, 127)).astype(np.int8)
        stored[f"{name}_scale"] = scale
        if static:
            stored[name.replace("weight", "input_scale")] = np.full(1, 0.03, np.float32)
    folder(path, {**{name: value for name, value in stored.items() if name not in without}, **more})
    weights = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"}
    rows = {"num_bits": 8, "type": "int", "symmetric": True, "dynamic": not static}
    rows |= {"strategy": "tensor" if static else "token", **(inputs or {})}
    method = {"quant_method": "compressed-tensors", "format": "int-quantized"}
    method |= {"config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": rows}}}
    (path / "config.json").write_text(json.dumps({**config, "quantization_config": method}))
    return path


def rounded_products(patch: pytest.MonkeyPatch, scale: float | None) -> None:
    """Products of a model's values with rows that are rounded and multiplied in float64."""

    def project(
        self: LinearInt8, x: gp.GPUArray, out: gp.GPUArray, start: Any, *, norm: Any = None, **how: Any
    ) -> None:
        from pygpukit._core import native
        from pygpukit.nn.linear.layer import apply_on_host
        from pygpukit.ops import host

        def compute() -> None:
            rows = host.values(x) if norm is None else norm.on_host(host.values(x))
            own = np.abs(rows).max(1, keepdims=True) / np.float32(127.5) if scale is None else np.float32(scale)
            codes = np.rint(np.clip(rows / own, -128, 127)).astype(np.float64)
            weight = self.weight.to_numpy().astype(np.float64)  # type: ignore[union-attr]
            result = codes * np.asarray(own, np.float64) @ weight.T
            epilogue = how.get("epilogue", "store")
            result = apply_on_host(result.astype(np.float32), epilogue)
            host.store(out, result + host.values(out) if epilogue == "add" else result)

        native.host_launch("reference", compute, [x, out, *([] if norm is None else norm.arrays)])

    patch.setattr(LinearInt8, "project", project)


@pytest.mark.parametrize("static", [False, True])
def test_logits_are_those_of_the_formula(tmp_path: Path, static: bool) -> None:
    path = int8_folder(tmp_path / "m", static)
    ours = load(path, activations="int8", context=64, progress=False)
    block = ours.blocks[0]
    linears = [block.attn.qkv_proj, block.attn.o_proj, *block.mlp.linears]  # type: ignore[union-attr]
    assert all(isinstance(linear, LinearInt8) for linear in linears) and not ours.expanded
    assert "int8" in ours.describe().bytes_by_kind
    logits, tokens = logits_of(ours, PROMPT, 3)
    with pytest.MonkeyPatch.context() as patch:
        rounded_products(patch, 0.03 if static else None)
        expected, others = logits_of(load(path, activations="int8", context=64, progress=False), PROMPT, 3)
    assert tokens == others
    np.testing.assert_allclose(logits, expected, atol=1e-4 * np.abs(expected).max())
    plain, _ = logits_of(load(path, context=64, progress=False), PROMPT, 3)
    change = np.abs(logits - plain)[0].max()
    assert change > 0  # rows of activations are rounded
    assert static or change < 0.1 * np.abs(plain).max()


@pytest.mark.parametrize("way", ["together", "chunks of a few tokens"])
def test_an_answer_has_the_same_bits_in_company(tmp_path: Path, way: str) -> None:
    network = load(int8_folder(tmp_path / "m"), activations="int8", context=128, progress=False).engine.network
    numbers = [0, 1, 3]
    alone: dict[int, Any] = {}
    for number in numbers:
        alone |= asked(network, [number], blocks=20, max_rows=1, budget=300)
    assert asked(network, numbers, **WAYS[way]) == alone


@pytest.mark.parametrize(
    "inputs",
    [
        {"symmetric": False},
        {"num_bits": 4},
        {"type": "float"},
        {"strategy": "group"},
        {"dynamic": "local"},
        {"strategy": ["token"]},
        {"dynamic": {}},
    ],
)
def test_activations_of_other_kinds_are_refused(tmp_path: Path, inputs: dict[str, Any]) -> None:
    path = int8_folder(tmp_path / "m", inputs=inputs)
    with pytest.raises(InvalidSpecError, match="activations='int8' needs weights of int8"):
        load(path, activations="int8", progress=False)
    assert load(path, context=64, progress=False).expanded  # with rows as they are, as before


@pytest.mark.parametrize("scale", [np.zeros(1), np.full(1, -1.0), np.full(1, np.nan), np.ones(2), None])
def test_scales_of_rows_are_positive_numbers(tmp_path: Path, scale: np.ndarray[Any, Any] | None) -> None:
    name = "model.layers.0.self_attn.k_proj.input_scale"
    damaged = {} if scale is None else {name: scale.astype(np.float32)}
    path = int8_folder(tmp_path / "m", static=True, without=(name,), **damaged)
    with pytest.raises(InvalidSpecError, match=r"k_proj.*16 bits"):
        load(path, activations="int8", progress=False)


def test_one_scale_for_rows_that_several_weights_take(tmp_path: Path) -> None:
    other = {"model.layers.1.mlp.up_proj.input_scale": np.full(1, 0.04, np.float32)}
    path = int8_folder(tmp_path / "m", static=True, **other)
    with pytest.raises(InvalidSpecError, match=r"up_proj.* 0\.03 and 0\.04"):
        load(path, activations="int8", progress=False)


def test_models_without_such_weights_are_refused(tmp_path: Path) -> None:
    folder(tmp_path / "m", tensors(CONFIG))
    (tmp_path / "m" / "config.json").write_text(json.dumps(CONFIG))
    with pytest.raises(InvalidSpecError, match="has no such weights; load it without activations="):
        load(tmp_path / "m", activations="int8", progress=False)
    with pytest.raises(ValueError, match="activations='fp8'; give 'int8' or None"):
        load(tmp_path / "m", activations="fp8", progress=False)
