"""The endpoint before a real loop: clients meet in one batch, share it, leave it, and are refused beyond its bounds."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from llm import tiny
from llm.test_serving import PATIENCE_S, settled

from pygpukit.llm.model import CausalTransformerModel
from pygpukit.llm.serving.server import Server, serve

PROMPTS = [[3 + n, 14, 15, 92 - n, 65] for n in range(12)]


@pytest.fixture
def model() -> CausalTransformerModel:
    return tiny.model("llama", slots=8, context=256)


@pytest.fixture
def server(model: CausalTransformerModel) -> Iterator[Server]:
    with serve(model, port=0) as made:
        yield made


class Asking:
    """A request of /v1/completions: token ids, since these models have no tokenizer."""

    def __init__(self, server: Server, **body: Any) -> None:
        self._connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
        headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
        given = {"model": "tiny", "temperature": 0, "max_tokens": 40, "logprobs": 0} | body
        self._connection.request("POST", "/v1/completions", json.dumps(given), headers)

    def answer(self) -> tuple[int, Any]:
        """(status, body); of a stream the list of its events."""
        found = self._connection.getresponse()
        raw = found.read()
        self._connection.close()
        if raw.startswith(b"data:"):
            events = [line.removeprefix(b"data: ") for line in raw.split(b"\n\n") if line]
            return found.status, [json.loads(event) for event in events if event != b"[DONE]"]
        return found.status, json.loads(raw)

    def leave(self) -> None:
        self._connection.close()


def is_free(model: CausalTransformerModel) -> bool:
    scheduler = model.engine.loop.scheduler
    return scheduler.blocks.free == scheduler.blocks.count and not scheduler.running and not scheduler.waiting


def under_way(model: CausalTransformerModel) -> int:
    return len(model.engine.loop.scheduler.running) + len(model.engine.loop.scheduler.waiting)


def held_steps(model: CausalTransformerModel, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """No step is launched before this is set."""
    may_step, launch = threading.Event(), model.engine.loop._launch

    def held(*plan: Any) -> Any:
        assert may_step.wait(PATIENCE_S)
        return launch(*plan)

    monkeypatch.setattr(model.engine.loop, "_launch", held)
    return may_step


def logprobs(choice: Any) -> list[float]:
    found: list[float] = choice["logprobs"]["token_logprobs"]
    return found


def test_clients_who_ask_by_themselves_meet_in_one_batch_and_hear_what_each_hears_alone(
    model: CausalTransformerModel, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = [[t.logprob for t in model.stream(p, 40, top=0, ignore_eos=True).complete().tokens] for p in PROMPTS]
    plan, rows = model.engine.loop.scheduler.plan, list[int]()

    def counted(now: float) -> Any:
        found = plan(now)
        rows.append(len(found.rows))
        return found

    monkeypatch.setattr(model.engine.loop.scheduler, "plan", counted)
    may_step = held_steps(model, monkeypatch)
    asking = [Asking(server, prompt=prompt, stream=n % 2 == 1) for n, prompt in enumerate(PROMPTS)]
    assert settled(lambda: under_way(model) == len(PROMPTS))
    may_step.set()
    for number, one in enumerate(asking):
        status, body = one.answer()
        assert status == 200
        if number % 2:
            found = [x for event in body for choice in event["choices"] if choice["logprobs"] for x in logprobs(choice)]
        else:
            found = logprobs(body["choices"][0])
        assert found == pytest.approx(alone[number], abs=0), number
    assert max(rows) == 12 and sum(rows) == 12 * 39
    assert settled(lambda: is_free(model))


def test_prompts_of_one_request_are_computed_together(model: CausalTransformerModel, server: Server) -> None:
    alone = [[t.logprob for t in model.stream(p, 9, top=0, ignore_eos=True).complete().tokens] for p in PROMPTS]
    for stream in (False, True):
        status, body = Asking(server, prompt=PROMPTS, max_tokens=9, stream=stream).answer()
        assert status == 200
        found: list[list[float]] = [[] for _ in PROMPTS]
        for choice in body["choices"] if not stream else [c for event in body for c in event["choices"]]:
            found[choice["index"]] += logprobs(choice) if choice["logprobs"] else []
        assert found == alone


def test_several_answers_to_a_prompt_are_its_requests_of_one_seed(
    model: CausalTransformerModel, server: Server
) -> None:
    settings: dict[str, Any] = {"temperature": 1.5, "seed": 5, "top_p": 1.0, "min_p": 0.0}
    alone = [
        [
            token.logprob
            for token in model.stream(prompt, 9, top=0, ignore_eos=True, request=sample, **settings).complete().tokens
        ]
        for prompt in PROMPTS[:2]
        for sample in range(3)
    ]
    assert len({tuple(one) for one in alone}) == 6
    for stream in (False, True):
        body = {"prompt": PROMPTS[:2], "n": 3, "max_tokens": 9, "stream_options": {"include_usage": True}, **settings}
        status, answer = Asking(server, stream=stream, **body).answer()
        assert status == 200
        logprobs_of: list[list[float]] = [[] for _ in alone]
        for choice in answer["choices"] if not stream else [c for event in answer for c in event["choices"]]:
            logprobs_of[choice["index"]] += logprobs(choice) if choice["logprobs"] else []
        assert logprobs_of == alone
        usage = (answer[-1] if stream else answer)["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (10, 54)


def test_who_leaves_frees_the_blocks_within_a_step_running_or_waiting(
    model: CausalTransformerModel, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = model.engine.loop
    monkeypatch.setattr(loop.scheduler, "max_rows", 2)
    may_step = held_steps(model, monkeypatch)
    asking = [Asking(server, prompt=[n] * 120, max_tokens=100, stream=bool(n % 2)) for n in range(5)]
    assert settled(lambda: under_way(model) == 5 and loop._led)
    for one in asking:
        one.leave()
    assert settled(lambda: is_free(model))  # the step that was planned is still to be launched
    may_step.set()
    assert Asking(server, prompt=[7], max_tokens=3).answer()[0] == 200
    assert settled(lambda: is_free(model))


def test_more_than_may_wait_are_refused_and_told_when_to_come_again(
    model: CausalTransformerModel, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = model.engine.loop
    monkeypatch.setattr(loop.scheduler, "max_waiting", 2)
    monkeypatch.setattr(loop.scheduler, "max_rows", 1)
    may_step = held_steps(model, monkeypatch)
    asking = [Asking(server, prompt=[1], max_tokens=9)]
    assert settled(lambda: len(loop.scheduler.running) == 1)
    asking += [Asking(server, prompt=[n], max_tokens=9) for n in (2, 3)]
    assert settled(lambda: len(loop.scheduler.waiting) == 2)
    for stream in (False, True):
        status, body = Asking(server, prompt=[4], stream=stream).answer()
        assert status == 429 and "come back later" in body["error"]["message"]
    status, body = Asking(server, prompt=[[5], [6]]).answer()
    assert status == 429
    may_step.set()
    assert [one.answer()[0] for one in asking] == [200] * 3
    assert settled(lambda: is_free(model))


def test_one_user_of_many_requests_does_not_hold_up_another(
    model: CausalTransformerModel, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = model.engine.loop
    monkeypatch.setattr(loop.scheduler, "max_rows", 2)
    may_step = held_steps(model, monkeypatch)
    ended: list[str] = []

    def ask(user: str, number: int) -> None:
        assert Asking(server, prompt=[number], max_tokens=20, user=user).answer()[0] == 200
        ended.append(user)

    threads = [threading.Thread(target=ask, args=("many", n)) for n in range(10)]
    for thread in threads:
        thread.start()
    assert settled(lambda: under_way(model) == 10)
    threads.append(threading.Thread(target=ask, args=("one", 50)))
    threads[-1].start()
    assert settled(lambda: under_way(model) == 11)
    may_step.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert ended.index("one") < 5


def test_a_step_that_fails_is_an_error_of_its_answers_alone(
    model: CausalTransformerModel, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pygpukit.core.errors import GPUError

    def fails(*_: Any) -> Any:
        raise GPUError("no more")

    with monkeypatch.context() as patch:
        patch.setattr(model.engine.loop, "_launch", fails)
        status, body = Asking(server, prompt=[1]).answer()
        assert status == 500 and "the model failed: no more" in body["error"]["message"]
        status, body = Asking(server, prompt=[1], stream=True).answer()
        assert status == 200 and "no more" in body[-1]["error"]["message"]
    assert Asking(server, prompt=[1]).answer()[0] == 200
    assert settled(lambda: is_free(model))


@pytest.mark.parametrize("source", ["ngram", "layers", "jacobi", "lookahead"])
def test_answers_with_drafts_are_those_without(server: Server, model: CausalTransformerModel, source: str) -> None:
    requests = [{"prompt": PROMPTS[n], "temperature": n % 2, "seed": 7, "max_tokens": 30} for n in range(4)]
    plain = [Asking(server, **body) for body in requests]
    expected = [asking.answer() for asking in plain]
    drafted = [Asking(server, **body, speculate=source) for body in requests]
    for asking, (status, body) in zip(drafted, expected, strict=True):
        found_status, found = asking.answer()
        assert (found_status, found["choices"]) == (status, body["choices"]) and status == 200
    assert is_free(model)


def test_a_source_of_drafts_that_there_is_not_is_named(server: Server) -> None:
    for wrong in ("model", "luck", 3):
        status, body = Asking(server, prompt=PROMPTS[0], speculate=wrong).answer()
        assert status == 400 and body["error"]["param"] == "speculate"
        assert "must be one of ngram, layers, jacobi, lookahead" in body["error"]["message"]
