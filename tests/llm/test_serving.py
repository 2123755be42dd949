"""The local endpoint, by the openai client: what is not there is refused by name, who leaves is not served on."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest

from pygpukit import cli
from pygpukit.core.errors import InvalidSpecError, TaskRejectedError
from pygpukit.core.extras import install_command
from pygpukit.llm.generation import Alternative, Completion, Figures, Token
from pygpukit.llm.serving import requests
from pygpukit.llm.serving.server import Server, serve

PATIENCE_S = 60


class PlayedGeneration:
    """Tokens as a model would give them, when the model lets it."""

    def __init__(self, model: PlayedModel, words: list[str], limit: int, top: int | None) -> None:
        self.model, self.limit, self.top = model, limit, top
        self.words, self.given = words, []  # type: ignore[var-annotated]
        self.stopped, self.closed = threading.Event(), False

    @property
    def has_news(self) -> bool:
        return self.stopped.is_set() or self.model.leave.is_set()

    def __next__(self) -> Token:
        index = len(self.given)
        if self.stopped.is_set() or index == min(len(self.words), self.limit):
            raise StopIteration
        word, last = self.words[index], index + 1 in (len(self.words), self.limit)
        reason = None if not last else "stop" if index + 1 == len(self.words) else "length"
        token = Token(index, word, index=index, finish_reason=reason, raw=word.encode())
        if self.top is not None:
            top = tuple(Alternative(n, f"t{n}", -1.0 - n, f"t{n}".encode()) for n in range(self.top))
            token = replace(token, logprob=-0.5, margin=1.0, top=top)
        self.given.append(token)
        return token

    def stop(self) -> None:
        self.stopped.set()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.model.open -= 1

    @property
    def completion(self) -> Completion:
        text = "".join(token.text for token in self.given)
        reason = self.given[-1].finish_reason if self.given else None
        figures = Figures(3, 1, len(self.given), 64, 0, 0.0, 0.0)
        return Completion(text, "", tuple(self.given), reason or "cancelled", 3, None, figures)


class PlayedModel:
    """What the server uses of a model."""

    name, context = "toy", 64

    def __init__(self, room: int = 256) -> None:
        self.room = room  # answers under way and waiting
        self.leave = threading.Event()
        self.leave.set()
        self.open, self.asked = 0, []  # type: ignore[var-annotated]
        self.generations: list[PlayedGeneration] = []
        self.clients: list[str] = []
        self.words = ["Par", "is", " ", "\U0001f680", "."]

    def check(self, prompt: Any) -> None:
        if prompt == "too long":
            raise InvalidSpecError("the prompt has 99 tokens and the context 64: 36 too many", "prompt")

    def run_until(self, ready: Callable[[], bool]) -> None:
        while not ready():
            time.sleep(0.005)

    def stream(
        self, prompt: Any, limit: int, stop: tuple[str, ...] = (), client: str = "", **settings: Any
    ) -> PlayedGeneration:
        self.check(prompt)
        if self.open >= self.room:
            raise TaskRejectedError(f"{self.room} requests wait already; come back later")
        self.clients.append(client)
        if settings.get("temperature", 0) > 2:
            raise InvalidSpecError("temperature is 3, must be at most 2", "temperature")
        self.asked.append((prompt, limit, stop, settings))
        self.open += 1
        made = PlayedGeneration(self, self.words, limit, settings.get("top"))
        self.generations.append(made)
        return made


@pytest.fixture
def model() -> PlayedModel:
    return PlayedModel()


@pytest.fixture
def server(model: PlayedModel) -> Iterator[Server]:
    with serve(model, port=0) as made:  # type: ignore[arg-type]
        yield made


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url, api_key=server.token, max_retries=0, timeout=PATIENCE_S) as made:
        yield made


MESSAGES: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Capital?"}]


def settled(condition: Any) -> bool:
    until = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return bool(condition())


def test_models_are_listed(client: openai.OpenAI) -> None:
    assert [one.id for one in client.models.list()] == ["toy"]
    assert client.models.retrieve("toy").owned_by == "pygpukit"
    with pytest.raises(openai.NotFoundError, match="there is 'toy'"):
        client.models.retrieve("gpt-4")


def test_a_chat_at_once(client: openai.OpenAI, model: PlayedModel) -> None:
    answer = client.chat.completions.create(
        model="toy", messages=MESSAGES, max_completion_tokens=9, stop=["\n"], seed=-1, logit_bias={"5": -100},
        extra_body={"top_k": 4, "min_p": 0.1},
    )  # fmt: skip
    assert answer.choices[0].message.content == "Paris \U0001f680."
    assert answer.choices[0].message.role == "assistant" and answer.choices[0].finish_reason == "stop"
    assert answer.object == "chat.completion" and answer.model == "toy" and answer.id.startswith("chatcmpl-")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (3, 5, 8)
    assert model.asked == [
        (MESSAGES, 9, ("\n",), {
            "temperature": 0.8, "top_p": 0.95, "top_k": 4, "min_p": 0.1, "seed": (1 << 64) - 1,
            "logit_bias": {5: -100.0}})
    ]  # fmt: skip


def test_a_chat_as_it_comes(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="toy", messages=MESSAGES, stream=True, stream_options={"include_usage": True}, temperature=0
    )
    pieces = list(stream)
    choices = [piece.choices[0] for piece in pieces[:-1]]
    assert choices[0].delta.role == "assistant"
    assert [choice.delta.content for choice in choices[1:-1]] == ["Par", "is", " ", "\U0001f680", "."]
    assert choices[-1].finish_reason == "stop" and not choices[-1].delta.content
    assert pieces[-1].choices == [] and pieces[-1].usage is not None and pieces[-1].usage.completion_tokens == 5
    assert len({piece.id for piece in pieces}) == 1


def test_logprobs(client: openai.OpenAI, model: PlayedModel) -> None:
    answer = client.chat.completions.create(model="toy", messages=MESSAGES, logprobs=True, top_logprobs=2, max_tokens=2)
    assert answer.choices[0].finish_reason == "length"
    told = answer.choices[0].logprobs
    assert told is not None and told.content is not None
    first = told.content[0]
    assert (first.token, first.logprob, first.bytes) == ("Par", -0.5, [80, 97, 114])
    assert [one.token for one in told.content[0].top_logprobs] == ["t0", "t1"]
    whole = client.completions.create(model="toy", prompt="Capital", logprobs=1).choices[0].logprobs
    assert whole is not None and whole.tokens == model.words and whole.text_offset == [0, 3, 5, 6, 7]


def test_completions_of_texts_and_ids(client: openai.OpenAI, model: PlayedModel) -> None:
    answer = client.completions.create(model="toy", prompt=["one", "two"], temperature=0)
    assert [(choice.index, choice.text) for choice in answer.choices] == [
        (0, "Paris \U0001f680."),
        (1, "Paris \U0001f680."),
    ]
    assert answer.usage is not None and answer.usage.completion_tokens == 10
    client.completions.create(model="toy", prompt=[1, 2, 3], max_tokens=3)
    assert [asked[:2] for asked in model.asked] == [("one", 16), ("two", 16), ([1, 2, 3], 3)]
    stream = client.completions.create(model="toy", prompt=["one", "two"], stream=True)
    texts = ["", ""]
    for piece in stream:
        texts[piece.choices[0].index] += piece.choices[0].text
    assert texts == ["Paris \U0001f680."] * 2


def test_a_client_that_leaves_ends_the_answer(client: openai.OpenAI, model: PlayedModel) -> None:
    model.words = ["x"] * 60
    stream = client.chat.completions.create(model="toy", messages=MESSAGES, stream=True)
    for _ in range(5):
        next(stream)
    model.leave.clear()
    stream.close()
    assert settled(lambda: model.generations[0].stopped.is_set())
    assert settled(lambda: model.open == 0)
    assert len(model.generations[0].given) < 60 or model.generations[0].stopped.is_set()


def test_a_client_that_leaves_before_a_whole_answer_ends_it(server: Server, model: PlayedModel) -> None:
    model.words = ["x"] * 60
    model.leave.clear()
    connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
    body = json.dumps({"model": "toy", "messages": MESSAGES})
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {server.token}"})
    assert settled(lambda: model.generations)
    connection.close()
    model.leave.set()
    assert settled(lambda: model.open == 0)
    assert model.generations[0].stopped.is_set()


def test_all_who_ask_are_under_way_together(client: openai.OpenAI, model: PlayedModel) -> None:
    model.leave.clear()
    answers: list[str | None] = []

    def ask(user: str) -> None:
        answer = client.chat.completions.create(model="toy", messages=MESSAGES, user=user)
        answers.append(answer.choices[0].message.content)

    threads = [threading.Thread(target=ask, args=(user,)) for user in ("anne", "bob", "", "anne", "")]
    for thread in threads:
        thread.start()
    assert settled(lambda: model.open == 5)
    assert sorted(model.clients) == ["127.0.0.1", "127.0.0.1", "anne", "anne", "bob"]
    model.leave.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert answers == ["Paris \U0001f680."] * 5 and settled(lambda: model.open == 0)


def test_what_is_wrong_is_said_and_gives_its_room_back(client: openai.OpenAI, model: PlayedModel) -> None:
    for _ in range(4):  # more often than there is room
        with pytest.raises(openai.BadRequestError, match="36 too many") as caught:
            client.completions.create(model="toy", prompt="too long")
        assert caught.value.param == "prompt"
    for stream in (True, False):
        with pytest.raises(openai.BadRequestError, match="at most 2"):
            client.chat.completions.create(model="toy", messages=MESSAGES, temperature=3, stream=stream)
    with pytest.raises(openai.NotFoundError, match="no model 'gpt-4'"):
        client.chat.completions.create(model="gpt-4", messages=MESSAGES)
    tools: Any = [{"type": "function", "function": {"name": "f"}}]
    with pytest.raises(openai.BadRequestError, match="chat template has no tools"):
        client.chat.completions.create(model="toy", messages=MESSAGES, tools=tools)
    assert client.chat.completions.create(model="toy", messages=MESSAGES).choices[0].finish_reason == "stop"


def test_only_who_has_the_token_may_ask(server: Server, model: PlayedModel) -> None:
    assert server.token is not None and len(server.token) >= 24
    with openai.OpenAI(base_url=server.url, api_key="guess", max_retries=0) as stranger:
        with pytest.raises(openai.AuthenticationError, match="token"):
            stranger.chat.completions.create(model="toy", messages=MESSAGES)
        with pytest.raises(openai.AuthenticationError):
            stranger.models.list()
    assert not model.asked


def status_of(server: Server, path: str, headers: dict[str, str], body: bytes | None = None) -> int:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
    connection.request("POST" if body else "GET", path, body, headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_another_sites_page_may_not_ask_even_without_a_token(model: PlayedModel) -> None:
    with serve(model, port=0, token=False) as server:  # type: ignore[arg-type]
        assert status_of(server, "/v1/models", {}) == 200
        assert status_of(server, "/v1/models", {"Host": "evil.example"}) == 400
        assert status_of(server, "/health", {}) == 200
    with pytest.raises(ValueError, match="a token is needed"):
        serve(model, host="0.0.0.0", port=0, token=False)  # type: ignore[arg-type]


def test_a_request_that_is_too_large(server: Server) -> None:
    headers = {"Authorization": f"Bearer {server.token}"}
    assert status_of(server, "/v1/completions", headers, b"x" * (17 << 20)) == 413


def test_a_port_that_is_taken_and_an_end(model: PlayedModel) -> None:
    server = serve(model, port=0)  # type: ignore[arg-type]
    with pytest.raises(OSError, match=f"port {server.port} of 127.0.0.1 is in use .* give another one, or 0"):
        serve(model, port=server.port)  # type: ignore[arg-type]
    server.close()
    with pytest.raises(OSError):
        http.client.HTTPConnection(server.host, server.port, timeout=5).request("GET", "/health")


def chat(**fields: Any) -> requests.Asked:
    return requests.chat(json.dumps({"model": "toy", "messages": MESSAGES, **fields}).encode())


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no model": ({"model": None}, "model"),
    "messages as text": ({"messages": "hi"}, "messages"),
    "no messages": ({"messages": []}, "messages"),
    "a role that is none": ({"messages": [{"role": "judge", "content": "x"}]}, "messages[0]"),
    "an image": ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0]"),
    "no content": ({"messages": [{"role": "user"}]}, "messages[0]"),
    "no answers": ({"n": 0}, "n"),
    "too many answers": ({"n": 129}, "n"),
    "one as true": ({"n": True}, "n"),
    "a form that is none": ({"response_format": {"type": "xml"}}, "response_format"),
    "no schema": ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "response_format"),
    "no pattern": ({"response_format": {"type": "regex"}}, "response_format"),
    "functions": ({"functions": [{"name": "f"}]}, "functions"),
    "a misspelt field": ({"temprature": 1}, "temprature"),
    "a text as temperature": ({"temperature": "hot"}, "temperature"),
    "half a token": ({"max_tokens": 1.5}, "max_tokens"),
    "no tokens": ({"max_tokens": 0}, "max_tokens"),
    "an empty stop": ({"stop": ""}, "stop"),
    "stops of numbers": ({"stop": [1]}, "stop"),
    "top without logprobs": ({"top_logprobs": 3}, "top_logprobs"),
    "too many logprobs": ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    "a list as bias": ({"logit_bias": [1]}, "logit_bias"),
    "words as bias": ({"logit_bias": {"a": 1}}, "logit_bias"),
    "stream as text": ({"stream": "yes"}, "stream"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_fields_are_named(case: str) -> None:
    fields, param = WRONG[case]
    with pytest.raises(requests.RequestError) as caught:
        chat(**fields)
    assert caught.value.param == param and caught.value.body()["error"]["param"] == param


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b'{"a":' * 100_000, b"null"])
def test_malformed_requests(raw: bytes) -> None:
    for kind in (requests.chat, requests.completion):
        with pytest.raises(requests.RequestError):
            kind(raw)


@pytest.mark.parametrize(("half", "code"), [(b"\xed\xa0\xbd", "utf-8"), (rb"\ud83d", "utf-16")])
def test_half_a_character_is_refused_however_it_is_written(half: bytes, code: str) -> None:
    asked = b'{"model": "toy", "prompt": "a", "stop": "' + half + b'"}'
    with pytest.raises(requests.RequestError, match=r"surrogate|utf-8"):
        requests.completion(asked if code == "utf-8" else asked.decode().encode(code))


def test_what_asks_for_nothing_is_taken() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    asked = chat(
        messages=[{"role": "developer", "content": parts}],
        n=1,
        tools=[],
        user="me",
        response_format={"type": "text"},
        top_p=None,
    )
    assert asked.prompts == ([{"role": "system", "content": "ab"}],)
    assert asked.settings == {} and asked.max_new_tokens is None


def test_the_command_serves_a_real_model_until_it_is_interrupted(smollm2: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pygpukit",
        "serve",
        str(smollm2),
        "--port",
        "0",
        "--token",
        "secret",
        "--context",
        "256",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        name, _, url = process.stdout.readline().strip().partition(" at ")
        assert process.stdout.readline().strip() == "API key: secret"
        question: Any = [{"role": "user", "content": "What is the capital of France?"}]
        with openai.OpenAI(base_url=url, api_key="secret", timeout=PATIENCE_S) as client:
            create = client.chat.completions.create
            whole = create(model=name, messages=question, temperature=0, max_tokens=12).choices[0].message.content
            pieces = list(create(model=name, messages=question, temperature=0, max_tokens=12, stream=True))
            assert whole is not None and "Paris" in whole
            assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == whole
            with pytest.raises(openai.BadRequestError, match="too many"):
                client.completions.create(model=name, prompt="word " * 999)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.communicate()


def test_the_command_says_what_it_cannot_load(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "no-such-model"]) == 1
    assert "smollm2-135m-instruct" in capsys.readouterr().err


def test_the_command_names_the_remedy_without_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert cli.main(["serve", "no-such-model"]) == 1
    assert install_command("serve") in capsys.readouterr().err
