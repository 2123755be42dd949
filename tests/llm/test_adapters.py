"""LoRA adapters: the tokens and probabilities of merged weights, several in a batch, and no bit of others changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from llm import lora, reference, speaking, tiny
from llm.test_serving import PATIENCE_S

from pygpukit.core.errors import InvalidSpecError, ModelFileError
from pygpukit.llm.generation import Completion
from pygpukit.llm.model import CausalTransformerModel
from pygpukit.llm.serving.server import serve
from pygpukit.llm.weights import from_checkpoint
from pygpukit.nn.loading import TensorShapeError

IDS = np.random.default_rng(0).integers(0, 99, 150).tolist()


def bits(answer: Completion) -> list[tuple[int, float | None, tuple[float, ...]]]:
    """Tokens and probabilities."""
    return [(t.token_id, t.logprob, tuple(one.logprob for one in t.top)) for t in answer.tokens]


def answers(model: CausalTransformerModel, prompts: list[list[int]], adapters: list[str | None]) -> list[Any]:
    return [bits(one) for one in model.generate_batch(prompts, 6, adapter=adapters, top=3, ignore_eos=True)]


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2", "phi3", "gemma3", "gemma2", "olmo2", "granite"])
def test_tokens_are_those_of_the_merged_weights(tmp_path: Path, name: str) -> None:
    path, merged = lora.folder(tmp_path / "a", name, 1)
    model = tiny.model(name, context=128)
    model.load_adapter("a", path)
    narrow = {key: value.astype(np.float32) for key, value in merged.items()}
    whole = from_checkpoint(tiny.MemoryCheckpoint(lora.CONFIGS[name], narrow), context=128)
    for prompt in (IDS[:5], IDS[:70]):
        ours, theirs = (
            m.stream(prompt, 8, top=3, ignore_eos=True, **own).complete()
            for m, own in ((model, {"adapter": "a"}), (whole, {}))
        )
        assert ours.token_ids == theirs.token_ids
        for one, other in zip(bits(ours), bits(theirs), strict=True):
            assert one[2] == pytest.approx(other[2], abs=2e-4)
        plain = model.stream(prompt, 8, top=3, ignore_eos=True).complete()
        assert abs(plain.tokens[0].top[0].logprob - ours.tokens[0].top[0].logprob) > 1e-3  # it does change something


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"use_rslora": True},
        {"alpha_pattern": {"q_proj": 11}, "rank_pattern": {"q_proj": 7, "self_attn.v_proj": 4}, "lora_alpha": 3},
        {"bias": "none", "modules_to_save": None, "init_lora_weights": "gaussian"},
    ],
)
def test_probabilities_are_those_of_float64(tmp_path: Path, fields: dict[str, Any]) -> None:
    path, merged = lora.folder(tmp_path / "a", "llama", 2, **fields)
    model = tiny.model("llama", context=128)
    model.load_adapter("a", path)
    answer = model.stream(IDS[:40], 4, top=3, ignore_eos=True, adapter="a").complete()
    ids = IDS[:40]
    for token in answer.tokens:
        logits = reference.logits(lora.CONFIGS["llama"], merged, ids)[-1]
        logprobs = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        assert token.token_id == int(logits.argmax())
        assert [one.logprob for one in token.top] == pytest.approx(np.sort(logprobs)[::-1][:3], abs=1e-4)
        ids = [*ids, token.token_id]


def test_several_in_a_batch_change_no_bit_of_each_other(tmp_path: Path) -> None:
    """Prompts of several chunks and of a block's beginning, alone and together, without adapters as before there were
    any."""
    prompts = [IDS[:n] for n in (3, 70, 3, 150, 70, 9, 70)]
    names: list[str | None] = [None, "a", "b", None, "b", "a", None]
    untouched = tiny.model("llama", context=256, slots=8)
    model = tiny.model("llama", context=256, slots=8)
    for seed, name in enumerate("ab"):
        model.load_adapter(
            name, lora.folder(tmp_path / name, "llama", seed, modules=("q_proj", "up_proj", "down_proj"))[0]
        )
    together = answers(model, prompts, names)
    model.engine.loop.clear()
    for prompt, name, answer in zip(prompts, names, together, strict=True):
        assert answers(model, [prompt], [name]) == [answer]
        if name is None:
            assert answers(untouched, [prompt], [None]) == [answer]
    order = [6, 2, 4, 0, 5, 1, 3]
    assert answers(model, [prompts[n] for n in order], [names[n] for n in order]) == [together[n] for n in order]


@pytest.mark.parametrize("speculate", ["ngram", "layers", "jacobi", "lookahead"])
def test_drafts_are_computed_with_their_adapter(tmp_path: Path, speculate: str) -> None:
    model = tiny.model("llama", context=256, slots=4)
    model.load_adapter("a", lora.folder(tmp_path / "a", "llama", 3)[0])
    prompt, names = IDS[:7] * 4, [None, "a", "a"]
    plain = model.generate_batch([prompt] * 3, 40, adapter=names, ignore_eos=True)
    guessed = model.generate_batch([prompt] * 3, 40, adapter=names, ignore_eos=True, speculate=speculate)
    assert [one.token_ids for one in guessed] == [one.token_ids for one in plain]
    assert plain[0].token_ids != plain[1].token_ids


def test_keys_of_a_prompt_are_found_with_its_adapter_alone(tmp_path: Path) -> None:
    model = tiny.model("llama", context=256, slots=4)
    for seed, name in enumerate("ab"):
        model.load_adapter(name, lora.folder(tmp_path / name, "llama", seed)[0])
    fresh = {}
    for name in (None, "a", "b"):
        model.engine.loop.clear()
        fresh[name] = answers(model, [IDS], [name])
    model.engine.loop.clear()
    for name in (None, "a", None, "b", "a", "b"):
        assert answers(model, [IDS], [name]) == fresh[name]
    model.load_adapter("a", lora.folder(tmp_path / "c", "llama", 9)[0])  # another of the same name
    again = answers(model, [IDS], ["a"])
    assert again != fresh["a"] and again == answers(model, [IDS], ["a"])


@pytest.mark.usefixtures("kernels_on_sim", "quickly_compiled")
def test_bits_of_bfloat16_by_the_kernels(tmp_path: Path) -> None:
    """A graph captures the step without adapters; one with some is launched, with the same bits for the rest."""
    prompts, names = [IDS[:3], IDS[:3]], [None, "a"]
    changes = {"num_hidden_layers": 1, "intermediate_size": 64}
    config = {**lora.CONFIGS["llama"], **changes}
    path, merged = lora.folder(tmp_path / "a", "llama", 1, modules=("q_proj", "up_proj"), config=config)
    model = tiny.model("llama", dtype="bfloat16", context=64, slots=3, **changes)
    before = [answer(model, prompts[0], None)]
    model.load_adapter("a", path)
    together = [bits(one) for one in model.generate_batch(prompts, 2, adapter=names, top=3, ignore_eos=True)]
    assert together == [answer(model, prompt, name) for prompt, name in zip(prompts, names, strict=True)]
    assert together[:1] == before and together[1] != together[0]
    for prompt, found in zip(prompts[1:], together[1:], strict=True):
        logits = reference.logits(config, merged, prompt)[-1]
        logprobs = np.sort(logits - logits.max() - np.log(np.exp(logits - logits.max()).sum()))[::-1]
        assert found[0][2] == pytest.approx(logprobs[:3], abs=0.06)  # of bfloat16


def answer(model: CausalTransformerModel, prompt: list[int], name: str | None) -> Any:
    return bits(model.stream(prompt, 2, top=3, ignore_eos=True, adapter=name).complete())


def test_an_adapter_may_go_while_its_answer_goes_on(tmp_path: Path) -> None:
    model = tiny.model("llama", context=64)
    model.load_adapter("a", lora.folder(tmp_path / "a", "llama", 1)[0])
    expected = model.stream(IDS[:9], 6, ignore_eos=True, adapter="a").complete().token_ids
    stream = model.stream(IDS[:9], 6, ignore_eos=True, adapter="a")
    first = next(stream).token_id
    model.unload_adapter("a")
    assert [first, *(token.token_id for token in stream)] == expected
    with pytest.raises(InvalidSpecError, match="there is no adapter 'a' of tiny; there is none"):
        model.stream(IDS[:9], adapter="a")
    with pytest.raises(InvalidSpecError, match="there is no adapter 'a'"):
        model.unload_adapter("a")
    with pytest.raises(InvalidSpecError, match="adapter has 1 names for 2 prompts"):
        model.generate_batch([[1], [2]], adapter=[None])
    for name in ("", "a:b", 3):
        with pytest.raises(InvalidSpecError, match="give a text without a colon"):
            model.load_adapter(name, tmp_path / "a")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"peft_type": "IA3"}, "peft_type is 'IA3', must be 'LORA'"),
        ({"use_dora": True}, "use_dora is True, and what is read is False"),
        ({"bias": "all"}, "bias is 'all', and what is read is 'none'"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save is"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights is 'pissa'"),
        ({"alpha_pattern": {"(a+)+b": 2}}, "not expressions of a stranger's file"),
        ({"lora_alpha": -1}, "lora_alpha is -1, must be a number above 0"),
    ],
)
def test_other_forms_are_refused_by_name(tmp_path: Path, fields: dict[str, Any], named: str) -> None:
    path, _ = lora.folder(tmp_path / "a", "llama", 1)
    config = json.loads((path / "adapter_config.json").read_text()) | fields
    (path / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(InvalidSpecError, match=named):
        tiny.model("llama", context=64).load_adapter("a", path)


def test_files_that_do_not_fit_are_named(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    path, _ = lora.folder(tmp_path / "a", "llama", 1)
    model, file = tiny.model("llama", context=64), path / "adapter_model.safetensors"
    whole = load_file(file)
    name = "base_model.model.model.layers.1.mlp.up_proj.lora_A.weight"
    damages: list[tuple[dict[str, np.ndarray], str]] = [
        ({key: value for key, value in whole.items() if key != name}, "up_proj' has no lora_A"),
        ({**whole, name: whole[name][:3]}, "must be floats of .rank, in. and .out, rank. with rank 4"),
        ({**whole, name: whole[name].astype(np.int32)}, "are int32 of"),
        ({**whole, "base_model.model.lm_head.weight": whole[name]}, "is no lora_A or lora_B of a module"),
        ({}, "it has no tensors"),
    ]
    for stored, named in damages:
        save_file(stored, file)
        with pytest.raises(ModelFileError, match=named):
            model.load_adapter("a", path)
    save_file({**whole, name: np.zeros((4, 9), np.float32)}, file)
    with pytest.raises(TensorShapeError, match=r"is for a weight of \(56, 9\), tiny has one of \(56, 32\)"):
        model.load_adapter("a", path)
    save_file({key.replace("up_proj", "router"): value for key, value in whole.items()}, file)
    with pytest.raises(InvalidSpecError, match=r"mlp\.router', which tiny has no product of its layers for"):
        model.load_adapter("a", path)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ModelFileError):
        model.load_adapter("a", path)
    file.rename(path / "adapter_model.bin")
    with pytest.raises(ModelFileError, match=r"no adapter_model\.safetensors, but adapter_model\.bin, a pickle"):
        model.load_adapter("a", path)
    with pytest.raises(ModelFileError, match=r"no adapter_config\.json"):
        model.load_adapter("a", tmp_path)
    assert not model.adapters


def test_the_endpoint_serves_it_by_a_name_of_its_own(tmp_path: Path) -> None:
    model = speaking.model(context=256, slots=4)
    model.load_adapter("pirate", lora.folder(tmp_path / "a", "llama", 1, modules=("q_proj", "o_proj", "down_proj"))[0])
    with (
        serve(model, port=0) as server,
        openai.OpenAI(base_url=server.url, api_key=server.token, max_retries=0, timeout=PATIENCE_S) as client,
    ):
        assert [one.id for one in client.models.list()] == ["tiny", "tiny:pirate"]
        assert client.models.retrieve("tiny:pirate").id == "tiny:pirate"
        for name, adapter in (("tiny", None), ("tiny:pirate", "pirate")):
            answer = client.completions.create(model=name, prompt="hello", max_tokens=6, temperature=0)
            assert answer.model == name
            assert answer.choices[0].text == model.stream("hello", 6, adapter=adapter).complete().text
        with pytest.raises(openai.BadRequestError, match="embeddings are of the model alone"):
            client.embeddings.create(model="tiny:pirate", input="hello")
        with pytest.raises(openai.NotFoundError, match="there is 'tiny', 'tiny:pirate'"):
            client.completions.create(model="tiny:other", prompt="hello")
