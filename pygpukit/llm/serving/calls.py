"""Calls of tools in the text of an answer, as it comes: content, the name of a call, and pieces of its arguments."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pygpukit.llm.serving.call_formats import CallFormat

_HEAD = re.compile(r'\{\s*"name"\s*:\s*"([^"\\]{1,64})"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)')
_NAME = re.compile(r"([A-Za-z0-9_.-]{1,64})\s*(?:\[CALL_ID\]\s*([A-Za-z0-9]{1,64})\s*)?(?:\[ARGS\])?\s*(?=\{)")
_MAX_HEAD = 512  # characters in which a call that is told as it comes says its name
_Step: TypeAlias = "Callable[[bool], Iterator[Delta]]"
_BETWEEN = " \t\r\n[],;"  # between calls


@dataclass(frozen=True)
class Delta:
    """A piece of an answer. content: text; or of the call `index`: its name and key, and then its arguments."""

    content: str = ""
    index: int = 0
    key: str = ""
    name: str = ""
    arguments: str = ""


class _Brackets:
    """Follows JSON from its first bracket to the one that closes it."""

    def __init__(self, depth: int = 0) -> None:
        self._depth, self._in_text, self._escaped = depth, False, False

    def end(self, text: str, start: int = 0) -> int | None:
        """The place after the closing bracket; None where it has not come. start: where the text goes on that it was
        given before."""
        for place in range(start, len(text)):
            letter = text[place]
            if self._in_text:
                if self._escaped:
                    self._escaped = False
                elif letter == "\\":
                    self._escaped = True
                elif letter == '"':
                    self._in_text = False
            elif letter == '"':
                self._in_text = True
            elif letter in "{[":
                self._depth += 1
            elif letter in "}]":
                self._depth -= 1
                if self._depth == 0:
                    return place + 1
        return None


class Calls:
    """Turns the text of one answer into deltas. names: of tools; a call of another is text."""

    def __init__(self, form: CallFormat, names: frozenset[str]) -> None:
        self._form, self._names = form, names
        self._held = ""  # text that was not looked at yet, or that may be the beginning of something
        self._mark = ""  # a mark after which no call has come yet, as it was written
        self._step: _Step = self._start if form.bare else self._text
        self._brackets, self._seen = _Brackets(), 0  # _seen: letters of what is held that they have been through
        self._inside = False  # arguments are a field of an object
        self.count = 0  # calls so far

    def push(self, text: str) -> list[Delta]:
        """The deltas of further text."""
        self._held += text
        return list(self._run(last=False))

    def finish(self) -> list[Delta]:
        """The deltas of what is left when the answer has ended."""
        deltas = list(self._run(last=True))
        rest = self._mark + self._held
        is_over = self._step in (self._arguments, self._rest) or (self.count and not rest.strip(_BETWEEN))
        if rest and not is_over:
            deltas.append(Delta(rest))
        return [delta for delta in deltas if not (self.count and delta.content.isspace())]

    def _run(self, last: bool) -> Iterator[Delta]:
        """Steps as long as they change something."""
        before = None
        while before != (self._step, len(self._held)):
            before = (self._step, len(self._held))
            yield from self._step(last)

    def _start(self, last: bool) -> Iterator[Delta]:
        """The beginning of an answer that may be a call without a mark."""
        text = self._held.lstrip()
        if text.startswith("{"):
            self._mark = self._held[: -len(text)]
            self._follow(self._object, text)
        elif text and (last or not self._form.begin.startswith(text)):
            self._step = self._text
        yield from ()

    def _text(self, last: bool) -> Iterator[Delta]:
        """Content, up to the mark of a call. Space before a mark is none."""
        mark = self._form.begin
        content, is_there, after = self._held.partition(mark)
        if is_there:
            shown = content.rstrip()
            self._mark, self._held, self._step = content[len(shown) :] + mark, after, self._between
            content = shown
        elif last:
            self._held = ""
        else:
            content = content[: len(content) - _begun(content, mark)].rstrip()
            self._held = self._held[len(content) :]
        if content:
            yield Delta(content)

    def _between(self, last: bool) -> Iterator[Delta]:
        """After a mark, or after a call: another call, the end mark, or text again."""
        form = self._form
        text = self._held.lstrip(_BETWEEN)
        space = self._held[: len(self._held) - len(text)]
        if form.end and text.startswith(form.end):
            count = len(space) + len(form.end)
            if self._mark:
                yield from self._give_up(count)
            else:
                self._held, self._step = self._held[count:], self._text
        elif text.startswith(form.begin):
            self._mark += space + form.begin if self._mark else form.begin
            self._held = text[len(form.begin) :]
        elif text.startswith("{"):
            self._mark += space if self._mark else ""
            self._follow(self._object, text)
        elif form.is_list and (match := _NAME.match(text)) and match[1] in self._names:
            self._inside = False
            yield self._begin(match[1], match[2], text[match.end() :])
        elif text and (last or not self._may_go_on(text)):
            yield from self._give_up(0)

    def _object(self, last: bool) -> Iterator[Delta]:
        """An object that is to have a name and arguments."""
        match = _HEAD.match(self._held) if len(self._held) < _MAX_HEAD else None
        if match is not None and match[1] in self._names:
            self._inside = True
            yield self._begin(match[1], None, self._held[match.end() :])
            return
        end = self._brackets.end(self._held, self._seen)
        self._seen = len(self._held)
        if end is None:
            return
        call = _whole(self._held[:end], self._names)
        if call is None:
            yield from self._give_up(end)
            return
        yield self._begin(call[0], None, self._held[end:])
        self._step = self._between
        yield Delta(index=self.count - 1, arguments=call[1])

    def _arguments(self, last: bool) -> Iterator[Delta]:
        """Pieces of arguments, up to their closing bracket."""
        end = self._brackets.end(self._held)
        piece, self._held = self._held[:end], "" if end is None else self._held[end:]
        if end is not None:
            self._step = self._rest if self._inside else self._between
            self._brackets = _Brackets(depth=1)
        if piece:
            yield Delta(index=self.count - 1, arguments=piece)

    def _rest(self, last: bool) -> Iterator[Delta]:
        """The end of the object of a call, after its arguments."""
        end = self._brackets.end(self._held)
        self._held = "" if end is None else self._held[end:]
        if end is not None:
            self._step = self._between
        yield from ()

    def _follow(self, step: _Step, text: str) -> None:
        """Go through what begins with a bracket."""
        self._held, self._step = text, step
        self._brackets, self._seen = _Brackets(), 0

    def _begin(self, name: str, key: str | None, rest: str) -> Delta:
        """A call has begun; its arguments are to come."""
        self._follow(self._arguments, rest)
        self._mark = ""
        self.count += 1
        return Delta(index=self.count - 1, key=key or _key(self._form.id_prefix), name=name)

    def _give_up(self, count: int) -> Iterator[Delta]:
        """It was no call: the mark and so many letters after it are text."""
        content, self._held = self._mark + self._held[:count], self._held[count:]
        self._mark, self._step = "", self._text
        if content:
            yield Delta(content)

    def _may_go_on(self, text: str) -> bool:
        """True if a mark, or the name of a call, may become of a text."""
        form = self._form
        if any(mark.startswith(text) for mark in (form.begin, form.end) if mark):
            return True
        return form.is_list and len(text) < _MAX_HEAD and "{" not in text


def _key(prefix: str) -> str:
    """A new id of a call: nine letters where there is no prefix."""
    return prefix + (secrets.token_hex(12) if prefix else secrets.token_hex(5)[:9])


def _begun(text: str, mark: str) -> int:
    """Characters at the end of a text that may begin a mark."""
    return next((count for count in range(min(len(text), len(mark) - 1), 0, -1) if mark.startswith(text[-count:])), 0)


def _whole(text: str, names: frozenset[str]) -> tuple[str, str] | None:
    """(name, arguments as JSON) of a whole object; None where it is no call."""
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return None
    call = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(call, dict) or call.get("name") not in names:
        return None
    arguments = call.get("arguments", call.get("parameters", {}))
    return call["name"], arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
