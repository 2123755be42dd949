"""Chat templates: messages to the text that a model was trained to answer."""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pygpukit.core.errors import ModelFileError
from pygpukit.core.extras import install_command

if TYPE_CHECKING:
    from pygpukit.models.tokenizer.tokenizer import Tokenizer


@dataclass
class ChatMessage:
    """One message of a conversation. role is "system", "user" or "assistant"."""

    role: str
    content: str


Message: TypeAlias = "ChatMessage | Mapping[str, Any]"

_SECONDS, _BYTES, _CHARACTERS = 2, 512 << 20, 16 << 20  # of the processor, of memory, of text
_PATIENCE_S = 60  # for an answer, on a machine that is busy with other things
_PROBE = "\U00014646\U00014645"  # letters that nothing escapes, and hardly any template writes


class ChatTemplate:
    """A Jinja template. tokens are the texts it may use, such as bos_token and eos_token.

    It is rendered in jinja2's immutable sandbox, in a process of its own with at most two seconds of the processor,
    512 MiB and 16 million characters, because it came with a model and may be hostile. Raises ModelFileError, which
    says what the template did, and ModuleNotFoundError without jinja2. May be used from several threads.
    """

    def __init__(self, source: str, tokens: Mapping[str, str] | None = None) -> None:
        self.source = source
        self.tokens = dict(tokens or {})

    def render(self, messages: Iterable[Message], add_generation_prompt: bool = True, **context: Any) -> str:
        """The text for messages; add_generation_prompt ends it with what comes before an answer.

        context are further variables of the template: tools, enable_thinking. Values must be what JSON can hold. Where
        the template reads contents as lists of parts alone, as those of models that see pictures may, texts are given
        as such lists.
        """
        written = plain(messages)
        if _wants_parts(self.source, tuple(sorted(self.tokens.items()))):
            written = [
                {**one, "content": _part(one["content"])} if isinstance(one.get("content"), str) else one
                for one in written
            ]
        values = {
            **self.tokens,
            "tools": None,
            "documents": None,
            **context,
            "messages": written,
            "add_generation_prompt": add_generation_prompt,
        }
        return _worker.render(self.source, values)


def _part(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


@lru_cache(maxsize=64)
def _wants_parts(source: str, tokens: tuple[tuple[str, str], ...]) -> bool:
    """True if a text is lost unless it is a part of a list."""
    if "text" not in source:
        return False

    def shows(content: Any) -> bool:
        message = {"role": "user", "content": content}
        try:
            values = {**dict(tokens), "tools": None, "documents": None, "messages": [message]}
            return _PROBE in _worker.render(source, values | {"add_generation_prompt": False})
        except ModelFileError:
            return False

    return not shows(_PROBE) and shows(_part(_PROBE))


def plain(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Messages as dictionaries. Raises ValueError for one without a role."""
    plain_messages = []
    for place, message in enumerate(messages):
        fields = (
            {"role": message.role, "content": message.content} if isinstance(message, ChatMessage) else dict(message)
        )
        if not isinstance(fields.get("role"), str):
            raise ValueError(f"message {place} has the role {fields.get('role')!r}; it must be a text such as 'user'")
        plain_messages.append(fields)
    return plain_messages


def create_chat_prompt(
    user_message: str, system_message: str | None = None, assistant_prefix: str | None = None
) -> list[ChatMessage]:
    """A conversation of one question, with a system message before it and the begin of an answer after it if given."""
    begin = [] if system_message is None else [ChatMessage("system", system_message)]
    end = [] if assistant_prefix is None else [ChatMessage("assistant", assistant_prefix)]
    return [*begin, ChatMessage("user", user_message), *end]


def format_chat_messages(
    messages: Sequence[Message], model_type: str = "chatml", add_generation_prompt: bool = True
) -> str:
    """Messages in the form of a family of models. Raises ValueError for a family that is not in TEMPLATES."""
    if model_type not in TEMPLATES:
        raise ValueError(f"model_type is {model_type!r}; it must be one of {', '.join(TEMPLATES)}")
    tokens = {"bos_token": "", "eos_token": ""}
    return ChatTemplate(TEMPLATES[model_type], tokens).render(messages, add_generation_prompt)


def apply_chat_template(
    messages: Sequence[Message], tokenizer: Tokenizer, add_generation_prompt: bool = True, return_tensors: None = None
) -> list[int]:
    """Token ids of messages in the form of the tokenizer's own template. return_tensors must be None."""
    if return_tensors is not None:
        raise ValueError(f"return_tensors is {return_tensors!r}; ids come as a list, the only form there is")
    return tokenizer.encode(tokenizer.render_chat(messages, add_generation_prompt), add_special_tokens=False)


class _Worker:
    """The process that renders. It starts with the first template, ends with this one, and is replaced when it dies."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def render(self, source: str, context: dict[str, Any]) -> str:
        limits = {"seconds": _SECONDS, "bytes": _BYTES, "characters": _CHARACTERS}
        try:
            request = json.dumps({"template": source, "context": context, "limits": limits}).encode() + b"\n"
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"messages and variables of a template must be what JSON can hold: {error}") from None
        with self._lock:
            try:
                process = self._running()
                answer = self._ask(process, request)
            except BaseException:  # Ctrl-C too: the answer that is under way would be taken for the next one
                self.stop()
                raise
        if "text" in answer:
            return str(answer["text"])
        raise ModelFileError(f"the chat template failed: {answer['error']}")

    def stop(self) -> None:
        """End the process; a forked child leaves its parent's alone."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.communicate()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None and self._owner == os.getpid():
            return self._process
        spec = find_spec("jinja2"), find_spec("markupsafe")
        if spec[0] is None or spec[1] is None:
            raise ModuleNotFoundError(f"chat templates need jinja2: {install_command('models')}", name="jinja2")
        folders = {str(Path(finder.origin).parent.parent) for finder in spec if finder is not None and finder.origin}
        worker = Path(__file__).with_name("template_worker.py")
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(worker), *sorted(folders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for this process
        )
        if not self._line(self._process, time.monotonic() + _PATIENCE_S):
            raise ModuleNotFoundError(f"jinja2 cannot be loaded: {install_command('models')}", name="jinja2")
        return self._process

    def _ask(self, process: subprocess.Popen[bytes], request: bytes) -> dict[str, Any]:
        assert process.stdin is not None
        try:
            process.stdin.write(request)
            line = self._line(process, time.monotonic() + _PATIENCE_S)
        except BrokenPipeError:
            line = b""
        if not line:
            self.stop()
            return {"error": f"it took more than {_SECONDS} s of the processor or {_BYTES >> 20} MiB of memory"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _line(self, process: subprocess.Popen[bytes], until: float) -> bytes:
        """One line of the process; b"" where it died or did not answer in time."""
        assert process.stdout is not None
        pieces: list[bytes] = []
        while not pieces or not pieces[-1].endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], max(until - time.monotonic(), 0))
            piece = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
            if not piece:
                return b""
            pieces.append(piece)
        return b"".join(pieces)


_worker = _Worker()
atexit.register(_worker.stop)

CHATML_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
QWEN_TEMPLATE = CHATML_TEMPLATE
LLAMA3_TEMPLATE = (
    "{% for message in messages %}<|start_header_id|>{{ message['role'] }}<|end_header_id|>\n\n"
    "{{ message['content'] | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
# A system message has no place of its own: it goes before the first question.
LLAMA2_TEMPLATE = (
    "{% set system = messages[0]['content'] if messages[0]['role'] == 'system' else '' %}"
    "{% for message in messages if message['role'] != 'system' %}"
    "{% if message['role'] == 'user' %}{{ bos_token }}[INST] "
    "{% if system and loop.first %}<<SYS>>\n{{ system }}\n<</SYS>>\n\n{% endif %}"
    "{{ message['content'] | trim }} [/INST]"
    "{% else %} {{ message['content'] | trim }} {{ eos_token }}{% endif %}{% endfor %}"
)
MISTRAL_TEMPLATE = (
    "{% set system = messages[0]['content'] if messages[0]['role'] == 'system' else '' %}"
    "{{ bos_token }}{% for message in messages if message['role'] != 'system' %}"
    "{% if message['role'] == 'user' %}[INST] "
    "{% if system and loop.first %}{{ system }}\n\n{% endif %}{{ message['content'] }} [/INST]"
    "{% else %} {{ message['content'] }}{{ eos_token }}{% endif %}{% endfor %}"
)
TEMPLATES = {
    "chatml": CHATML_TEMPLATE,
    "qwen": QWEN_TEMPLATE,
    "qwen2": QWEN_TEMPLATE,
    "qwen3": QWEN_TEMPLATE,
    "llama2": LLAMA2_TEMPLATE,
    "llama3": LLAMA3_TEMPLATE,
    "mistral": MISTRAL_TEMPLATE,
}
