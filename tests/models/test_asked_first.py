"""What a model needs of the extras is asked for before anything of it is fetched or placed on the device."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from llm.tiny import CONFIGS, MemoryCheckpoint, tensors

import pygpukit as gp
from pygpukit import cli
from pygpukit.core.extras import install_command, need
from pygpukit.llm import weights
from pygpukit.models import fetch
from pygpukit.pipeline import create_voice_pipeline


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Hides modules; whatever then fetches a model, or places one, fails the test."""

    def hide(*modules: str) -> None:
        for module in modules:
            monkeypatch.setitem(sys.modules, module, None)
        for name in ("_local", "models_directory"):
            monkeypatch.setattr(fetch, name, lambda *args: pytest.fail("a model is being fetched"))
        monkeypatch.setattr("pygpukit.nn.loading.factory.empty", lambda *args: pytest.fail("a tensor is placed"))

    return hide


@pytest.mark.parametrize(
    ("use", "module", "extra"),
    [
        (lambda: gp.llm.load("smollm2-135m-instruct"), "tokenizers", "models"),
        (lambda: gp.llm.load("smollm2-135m-instruct"), "jinja2", "models"),
        (lambda: gp.llm.chat("smollm2-135m-instruct"), "tokenizers", "models"),
        (lambda: gp.asr.load("whisper-tiny.en"), "tokenizers", "models"),
        (lambda: gp.asr.WhisperModel.from_pretrained("whisper-tiny.en"), "tokenizers", "models"),
        (lambda: create_voice_pipeline("whisper-tiny.en", "smollm2-135m-instruct", "kokoro-82m"), "jinja2", "models"),
    ],
)
def test_a_model_by_name(use: Callable[[], Any], module: str, extra: str, without: Callable[..., None]) -> None:
    without(module)
    with pytest.raises(ModuleNotFoundError, match=rf"needs {module}: {re.escape(install_command(extra))}$"):
        use()


@pytest.mark.parametrize(
    "use",
    [
        lambda: gp.tts.load("kokoro-82m"),
        lambda: create_voice_pipeline("whisper-tiny.en", "smollm2-135m-instruct", "kokoro-82m"),
    ],
)
def test_a_voice_that_is_to_speak_text(use: Callable[[], Any], without: Callable[..., None]) -> None:
    without("hibari", "misaki")
    with pytest.raises(gp.InvalidSpecError, match=re.escape(install_command("tts"))):
        use()


def test_a_voice_of_phonemes_alone_needs_no_library(without: Callable[..., None], tmp_path: Path) -> None:
    without("hibari", "misaki")
    with pytest.raises(gp.GPUError, match="must have one"):
        gp.tts.load(str(tmp_path), lang=None)


@pytest.mark.parametrize("command", [["chat"], ["serve", "--port", "0"]])
def test_commands_say_it_in_one_sentence(
    command: list[str], without: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    without("tokenizers")
    assert cli.main([command[0], "smollm2-135m-instruct", *command[1:]]) == 1
    said = capsys.readouterr().err
    assert said.endswith(f"a language model needs tokenizers: {install_command('models')}\n")


class Chatting(MemoryCheckpoint):
    """A checkpoint whose tokenizer has a chat template."""

    def tokenizer(self) -> Any:
        need("tokenizers", "models", "reading a tokenizer")
        return SimpleNamespace(chat_template="{{ messages }}")


@pytest.mark.parametrize("module", ["tokenizers", "jinja2"])
def test_a_file_of_a_model_with_a_chat_template(module: str, without: Callable[..., None]) -> None:
    without(module)
    config = CONFIGS["llama"]
    with pytest.raises(ModuleNotFoundError, match=re.escape(install_command("models"))):
        weights.from_checkpoint(Chatting(config, tensors(config, 0)))


def test_a_widget_names_the_extra() -> None:
    code = "import sys; sys.modules['anywidget'] = None\nimport pygpukit.jupyter.widgets"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip().endswith(f"a widget needs anywidget: {install_command('lab')}")
