"""Encoders: vectors beside float64, their folders, batches, the endpoint; all-MiniLM-L6-v2 where it is at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from llm import encoding, tiny
from llm.test_serving import PATIENCE_S

import pygpukit as gp
from pygpukit.core.errors import GPUError, InvalidSpecError, ModelFileError
from pygpukit.llm import TextEncoder
from pygpukit.llm.serving.server import serve

POOLED = {
    "mean_tokens": lambda states: states.mean(0),
    "cls_token": lambda states: states[0],
    "max_tokens": lambda states: states.max(0),
}
TEXTS = ["The cat sleeps.", "a dog", "runner, running on the mat!", "hello hello in a tree 12", "."]


@pytest.fixture
def small(tmp_path: Path) -> TextEncoder:
    return gp.llm.load_encoder(encoding.folder(tmp_path / "small")[0], progress=False)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pooling": "cls_token", "normalises": False},
        {"pooling": "max_tokens", "hidden_act": "gelu_new"},
        {"prefix": "bert.", "old_names": True, "num_attention_heads": 6},
        {"model_type": "roberta", "prefix": "roberta.", "pad_token_id": 1, "type_vocab_size": 1},
        {"model_type": "xlm-roberta", "pad_token_id": 3, "layer_norm_eps": 1e-5, "num_hidden_layers": 1},
    ],
)
def test_vectors_are_those_of_float64(tmp_path: Path, options: dict[str, Any]) -> None:
    seed = np.random.SeedSequence().generate_state(1)[0].item()
    path, config, weights = encoding.folder(tmp_path / "model", seed, **options)
    encoder = gp.llm.load_encoder(path, progress=False)
    draw = np.random.default_rng(seed)
    prompts = [draw.integers(0, config["vocab_size"], count).tolist() for count in (1, 2, 7, 24, 3, 17)]
    found = encoder.embed(prompts)
    assert found.dtype == np.float32 and found.shape == (6, encoder.dimensions) == (6, 48)
    for ids, vector in zip(prompts, found, strict=True):
        expected = POOLED[options.get("pooling", "mean_tokens")](encoding.states(config, weights, ids))
        expected = expected if options.get("normalises") is False else unit(expected)
        assert vector == pytest.approx(expected, abs=2e-5), (seed, len(ids))


@pytest.mark.parametrize("dtype, off", [("float16", 1e-2), ("bfloat16", 6e-2)])
def test_in_half_precision(tmp_path: Path, dtype: str, off: float) -> None:
    path, config, weights = encoding.folder(tmp_path / "model", 5)
    encoder = gp.llm.load_encoder(path, dtype=dtype, progress=False)
    assert encoder.dtype == dtype
    ids = list(range(20))
    assert encoder.embed([ids])[0] == pytest.approx(unit(encoding.states(config, weights, ids).mean(0)), abs=off)


def test_a_vector_has_the_bits_that_it_has_alone(small: TextEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pygpukit.llm.encoders.encoder._ROWS", 60)
    draw = np.random.default_rng(8)
    prompts = [draw.integers(0, len(encoding.VOCABULARY), count).tolist() for count in draw.integers(1, 25, 30)]
    together = small.embed(prompts)
    assert all((small.embed([ids])[0] == vector).all() for ids, vector in zip(prompts, together, strict=True))
    assert (small.embed(prompts[::-1])[::-1] == together).all()
    assert small.embed([]).shape == (0, 48)


def test_the_states_of_a_vector_can_be_chosen(small: TextEncoder) -> None:
    ids = [small.token_ids(text) for text in TEXTS]
    raw = small.embed(TEXTS, "cls", normalize=False)
    assert (small.embed(ids, "cls", normalize=False) == raw).all()
    assert not np.allclose(np.linalg.norm(raw, axis=1), 1)
    assert small.embed(TEXTS, "cls") == pytest.approx(raw / np.linalg.norm(raw, axis=1, keepdims=True), abs=1e-6)
    assert (small.embed(TEXTS) == small.embed(TEXTS, "mean")).all()
    assert "context=24" in repr(small) and "pooling='mean'" in repr(small)


def test_a_text_that_is_too_long_is_refused_or_cut(small: TextEncoder) -> None:
    text = "the cat " * 20
    with pytest.raises(InvalidSpecError, match="a text has 42 tokens, small takes 24; cut it, or give truncate=True"):
        small.embed([text])
    cut = small.token_ids(text, truncate=True)
    assert len(cut) == 24 and cut[:3] == [2, 5, 6] and cut[-2:] == [6, 3]
    assert (small.embed([text], truncate=True) == small.embed([cut])).all()
    assert small.token_ids([5] * 30, truncate=True) == [5] * 24


@pytest.mark.parametrize(
    "prompts, options, message",
    [
        (["a"], {"pooling": "sum"}, "give one of mean, cls, max, last"),
        ("the cat", {}, "give a list of texts"),
        ([[99]], {}, "99 is no token of small, which has 27"),
        ([[-1]], {}, "-1 is no token"),
        ([[]], {}, "a text without tokens"),
        ([[1.5]], {}, "token ids"),
    ],
)
def test_what_cannot_be_embedded(small: TextEncoder, prompts: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidSpecError, TypeError), match=message):
        small.embed(prompts, **options)


def rewrite(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    "file, changes, message",
    [
        ("config.json", {"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ("config.json", {"is_decoder": True}, "is_decoder"),
        ("config.json", {"hidden_act": "relu"}, "hidden_act is 'relu'"),
        ("config.json", {"num_attention_heads": 5}, "must divide the 48"),
        ("config.json", {"num_hidden_layers": 2}, r"no use for the tensor 'encoder\.layer\.2\."),
        ("config.json", {"num_hidden_layers": 4}, r"no tensor 'encoder\.layer\.3\."),
        ("config.json", {"vocab_size": 30}, "must be"),
        ("config.json", {"model_type": "llama"}, "encoders are folders of bert"),
        ("config.json", {"hidden_size": None}, "has no 'hidden_size'"),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True}, "pooling by"),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False}, "pooling by nothing"),
        ("1_Pooling/config.json", {"pooling_mode_weightedmean_tokens": True}, "weightedmean_tokens"),
        ("1_Pooling/config.json", {"word_embedding_dimension": 49}, "must be the 48 of hidden_size"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case"),
        ("sentence_bert_config.json", {"max_seq_length": "many"}, "max_seq_length"),
    ],
)
def test_what_is_not_there_is_refused_by_name(tmp_path: Path, file: str, changes: dict[str, Any], message: str) -> None:
    path = encoding.folder(tmp_path / "model")[0]
    rewrite(path / file, **changes)
    with pytest.raises((InvalidSpecError, ModelFileError, gp.ShapeError), match=message):
        gp.llm.load_encoder(path, progress=False)


def test_modules_that_are_not_there_and_paths_outside(tmp_path: Path) -> None:
    path = encoding.folder(tmp_path / "model")[0]
    dense = {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}
    for modules, message in (
        ([*encoding.MODULES[:2], dense], "the modules Transformer, Pooling, Dense are not there yet"),
        ([encoding.MODULES[0], {**encoding.MODULES[1], "path": "../elsewhere"}], "outside of the folder"),
        ([{**encoding.MODULES[0], "path": "0_Transformer"}, encoding.MODULES[1]], "the first in the folder itself"),
        ([1], "no list of modules"),
        ({"a": 1}, "no list of modules"),
    ):
        (path / "modules.json").write_text(json.dumps(modules))
        with pytest.raises(InvalidSpecError, match=message):
            gp.llm.load_encoder(path, progress=False)
    (path / "modules.json").unlink()
    assert gp.llm.load_encoder(path, progress=False).pooling.mode == "mean"
    rewrite(path / "config.json", model_type="bert")
    (path / "config_sentence_transformers.json").write_text('{"default_prompt_name": "query"}')
    with pytest.raises(InvalidSpecError, match="put the prompt before your texts"):
        gp.llm.load_encoder(path, progress=False)


@pytest.mark.filterwarnings("ignore:.*change nothing here")
def test_damaged_files_are_refused_by_errors_of_ours(tmp_path: Path) -> None:
    path = encoding.folder(tmp_path / "model")[0]
    draw = np.random.default_rng()
    names = ("config.json", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json", "vocab.txt")
    whole = {name: (path / name).read_bytes() for name in names}
    loaded = 0
    for _ in range(150):
        name = names[draw.integers(len(names))]
        damaged = bytearray(whole[name])
        for _ in range(draw.integers(1, 4)):
            place = int(draw.integers(len(damaged)))
            if draw.random() < 0.3:
                del damaged[place:]
                damaged += b"0"
            else:
                damaged[place] = draw.integers(32, 127)
        (path / name).write_bytes(damaged)
        try:
            gp.llm.load_encoder(path, progress=False).embed(["the cat"])
            loaded += 1
        except (GPUError, TypeError) as error:
            assert str(error), (name, damaged)
        (path / name).write_bytes(whole[name])
    assert loaded


def test_a_language_model_says_that_it_is_an_encoder(tmp_path: Path) -> None:
    path = encoding.folder(tmp_path / "model")[0]
    with pytest.raises(InvalidSpecError, match=r"'bert' are encoders.*gp\.llm\.load_encoder"):
        gp.llm.load(path, progress=False)
    assert TextEncoder.from_pretrained(path, progress=False, name="mine").name == "mine"


def test_the_endpoint_embeds_by_an_encoder(tmp_path: Path) -> None:
    path = encoding.folder(tmp_path / "vectors")[0]
    encoder = gp.llm.load_encoder(path, progress=False)
    expected = encoder.embed(TEXTS)
    with (
        serve(tiny.model("llama", context=64), port=0, models=[str(path)]) as server,
        openai.OpenAI(base_url=server.url, api_key=server.token, max_retries=0, timeout=PATIENCE_S) as client,
    ):
        answer = client.embeddings.create(model="vectors", input=TEXTS * 20)
        assert (np.array([one.embedding for one in answer.data], np.float32) == np.tile(expected, (20, 1))).all()
        assert answer.usage.prompt_tokens == 20 * sum(len(encoder.token_ids(text)) for text in TEXTS)
        short = client.embeddings.create(model="vectors", input=TEXTS[0], dimensions=7).data[0].embedding
        assert short == pytest.approx(unit(expected[0, :7]).tolist(), abs=1e-6)
        first = client.embeddings.create(model="vectors", input="a dog", extra_body={"pooling": "cls"})
        assert first.data[0].embedding == pytest.approx(encoder.embed(["a dog"], "cls")[0].tolist(), abs=0)
        text = "the cat " * 20
        cut = client.embeddings.create(model="vectors", input=text, extra_body={"truncate": True})
        assert cut.usage.prompt_tokens == 24
        for body, param in (
            ({"input": text}, "input"),
            ({"input": ["a", [27]]}, "input"),
            ({"input": "a", "dimensions": 49}, "dimensions"),
            ({"input": "a", "pooling": "sum"}, "pooling"),
            ({"input": "a", "model": "tiny", "truncate": True}, "truncate"),
        ):
            with pytest.raises(openai.BadRequestError) as caught:
                client.post("/embeddings", body={"model": "vectors", **body}, cast_to=object)
            assert caught.value.param == param, body
        messages: Any = [{"role": "user", "content": "hi"}]
        with pytest.raises(openai.BadRequestError, match="vectors is a model that makes vectors of texts; here one"):
            client.chat.completions.create(model="vectors", messages=messages)


def test_an_encoder_is_served_alone(small: TextEncoder) -> None:
    with (
        serve(small, port=0) as server,
        openai.OpenAI(base_url=server.url, api_key=server.token, max_retries=0, timeout=PATIENCE_S) as client,
    ):
        found = client.embeddings.create(model="small", input="the cat").data[0].embedding
        assert found == pytest.approx(small.embed(["the cat"])[0].tolist(), abs=0)
