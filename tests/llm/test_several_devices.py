"""Models over several simulated devices: which numbers each has, and their tokens beside those of one device."""

from __future__ import annotations

import numpy as np
import pytest
from alone import alone
from llm.several import SIMULATED, config_of, greedy, model

import pygpukit as gp
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.parallel.shard import Shard, check_division

CLEAR = 1e-3  # between the two largest logits: sums in another order do not turn it


@pytest.fixture(autouse=True)
def _four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYGPUKIT_SIM", raising=False)
    monkeypatch.setenv("PYGPUKIT_SIM_DEVICES", "4")


def same_model(*names: str) -> None:
    for name in names:
        seed, config = len(name), config_of(name)  # a draw could put two experts of a router next to each other
        rng = np.random.default_rng(seed)
        prompt = rng.integers(0, 99, int(rng.integers(2, 40))).tolist()
        whole = model(config, seed=seed)
        expected, (tokens, margins) = whole(prompt)[0].to_numpy(), greedy(whole, prompt)
        certain = next((i for i, margin in enumerate(margins) if margin < CLEAR), len(margins))
        divided = 2 if name != names[0] else [3, 1, 0, 2]
        for devices, way in ((divided, "tensor"), (2, "pipeline"))[: 1 + (name == names[-1])]:
            several = model(config, devices, way, seed)
            found = several(prompt)[0].to_numpy()
            assert np.abs(found - expected).max() <= (0 if way == "pipeline" else 1e-5 * np.abs(expected).max()), (
                name, devices, way, seed,
            )  # fmt: skip
            assert greedy(several, prompt)[0][:certain] == tokens[:certain], (name, devices, way, seed)


@SIMULATED
@pytest.mark.parametrize(
    "names",
    [["llama", "gpt2", "gpt_oss"], ["phi3", "gemma2", "mixtral", "llama4"]],
    ids=" ".join,
)
def test_tokens_are_those_of_one_device(names: list[str]) -> None:
    alone(__file__, "same_model", *names)


def pipelines() -> None:
    for name in ("mamba2", "olmo2"):  # whose layers are not divided
        config = config_of(name)
        assert greedy(model(config, 2, "pipeline"), [5, 60, 7])[0] == greedy(model(config), [5, 60, 7])[0]
        with pytest.raises(gp.InvalidSpecError, match=r'(give|or) parallel="pipeline"'):
            model(config, 2)


@SIMULATED
def test_layers_that_are_not_divided_make_pipelines() -> None:
    alone(__file__, "pipelines")


def test_shards_have_every_number_once() -> None:
    rng = np.random.default_rng()
    for _ in range(50):
        size, keys = int(rng.integers(2, 9)), int(rng.integers(1, 9))
        heads = size * keys * int(rng.integers(1, 4))
        config = TransformerConfig(
            vocab_size=int(rng.integers(size, 300)),
            hidden_size=64,
            num_layers=int(rng.integers(size, 20)),
            num_heads=heads,
            num_kv_heads=keys if size % keys == 0 or keys % size == 0 else heads,
            _head_dim=8,
            intermediate_size=8 * size * int(rng.integers(1, 5)),
        )
        check_division(config, size, "tensor", "model")
        shards = [Shard(index, size) for index in range(size)]
        for role, count in (
            ("q_proj", heads * 8),
            ("o_proj", heads * 8),
            ("up_proj", config.ffn_size),
            ("down_proj", config.ffn_size),
            ("lm_head", config.vocab_size),
        ):
            cuts = [shard.cut(role, config) for shard in shards]
            numbers = [n for cut in cuts if cut is not None for part in cut.parts for n in range(part.start, part.stop)]
            assert numbers == list(range(count)), role
        for shard in shards:  # each query head finds its key head
            own, cut = shard.config(config), shard.cut("k_proj", config)
            assert cut is not None and cut.parts[0].stop - cut.parts[0].start == own.kv_heads * 8
            first = shard.index * own.num_heads
            for head in range(own.num_heads):
                theirs = (first + head) // config.num_kv_groups
                assert cut.parts[0].start // 8 + head // own.num_kv_groups == theirs
        layers = [number for index in range(size) for number in Shard(index, size, "pipeline").layers(config)]
        assert layers == list(range(config.num_layers))
