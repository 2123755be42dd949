"""The documented classes of what a config.json says of few bits, pruning and sparsity: their fields by values."""

from __future__ import annotations

from typing import Any

import pytest

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError

llm = gp.llm


def test_fp8() -> None:
    method = {
        "quant_method": "fp8",
        "fmt": "e5m2",
        "weight_block_size": [64, 32],
        "modules_to_not_convert": ["lm_head"],
    }
    assert llm.FP8QuantConfig.from_config({"quantization_config": method}) == llm.FP8QuantConfig(
        "fp8", "e5m2", (64, 32), ["lm_head"]
    )
    plain = llm.FP8QuantConfig.from_config({"quantization_config": {"quant_method": "fp8"}})
    assert plain == llm.FP8QuantConfig("fp8", "e4m3", (128, 128), [])
    for config in ({}, {"quantization_config": None}, {"quantization_config": {"quant_method": "gptq"}}):
        assert llm.FP8QuantConfig.from_config(config) is None


def test_quantised_in_training() -> None:
    wrote = {
        "producer": {"name": "modelopt", "version": "0.29"},
        "quantization": {
            "quant_algo": "NVFP4", "group_size": 16, "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"],
        },
    }  # fmt: skip
    assert llm.QATQuantConfig.from_config(wrote) == llm.QATQuantConfig(
        "modelopt", "NVFP4", 16, "FP8", ["lm_head"], "modelopt", "0.29"
    )
    method = {"quant_method": "gptq", "bits": 4, "group_size": -1, "modules_to_not_convert": ["a"]}
    assert llm.QATQuantConfig.from_config({"quantization_config": method}) == llm.QATQuantConfig(
        "gptq", "4", -1, None, ["a"], None, None
    )
    bare = llm.QATQuantConfig.from_config({"quantization_config": {"quant_method": "qat"}})
    assert bare is not None and (bare.quant_algo, bare.group_size) == ("unknown", 128)
    assert llm.QATQuantConfig.from_config({"quantization_config": {"quant_method": "fp8"}}) is None
    assert llm.QATQuantConfig.from_config({}) is None


def test_pruning() -> None:
    heads = llm.PruningConfig.from_config({"pruned_heads": {"0": [1, 2], "11": []}})
    assert heads == llm.PruningConfig("structured", 0.0, {0: [1, 2], 11: []}, True)
    own = {"pruning_type": "movement", "target_sparsity": 0.25, "is_structured": False}
    assert llm.PruningConfig.from_config({"pruning_config": own, "pruned_heads": {}}) == llm.PruningConfig(
        "movement", 0.25, None, False
    )
    other = llm.PruningConfig.from_config({"pruning_config": {"method": "l1", "sparsity": 1, "structured": True}})
    assert other == llm.PruningConfig("l1", 1.0, None, True)
    assert llm.PruningConfig.from_config({"pruned_heads": {}}) is None


def test_sparsity() -> None:
    two = llm.SparsityConfig.from_config({"sparsity_config": {"pattern": "2:4", "sparsity": 0.5}})
    assert two == llm.SparsityConfig("2:4", None, 0.5) and two.is_2_4_sparse()
    blocks = llm.SparsityConfig.from_config(
        {"sparsity_config": {"sparsity_pattern": "block", "block_size": [4, 8], "density": 0.125}}
    )
    assert blocks == llm.SparsityConfig("block", (4, 8), 0.125) and not blocks.is_2_4_sparse()
    within = llm.SparsityConfig.from_config({"quantization_config": {"sparsity_pattern": "2:4"}})
    assert within == llm.SparsityConfig("2:4", None, 0.5)
    assert llm.SparsityConfig.from_config({"quantization_config": {}}) is None


def test_all_of_them() -> None:
    config: dict[str, Any] = {
        "quantization_config": {"quant_method": "fp8"},
        "sparsity_config": {"pattern": "2:4"},
        "pruned_heads": {"3": [0]},
    }
    info = llm.ModelOptimizationInfo.from_config(config)
    assert info.has_any_optimization() and info.summary() == "FP8(e4m3), Pruned(structured), Sparse(2:4)"
    config["quantization_config"] = {"quant_method": "awq", "bits": 4}
    assert llm.ModelOptimizationInfo.from_config(config).summary() == "QAT(4), Pruned(structured), Sparse(2:4)"
    nothing = llm.ModelOptimizationInfo.from_config({})
    assert not nothing.has_any_optimization() and nothing.summary() == "None"


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"quantization_config": 4}, "quantization_config is 4, must be an object"),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128]}}, r"\[128\], must be two whole"),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [0, 1]}}, "two whole numbers above 0"),
        ({"quantization_config": {"quant_method": "awq", "group_size": "many"}}, "group_size is 'many'"),
        ({"quantization_config": {"quant_method": "fp8", "modules_to_not_convert": "a"}}, "must be a list of texts"),
        ({"pruned_heads": {"first": [1]}}, "must give lists of heads by layer"),
        ({"pruning_config": {"sparsity": 2}}, "sparsity is 2, must be a number of 0 to 1"),
        ({"sparsity_config": {"density": "half"}}, "density is 'half'"),
    ],
)
def test_fields_of_another_kind_are_named(config: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidSpecError, match=named):
        llm.ModelOptimizationInfo.from_config(config)
