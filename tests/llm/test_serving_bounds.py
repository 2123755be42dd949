"""The endpoint under load and hostile requests: what they cost is bounded, and nobody shuts others out."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from llm.test_serving import MESSAGES, PATIENCE_S, PlayedModel, settled

from pygpukit.llm.serving import bounds, connections, requests
from pygpukit.llm.serving.server import Server, serve

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"


@pytest.fixture
def model() -> PlayedModel:
    return PlayedModel()


@pytest.fixture
def server(model: PlayedModel) -> Iterator[Server]:
    with serve(model, port=0) as made:  # type: ignore[arg-type]
        yield made


def asked(server: Server, path: str, body: Any, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """(status, headers, body) of a POST; body: bytes, or what becomes JSON. A header's _ is a -."""
    raw = body if isinstance(body, bytes) else json.dumps({"model": "toy"} | body).encode()
    given = {"content-type": "application/json"} | ({"authorization": f"Bearer {server.token}"} if server.token else {})
    connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
    try:
        connection.request("POST", path, raw, given | {name.replace("_", "-"): text for name, text in headers.items()})
        answer = connection.getresponse()
        return answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def test_pages_of_other_sites_may_not_ask(model: PlayedModel) -> None:
    with serve(model, port=0, token=False) as open_one:  # type: ignore[arg-type]
        own = f"http://{open_one.host}:{open_one.port}"
        for headers, status in (
            ({}, 200),
            ({"origin": own}, 200),
            ({"sec_fetch_site": "same-origin"}, 200),
            ({"origin": "http://evil.example"}, 403),
            ({"origin": "null"}, 403),
            ({"origin": f"http://{open_one.host}:1"}, 403),
            ({"sec_fetch_site": "cross-site"}, 403),
            ({"sec_fetch_site": "same-site"}, 403),
            ({"content_type": "text/plain"}, 415),
            ({"content_type": "application/x-www-form-urlencoded"}, 415),
            ({"content_type": "application/json; charset=utf-8"}, 200),
        ):
            assert asked(open_one, CHAT, {"messages": MESSAGES}, **headers)[0] == status, headers


HOSTILE: dict[str, bytes] = {
    "half a pair": rb'{"model": "toy", "messages": [{"role": "user", "content": "a\ud83d"}]}',
    "half a pair in a name": rb'{"model": "toy\udc00", "messages": [{"role": "user", "content": "a"}]}',
    "half a pair in a stop": rb'{"model": "toy", "messages": [{"role": "user", "content": "a"}], "stop": "\ud800"}',
    "half a pair in a field": b'{"model": "toy", "prompt": "a", "\xed\xa0\xbd": 1}',
    "a role that is a list": b'{"model": "toy", "messages": [{"role": [], "content": "a"}]}',
    "a role that is an object": b'{"model": "toy", "messages": [{"role": {"a": 1}, "content": "a"}]}',
    "a bias that no float holds": b'{"model": "toy", "prompt": "a", "logit_bias": {"5": 1' + b"0" * 400 + b"}}",
    "a bias without end": b'{"model": "toy", "prompt": "a", "logit_bias": {"5": 1e999}}',
    "a bias of no number": b'{"model": "toy", "prompt": "a", "logit_bias": {"5": NaN}}',
    "a temperature without end": b'{"model": "toy", "prompt": "a", "temperature": -1e999}',
    "a number of 5000 digits": b'{"model": "toy", "prompt": "a", "max_tokens": ' + b"9" * 5000 + b"}",
    "a long name": b'{"model": "' + b"x" * 10**6 + b'", "prompt": "a"}',
    "a long field": b'{"model": "toy", "prompt": "a", "' + b"x" * 10**6 + b'": 1}',
    "a long value": b'{"model": "toy", "prompt": "a", "stream": "' + b"x" * 10**6 + b'"}',
    "a long role": b'{"model": "toy", "messages": [{"role": "' + b"x" * 10**6 + b'", "content": "a"}]}',
    "long stops": b'{"model": "toy", "prompt": "a", "stop": ["' + b"x" * 10**5 + b'"]}',
    "no UTF-8": b'{"model": "toy", "prompt": "\xff"}',
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_requests_are_refused_in_short(case: str, server: Server) -> None:
    path = CHAT if b"messages" in HOSTILE[case] else TEXT
    status, _, answer = asked(server, path, HOSTILE[case])
    assert status in (400, 404) and len(answer) < 2000, (status, answer[:200])
    assert json.loads(answer)["error"]["message"]


@pytest.mark.parametrize(("method", "path", "status"), [("POST", "/v1/none", 404), ("GET", CHAT, 405)])
def test_what_is_not_there_is_said_as_the_protocol_says_it(method: str, path: str, status: int, server: Server) -> None:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
    connection.request(method, path)
    answer = connection.getresponse()
    error = json.loads(answer.read())["error"]
    connection.close()
    assert (answer.status, error["type"]) == (status, "invalid_request_error") and path in error["message"]


def test_prompts_that_cannot_fit_are_not_split_into_tokens(server: Server, model: PlayedModel) -> None:
    class Tokenizer:
        vocab_size, split = 4, 0

        def id_to_token(self, number: int) -> str:
            return "x" * number

    model.tokenizer = Tokenizer()  # type: ignore[attr-defined]
    most = model.context * 3
    assert asked(server, TEXT, {"prompt": "y" * most})[0] == 200
    for path, body in (
        (TEXT, {"prompt": "y" * (most + 1)}),
        (TEXT, {"prompt": ["y", "y" * (most + 1)], "stream": True}),
        (CHAT, {"messages": [{"role": "user", "content": "y" * (most + 1)}]}),
        (CHAT, {"messages": [{"role": "user", "content": ""}] * (model.context + 1)}),
    ):
        status, _, answer = asked(server, path, body)
        assert status == 400 and json.loads(answer)["error"]["code"] == "context_length_exceeded"
    assert len(model.asked) == 1


def test_all_prompts_are_checked_before_one_is_answered(server: Server, model: PlayedModel) -> None:
    for stream in (True, False):
        status, _, answer = asked(server, TEXT, {"prompt": ["short", "too long"], "stream": stream})
        assert (status, json.loads(answer)["error"]["param"]) == (400, "prompt")
    assert asked(server, TEXT, {"prompt": ["a"] * (bounds.MAX_ANSWERS + 1)})[0] == 400
    assert asked(server, TEXT, {"prompt": ["a"] * 2, "n": bounds.MAX_ANSWERS // 2 + 1})[0] == 400
    assert not model.asked


@pytest.mark.parametrize("stream", [False, True])
def test_who_leaves_is_under_way_no_more(stream: bool, server: Server, model: PlayedModel) -> None:
    model.leave.clear()
    body = json.dumps({"model": "toy", "messages": MESSAGES, "stream": stream})
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
    waiting: list[http.client.HTTPConnection] = []
    for _ in range(12):
        connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
        connection.request("POST", CHAT, body, headers)
        waiting.append(connection)
    assert settled(lambda: model.open == 12)
    for connection in waiting[2:]:
        connection.close()
    assert settled(lambda: model.open == 2)  # though the model gave no token
    assert not any(generation.given for generation in model.generations)
    model.leave.set()
    for connection in waiting[:2]:
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read()
        connection.close()
    assert settled(lambda: model.open == 0)
    assert asked(server, CHAT, {"messages": MESSAGES})[0] == 200


def test_who_would_wait_too_long_is_told_to_come_back(server: Server, model: PlayedModel) -> None:
    model.room = 2
    model.leave.clear()
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(asked(server, CHAT, {"messages": MESSAGES})[0])) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    assert settled(lambda: model.open == 2)
    for body in ({"messages": MESSAGES}, {"messages": MESSAGES, "stream": True}):
        refused = asked(server, CHAT, body)
        assert refused[0] == 429 and refused[1]["retry-after"] == "1"
    refused = asked(server, TEXT, {"prompt": ["one", "two"]})
    assert refused[0] == 429 and model.open == 2
    model.leave.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert found == [200] * 2


def test_a_stream_ends_with_a_word_when_the_server_stops(model: PlayedModel) -> None:
    model.leave.clear()
    with serve(model, port=0) as server:  # type: ignore[arg-type]
        connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
        body = json.dumps({"model": "toy", "messages": MESSAGES, "stream": True})
        headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
        connection.request("POST", CHAT, body, headers)
        answer = connection.getresponse()
        answer.read(10)  # it has begun
        server.close()
        events = [line for line in answer.read().split(b"\n\n") if line.startswith(b"data: ")]
        connection.close()
    assert "the server is stopping" in json.loads(events[-1].removeprefix(b"data: "))["error"]["message"]
    assert settled(lambda: model.open == 0)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch, model: PlayedModel) -> Iterator[Server]:
    monkeypatch.setattr(connections, "HEAD_S", 1)
    monkeypatch.setattr(connections, "BODY_S", 1)
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 16)
    with serve(model, port=0) as server:  # type: ignore[arg-type]
        yield server


def opened(server: Server, sent: bytes) -> socket.socket:
    made = socket.create_connection((server.host, server.port), timeout=PATIENCE_S)
    made.sendall(sent)
    return made


HALVES = {
    "nothing": b"",
    "half a head": b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConte",
    "half a body": b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{",
    "half a second request": b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /hea",
}


@pytest.mark.parametrize("half", HALVES)
def test_half_open_connections_are_closed(half: str, hurried: Server) -> None:
    connection = opened(hurried, HALVES[half])
    while connection.recv(4096):
        pass
    connection.close()


def test_idle_connections_do_not_shut_others_out(hurried: Server, model: PlayedModel) -> None:
    model.leave.clear()
    body = json.dumps({"model": "toy", "messages": MESSAGES}).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {hurried.token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    working = opened(hurried, head.encode() + body)
    assert settled(lambda: model.open == 1)
    idle = [opened(hurried, b"GET /hea") for _ in range(60)]
    connection = http.client.HTTPConnection(hurried.host, hurried.port, timeout=PATIENCE_S)
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    model.leave.set()
    answer = b""
    while piece := working.recv(4096):
        answer += piece
    assert answer.startswith(b"HTTP/1.1 200")
    for one in (*idle, working, connection):
        one.close()


def test_events_are_one_line_each(server: Server, model: PlayedModel) -> None:
    model.words = ["a\u2028b", "\u2029\x85c", "\U0001f680"]
    _, _, answer = asked(server, CHAT, {"messages": MESSAGES, "stream": True})
    lines = [line for line in answer.decode().splitlines() if line]
    assert all(line.startswith("data: ") for line in lines)
    told = [json.loads(line[6:])["choices"][0]["delta"].get("content", "") for line in lines[:-1]]
    assert "".join(told) == "a\u2028b\u2029\x85c\U0001f680"


@pytest.mark.parametrize(
    ("generation", "expected"),
    [
        ({}, {"temperature": 0.8, "top_p": 0.95, "min_p": 0.05}),
        ({"temperature": 0.7, "top_k": 20, "eos_token_id": 3}, {"temperature": 0.7, "top_k": 20}),
        ({"do_sample": False, "temperature": 0.7}, {"temperature": 0.0}),
        ({"repetition_penalty": 1.1}, {"repetition_penalty": 1.1}),
        ({"repetition_penalty": 1.1, "do_sample": False, "top_k": 3}, {"repetition_penalty": 1.1, "temperature": 0.0}),
        ({"temperature": None, "top_p": None}, {"temperature": 0.8, "top_p": 0.95, "min_p": 0.05}),
    ],
)
def test_a_request_without_settings_is_answered_as_the_model_wants(
    generation: dict[str, Any], expected: dict[str, float], server: Server, model: PlayedModel
) -> None:
    model.generation = generation  # type: ignore[attr-defined]
    assert asked(server, CHAT, {"messages": MESSAGES})[0] == 200
    assert asked(server, CHAT, {"messages": MESSAGES, "temperature": 0})[0] == 200
    assert [settings for *_, settings in model.asked] == [expected, expected | {"temperature": 0}]


def test_answers_of_tools_are_texts_of_nothing() -> None:
    messages = [*MESSAGES, {"role": "assistant", "content": None}, MESSAGES[-1]]
    found = requests.chat(json.dumps({"model": "toy", "messages": messages}).encode())
    assert found.prompts[0][2] == {"role": "assistant", "content": ""}
