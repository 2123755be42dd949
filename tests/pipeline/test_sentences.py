"""SentenceBuffer: the sentences do not depend on the pieces that the text comes in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pygpukit.pipeline import SentenceBuffer
from pygpukit.tts.text import cut


@given(st.lists(st.text("aB.!? \n\"'1", max_size=6), max_size=12))
def test_any_pieces_give_the_sentences_of_the_whole(pieces: list[str]) -> None:
    buffer, found = SentenceBuffer(), []
    for piece in pieces:
        buffer.append(piece)
        found += buffer.extract_sentences()
    rest = buffer.flush()
    found += [rest] if rest is not None else []
    assert found == [part.strip() for part in cut("".join(pieces)) if part.strip()]
    assert buffer.text == "" and buffer.flush() is None


def test_a_sentence_ends_where_the_next_begins() -> None:
    buffer = SentenceBuffer("It costs 3.")
    assert buffer.extract_sentences() == []
    buffer.append("5. ")
    assert buffer.extract_sentences() == []
    buffer.append("Dr. Smith pays. Who")
    assert buffer.extract_sentences() == ["It costs 3.5.", "Dr. Smith pays."]
    assert buffer.text == " Who"
    buffer.clear()
    assert buffer.flush() is None
