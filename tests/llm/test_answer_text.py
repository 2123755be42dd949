"""Text of answers as it comes: characters of several tokens, stop strings across tokens, thinking apart."""

from __future__ import annotations

import random

import pytest

from pygpukit.llm.text import AnswerText, split_thinking


class Bytes:
    """A tokenizer whose tokens are the bytes of UTF-8, or the pieces it is given."""

    special_ids: frozenset[int] = frozenset()

    def __init__(self, pieces: list[bytes] | None = None) -> None:
        self.pieces = pieces

    def stream(self) -> Bytes:
        import codecs

        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return self

    def push(self, token: int) -> str:
        return self.decoder.decode(self.pieces[token] if self.pieces is not None else bytes([token]))

    def finish(self) -> str:
        return self.decoder.decode(b"", final=True)


def said(text: AnswerText, tokens: list[int]) -> tuple[str, str, bool, list[str]]:
    answer, thinking, pieces = "", "", []
    for token in tokens:
        piece = text.push(token)
        answer, thinking = answer + piece.text, thinking + piece.thinking
        pieces.append(piece.text)
        if piece.ended:
            return answer, thinking, True, pieces
    piece = text.finish()
    return answer + piece.text, thinking + piece.thinking, piece.ended, pieces


def answered(text: str, stop: tuple[str, ...] = (), thinking: bool = False) -> tuple[str, str, bool]:
    return said(AnswerText(Bytes(), stop, thinking), list(text.encode()))[:3]


def test_no_piece_ends_within_a_character() -> None:
    text = "na\u00efve \u6f22\u5b57 \U0001f600!"
    answer, _, _, pieces = said(AnswerText(Bytes()), list(text.encode()))
    assert answer == text
    assert "".join(pieces) == text
    assert all(piece in text for piece in pieces)


@pytest.mark.parametrize("stop", [("END",), ("\u5b57",), ("D", "END"), ("nothing", "EN\u6f22", "END")])
def test_a_stop_string_ends_the_answer_wherever_tokens_end(stop: tuple[str, ...]) -> None:
    text = "a EN E b \u6f22\u5b57 c END d"
    first = min((text.find(one), one) for one in stop if one in text)[0]
    whole = text.encode()
    for seed in range(30):
        cuts = sorted(random.Random(seed).sample(range(1, len(whole)), 9))
        pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        answer, _, ended, _ = said(AnswerText(Bytes(pieces), stop), list(range(len(pieces))))
        assert (answer, ended) == (text[:first], True)


def test_what_only_begins_like_a_stop_string_is_text() -> None:
    assert answered("a EN", ("END",)) == ("a EN", "", False)
    assert answered("EENEND", ("END",)) == ("EEN", "", True)


def test_thinking_is_told_apart_and_stop_strings_do_not_count_in_it() -> None:
    assert answered("<think>\nhm END </think>\n\nYes <b", ("END",)) == ("Yes <b", "hm END ", False)
    assert answered("in thought</think>Yes", thinking=True) == ("Yes", "in thought", False)
    assert answered("<think>cut off") == ("", "cut off", False)
    assert answered("<think>a</think>b<think>c</think>d") == ("bd", "ac", False)
    assert split_thinking("<think>\na\n</think>\n\nb") == ("a", "b")
    assert split_thinking("b <think>c") == ("c", "b ")
    assert split_thinking("plain") == ("", "plain")
