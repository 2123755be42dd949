"""Requests that LangChain's client sent, and those that Open WebUI's source sends: each gets its answer."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from llm import encoding, speaking
from llm.test_serving import PATIENCE_S
from llm.test_serving_sounds import Mouth
from llm.test_serving_tools import TEMPLATE, Calling

from pygpukit import tts
from pygpukit.llm.serving.server import Server, serve

ASKED = json.loads((Path(__file__).parent / "data" / "client_requests.json").read_text())
FORCED = ("response_format", "tool_choice")  # the form of the answer has to be what was asked for


@pytest.fixture(scope="module")
def playing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A played model that writes a call where there are tools, an encoder, and a mouth."""
    path = encoding.folder(tmp_path_factory.mktemp("models") / "vectors")[0]
    model: Any = Calling()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tts, "load", lambda source, *, progress: Mouth())
        with serve(model, port=0, models=[str(path), "mouth"]) as server:
            yield server


@pytest.fixture(scope="module")
def speaker() -> Iterator[Server]:
    """A random model, which a grammar holds to the form."""
    model = speaking.model(speaking.tokenizer(TEMPLATE, words=("<tool_call>", "</tool_call>")), context=512)
    model.name = "toy"
    with serve(model, port=0) as server:
        yield server


def ask(server: Server, path: str, body: dict[str, Any]) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    status, kind, raw = answer.status, answer.getheader("content-type") or "", answer.read()
    connection.close()
    return status, kind, raw


@pytest.mark.parametrize("one", ASKED, ids=lambda one: f"{one['client']}, {one['case']}")
def test_a_recorded_request_gets_its_answer(playing: Server, speaker: Server, one: dict[str, Any]) -> None:
    path, body = one["path"], one["body"]
    forced = any(name in body for name in FORCED)
    status, kind, raw = ask(speaker if forced else playing, path, body)
    if "refused" in one:
        assert status == 400 and json.loads(raw)["error"]["param"] == one["refused"]
        return
    assert status == 200, raw
    if path.endswith("/speech"):
        assert kind == "audio/mpeg" and len(raw) > 1000
    elif body.get("stream"):
        assert kind.startswith("text/event-stream") and raw.endswith(b"data: [DONE]\n\n")
        pieces = [json.loads(line[6:]) for line in raw.split(b"\n\n") if line and not line.endswith(b"[DONE]")]
        choices = [choice for piece in pieces for choice in piece["choices"]]
        assert any(choice["finish_reason"] for choice in choices)
        assert bool(pieces[-1].get("usage")) == bool(body.get("stream_options"))
        if body.get("tools"):
            assert any(choice["delta"].get("tool_calls") for choice in choices)
    else:
        answered(path, body, json.loads(raw), forced)


def answered(path: str, body: dict[str, Any], answer: dict[str, Any], forced: bool) -> None:
    """Asserts that an answer is one to the request."""
    if path.endswith("/embeddings"):
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        assert [entry["index"] for entry in answer["data"]] == list(range(len(texts)))
        if body.get("encoding_format") != "base64":
            assert np.shape([entry["embedding"] for entry in answer["data"]]) == (len(texts), 48)
    elif path.endswith("/responses"):
        assert answer["status"] == "completed" and answer["output"]
    elif path.endswith("/chat/completions"):
        (choice,) = answer["choices"]
        calls = choice["message"].get("tool_calls") or []
        if body.get("tools"):
            known = {tool["function"]["name"]: tool["function"]["parameters"] for tool in body["tools"]}
            assert calls and choice["finish_reason"] in ("tool_calls", "length")
            if forced and choice["finish_reason"] == "tool_calls":
                jsonschema.validate(json.loads(calls[0]["function"]["arguments"]), known[calls[0]["function"]["name"]])
        elif forced and choice["finish_reason"] == "stop":
            form = body["response_format"].get("json_schema", {}).get("schema", {"type": "object"})
            jsonschema.validate(json.loads(choice["message"]["content"]), form)
        elif not forced:
            assert choice["message"]["content"]
    else:
        assert len(answer["choices"]) == len(body["prompt"]) * body["n"] and answer["usage"]["completion_tokens"]
