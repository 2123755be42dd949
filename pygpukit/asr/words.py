"""Words of tokens, their times, and how far those may be believed."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from pygpukit.asr.results import TranscriptionSegment, Word

if TYPE_CHECKING:
    from pygpukit.asr.tokens import WhisperTokens

_WITHOUT_SPACES = {"zh", "ja", "th", "lo", "my", "yue"}
_BEFORE = "\"'\u201c\u00bf([{-"  # goes with the word that follows
_CLOSING = "\"'.\u3002,\uff0c!\uff01?\uff1f:\uff1a\u201d)]}\u3001"  # goes with the word before
_ENDS = ".\u3002!\uff01?\uff1f"
_LONGEST = 0.7  # seconds that the median word is taken to last at most


@dataclass(frozen=True)
class Aligned:
    """Words by segment, in seconds from the window's start. median: what one of them lasts."""

    segments: list[list[Word]]
    median: float


def word_tokens(tokens: WhisperTokens, text: Sequence[int], language: str) -> list[tuple[str, list[int]]]:
    """Text tokens as words with the tokens of each: at spaces and punctuation, or at characters where a language has
    no spaces."""
    pieces: list[tuple[str, list[int]]] = []
    held: list[int] = []
    full_text, emitted = tokens.decode(text), 0
    for token in text:
        held.append(token)
        piece = tokens.decode(held)
        place = piece.find("\ufffd")
        # A character that is not complete yet waits for its other bytes, unless the text itself has none for it.
        if place < 0 or full_text[emitted + place : emitted + place + 1] == "\ufffd":
            pieces.append((piece, held))
            emitted, held = emitted + len(piece), []
    if held:
        pieces.append((tokens.decode(held), held))
    if language in _WITHOUT_SPACES:
        return pieces
    words: list[tuple[str, list[int]]] = []
    for piece, word_ids in pieces:
        if words and not piece.startswith(" ") and piece.strip() not in string.punctuation:
            words[-1] = words[-1][0] + piece, words[-1][1] + word_ids
        else:
            words.append((piece, word_ids))
    return words


def timed(
    tokens: WhisperTokens,
    segments: Sequence[Sequence[int]],
    begins: Sequence[float],
    probabilities: Sequence[float],
    language: str,
) -> Aligned:
    """The words of a window's segments, which are text tokens. begins: of each token, and of what follows them."""
    words, lengths, at = [], [], 0
    for text, word_ids in word_tokens(tokens, [token for segment in segments for token in segment], language):
        end = at + len(word_ids)
        words.append(
            Word(text, float(begins[at]), float(begins[end]), float(sum(probabilities[at:end]) / len(word_ids)))
        )
        lengths.append(len(word_ids))
        at = end
    median = _median(words)
    _at_sentences(words, 2 * median)
    words_by_segment: list[list[Word]] = []
    place, merged = 0, _joined(words)
    for segment in segments:
        mine: list[Word] = []
        count = 0
        while place < len(merged) and count < len(segment):
            mine.append(merged[place])
            count += lengths[place]
            place += 1
        words_by_segment.append([word for word in mine if word.text])
    return Aligned(words_by_segment, median)


def _median(words: Sequence[Word]) -> float:
    """The median duration of a word."""
    lengths = sorted(word.end - word.start for word in words if word.end != word.start)
    if not lengths:
        return 0.0
    middle = len(lengths) // 2
    return min(_LONGEST, lengths[middle] if len(lengths) % 2 else (lengths[middle - 1] + lengths[middle]) / 2)


def _at_sentences(words: list[Word], longest: float) -> None:
    """The pause between sentences is no part of a word: those beside an end last at most twice the median."""
    for before, word in pairwise(words):
        if longest and word.end - word.start > longest:
            if word.text in _ENDS:
                word.end = word.start + longest
            elif before.text in _ENDS:
                word.start = word.end - longest


def _joined(words: Sequence[Word]) -> list[Word]:
    """Punctuation as part of the word that it belongs to, whose times stay; emptied where it was."""
    joined = [replace(word) for word in words]
    after = len(joined) - 1
    for place in range(len(joined) - 2, -1, -1):
        word = joined[place]
        if word.text.startswith(" ") and word.text.strip() in _BEFORE:
            joined[after].text, word.text = word.text + joined[after].text, ""
        else:
            after = place
    before = 0
    for place in range(1, len(joined)):
        if not joined[before].text.endswith(" ") and joined[place].text in _CLOSING:
            joined[before].text, joined[place].text = joined[before].text + joined[place].text, ""
        else:
            before = place
    return joined


def placed(
    parts: Sequence[TranscriptionSegment], aligned: Aligned, begin: float, spoken_until: float
) -> tuple[list[TranscriptionSegment], float]:
    """Segments with their words, in seconds of the sound; and until when is spoken.

    Words and segments correct each other: a word after a pause that lasts too long begins later; then the segment
    begins and ends with its words, unless it knows better by half a second.
    """
    median = aligned.median
    result = []
    for part, word_parts in zip(parts, aligned.segments, strict=True):
        kept = [
            replace(word, start=round(begin + word.start, 2), end=round(begin + word.end, 2)) for word in word_parts
        ]
        if kept:
            _after_pause(kept, spoken_until, median)
            part = _agreed(part, kept, median)
            spoken_until = part.end
        result.append(replace(part, words=kept))
    return result, spoken_until


def _after_pause(words: list[Word], spoken_until: float, median: float) -> None:
    first, longest = words[0], 2 * median
    if first.end - spoken_until <= 4 * median:
        return
    both_long = len(words) > 1 and words[1].end - first.start > 2 * longest
    if first.end - first.start > longest or both_long:
        if len(words) > 1 and words[1].end - words[1].start > longest:
            first.end = words[1].start = max(words[1].end / 2, words[1].end - longest)
        first.start = max(0.0, first.end - longest)


def _agreed(part: TranscriptionSegment, words: list[Word], median: float) -> TranscriptionSegment:
    first, last, start, end = words[0], words[-1], part.start, part.end
    if start < first.end and start - 0.5 > first.start:
        first.start = max(0.0, min(first.end - median, start))
    else:
        start = first.start
    if end > last.start and end + 0.5 < last.end:
        last.end = max(last.start + median, end)
    else:
        end = last.end
    return replace(part, start=start, end=end)
