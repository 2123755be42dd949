"""Chat templates: the forms that models want, and hostile ones, which end a process that is not this one."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path

import pytest

from pygpukit.core.errors import ModelFileError
from pygpukit.core.extras import install_command
from pygpukit.llm import (
    ChatMessage,
    ChatTemplate,
    apply_chat_template,
    create_chat_prompt,
    format_chat_messages,
)
from pygpukit.models.tokenizer import template
from pygpukit.models.tokenizer.gguf import from_fields

CHAT = create_chat_prompt("q", "s")


def test_documented_helpers() -> None:
    assert [(one.role, one.content) for one in CHAT] == [("system", "s"), ("user", "q")]
    assert create_chat_prompt("q", assistant_prefix="So")[-1] == ChatMessage("assistant", "So")
    chatml = "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nq<|im_end|>\n"
    assert format_chat_messages(CHAT, add_generation_prompt=False) == chatml
    assert format_chat_messages(CHAT, "qwen3") == chatml + "<|im_start|>assistant\n"
    assert format_chat_messages(CHAT, "llama2") == "[INST] <<SYS>>\ns\n<</SYS>>\n\nq [/INST]"
    assert format_chat_messages(CHAT, "mistral") == "[INST] s\n\nq [/INST]"
    head = "<|start_header_id|>{}<|end_header_id|>\n\n"
    want = head.format("system") + "s<|eot_id|>" + head.format("user") + "q<|eot_id|>" + head.format("assistant")
    assert format_chat_messages(CHAT, "llama3") == want
    with pytest.raises(ValueError, match="chatml, qwen"):
        format_chat_messages(CHAT, "gpt5")


def test_apply_chat_template_gives_ids() -> None:
    import model_files

    fields = model_files.tokenizer_fields(**{"tokenizer.chat_template": "{{ bos_token }}{{ messages[0].content }}"})
    tokenizer = from_fields(fields, "made here")
    assert apply_chat_template([ChatMessage("user", "hello")], tokenizer) == [260, 259]
    with pytest.raises(ValueError, match="return_tensors"):
        apply_chat_template([], tokenizer, return_tensors="pt")  # type: ignore[arg-type]


OF_PARTS = (
    "{% for m in messages %}<{{ m.role }}>{% for part in m.content %}{% if part['type'] == 'image' %}<image>"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}; {% endfor %}"
)


@pytest.mark.parametrize(
    "source",
    [
        OF_PARTS,
        OF_PARTS.replace("{% for m", "{{ bos_token + '' }}{% for m"),
        "{% for m in messages %}<{{ m.role }}>{{ (m.content | selectattr('type', 'equalto', 'text') | first).text }}; "
        "{% endfor %}",
    ],
)
def test_a_template_of_parts_loses_no_text(source: str) -> None:
    assert ChatTemplate(source, {"bos_token": ""}).render(CHAT) == "<system>s; <user>q; "
    parts = [{"role": "user", "content": [{"type": "text", "text": "q"}]}]
    assert ChatTemplate(source, {"bos_token": ""}).render(parts) == "<user>q; "


def test_a_template_of_texts_gets_texts() -> None:
    both = "{% for m in messages %}{% if m.content is string %}text {{ m.content }}{% endif %}{% endfor %}"
    assert ChatTemplate(both).render(CHAT) == "text stext q"
    silent = "{% for m in messages %}{{ m.role }}{# no text #}{% endfor %}"
    assert ChatTemplate(silent).render(CHAT) == "systemuser"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "{% for m in messages %}{{ loop.index }}{% if m.role == 'user' %}{% continue %}{% endif %}x{% endfor %}",
            "1x2",
        ),
        ("{% generation %}{{ messages[1]['content'] }}{% endgeneration %}", "q"),
        ("{{ messages[0] | tojson }}", '{"role": "system", "content": "s"}'),
        ("{{ {'a': '<&\u00e9'} | tojson(indent=1) }}", '{\n "a": "<&\u00e9"\n}'),
        ("{{ strftime_now('%Y')|int > 2000 }}", "True"),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "2"),
        ("{%- if tools %}t{% endif -%}  {{ thinking | default('none') }}", "on"),
        ("{{ messages | attr('__class__') }}", ""),
        ("  {% if true %}\n  a\n  {% endif %}\nb", "  a\nb"),
    ],
)
def test_what_models_templates_use(source: str, text: str) -> None:
    assert ChatTemplate(source).render(CHAT, thinking="on") == text


HOSTILE = {
    "{{ ''.__class__.__mro__[1].__subclasses__() }}": "unsafe",
    "{{ cycler.__init__.__globals__.os.system('true') }}": "unsafe",
    "{{ self.__init__.__globals__ }}": "unsafe",
    "{{ messages.append(1) }}": "unsafe",
    "{{ namespace.__init__.__globals__['os'] }}": "unsafe",
    "{% set x = '{0.__class__.__mro__}'.format(1) %}{{ x }}": "unsafe|failed",
    "{% include '/etc/passwd' %}": "failed",
    "{% import 'os' as os %}": "failed",
    "{% for i in range(10**9) %}{% endfor %}": "Range too big",
    "{{ 'a' * 10**9 }}": "memory",
    "{{ [0] * 10**9 }}": "memory",
    "{{ '%0999999999d' % 1 }}": "memory",
    "{{ 'x'.center(10**10) }}": "memory",
    "{% for i in range(99999) %}{{ 'a' * 1000 }}{% endfor %}": "longer than 16777216",
    "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}": "too deeply",
    "{{ raise_exception('only users') }}": "only users",
    "{{ x": "line 1",
    "{% for %}": "line 1",
    "{{ 1 / 0 }}": "ZeroDivisionError",
    "{{" + "(" * 5000 + ")" * 5000 + "}}": "too deeply|failed",
}


@pytest.mark.parametrize("source", HOSTILE)
def test_hostile_and_malformed_templates_fail_with_a_sentence(source: str) -> None:
    with pytest.raises(ModelFileError, match=HOSTILE[source]):
        ChatTemplate(source).render(CHAT)
    assert ChatTemplate("ok").render([]) == "ok"


def test_an_endless_template_ends_and_the_next_one_renders() -> None:
    endless = (
        "{% set r = range(99999) %}{% for i in r %}{% for j in r %}{% for k in r %}{% endfor %}{% endfor %}{% endfor %}"
    )
    with pytest.raises(ModelFileError, match="2 s of the processor"):
        ChatTemplate(endless).render([])
    assert ChatTemplate("{{ messages|length }}").render(CHAT) == "2"


def test_what_json_cannot_hold_and_messages_without_a_role() -> None:
    with pytest.raises(ValueError, match="JSON"):
        ChatTemplate("x").render([], tools=[object()])
    with pytest.raises(ValueError, match="message 0 has the role None"):
        ChatTemplate("x").render([{"content": "hi"}])


def test_threads_share_the_process_and_nothing_is_left_behind() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    wrong: list[str] = []

    def many(number: int) -> None:
        for turn in range(50):
            text = ChatTemplate("{{ n }}").render([], n=f"{number}.{turn}")
            if text != f"{number}.{turn}":
                wrong.append(text)

    threads = [threading.Thread(target=many, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    worker = template._worker
    assert worker._process is not None
    pid = worker._process.pid
    worker.stop()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
    until = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()
    assert ChatTemplate("again").render([]) == "again"


def test_a_forked_child_renders_and_leaves_its_parents_process_alone() -> None:
    assert ChatTemplate("before").render([]) == "before"
    process = template._worker._process
    assert process is not None
    child = os.fork()
    if child == 0:
        code = 1
        try:
            template._worker.stop()  # as at its exit
            code = 0 if ChatTemplate("child").render([]) == "child" else 2
            template._worker.stop()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert process.poll() is None
    assert ChatTemplate("after").render([]) == "after" and template._worker._process is process


def test_the_remedy_is_named_without_jinja2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=re.escape(install_command("models"))):
        template._Worker().render("x", {})
