"""`pygpukit chat`: lines, several of them, and settings."""

from __future__ import annotations

import io
from typing import Any

import pytest

from pygpukit.llm import terminal


def said(*lines: str) -> list[str]:
    """What was said in a talk with these lines."""
    given, heard = iter(lines), []

    def ask(prompt: str) -> str:
        try:
            return next(given)
        except StopIteration:
            raise EOFError from None

    while True:
        try:
            heard.append(terminal._read(ask))
        except EOFError:
            return heard


@pytest.mark.parametrize(
    ("lines", "heard"),
    [
        (["one", "two"], ["one", "two"]),
        (["one\\", "two\\", "three", "four"], ["one\ntwo\nthree", "four"]),
        (['"""', "a", "", 'b"""', '"""', "c"], ['a\n\nb"""', "c"]),
        (["one\\"], []),
        (['"""', "a"], []),
    ],
)
def test_several_lines_are_said_at_once(lines: list[str], heard: list[str]) -> None:
    assert said(*lines) == heard


def test_settings_are_those_of_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def conversation(model: Any, system: str, most: int | None, told: Any, **settings: Any) -> None:
        given.update(settings)

    monkeypatch.setattr(terminal, "Conversation", conversation)

    def ask(prompt: str) -> str:
        raise EOFError

    out = io.StringIO()
    terminal.talk(None, ask=ask, out=out, temperature=0.5, seed=7)  # type: ignore[arg-type]
    assert given == {"temperature": 0.5, "seed": 7}
