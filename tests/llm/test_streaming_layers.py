"""Layers that stream: bits, memory and failures of a model that is larger than what it may have of the device."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm import tiny
from llm.stepping import logits_of
from llm.test_activations import int8_folder
from llm.test_models_in_blocks import KINDS, BlocksCheckpoint
from llm.tiny_weights import CONFIGS, tensors
from memory.test_transfer_engine import blocked  # noqa: F401 - a fixture

import pygpukit as gp
from pygpukit.llm import weights
from pygpukit.llm.layer_weights import LayerWeights
from pygpukit.llm.model import CausalTransformerModel
from pygpukit.llm.models import llama
from pygpukit.llm.weights import from_checkpoint
from pygpukit.memory import Transfer, TransferEngine
from pygpukit.nn.attention.layer import Attention
from pygpukit.nn.block import TransformerBlock
from pygpukit.nn.linear.blocks import Blocks, Part
from pygpukit.nn.linear.int8 import LinearInt8
from pygpukit.nn.streaming import LayerStreaming, device_bytes, streamed_layers

PROMPT = [1, 7, 3, 42, 5, 11]
DEEP = {"num_hidden_layers": 7}


def least_of(load: Callable[[int], object]) -> int:
    """The least weights_memory that a model is loaded with, which its refusal says."""
    with pytest.raises(gp.InvalidSpecError, match=r"take (\d+) bytes; give as much") as refused:
        load(1)
    assert refused.value.field == "weights_memory"
    return int(str(refused.value).partition("take ")[2].split()[0])


def smallest(name: str, **changes: Any) -> int:
    """Of a tiny model."""
    return least_of(lambda memory: tiny.model(name, weights_memory=memory, **changes))


def streamed(name: str, share: float = 0.0, **changes: Any) -> tuple[CausalTransformerModel, LayerStreaming]:
    """A tiny model with that share of what lies between the least memory and all."""
    least, whole = smallest(name, **changes), tiny.model(name, **changes).describe().nbytes
    model = tiny.model(name, weights_memory=round(least + share * (whole - least)), **changes)
    streaming = model.engine.network.streaming
    assert streaming is not None
    return model, streaming


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma2", "gpt2", "mixtral", "gpt_oss", "olmo2"])
def test_logits_have_the_bits_of_the_model_held_whole(name: str) -> None:
    changes: dict[str, int] = {"n_layer": 5} if name == "gpt2" else {} if "layer_types" in CONFIGS[name] else DEEP
    model, streaming = streamed(name, **changes)
    assert streaming.numbers == list(range(model.config.num_layers))
    for chunk in (3, 768):
        theirs, tokens = logits_of(tiny.model(name, **changes), PROMPT, 5, chunk)
        ours, same = logits_of(model, PROMPT, 5, chunk)
        assert tokens == same
        assert np.array_equal(ours.view(np.uint32), theirs.view(np.uint32))
    assert streaming.hits > 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_of_16_bits_stream(dtype: str) -> None:
    model, whole = (tiny.model("llama", dtype=dtype, **DEEP, weights_memory=memory) for memory in (60000, None))
    assert model.engine.network.streaming is not None
    assert logits_of(model, PROMPT, 3)[1] == logits_of(whole, PROMPT, 3)[1]


def test_blocks_of_few_bits_stream_as_they_are() -> None:
    config = {**CONFIGS["qwen2"], "intermediate_size": 64, "num_hidden_layers": 6}
    whole = from_checkpoint(BlocksCheckpoint(config, KINDS))
    budget = whole.describe().nbytes * 2 // 3
    model = from_checkpoint(BlocksCheckpoint(config, KINDS), weights_memory=budget)
    said = model.describe()
    assert said.streamed is not None and said.nbytes <= budget
    assert said.lines == whole.describe().lines
    assert np.array_equal(logits_of(model, PROMPT, 4)[0], logits_of(whole, PROMPT, 4)[0])


@pytest.mark.parametrize("static", [False, True])
def test_products_of_int8_stream(tmp_path: Path, static: bool) -> None:
    path = int8_folder(tmp_path / "m", static, layers=5)

    def load(memory: int | None = None) -> CausalTransformerModel:
        return gp.llm.load(path, activations="int8", context=64, progress=False, weights_memory=memory)

    whole, model = load(), load(least_of(load))
    said, expected = model.describe(), whole.describe()
    assert said.streamed is not None and said.streamed.layers == tuple(range(model.config.num_layers))
    assert said.lines == expected.lines and "int8" in said.bytes_by_kind
    for chunk in (3, 768):
        assert np.array_equal(logits_of(model, PROMPT, 4, chunk)[0], logits_of(whole, PROMPT, 4, chunk)[0])
    assert all(isinstance(linear, LinearInt8) for block in model.blocks for linear in block.linears)


def test_a_weight_in_other_memory_keeps_the_order_of_its_columns() -> None:
    order, *arrays = (gp.zeros(shape, dtype) for shape, dtype in (((32,), "int32"), *[((2, 34), "uint8")] * 4))
    weight = Blocks((Part("Q8_0", arrays[0], order), Part("Q8_0", arrays[1])), 32, gp.bfloat16)
    moved = weight.in_memory(arrays[2:])
    assert [id(array) for array in moved.arrays] == [id(array) for array in (arrays[2], arrays[3], order)]
    assert [part.kind for part in moved.parts] == ["Q8_0", "Q8_0"] and moved.parts[1].order is None
    assert (moved.shape, moved.dtype) == (weight.shape, gp.bfloat16)
    with pytest.raises(ValueError, match="shorter"):
        weight.in_memory(arrays[:1])


def test_weights_are_read_to_the_host_without_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    to_device = TransferEngine.to_device

    def send(self: TransferEngine, array: gp.GPUArray, *arguments: Any, **how: Any) -> Transfer:
        sent.append(array.nbytes)
        return to_device(self, array, *arguments, **how)

    def fetch(self: TransferEngine, *arguments: Any) -> None:
        raise AssertionError("weights came from the device")

    monkeypatch.setattr(TransferEngine, "to_device", send)
    monkeypatch.setattr(TransferEngine, "to_host", fetch)
    model, streaming = streamed("llama", 0.5, **DEEP)
    said, whole = model.describe(), sum(sent)
    sent.clear()
    assert 1 < len(streaming.numbers) < model.config.num_layers
    tiny.model("llama", weights_memory=said.nbytes, **DEEP)
    first = [slot.layers[0].host.nbytes for slot in streaming._slots]
    assert sum(sent) == said.nbytes - streaming.slot_bytes + sum(first) < whole


def test_the_device_holds_no_more_than_was_promised_while_layers_are_read() -> None:
    config = {**CONFIGS["llama"], "hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 12}
    checkpoint = tiny.MemoryCheckpoint(config, tensors(config))
    budget = least_of(lambda memory: from_checkpoint(checkpoint, weights_memory=memory))
    gp.gc()
    before, used = gp.memory.stats()["used"], list[int]()
    model = from_checkpoint(
        checkpoint,
        context=64,
        weights_memory=budget,
        progress=lambda *progress: used.append(gp.memory.stats()["used"] - before),
    )
    assert model.describe().streamed is not None and len(used) > 12 * 7
    assert max(used) <= budget * 9 / 8  # as the pool rounds


def test_an_architecture_may_join_weights_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def block(layer: LayerWeights) -> TransformerBlock:
        q, k, v, out = (layer.linear(role, f"{role}_proj") for role in "qkvo")
        attention = Attention(q, k, v, out, layer.config, layer=layer.number)
        return TransformerBlock(layer.norm("attn_norm"), attention, layer.norm("mlp_norm"), llama.mlp(layer))

    plain = tiny.model("llama", **DEEP)
    expected = logits_of(plain, PROMPT, 4)[0]
    monkeypatch.setattr(weights, "architecture_of", lambda *names: replace(llama.LLAMA, block=block))
    model, streaming = streamed("llama", **DEEP)
    whole = tiny.model("llama", **DEEP)
    assert streaming.numbers == list(range(7)) and whole.describe().nbytes == plain.describe().nbytes
    for one in (model, whole):
        assert np.array_equal(logits_of(one, PROMPT, 4)[0], expected)


def test_every_way_to_ask_gives_the_same_tokens() -> None:
    model, _ = streamed("llama", 0.4, **DEEP)
    whole = tiny.model("llama", **DEEP)
    prompts = [PROMPT, [9, 8], [4] * 70]
    settings: list[dict[str, Any]] = [{}, {"temperature": 0.9, "seed": 3, "top_k": 20}, {"speculate": "ngram"}]
    for setting in [*settings, {"speculate": "layers"}]:
        answers = [[token.token_id for token in one.stream(PROMPT, 24, **setting)] for one in (model, whole)]
        assert answers[0] == answers[1]
        batches = [
            [list(answer.token_ids) for answer in one.generate_batch(prompts, 12, **setting)] for one in (model, whole)
        ]
        assert batches[0] == batches[1]
    assert np.array_equal(model.engine.hidden(PROMPT).to_numpy(), whole.engine.hidden(PROMPT).to_numpy())
    assert model.perplexity(list(range(90))) == whole.perplexity(list(range(90)))


def test_threads_share_the_slots() -> None:
    model, _ = streamed("llama", **DEEP)
    expected = tiny.model("llama", **DEEP).engine.hidden(PROMPT).to_numpy()
    answer = [token.token_id for token in tiny.model("llama", **DEEP).stream(PROMPT, 30)]
    problems: list[str] = []

    def read() -> None:
        with gp.Stream():
            for _ in range(6):
                if not np.array_equal(model.engine.hidden(PROMPT).to_numpy(), expected):
                    problems.append("hidden")

    def ask() -> None:
        if [token.token_id for token in model.stream(PROMPT, 30)] != answer:
            problems.append("stream")

    threads = [threading.Thread(target=work) for work in (read, ask, read, ask)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.95])
def test_the_device_holds_no_more_than_was_promised(share: float) -> None:
    least, whole = smallest("llama", **DEEP), tiny.model("llama", **DEEP).describe()
    budget = round(least + share * (whole.nbytes - least))
    model = tiny.model("llama", weights_memory=budget, **DEEP)
    said, streaming = model.describe(), model.engine.network.streaming
    assert streaming is not None and said.streamed is not None
    assert least <= said.nbytes <= budget < whole.nbytes == said.weight_bytes
    placed = {id(array): array.nbytes for array in [model.final_norm.weight, model.embed_tokens, model.lm_head]}
    for number, block in enumerate(model.blocks):
        for norm in (block.attn_norm, block.mlp_norm):
            assert norm is not None
            placed[id(norm)] = norm.weight.nbytes
        if number not in streaming.numbers:
            placed |= {id(linear): linear.weight.nbytes for linear in block.linears}  # type: ignore[union-attr]
    assert sum(placed.values()) + streaming.slot_bytes == said.nbytes  # type: ignore[arg-type]


def test_the_pool_gives_a_streamed_model_less_than_its_weights() -> None:
    changes = {"hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 16}
    whole = tiny.model("llama", context=128, **changes)
    expected, size = [token.token_id for token in whole.stream(PROMPT, 8)], whole.describe().nbytes
    del whole
    gp.gc()
    before = gp.memory.stats()["used"]
    model = tiny.model("llama", context=128, weights_memory=size // 4, **changes)
    assert [token.token_id for token in model.stream(PROMPT, 8)] == expected
    assert gp.memory.stats()["used"] - before < size / 2  # with keys, values and the buffers of a step


def test_what_was_broken_off_leaves_a_model_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    model, streaming = streamed("llama", **DEEP)
    expected = [token.token_id for token in tiny.model("llama", **DEEP).stream(PROMPT, 10)]
    for error in (RuntimeError, KeyboardInterrupt):
        with monkeypatch.context() as patch:
            own = type(model.blocks[3].mlp)
            patch.setattr(own, "forward", _failing(own.forward, model.blocks[3].mlp, error))
            with pytest.raises(error):
                list(model.stream(PROMPT, 10))
        assert [token.token_id for token in model.stream(PROMPT, 10)] == expected
    answer = model.stream(PROMPT, 30)
    next(answer)
    answer.close()
    assert [token.token_id for token in model.stream(PROMPT, 10)] == expected
    assert streaming.misses >= 2


def _failing(forward: Any, layer: Any, error: type[BaseException]) -> Any:
    def instead(self: Any, *arguments: Any) -> None:
        if self is layer:
            raise error("in the middle")
        forward(self, *arguments)

    return instead


def test_a_copy_that_was_cancelled_is_told_once_and_tried_again(blocked: gp.Stream) -> None:  # noqa: F811
    model, streaming = streamed("llama", **DEEP)
    expected = [token.token_id for token in tiny.model("llama", **DEEP).stream(PROMPT, 6)]
    assert [token.token_id for token in model.stream(PROMPT, 6)] == expected
    slot = streaming._slots[0]
    layer, slot.present = slot.present, None
    assert layer is not None
    slot.uses.append(blocked.record_event())
    streaming._begin(slot, layer)
    assert slot.transfer is not None and slot.transfer.cancel()
    with pytest.raises(gp.GPUError, match="cancelled"):
        list(model.stream(PROMPT, 6))
    assert [token.token_id for token in model.stream(PROMPT, 6)] == expected


def test_its_steps_are_no_graphs() -> None:
    model, _ = streamed("llama", **DEEP)
    with pytest.raises(gp.InvalidSpecError, match="launched, not captured"):
        model.init_decode_graph()


def test_a_model_that_fits_does_not_stream() -> None:
    model = tiny.model("llama", weights_memory="1GB")
    assert model.engine.network.streaming is None and model.describe().streamed is None


@pytest.mark.parametrize("size", ["much", "140%", -3, "0%"])
def test_what_is_no_size_is_refused(size: Any) -> None:
    with pytest.raises(gp.InvalidSpecError, match="weights_memory"):
        gp.llm.load("no-such-model", weights_memory=size)


def test_the_fewest_layers_stream_evenly_spread() -> None:
    assert streamed_layers([10] * 6, 5, 65) == []
    assert streamed_layers([10] * 6, 5, 64) == [0, 2, 4]
    assert streamed_layers([10] * 6, 5, 25) == [0, 1, 2, 3, 4, 5]
    assert streamed_layers([10] * 6, 5, 24) is None
    rng = np.random.default_rng()
    for _ in range(200):
        sizes = [int(size) for size in rng.integers(1, 100, int(rng.integers(1, 20)))]
        budget = int(rng.integers(1, 100 + sum(sizes)))
        chosen = streamed_layers(sizes, 7, budget)
        if chosen is not None:
            assert device_bytes(sizes, 7, chosen) <= budget and len(set(chosen)) == len(chosen)
            assert not chosen or device_bytes(sizes, 7, []) > budget


def test_describe_tells_what_a_step_copies() -> None:
    model, streaming = streamed("llama", **DEEP)
    list(model.stream(PROMPT, 4))
    said = model.describe()
    assert said.streamed is not None
    assert said.streamed.layers == tuple(range(7)) and said.streamed.hits == streaming.hits > 0
    sizes = {number: layer.host.nbytes for number, layer in streaming._layers.items()}
    assert said.streamed.pass_bytes == sum(sizes.values()) and said.streamed.slot_bytes == 2 * max(sizes.values())
    assert said.streamed.bandwidth > 0 and said.streamed.floor_s == said.streamed.pass_bytes / said.streamed.bandwidth
    assert said.floor_s is not None and said.floor_s >= said.streamed.floor_s
    assert "a step copies" in repr(said) and "layers 0, 1, 2, 3, 4, 5, 6" in repr(said)
    assert said.lines == tiny.model("llama", **DEEP).describe().lines
