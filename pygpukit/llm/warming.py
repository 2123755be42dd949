"""Warm-up: the work that the first answer of a process would wait for, done once a model before its question."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pygpukit.core import doing

_POLL_S = 0.05
_lock = threading.Lock()
_begun: weakref.WeakKeyDictionary[Any, _Warming] = weakref.WeakKeyDictionary()


class _Warming:
    def __init__(self) -> None:
        self.ended = threading.Event()
        self.doing = "Getting the model ready"

    def hear(self, what: str) -> None:
        self.doing = what


def begin(model: Any, system: str, settings: dict[str, Any], run: Callable[..., Any]) -> None:
    """Begin it on a thread of its own, unless it was begun before. run(function, ...) runs it in its session.

    An answer of two tokens is made and forgotten: tokenizer and template are there then, kernels compiled, the cache
    placed, and the system prompt read. A model that does not count its prompts is left alone.
    """
    if not hasattr(model, "prompt_tokens"):
        return
    with _lock:
        if model in _begun:
            return
        mine = _begun[model] = _Warming()
    arguments = (_warm, model, system, settings, mine)
    threading.Thread(target=run, args=arguments, name="pygpukit-warming", daemon=True).start()


def wait(model: Any, stopped: Callable[[], bool]) -> None:
    """Wait for what was begun, and say what it does. Where nothing was, nothing is from now on: the answer that waits
    here does it itself, and would be refused its place in the model by what begins behind it. Ends early when stopped()
    is true."""
    try:
        with _lock:
            mine = _begun.get(model)
            if mine is None:
                mine = _begun[model] = _Warming()
                mine.ended.set()
    except TypeError:  # what nothing can be kept by
        return
    said = ""
    while not mine.ended.wait(_POLL_S) and not stopped():
        if mine.doing != said:
            said = mine.doing
            doing.say(said)


def _warm(model: Any, system: str, settings: dict[str, Any], mine: _Warming) -> None:
    messages = [{"role": "system", "content": system}] if system else []
    try:
        # What fails here fails again in the request, which reports it.
        with suppress(Exception), doing.heard_by(mine.hear):
            for _ in model.chat([*messages, {"role": "user", "content": "Hello"}], 2, **settings):
                pass
    finally:
        mine.ended.set()
