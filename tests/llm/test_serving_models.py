"""The endpoint around its models: several, loaded when they are asked for; metrics; pages that may ask."""

from __future__ import annotations

import gc
import http.client
import json
import threading
import types
import weakref
from typing import Any

import openai
import pytest
from llm import tiny
from llm.test_serving import MESSAGES, PATIENCE_S, PlayedModel, settled, status_of
from llm.test_serving_batched import PROMPTS, Asking
from prometheus_client.parser import text_string_to_metric_families

from pygpukit import llm
from pygpukit.core.errors import ModelNotFoundError, OutOfMemoryError
from pygpukit.llm.serving.server import Server, serve


def client_of(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url, api_key=server.token, max_retries=0, timeout=PATIENCE_S)


def get(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
    sent = {"authorization": f"Bearer {server.token}"} | {n.replace("_", "-"): text for n, text in headers.items()}
    connection.request(method, path, headers=sent)
    answer = connection.getresponse()
    found = answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read().decode()
    connection.close()
    return found


def test_models_are_loaded_once_when_they_are_first_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    may_load = threading.Event()

    def load(source: str, *, name: str, progress: bool) -> PlayedModel:
        asked.append((source, name))
        assert may_load.wait(PATIENCE_S) and not progress
        if source == "absent":
            raise ModelNotFoundError("absent is nowhere")
        made = PlayedModel()
        made.name, made.words = name, [name]  # type: ignore[misc]
        return made

    monkeypatch.setattr(llm, "load", load)
    first: Any = PlayedModel()
    with serve(first, port=0, models=["other", "absent", "toy"]) as server, client_of(server) as client:
        assert [one.id for one in client.models.list()] == ["toy", "other", "absent"]
        assert client.models.retrieve("absent").id == "absent" and asked == []
        answers: list[str | None] = []

        def ask() -> None:
            answer = client.chat.completions.create(model="other", messages=MESSAGES)
            answers.append(answer.choices[0].message.content)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        assert settled(lambda: asked == [("other", "other")])
        whole = client.chat.completions.create(model="toy", messages=MESSAGES)  # nobody waits for another's model
        assert whole.model == "toy" and answers == []
        may_load.set()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert answers == ["other"] * 3 and asked == [("other", "other")]
        for _ in range(2):
            with pytest.raises(openai.InternalServerError, match="absent cannot be loaded: absent is nowhere"):
                client.chat.completions.create(model="absent", messages=MESSAGES)
        assert len(asked) == 3
        with pytest.raises(openai.NotFoundError, match="there is 'toy', 'other', 'absent'"):
            client.chat.completions.create(model="gpt-4", messages=MESSAGES)


def samples(page: str) -> dict[tuple[str, str], float]:
    """Of each sample: its name, and the label that is not the model's."""
    found = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            assert sample.labels.pop("model") == "tiny"
            found[sample.name, ",".join(sample.labels.values())] = sample.value
    return found


def test_metrics_count_answers_tokens_and_what_the_cache_had() -> None:
    model = tiny.model("llama", slots=8, context=256)
    with serve(model, port=0) as server:
        assert status_of(server, "/metrics", {}) == 401
        status, headers, page = get(server, "/metrics")
        assert status == 200 and headers["content-type"].startswith("text/plain; version=")
        assert model.engine._loop is None  # asking allocates nothing
        before = samples(page)
        assert before["pygpukit_kv_blocks", ""] == 32 and before["pygpukit_requests_running", ""] == 0
        long = [n % 90 for n in range(150)]
        cached = 0
        for prompt in (long, long, PROMPTS[0]):
            status, body = Asking(server, prompt=prompt, max_tokens=9).answer()
            assert status == 200
            cached += body["usage"]["prompt_tokens_details"]["cached_tokens"]
        found = samples(get(server, "/metrics")[2])
        assert found["pygpukit_answers_total", "length"] == 3
        assert found["pygpukit_prompt_tokens_total", ""] == 305
        assert found["pygpukit_cached_prompt_tokens_total", ""] == cached >= 128
        assert found["pygpukit_generated_tokens_total", ""] == 27
        assert found["pygpukit_time_to_first_token_seconds_count", ""] == 3
        assert found["pygpukit_time_between_tokens_seconds_count", ""] == 24
        assert found["pygpukit_time_between_tokens_seconds_sum", ""] > 0
        assert found["pygpukit_kv_blocks_used", ""] == 0


def test_metrics_show_who_runs_and_waits_and_count_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model("llama", slots=8, context=256)
    monkeypatch.setattr(model.engine.loop.scheduler, "max_rows", 1)
    monkeypatch.setattr(model.engine.loop.scheduler, "max_waiting", 3)
    may_step, launch = threading.Event(), model.engine.loop._launch

    def held(*plan: Any) -> Any:
        assert may_step.wait(PATIENCE_S)
        return launch(*plan)

    monkeypatch.setattr(model.engine.loop, "_launch", held)
    with serve(model, port=0) as server:
        asking = [Asking(server, prompt=[1] * 70, max_tokens=9)]
        assert settled(lambda: len(model.engine.loop.scheduler.running) == 1)
        asking += [Asking(server, prompt=[n] * 70, max_tokens=9) for n in (2, 3, 4)]
        assert settled(lambda: len(model.engine.loop.scheduler.waiting) == 3)
        assert Asking(server, prompt=[7]).answer()[0] == 429
        found = samples(get(server, "/metrics")[2])
        assert (found["pygpukit_requests_running", ""], found["pygpukit_requests_waiting", ""]) == (1, 3)
        assert found["pygpukit_kv_blocks_used", ""] == 2 and found["pygpukit_refused_requests_total", ""] == 1
        may_step.set()
        assert [one.answer()[0] for one in asking] == [200] * 4


def test_pages_of_other_sites_may_ask_where_it_was_said() -> None:
    model: Any = PlayedModel()
    page, other = "http://localhost:3000", "http://evil.example"
    with serve(model, port=0, origins=[page]) as server:
        status, headers, _ = get(server, "/v1/models", origin=page, sec_fetch_site="cross-site")
        assert status == 200 and headers["access-control-allow-origin"] == page
        status, headers, _ = get(server, "/v1/models", origin=other, sec_fetch_site="cross-site")
        assert status == 403 and "access-control-allow-origin" not in headers
        asks = {"access_control_request_method": "POST", "access_control_request_headers": "authorization"}
        status, headers, _ = get(server, "/v1/chat/completions", "OPTIONS", origin=page, **asks)
        assert status == 200 and "POST" in headers["access-control-allow-methods"]
        assert "authorization" in headers["access-control-allow-headers"].lower()
        assert get(server, "/v1/chat/completions", "OPTIONS", origin=other, **asks)[0] == 400
    with serve(model, port=0, origins=["*"]) as server:
        assert get(server, "/v1/models", origin=other, sec_fetch_site="cross-site")[0] == 200
    with serve(model, port=0) as server:
        assert get(server, "/v1/models", origin=page)[0] == 403
    for wrong in ("localhost:3000", "http://localhost:3000/", "http://"):
        with pytest.raises(ValueError, match="give '\\*', or addresses such as"):
            serve(model, port=0, origins=[wrong])
    with pytest.raises(ValueError, match="a token is needed"):
        serve(model, port=0, token=False, origins=["*"])


def test_models_give_way_where_memory_does_not_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was asked for longest ago, never one that is at work, nor the first one."""
    room, loads = 2, list[str]()
    alive: weakref.WeakSet[PlayedModel] = weakref.WeakSet()

    def load(source: str, *, name: str, progress: bool) -> PlayedModel:
        loads.append(name)
        if len(alive) >= room:
            raise OutOfMemoryError("the pool has no room for it")
        made = PlayedModel()
        made.name, made.engine = name, types.SimpleNamespace(occupancy=(0, 0, 0, 0))  # type: ignore[misc,attr-defined]
        alive.add(made)
        return made

    monkeypatch.setattr(llm, "load", load)
    first: Any = PlayedModel()
    first.engine = types.SimpleNamespace(occupancy=(0, 0, 0, 0))
    with serve(first, port=0, models=["a", "b", "c"]) as server, client_of(server) as client:

        def ask(name: str) -> str:
            return client.chat.completions.create(model=name, messages=MESSAGES).model

        def loaded() -> str:
            listed = json.loads(get(server, "/v1/models")[2])["data"]
            return "".join(one["id"] for one in listed if one["loaded"])

        assert loaded() == "toy"
        for name in "abab":
            assert ask(name) == name
        assert loaded() == "toyab" and loads == ["a", "b"]
        assert ask("a") == "a" and ask("c") == "c"  # b was asked for longest ago
        assert loaded() == "toyac" and loads == ["a", "b", "c", "c"]
        held = next(one for one in alive if one.name == "a")
        held.leave.clear()
        stream = client.chat.completions.create(model="a", messages=MESSAGES, stream=True)
        assert ask("b") == "b"  # c gives way, though a was asked for before it: it is at work
        assert loaded() == "toyab"
        room = 0
        with pytest.raises(openai.InternalServerError, match="c cannot be loaded: the pool has no room"):
            ask("c")
        assert loaded() == "toya"
        held.leave.set()
        assert "".join(piece.choices[0].delta.content or "" for piece in stream)
        page = get(server, "/metrics")[2]
        assert 'pygpukit_model_drops_total{model="b"} 2.0' in page and 'pygpukit_model_loaded{model="a"} 1.0' in page
        assert 'pygpukit_model_loaded{model="c"} 0.0' in page and ask("toy") == "toy"


def test_what_a_dropped_model_held_is_free_again() -> None:
    gone = weakref.ref(model := tiny.model("llama", slots=2, context=64))
    with serve(model, port=0) as server, client_of(server) as client:
        client.completions.create(model="tiny", prompt=[1, 2, 3], max_tokens=3)
    del model, server, client
    gc.collect()
    assert gone() is None
