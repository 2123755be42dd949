"""Results of a transcription: words, segments, the whole text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass
class Word:
    """A word with its space and punctuation. start, end: in seconds; probability: the mean of its tokens'."""

    text: str
    start: float
    end: float
    probability: float


@dataclass
class TranscriptionSegment:
    """A stretch of speech, start to end in seconds. tokens: text and timestamps.

    temperature: at which it was found. average_logprob: the mean log probability of the window's tokens.
    compression: bytes of the window's text over bytes when compressed, large where it repeats itself. no_speech: the
    probability that nobody speaks in the window. words: where they were asked for.
    """

    text: str
    start: float
    end: float
    tokens: list[int] = field(default_factory=list)
    temperature: float = 0.0
    average_logprob: float = 0.0
    compression: float = 0.0
    no_speech: float = 0.0
    words: list[Word] = field(default_factory=list)


@dataclass
class TranscriptionResult:
    """A whole transcription. language: a code ("en"). duration: of the sound, in seconds."""

    text: str
    segments: list[TranscriptionSegment] = field(default_factory=list)
    language: str | None = None
    duration: float = 0.0

    @classmethod
    def of(cls, segments: list[TranscriptionSegment], language: str | None, duration: float) -> TranscriptionResult:
        """Of its segments."""
        return cls("".join(segment.text for segment in segments).strip(), segments, language, duration)

    @property
    def words(self) -> list[Word]:
        """The words of all segments."""
        return [word for segment in self.segments for word in segment.words]

    def __str__(self) -> str:
        return self.text


def within(segment: TranscriptionSegment, duration: float) -> TranscriptionSegment | None:
    """The segment with its times inside the sound; None for one that begins after its end."""
    if segment.start >= duration:
        return None
    words = [replace(word, start=min(word.start, duration), end=min(word.end, duration)) for word in segment.words]
    return replace(segment, end=min(segment.end, duration), words=words)
