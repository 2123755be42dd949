"""Models of the Hugging Face hub by owner and name: before a hub of our own, its cache, and without a network."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import model_files
import numpy as np
import pytest
from huggingface_hub import constants
from llm.tiny_weights import CONFIGS, tensors
from safetensors.numpy import save

import pygpukit as gp
from pygpukit.core.errors import InvalidSpecError, ModelNotFoundError
from pygpukit.core.text import human_bytes
from pygpukit.models import repository

COMMIT = "c0ffee" + "0" * 34
CONFIG = {**CONFIGS["qwen2"], "vocab_size": 263}


class Hub(ThreadingHTTPServer):
    """As much of the hub's protocol as its library asks for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, dict[str, bytes]] = {}
        self.asked: list[str] = []
        self.tokens: set[str] = set()
        self.gated = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"
    revisions: ClassVar = ("main", "v1", COMMIT)

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.asked.append(path)
        self.server.tokens.add(self.headers.get("authorization", ""))
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            return self._model("/".join(parts[2:4]), parts[5] if len(parts) > 5 else "main")
        name, revision, file = "/".join(parts[:2]), parts[3], "/".join(parts[4:])
        content = self.server.files.get(name, {}).get(file)
        if content is None or revision not in self.revisions:
            return self._say(404, b"", {"X-Error-Code": "EntryNotFound", "X-Error-Message": "no entry"})
        return self._say(200, content, {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha1(content).hexdigest()}"'})

    def _model(self, name: str, revision: str) -> None:
        files = self.server.files.get(name)
        if files is None:
            return self._say(401, b"{}", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "not found"})
        if self.server.gated:
            return self._say(403, b"{}", {"X-Error-Code": "GatedRepo", "X-Error-Message": "gated"})
        if revision not in self.revisions:
            return self._say(404, b"{}", {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "no revision"})
        siblings = [{"rfilename": file, "size": len(content), "blobId": "b"} for file, content in files.items()]
        body = {"id": name, "modelId": name, "sha": COMMIT, "siblings": siblings, "private": False, "tags": []}
        return self._say(200, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def _say(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    made = Hub()
    threading.Thread(target=made.serve_forever, daemon=True).start()
    monkeypatch.setattr(constants, "ENDPOINT", made.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", made.url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    made.files["me/tiny"] = folder()
    yield made
    made.shutdown()
    made.server_close()


def folder() -> dict[str, bytes]:
    weights = {name: np.ascontiguousarray(array) for name, array in tensors(CONFIG).items()}
    return {
        "config.json": json.dumps({**CONFIG, "architectures": ["Qwen2ForCausalLM"]}).encode(),
        "tokenizer.json": model_files.tokenizer_json().encode(),
        "model.safetensors": save(weights),
        "README.md": b"about",
        "pytorch_model.bin": b"\x80\x04pickle",
        "onnx/model.onnx": b"x" * 99,
        "original/consolidated.safetensors": b"x" * 99,
    }


def test_a_model_is_loaded_by_its_owner_and_name(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    model = gp.llm.load("me/tiny")
    assert model.name == "me/tiny" and model.config.vocab_size == 263
    assert model.generate("hello", 4).finish_reason in ("stop", "length")
    asked = {path.rpartition("/resolve/")[2] for path in hub.asked if "/resolve/" in path}
    assert {Path(path).name for path in asked} == {"config.json", "tokenizer.json", "model.safetensors"}
    size = sum(len(hub.files["me/tiny"][name]) for name in ("config.json", "tokenizer.json", "model.safetensors"))
    said = capsys.readouterr().err
    assert f"me/tiny: 3 files, {human_bytes(size)}, from {hub.url}/me/tiny" in said
    assert "Bearer hf_secret" in hub.tokens
    again = gp.llm.CausalTransformerModel.from_pretrained("me/tiny", progress=False)
    assert again.generate("hello", 4).text == model.generate("hello", 4).text
    assert capsys.readouterr().err == ""


def test_a_revision_is_asked_for_by_name(hub: Hub) -> None:
    path = repository.fetch("me/tiny", "v1", progress=False)
    assert path.name == COMMIT and any("/resolve/v1/" in asked for asked in hub.asked)
    with pytest.raises(ModelNotFoundError, match="has no revision 'v9'"):
        repository.fetch("me/tiny", "v9", progress=False)
    with pytest.raises(InvalidSpecError, match="revision='v1' is of a repository of the hub") as caught:
        gp.models.get("smollm2-135m-instruct", revision="v1")
    assert caught.value.field == "revision"


def test_without_the_hub_its_cache_is_enough(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    first = repository.fetch("me/tiny", progress=False)
    asked = len(hub.asked)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert repository.fetch("me/tiny") == first and len(hub.asked) == asked
    with pytest.raises(ModelNotFoundError) as caught:
        repository.fetch("me/other", "v2")
    said = str(caught.value)
    assert "no path of this machine, not in the Hugging Face cache" in said and "HF_HUB_OFFLINE is set" in said
    assert "run: hf download me/other --revision v2" in said and "models--me--other" in said
    assert "give its path" in said
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.setattr(constants, "ENDPOINT", nobody)
    assert repository.fetch("me/tiny", progress=False) == first
    with pytest.raises(ModelNotFoundError, match="could not be reached"):
        repository.fetch("me/other")


def test_what_the_hub_refuses_is_said(hub: Hub) -> None:
    with pytest.raises(ModelNotFoundError, match=r"me/absent .* is not there, or not for everybody.* set HF_TOKEN"):
        gp.llm.load("me/absent")
    hub.gated = True
    with pytest.raises(ModelNotFoundError, match=r"accept its terms at http.*me/tiny, and set HF_TOKEN"):
        gp.llm.load("me/tiny")


def test_a_download_that_breaks_off_can_go_on(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = hub.files["me/tiny"].pop("model.safetensors")
    monkeypatch.setattr(repository, "_sizes", lambda *_: {"config.json": 1, "model.safetensors": 1})
    with pytest.raises(ModelNotFoundError, match=r"could not be downloaded .* what has come is kept"):
        repository.fetch("me/tiny", progress=False)
    hub.files["me/tiny"]["model.safetensors"] = weights
    assert (repository.fetch("me/tiny", progress=False) / "model.safetensors").read_bytes() == weights


GGUF = {f"model-{kind}.gguf": 5 for kind in ("Q4_K_M", "Q8_0")} | {"README.md": 1, "config.json": 1}
SPLIT = {f"q8/big-Q8_0-0000{n}-of-00002.gguf": n for n in (1, 2)} | {"small-Q4_0.gguf": 1}


@pytest.mark.parametrize(
    "sizes, part, names",
    [
        (GGUF, "q8", {"model-Q8_0.gguf"}),
        (GGUF, "model-Q4_K_M.gguf", {"model-Q4_K_M.gguf"}),
        ({"only.gguf": 1}, None, {"only.gguf"}),
        (SPLIT, "Q8_0", {"q8/big-Q8_0-00001-of-00002.gguf", "q8/big-Q8_0-00002-of-00002.gguf"}),
        ({"a.safetensors": 1, "consolidated.safetensors": 1, "x.gguf": 1}, None, {"a.safetensors"}),
        ({"model.bin": 9, "vocabulary.txt": 1, "config.json": 1}, None, {"model.bin", "vocabulary.txt", "config.json"}),
        (
            {"model-00001-of-00002.safetensors": 1, "model.safetensors.index.json": 2, "x.jinja": 1, "a.py": 1},
            None,
            {"model-00001-of-00002.safetensors", "model.safetensors.index.json", "x.jinja"},
        ),
        (
            {"1_Pooling/config.json": 2, "onnx/config.json": 1, "modules.json": 1, "a.safetensors": 1, "a.bin": 1},
            None,
            {"a.safetensors", "modules.json", "1_Pooling/config.json"},
        ),
        ({"1_Pooling/config.json": 2, "a.safetensors": 1}, None, {"a.safetensors"}),
    ],
)  # fmt: skip
def test_the_files_that_make_a_model(sizes: dict[str, int], part: str | None, names: set[str]) -> None:
    assert repository.choose(sizes, part, "me/x") == {name: sizes[name] for name in names}


@pytest.mark.parametrize(
    "sizes, part, why",
    [
        (GGUF, None, "several GGUF files; give me/x:FILE, one of model-Q4_K_M, model-Q8_0"),
        (GGUF, "Q2", "no GGUF files with 'Q2' in the name; give me/x:FILE, one of model-Q4_K_M"),
        (GGUF, "model", "2 GGUF files with 'model'"),
        ({"pytorch_model.bin": 1, "config.json": 1}, None, "its weights are a pickle"),
        ({"README.md": 1}, None, "it has no weights"),
    ],
)
def test_what_is_no_model_says_why(sizes: dict[str, int], part: str | None, why: str) -> None:
    with pytest.raises(ModelNotFoundError, match=why):
        repository.choose(sizes, part, "me/x")


def test_names() -> None:
    for name in ("me/tiny", "Qwen/Qwen2.5-0.5B-Instruct", "a/b:Q4_K_M", "a/b:dir/file.gguf"):
        assert repository.is_name(name), name
    for name in (
        "tiny",
        "./tiny",
        "/me/tiny",
        "a/b/c",
        "../x",
        "a/..",
        "a/b:../c",
        "me/t y",
        "https://x/y",
        "",
        "\u00e4/b",
    ):
        assert not repository.is_name(name), name


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "find_spec", lambda _: None)
    with pytest.raises(ModelNotFoundError, match=r"\[models\]|models"):
        repository.fetch("me/tiny")
