"""Plugins in language models: their norms replaced, described, failing; architectures by their model_type."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from llm.tiny import CONFIGS, MemoryCheckpoint, model, tensors
from plugins.plugin_files import distribution

import pygpukit as gp
from pygpukit.llm.weights import from_checkpoint

IDS = [1, 5, 2, 9, 4]
ARCHITECTURES = """
from dataclasses import replace
from pygpukit.llm.models.llama import LLAMA
OURS = replace(LLAMA, name="ours", recognised_by=())
OTHER = 3
"""


def loaded(name: str, replace: object, **changes: object) -> gp.llm.CausalTransformerModel:
    config = {**CONFIGS[name], **changes}
    return from_checkpoint(MemoryCheckpoint(config, tensors(config, 0)), dtype="float32", replace=replace)  # type: ignore[arg-type]


def rmsnorm(change: Callable[[gp.GPUArray], gp.GPUArray], name: str = "changed") -> gp.plugins.Operation:
    def function(
        x: gp.GPUArray, gamma: gp.GPUArray, eps: float = 1e-5, *, out: gp.GPUArray | None = None
    ) -> gp.GPUArray:
        result = change(gp.rmsnorm(x, gamma, eps))
        if out is None:
            return result
        out[...] = result
        return out

    return gp.plugins.Operation("rmsnorm", function, 1e-4, name=name)


def logits(one: gp.llm.CausalTransformerModel) -> np.ndarray:
    hidden, _ = one(IDS)
    return one.get_logits(hidden).to_numpy()


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma2", "olmo2", "mixtral"])
def test_a_models_norms_are_replaced_and_it_says_so(name: str) -> None:
    calls: list[tuple[int, ...]] = []

    def counted(result: gp.GPUArray) -> gp.GPUArray:
        calls.append(result.shape)
        return result

    plain, replaced = model(name), loaded(name, {"rmsnorm": rmsnorm(counted)})
    expected = plain.generate(IDS, max_new_tokens=6, temperature=0.0)
    assert replaced.generate(IDS, max_new_tokens=6, temperature=0.0) == expected
    blocks = replaced.blocks
    per_pass = sum(
        norm is not None
        for block in blocks
        for norm in (block.attn_norm, block.mlp_norm, block.post_attn_norm, block.post_mlp_norm)
    )
    assert len(calls) >= 2 * (per_pass + 1)  # of the prompt, and of a step, which a graph repeats
    assert "rmsnorm by changed (other bits, at most 0.0001 apart)" in repr(replaced)
    assert "replaced: rmsnorm by changed" in str(replaced.describe())
    assert plain.replaced == {} and "changed" not in repr(plain)


def test_what_the_operation_gives_is_what_the_model_computes_with() -> None:
    ones = loaded("llama", {"rmsnorm": rmsnorm(lambda x: gp.zeros_like(x))})
    token = ones.generate(IDS, max_new_tokens=4, temperature=0.0)
    assert token == [*IDS, 0, 0, 0, 0]  # logits of zeros: the first of all


def test_a_model_refuses_what_it_has_no_place_for() -> None:
    softmax = gp.plugins.Operation("softmax", lambda x, axis=-1, *, out=None: x, "exact")
    for choice in ({"softmax": softmax}, {"rmsnorm": rmsnorm(gp.neg), "softmax": softmax}):
        with pytest.raises(gp.InvalidSpecError, match=r"tiny: replace=.*this model can replace rmsnorm"):
            loaded("llama", choice)
    with pytest.raises(gp.InvalidSpecError, match="this model can replace layernorm"):
        loaded("gpt2", {"rmsnorm": rmsnorm(gp.neg)})
    with pytest.raises(gp.InvalidSpecError, match="no such plugin"):
        gp.llm.load("no-such-model", replace="no-such-plugin")


def test_a_plugin_that_raises_names_itself_and_other_models_go_on() -> None:
    broken = [True]

    def fails(result: gp.GPUArray) -> gp.GPUArray:
        if broken[0]:
            raise OSError("the plugin's library is gone")
        return result

    plain, replaced = model("llama"), loaded("llama", {"rmsnorm": rmsnorm(fails, "fragile")})
    expected = plain.generate(IDS, max_new_tokens=3, temperature=0.0)
    with pytest.raises(
        gp.PluginError, match="plugin 'fragile', in the place of rmsnorm: OSError: the plugin's library"
    ):
        replaced.generate(IDS, max_new_tokens=3, temperature=0.0)
    assert plain.generate(IDS, max_new_tokens=3, temperature=0.0) == expected
    broken[0] = False
    assert replaced.generate(IDS, max_new_tokens=3, temperature=0.0) == expected


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {"ours": "our_models:OURS", "other": "our_models:OTHER", "named": "our_models:OURS"}
    distribution(tmp_path, "our_models", {"pygpukit.models": entries}, ARCHITECTURES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "our_models", raising=False)


def test_an_architecture_of_a_plugin_is_taken_by_its_model_type(installed: None) -> None:
    config = {**CONFIGS["llama"], "model_type": "ours"}
    ours = from_checkpoint(MemoryCheckpoint(config, tensors(CONFIGS["llama"], 0)), dtype="float32")
    assert ours.generate(IDS, max_new_tokens=6, temperature=0.0) == model("llama").generate(
        IDS, max_new_tokens=6, temperature=0.0
    )
    assert ours.spec is not None and ours.spec.name == "ours"


@pytest.mark.parametrize(
    ("model_type", "error", "message"),
    [
        (
            "other",
            gp.PluginError,
            "plugin 'other' .pygpukit.models. of our_models 1.0: our_models:OTHER is 3; it must be",
        ),
        ("named", gp.PluginError, "an Architecture whose name is 'named'"),
        ("nobodys", gp.InvalidSpecError, "models of the type 'nobodys' are not there yet"),
    ],
)
def test_an_architecture_that_is_none_is_refused(
    installed: None, model_type: str, error: type[Exception], message: str
) -> None:
    config = {**CONFIGS["llama"], "model_type": model_type}
    with pytest.raises(error, match=message):
        from_checkpoint(MemoryCheckpoint(config, tensors(CONFIGS["llama"], 0)), dtype="float32")
