"""Prompts without an answer: logprobs of their own tokens, vectors of texts; directly and by the openai client."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import openai
import pytest
from llm import speaking, tiny
from llm.test_serving import PATIENCE_S
from llm.test_serving_batched import is_free

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.model import CausalTransformerModel
from pygpukit.llm.scoring import prompt_tokens
from pygpukit.llm.serving.embeddings import MAX_INPUTS
from pygpukit.llm.serving.server import serve


@pytest.fixture(scope="module")
def model() -> CausalTransformerModel:
    return speaking.model(slots=4, context=256)


@pytest.fixture(scope="module")
def client(model: CausalTransformerModel) -> Iterator[openai.OpenAI]:
    with (
        serve(model, port=0) as server,
        openai.OpenAI(base_url=server.url, api_key=server.token, max_retries=0, timeout=PATIENCE_S) as made,
    ):
        yield made


def logprobs_of(model: CausalTransformerModel, ids: list[int]) -> np.ndarray:
    """float64 (tokens, vocabulary), of what follows each token."""
    logits = model.get_logits(model(ids)[0]).to_numpy().astype(np.float64)
    return (
        logits
        - np.log(np.exp(logits - logits.max(-1, keepdims=True)).sum(-1, keepdims=True))
        - logits.max(-1, keepdims=True)
    )


@pytest.mark.parametrize("length", [1, 2, 31, 33, 34, 65, 100])
def test_logprobs_of_a_prompt_are_those_of_its_logits(length: int) -> None:
    small = tiny.model("qwen2", context=128)
    ids = np.random.default_rng(length).integers(0, 99, length).tolist()
    reference = logprobs_of(small, ids)
    tokens = prompt_tokens(small, ids, 3)
    assert [token.token_id for token in tokens] == ids and tokens[0].logprob is None and tokens[0].top == ()
    for place, token in enumerate(tokens[1:], 1):
        before = reference[place - 1]
        assert token.logprob == pytest.approx(before[ids[place]], abs=2e-5)
        best = np.lexsort((np.arange(before.size), -before))[:3]
        assert [one.token_id for one in token.top] == best.tolist()
        assert [one.logprob for one in token.top] == pytest.approx(before[best].tolist(), abs=2e-5)
    assert prompt_tokens(small, ids)[-1].logprob is None


def test_a_prompt_that_cannot_be(model: CausalTransformerModel) -> None:
    for wrong in ([], [9999], [1] * 300):
        with pytest.raises(InvalidSpecError):
            prompt_tokens(model, wrong)


@pytest.mark.parametrize("stream", [False, True])
def test_an_echo_with_logprobs(client: openai.OpenAI, model: CausalTransformerModel, stream: bool) -> None:
    text = "hello w\u00f6rld"
    ids = model.token_ids(text)
    plain = client.completions.create(model="tiny", prompt=text, max_tokens=5, temperature=0, logprobs=2)
    scored = prompt_tokens(model, ids, 2)
    for limit in (5, 0):
        answer: Any = client.completions.create(
            model="tiny",
            prompt=[text, text],
            n=2,
            echo=True,
            max_tokens=limit,
            temperature=0,
            logprobs=2,
            stream=stream,
        )
        texts, logprobs, offsets = [""] * 4, [list[Any]() for _ in range(4)], [list[int]() for _ in range(4)]
        for piece in answer if stream else [answer]:
            for choice in piece.choices:
                texts[choice.index] += choice.text
                if choice.logprobs:
                    logprobs[choice.index] += choice.logprobs.token_logprobs
                    offsets[choice.index] += choice.logprobs.text_offset
        after = plain.choices[0]
        assert after.logprobs is not None and after.logprobs.token_logprobs is not None
        assert texts == [text + (after.text if limit else "")] * 4
        own = [token.logprob for token in scored] + (after.logprobs.token_logprobs if limit else [])
        assert logprobs == [own] * 4 and own[0] is None
        if not stream:
            assert answer.usage.prompt_tokens == 2 * len(ids)
            assert offsets[0][: len(ids)] == [len("".join(t.text for t in scored[:n])) for n in range(len(ids))]
    assert is_free(model)


def test_an_echo_alone(client: openai.OpenAI) -> None:
    assert client.completions.create(model="tiny", prompt="hello", echo=True, max_tokens=0).choices[0].text == "hello"
    with pytest.raises(openai.BadRequestError, match="must be 1 or more"):
        client.completions.create(model="tiny", prompt="hello", max_tokens=0)
    with pytest.raises(openai.BadRequestError, match=r"too many|room for"):
        client.completions.create(model="tiny", prompt="x" * 300, echo=True, max_tokens=0)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3"])
@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_vectors_are_the_pooled_states(kind: str, pooling: Any) -> None:
    small = tiny.model(kind, context=64)
    draw = np.random.default_rng(3)
    prompts = [draw.integers(0, 99, count).tolist() for count in (1, 7, 40)]
    found = small.embed(prompts, pooling)
    assert found.dtype == np.float32 and found.shape == (3, small.config.hidden_size)
    for ids, vector in zip(prompts, found, strict=True):
        states = small.final_norm(small(ids)[0]).to_numpy().astype(np.float64)
        expected = states.mean(0) if pooling == "mean" else states[-1]
        assert vector == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)
        assert (small.embed([ids], pooling)[0] == vector).all()
    with pytest.raises(InvalidSpecError, match="give one of mean, last"):
        small.embed(prompts, "max")  # type: ignore[arg-type]


def test_embeddings_of_texts_and_ids(client: openai.OpenAI, model: CausalTransformerModel) -> None:
    texts = ["hello", "w\u00f6rld", "hello hello"]
    expected = model.embed(texts)
    answer = client.embeddings.create(model="tiny", input=texts)  # which asks for base64
    assert [one.embedding for one in answer.data] == [pytest.approx(row.tolist(), abs=0) for row in expected]
    ids = [model.token_ids(text) for text in texts]
    assert answer.usage.prompt_tokens == sum(map(len, ids)) and [one.index for one in answer.data] == [0, 1, 2]
    plain = client.embeddings.create(model="tiny", input=ids, encoding_format="float")
    assert [one.embedding for one in plain.data] == [pytest.approx(row.tolist(), abs=1e-7) for row in expected]
    last = client.embeddings.create(model="tiny", input="hello", extra_body={"pooling": "last"}).data[0].embedding
    assert last == pytest.approx(model.embed(["hello"], "last")[0].tolist(), abs=0)
    short = client.embeddings.create(model="tiny", input="hello", dimensions=8).data[0].embedding
    assert len(short) == 8 and np.linalg.norm(short) == pytest.approx(1, abs=1e-6)
    assert short == pytest.approx((expected[0, :8] / np.linalg.norm(expected[0, :8])).tolist(), abs=1e-6)
    raw: Any = client.embeddings.with_raw_response.create(model="tiny", input="hello", encoding_format="base64")
    packed = raw.http_response.json()["data"][0]["embedding"]
    assert struct.unpack("<32f", base64.b64decode(packed)) == tuple(expected[0].tolist())


@pytest.mark.parametrize(
    "body, param",
    [
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"input": ["a", ""]}, "input"),
        ({"input": ["a", 1]}, "input"),
        ({"input": {"text": "a"}}, "input"),
        ({"input": ["a"] * (MAX_INPUTS + 1)}, "input"),
        ({"input": [99999]}, "input"),
        ({"input": "x" * 300}, "input"),
        ({"input": ["a", "x" * 300_000]}, "input"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
        ({"input": "a", "dimensions": 33}, "dimensions"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format"),
        ({"input": "a", "pooling": "max"}, "pooling"),
        ({"input": "a", "colour": 1}, "colour"),
    ],
)
def test_wrong_requests_of_embeddings_are_named(client: openai.OpenAI, body: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.post("/embeddings", body={"model": "tiny", **body}, cast_to=object)
    assert caught.value.param == param
