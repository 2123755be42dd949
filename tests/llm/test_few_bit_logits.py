"""Models of few bits by kernels, of every kind: no further from float64 than twice what 16 bits are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from llm import few_bits, reference
from llm.stepping import logits_of
from llm.tiny import MemoryCheckpoint

from pygpukit.llm.model import CausalTransformerModel
from pygpukit.llm.weights import from_checkpoint
from pygpukit.models.quantised.quantise import NAMES
from pygpukit.nn.linear import in_blocks, in_tiles
from pygpukit.nn.linear.blocks import Blocks, Part
from pygpukit.ops import host

# A case compiles kernels for a quarter of a minute.
pytestmark = [pytest.mark.slow, pytest.mark.turns(150), pytest.mark.usefixtures("quickly_compiled", "kernels_on_sim")]

_PROMPT = [5, 30, 7, 21, 9]


def parts(model: CausalTransformerModel) -> list[Part]:
    """What the products of a model's layers multiply with."""
    weights = [linear.weight for block in model.blocks for linear in block.linears]
    assert weights and all(isinstance(weight, Blocks) for weight in weights)
    return [part for weight in weights for part in weight.parts]  # type: ignore[union-attr]


def check(name: str, source: str, path: Path) -> CausalTransformerModel:
    """The logits behind a prompt, and behind a token more."""
    config = few_bits.small(name)
    checkpoint = few_bits.checkpoint(source, config, path / "m")
    ours = from_checkpoint(checkpoint, dtype="bfloat16", context=64)
    found, (token, _) = logits_of(ours, _PROMPT, 1)
    values = few_bits.numbers(checkpoint)
    said = [*_PROMPT, token]
    exact = reference.logits(config, values, said)[-2:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "_through_kernels", False)
        plain = from_checkpoint(MemoryCheckpoint(config, values), dtype="bfloat16", context=64)  # type: ignore[arg-type]
        rounded = np.concatenate([logits_of(plain, tokens, 0)[0] for tokens in (_PROMPT, said)])
    error, allowed = np.abs(found - exact).max(), 2 * np.abs(rounded - exact).max()
    assert 0 < allowed <= 0.05 * np.abs(exact).max()
    assert error <= allowed, f"{error} of {np.abs(exact).max()}, and {allowed / 2} in bfloat16"
    return ours


@pytest.mark.parametrize("kind", in_blocks.KINDS)
def test_in_blocks_of_the_file(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_tiles, "takes", lambda *_: False)
    found = parts(check("llama", kind, tmp_path))
    assert {(part.kind, part.tiled) for part in found} == {(kind, False)}


@pytest.mark.parametrize("kind", in_tiles.KINDS)
def test_by_tiles(kind: str, tmp_path: Path) -> None:
    found = parts(check("llama", kind, tmp_path))
    assert {(part.kind, part.tiled) for part in found} == {(kind, True)}


@pytest.mark.parametrize("kind", in_blocks.KINDS)
def test_of_experts(kind: str, tmp_path: Path) -> None:
    ours = check("mixtral", kind, tmp_path)
    experts = ours.blocks[0].mlp.experts  # type: ignore[union-attr]
    assert {part.kind for linear in experts.linears for part in linear.weight.parts} == {kind}
    assert not any(part.tiled for linear in experts.linears for part in linear.weight.parts)


@pytest.mark.parametrize("layout", few_bits.FOLDERS)
def test_of_folders(layout: str, tmp_path: Path) -> None:
    ours = check("llama", layout, tmp_path)
    assert parts(ours) and not ours.expanded
    assert bool(ours.reordered) == (layout in ("gptq", "gptq of 8"))


@pytest.mark.parametrize("name", ["llama", "mixtral"])
@pytest.mark.parametrize("quantize", NAMES)
def test_rounded_at_load(name: str, quantize: str, tmp_path: Path) -> None:
    assert not check(name, quantize, tmp_path).expanded
