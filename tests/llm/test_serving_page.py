"""The page of the endpoint, and requests in the shapes that Open WebUI sends."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from llm.test_serving import PlayedModel
from llm.test_serving_bounds import asked
from llm.test_serving_models import get

from pygpukit import llm
from pygpukit.llm.serving.server import serve


def test_the_page_runs_its_own_script_alone_and_loads_nothing() -> None:
    model: Any = PlayedModel()
    with serve(model, port=0) as server:
        status, headers, page = get(server, "/", authorization="")
        again = get(server, "/", authorization="")[2]
        assert get(server, "/", authorization="", host="evil.example")[0] == 400
    assert status == 200 and headers["content-type"].startswith("text/html")
    nonces = set(re.findall(r'nonce="([^"]+)"', page))
    assert len(nonces) == 1 and nonces.isdisjoint(re.findall(r'nonce="([^"]+)"', again))
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ") and f"script-src 'nonce-{nonces.pop()}'" in policy
    assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert not re.search(r"https?://|src=|href=|innerHTML|insertAdjacent|document\.write|eval\(| on\w+=", page)


def test_what_can_chat_is_told_before_it_is_loaded_and_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = ["smollm2-135m-instruct", "gemma-3-270m", "all-minilm-l6-v2", "whisper-base", "kokoro-82m", "own/model"]
    folders: dict[str, tuple[dict[str, Any], bool | None]] = {
        "chats": ({"chat_template.jinja": "{{ messages }}"}, True),
        "in_config": ({"tokenizer_config.json": json.dumps({"chat_template": "{{ messages }}"})}, True),
        "named": (
            {"tokenizer_config.json": json.dumps({"chat_template": [{"name": "default", "template": "x"}]})},
            True,
        ),
        "base": ({"tokenizer_config.json": "{}"}, False),
        "sound": ({"model.bin": "", "tokenizer.json": "{}"}, False),
        "broken": ({"tokenizer_config.json": "{"}, None),
        "gguf": ({"a.gguf": ""}, None),
    }
    for name, (files, _) in folders.items():
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text)

    def load(source: str, *, name: str, progress: bool) -> PlayedModel:
        made: Any = PlayedModel()
        made.name, made.tokenizer = name, SimpleNamespace(chat_template=None)
        return made  # type: ignore[no-any-return]

    monkeypatch.setattr(llm, "load", load)
    first: Any = PlayedModel()
    with serve(first, port=0, models=[*sources, *(str(tmp_path / name) for name in folders)]) as server:

        def told() -> dict[str, bool | None]:
            return {one["id"]: one["chat"] for one in json.loads(get(server, "/v1/models")[2])["data"]}

        expected = {"toy": False, "smollm2-135m-instruct": True, "own/model": None}
        expected |= dict.fromkeys(["gemma-3-270m", "all-minilm-l6-v2", "whisper-base", "kokoro-82m"], False)
        expected |= {name: chats for name, (_, chats) in folders.items()}
        assert told() == expected
        asked(server, "/v1/completions", {"model": "own/model", "prompt": "a"})
        assert told() == expected | {"own/model": False}


def test_requests_of_open_webui() -> None:
    model: Any = PlayedModel()
    with serve(model, port=0) as server:
        assert [one["id"] for one in json.loads(get(server, "/v1/models")[2])["data"]] == ["toy"]
        body = {
            "model": "toy",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Capital?"}]},
                {"role": "assistant", "content": "Paris."},
                {"role": "user", "content": "Sure?"},
            ],
            "temperature": 0.7, "top_p": 0.9, "max_tokens": 20, "stop": ["\n\n"], "seed": 3, "top_k": 40, "min_p": 0.1,
            "frequency_penalty": 0, "presence_penalty": 0, "logit_bias": {},
        }  # fmt: skip
        status, headers, raw = asked(server, "/v1/chat/completions", body)
        assert status == 200 and headers["content-type"].startswith("text/event-stream")
        events = [line.removeprefix(b"data: ") for line in raw.split(b"\n\n") if line]
        assert events[-1] == b"[DONE]" and json.loads(events[-2])["usage"]["total_tokens"] == 8
        text = "".join(c["delta"].get("content") or "" for e in events[:-1] for c in json.loads(e)["choices"])
        assert text == "Paris \U0001f680."
        title: Any = {
            "messages": [{"role": "user", "content": "A title?"}],
            "stream": False,
            "max_completion_tokens": 9,
        }
        status, _, raw = asked(server, "/v1/chat/completions", title)
        assert status == 200 and json.loads(raw)["choices"][0]["message"]["content"] == "Paris \U0001f680."
