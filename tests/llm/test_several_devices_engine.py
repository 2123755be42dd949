"""Models over several simulated devices: batches, failures, memory, weights of few bits, and what is refused."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
from alone import alone
from llm.several import SIMULATED, config_of, greedy, model
from llm.test_models_in_blocks import KINDS, BlocksCheckpoint
from llm.tiny import MemoryCheckpoint
from llm.tiny_weights import tensors

import pygpukit as gp
from pygpukit.llm.model import CausalTransformerModel
from pygpukit.llm.parallel import places_of
from pygpukit.llm.weights import from_checkpoint
from pygpukit.nn.parallel.network import ParallelTransformer


@pytest.fixture(autouse=True)
def _four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYGPUKIT_SIM", raising=False)
    monkeypatch.setenv("PYGPUKIT_SIM_DEVICES", "4")


def batches() -> None:
    rng = np.random.default_rng()
    prompts = [rng.integers(0, 99, n).tolist() for n in (3, 70, 1, 130)]
    settings = [
        {},
        {"temperature": 1.0, "seed": 5},
        {"presence_penalty": 0.7},
        {"top_k": 5, "temperature": 0.7, "seed": 1},
    ]

    def answer(model: CausalTransformerModel, number: int, **options: Any) -> list[tuple[int, float | None]]:
        chosen = settings[number % len(settings)]
        stream = model.stream(prompts[number], max_new_tokens=6, top=0, ignore_eos=True, **chosen, **options)
        return [(token.token_id, token.logprob) for token in stream]

    for way in ("tensor", "pipeline"):
        first, second = (model(config_of("llama"), 2, way, slots=4) for _ in range(2))
        alone_ = [answer(first, number) for number in range(len(prompts))]
        assert first.engine.loop.scheduler.budget == (2304 if way == "tensor" else 768)
        with ThreadPoolExecutor(len(prompts) + 1) as threads:
            vectors = threads.submit(second.embed, prompts)  # passes beside the steps
            found = list(threads.map(partial(answer, second), range(len(prompts))))
        assert found == alone_  # to the bit, in a batch and in another run
        assert np.array_equal(vectors.result(), first.embed(prompts))
        again = [answer(second, number) for number in range(len(prompts))]  # with what the cache has of them
        assert again == alone_
        plain = first.generate_batch(prompts, max_new_tokens=5, ignore_eos=True)  # steps ahead
        drafted = second.generate_batch(prompts, max_new_tokens=5, ignore_eos=True, speculate="ngram")
        assert [one.token_ids for one in plain] == [one.token_ids for one in drafted]


@SIMULATED
def test_an_answer_has_the_same_bits_in_every_batch_and_run() -> None:
    alone(__file__, "batches")


def held(device: int) -> int:
    """Bytes of all arrays on a device."""
    with gp.cuda.Device(device):
        return int(gp.memory.stats()["used"])


def broken() -> None:
    several = model(config_of("llama"), 2)
    tokens = greedy(several, [1, 2, 3], 4)[0]
    network = several.engine.network
    assert isinstance(network, ParallelTransformer)
    block, prompt = network.parts[1].blocks[1], [1, 2, 3, 4, 5, 6]
    forward, used = block.forward, list[list[int]]()

    def refuse(*_: Any) -> None:
        raise ZeroDivisionError("as a test wants it")

    for _ in range(2):
        block.forward = refuse  # type: ignore[method-assign]
        with pytest.raises(ZeroDivisionError, match="as a test wants it"):
            several.generate(prompt, max_new_tokens=5)
        with pytest.raises(ZeroDivisionError, match="as a test wants it"):
            several(prompt)
        block.forward = forward  # type: ignore[method-assign]
        assert greedy(several, [1, 2, 3], 4)[0] == tokens  # it has recovered
        gc.collect()
        used.append([held(device) for device in range(2)])
    assert used[0] == used[1]  # and keeps nothing of what was broken off
    del several, network, block, forward
    gc.collect()
    assert all(held(device) < before / 20 for device, before in enumerate(used[1]))


@SIMULATED
def test_a_device_that_fails_ends_the_answer_and_the_next_one_is_right() -> None:
    alone(__file__, "broken")


def few_bits() -> None:
    config = config_of("qwen2", hidden_size=64, tie_word_embeddings=True)
    whole, several = (
        from_checkpoint(BlocksCheckpoint(config, KINDS), dtype="float32", places=places_of(devices, "tensor"))
        for devices in (None, 2)
    )
    prompt = np.random.default_rng().integers(0, 99, 11).tolist()
    expected, found = (one(prompt)[0].to_numpy() for one in (whole, several))
    assert np.abs(found - expected).max() <= 1e-3 * np.abs(expected).max()  # products of blocks round on their way
    held, parts = whole.describe().nbytes, [part.embed_tokens.nbytes for part in several.engine.network.parts]
    assert sum(parts) == whole.embed_tokens.nbytes
    said = several.describe()
    assert list(said.device_bytes) == [0, 1] and sum(said.device_bytes.values()) == said.nbytes
    assert held < said.nbytes < 1.1 * held and max(said.device_bytes.values()) < 0.6 * held  # norms are on both
    assert "over devices: " in repr(said) and said.kv_token_bytes == whole.describe().kv_token_bytes
    with pytest.raises(gp.InvalidSpecError, match=r"over 4 devices the weight '.*_proj.weight' of Q.*_0 .* 32 columns"):
        from_checkpoint(BlocksCheckpoint(config, KINDS), dtype="float32", places=places_of(4, "tensor"))


@SIMULATED
def test_weights_of_few_bits_are_divided_between_their_blocks() -> None:
    alone(__file__, "few_bits")


def refusals() -> None:
    class Unread(MemoryCheckpoint):
        def read(self, name: str, dtype: Any = None) -> np.ndarray:
            raise AssertionError(f"{name} was read")

    config = config_of("llama", num_attention_heads=6, num_key_value_heads=3, head_dim=8)
    checkpoint = Unread(config, tensors(config, 0))
    for devices, message in ((4, r"6 heads do not divide evenly; give one device$"), (2, r"3 key heads neither")):
        with pytest.raises(gp.InvalidSpecError, match=message) as refused:
            from_checkpoint(checkpoint, dtype="float32", places=places_of(devices, "tensor"))
        assert refused.value.field == "devices"
    fitting = Unread(config_of("llama"), tensors(config_of("llama"), 0))
    for options in ({"weights_memory": "1MB"}, {"activations": "int8"}):
        with pytest.raises(gp.InvalidSpecError):
            from_checkpoint(fitting, dtype="float32", places=places_of(2, "tensor"), **options)
    for devices in (0, [], [1, 1], 2.5, "cuda:1"):
        with pytest.raises((gp.InvalidSpecError, TypeError)):
            places_of(devices, "tensor")
    for devices in (5, [4]):
        with pytest.raises(gp.DeviceMismatchError):
            places_of(devices, "tensor")
    with pytest.raises(gp.InvalidSpecError, match="parallel='layers'; give one of 'tensor', 'pipeline'"):
        places_of(2, "layers")
    several = model(config_of("llama"), [2, 3])
    for ask in (lambda: several.load_adapter("one", "nowhere"), lambda: gp.llm.attention(several, [1, 2], 0)):
        with pytest.raises(gp.InvalidSpecError, match="needs a model on one device"):
            ask()
    mixed = model(config_of("mixtral"), 2)
    with pytest.raises(gp.InvalidSpecError, match="needs a model on one device"):
        gp.llm.routing(mixed, [1, 2])
    elsewhere = model(config_of("llama"), [3])
    assert elsewhere.embed_tokens.device == 3 and several.embed_tokens.device == 2
    whole = model(config_of("llama"))
    assert greedy(elsewhere, [1, 2])[0] == greedy(whole, [1, 2])[0]
    assert np.array_equal(elsewhere.embed([[1, 2, 3]]), whole.embed([[1, 2, 3]]))
    for drafts in (elsewhere, several):  # on another device, or several
        answer = whole.generate_batch(
            [[1, 2]], 8, ignore_eos=True, speculate=gp.llm.Speculation("model", model=drafts, always=True)
        )
        assert answer[0].token_ids == greedy(whole, [1, 2])[0]
    layers = gp.llm.Speculation("layers", layers=1, always=True)
    answer = several.generate_batch([[1, 2]], 8, ignore_eos=True, speculate=layers)
    assert answer[0].token_ids == greedy(several, [1, 2])[0] and answer[0].figures.drafted
    kept = several.snapshot_kv_cache()
    several.restore_kv_cache(kept)
    assert all(
        np.array_equal(a, b)
        for one, two in zip(kept, several.snapshot_kv_cache(), strict=True)
        for a, b in zip(one, two, strict=True)
    )


@SIMULATED
def test_what_does_not_divide_is_refused_before_weights_are_read() -> None:
    alone(__file__, "refusals")
