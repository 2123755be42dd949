"""The text of an answer as it comes: pieces of tokens, thinking apart from the answer, an end at stop strings."""

from __future__ import annotations

from dataclasses import dataclass

from pygpukit.models.tokenizer.tokenizer import THINKING, Tokenizer


@dataclass(frozen=True)
class Piece:
    """Text that one token adds: to the answer, and to the thinking. ended: a stop string has come."""

    text: str = ""
    thinking: str = ""
    ended: bool = False


class AnswerText:
    """Turns tokens into pieces. Text that may be the begin of a tag or a stop string is held back until that is known;
    no piece ends within a character. Stop strings count in the answer only, and are not part of it; control tokens are
    no text, but stop strings and tags may name them.

    thinking: whether the answer begins within a thinking block; None where tags mean nothing: they are text then.
    shown: control tokens that are text.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stop: tuple[str, ...] = (),
        thinking: bool | None = False,
        shown: tuple[str, ...] = (),
    ) -> None:
        self._stream = tokenizer.stream()
        self._tokenizer = tokenizer
        self._stop, self._shown_tokens = stop, shown
        self._tags = () if thinking is None else THINKING
        self._held = _Held()
        self._in_thinking = thinking is True
        self._ended = False
        self._trim = thinking is True  # line breaks right after a tag are no text
        self._is_plain = not self._stop and not self._tags  # nothing is held back, or taken away

    def push(self, token: int) -> Piece:
        """The text that a token adds."""
        if token in self._tokenizer.special_ids:
            name = self._tokenizer.id_to_token(token) or ""
            is_hidden = name not in self._shown_tokens
            if is_hidden and not self._stop and not self._tags:
                return Piece()
            return self._feed(name, False, is_hidden)
        return self._feed(self._stream.push(token), False)

    def finish(self) -> Piece:
        """The rest of the text after the last token."""
        return self._feed(self._stream.finish(), True)

    def _feed(self, more: str, last: bool, hidden: bool = False) -> Piece:
        if self._is_plain:
            return Piece(more)
        if self._ended:
            return Piece(ended=True)
        self._held.add(more, hidden)
        texts = {False: "", True: ""}
        while True:
            marks = self._tags[1:] if self._in_thinking else (*self._tags[:1], *self._stop)
            place, mark = _first(self._held.text, marks)
            if mark is None:
                break
            texts[self._in_thinking] += self._shown(self._held.take(place))
            self._held.take(len(mark))
            if mark not in self._tags:
                self._ended, self._held = True, _Held()
                break
            self._in_thinking, self._trim = mark == THINKING[0], True
        if not self._ended:
            kept = 0 if last else _begun(self._held.text, marks)
            texts[self._in_thinking] += self._shown(self._held.take(len(self._held.text) - kept))
        return Piece(texts[False], texts[True], self._ended)

    def _shown(self, text: str) -> str:
        if not self._trim or not text:
            return text
        text = text.lstrip("\n")
        self._trim = not text
        return text


class _Held:
    """Text that is held back, and which letters of it are hidden: those of control tokens."""

    def __init__(self) -> None:
        self.text = ""
        self._hidden: list[bool] = []

    def add(self, more: str, hidden: bool) -> None:
        """At the end."""
        self.text += more
        self._hidden += [hidden] * len(more)

    def take(self, count: int) -> str:
        """So many letters off the begin; those that are shown of them."""
        text, hidden = self.text[:count], self._hidden[:count]
        self.text, self._hidden = self.text[count:], self._hidden[count:]
        return "".join(letter for letter, gone in zip(text, hidden, strict=True) if not gone) if any(hidden) else text


def _first(text: str, marks: tuple[str, ...]) -> tuple[int, str | None]:
    """The mark that comes first in a text, the longer of two at one place, and where."""
    matches = [(place, -len(mark), mark) for mark in marks if (place := text.find(mark)) >= 0]
    if not matches:
        return 0, None
    place, _, mark = min(matches)
    return place, mark


def _begun(text: str, marks: tuple[str, ...]) -> int:
    """Number of characters at the end of a text that may begin a mark."""
    longest = min(len(text), max(map(len, marks), default=1) - 1)
    for count in range(longest, 0, -1):
        if any(mark.startswith(text[-count:]) for mark in marks):
            return count
    return 0


def split_thinking(text: str) -> tuple[str, str]:
    """(thinking, answer) of a whole text with <think> blocks; without any ("", text)."""
    parts, rest = [], text
    while (begin := rest.find(THINKING[0])) >= 0:
        end = rest.find(THINKING[1], begin)
        inner = rest[begin + len(THINKING[0]) :] if end < 0 else rest[begin + len(THINKING[0]) : end]
        parts.append(inner.strip("\n"))
        rest = rest[:begin] + ("" if end < 0 else rest[end + len(THINKING[1]) :].lstrip("\n"))
    return "\n".join(parts), rest
