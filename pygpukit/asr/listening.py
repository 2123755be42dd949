"""Answers to what transcripts ask, by the model: several at a time, each with the bits that it has alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pygpukit.asr.alignment import starts
from pygpukit.asr.choice import Chooser
from pygpukit.asr.features import RATE, Features
from pygpukit.asr.filtering import Speech
from pygpukit.asr.options import Options
from pygpukit.asr.results import TranscriptionSegment, within
from pygpukit.asr.rules import Rules
from pygpukit.asr.search import BeamSearch, GreedySearch, Next, SampledSearch, Search
from pygpukit.asr.silence import Loudness, chances
from pygpukit.asr.speech import pieces
from pygpukit.asr.tokens import TIME_STEP, WhisperTokens
from pygpukit.asr.transcript import (
    FRAME,
    Align,
    Answer,
    Ask,
    Course,
    Decode,
    Decoded,
    WhichLanguage,
    Window,
    transcript,
)
from pygpukit.asr.words import Aligned, timed
from pygpukit.ops.audio.whisper import HOP
from pygpukit.ops.shape.joining import stack

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.asr.config import WhisperConfig
    from pygpukit.asr.decoder import DecoderCache
    from pygpukit.asr.model import WhisperModel


POSITION = 0.02  # seconds of one of the encoder's positions
ENCODED_TOGETHER = 8  # windows


@dataclass
class Listener:
    """One sound: its course, what it asks now, and the window that the decoder's cache has of it. speech: what is heard
    of it, where that is not all. duration: of the whole sound, in seconds."""

    number: int
    features: Features
    loudness: Loudness
    course: Course
    duration: float
    speech: Speech | None = None
    ask: Ask | None = None
    window: Window | None = None
    language: str | None = None


@dataclass
class _Decoding:
    """One search that runs: its rows' slots, all slots that it may use, and how many positions are filled."""

    window: int
    search: Search
    slots: list[int]
    room: list[int]
    filled: int
    no_speech: float
    next: Next | None = field(default=None)


def listen(
    model: WhisperModel, sounds: Sequence[Any], options: Options
) -> Iterator[tuple[int, TranscriptionSegment | str]]:
    """(number of the sound, segment) as they are found, and at the end of each (number, language)."""
    room = Room(model, len(sounds), options)
    listeners = []
    for number, samples in enumerate(sounds):
        duration = samples.size / RATE
        speech = Speech(samples, _speech(model, samples, options)) if options.vad_filter else None
        samples = samples if speech is None else speech.samples
        features = Features(samples, model.config.num_mel_bins)
        frames = samples.size // HOP
        course = transcript(frames, model.config.frames, model.config.max_target_positions, room.tokens, options)
        listeners.append(Listener(number, features, Loudness(samples), course, duration, speech))
    going: list[tuple[Listener, Answer]] = [(item, None) for item in listeners]
    while going:
        asking = []
        for listener, answer in going:
            yield from _until_it_asks(listener, answer)
            if listener.ask is not None:
                asking.append(listener)
        going = list(zip(asking, room.answers(asking), strict=True))


def _until_it_asks(listener: Listener, answer: Answer) -> Iterator[tuple[int, TranscriptionSegment | str]]:
    """The segments that a course tells before it asks again; its language when it ends."""
    listener.ask = None
    try:
        request = listener.course.send(answer)
        while isinstance(request, TranscriptionSegment):
            part = within(request if listener.speech is None else listener.speech.restored(request), listener.duration)
            if part is not None:
                yield listener.number, part
            request = listener.course.send(None)
        listener.ask = request
    except StopIteration as end:
        yield listener.number, str(end.value)


def _speech(model: WhisperModel, samples: Any, options: Options) -> list[tuple[int, int]]:
    """The pieces that vad_filter keeps."""
    if options.vad_filter == "energy":
        return pieces(chances(samples), samples.size, options.speech)
    return model.vad.pieces(samples, options.speech)


class Room:
    """Caches and rules for so many sounds at once."""

    def __init__(self, model: WhisperModel, sounds: int, options: Options) -> None:
        self._model, self._options = model, options
        self.tokens: WhisperTokens = model.tokens
        warm = any(temperature > 0 for temperature in options.temperatures)
        cold = any(temperature == 0 for temperature in options.temperatures)
        self._rows = max(options.beam_size if cold else 1, options.best_of if warm else 1)
        self._cache: DecoderCache = model.decoder.cache(sounds * self._rows, sounds, model.name)
        config = model.config
        never = config.suppress_tokens or []
        latest = round(options.max_initial_timestamp / TIME_STEP) if options.timestamps else None
        self._rules = Rules.of(self.tokens, never, config.begin_suppress_tokens, latest)
        self._chooser = Chooser(self._rules, config.vocab_size)

    def answers(self, asking: Sequence[Listener]) -> list[Answer]:
        """The answers to their requests, in their order; tokens of all that want some are searched together."""
        self._hear(
            [listener for listener in asking if listener.ask is not None and listener.window != listener.ask.window]
        )
        decodings = {
            listener.number: self._begin(listener.number, listener.ask)
            for listener in asking
            if isinstance(listener.ask, Decode)
        }
        self._search(list(decodings.values()))
        answers: list[Answer] = []
        for listener in asking:
            if isinstance(listener.ask, Decode):
                ended = decodings[listener.number]
                window = listener.ask.window
                quiet = listener.loudness.nothing(window.first * FRAME, (window.first + window.count) * FRAME)
                answers.append(Decoded(ended.search.best(), ended.no_speech, quiet))
            elif isinstance(listener.ask, WhichLanguage):
                answers.append(self._language(listener.number))
            elif isinstance(listener.ask, Align):
                answers.append(self._align(listener.number, listener.ask))
        return answers

    def _hear(self, listeners: Sequence[Listener]) -> None:
        """The encoder over the windows that they ask about, and its states into the decoder's cache."""
        model = self._model
        for first in range(0, len(listeners), ENCODED_TOGETHER):
            some, mels = listeners[first : first + ENCODED_TOGETHER], []
            for listener in some:
                assert listener.ask is not None
                listener.window = listener.ask.window
                mels.append(listener.features.window(listener.window.first, listener.window.count, model.config.frames))
            for listener, states in zip(some, model.encoder(stack(mels)), strict=True):
                model.decoder.hear(states, self._cache, listener.number)

    def _begin(self, number: int, ask: Decode) -> _Decoding:
        """A search with its prompt in the cache and its first tokens taken."""
        options, decoder = self._options, self._model.decoder
        room = list(range(number * self._rows, (number + 1) * self._rows))
        max_tokens = min(options.max_length, self._model.config.max_target_positions)
        length = max(1, min(max_tokens // 2, max_tokens - len(ask.prompt) + 1))
        search: Search
        if ask.temperature > 0:
            seed = options.seed ^ (ask.window.first << 8 | ask.attempt)
            search = SampledSearch(self._rules, options.best_of, length, ask.temperature, seed)
        elif options.beam_size == 1 and round(options.patience) <= 1:
            search = GreedySearch(self._rules, length)
        else:
            search = BeamSearch(self._rules, options.beam_size, length, options.patience)
        x = decoder.prompt(ask.prompt, room[0], number, self._cache)
        start, last = ask.prompt.index(self.tokens.sot), len(ask.prompt) - 1
        first = decoder.logits(x[start : start + 1]).to_numpy()[0]
        logits = first if start == last else decoder.logits(x[last:]).to_numpy()[0]
        decoding = _Decoding(number, search, [room[0]], room, last + 1, _probability(first, self.tokens.no_speech))
        decoding.next = search.take(logits[None])
        return decoding

    def _search(self, decodings: list[_Decoding]) -> None:
        """Steps over all rows of all searches until each has ended."""
        while going := [decoding for decoding in decodings if decoding.next is not None]:
            for decoding in going:
                self._place(decoding)
            tokens = [token for decoding in going if decoding.next is not None for token in decoding.next.tokens]
            slots = [slot for decoding in going for slot in decoding.slots]
            positions = [decoding.filled for decoding in going for _ in decoding.slots]
            windows = [decoding.window for decoding in going for _ in decoding.slots]
            logits = self._model.decoder.step(tokens, positions, slots, windows, self._cache)
            self._take(going, logits)

    def _take(self, going: list[_Decoding], logits: GPUArray) -> None:
        """Each search with its rows of the logits: greedy ones get the token that was chosen on the device."""
        ends = list(accumulate(len(decoding.slots) for decoding in going))
        greedy = {
            end - 1: decoding.search.said
            for decoding, end in zip(going, ends, strict=True)
            if isinstance(decoding.search, GreedySearch)
        }
        chosen = iter(self._chooser(logits, list(greedy), list(greedy.values())) if greedy else ())
        rest = None if len(greedy) == len(going) else logits.to_numpy()
        for decoding, end in zip(going, ends, strict=True):
            decoding.filled += 1
            if isinstance(decoding.search, GreedySearch):
                decoding.next = decoding.search.chosen(*next(chosen))
            elif rest is not None:
                decoding.next = decoding.search.take(rest[end - len(decoding.slots) : end])

    def _place(self, decoding: _Decoding) -> None:
        """A slot for each row that goes on: its parent's, or a copy of that where another row has it already."""
        assert decoding.next is not None
        kept = {decoding.slots[parent] for parent in decoding.next.parents}
        free, slots = [slot for slot in decoding.room if slot not in kept], []
        for parent in decoding.next.parents:
            slot = decoding.slots[parent]
            if slot in slots:
                copy = free.pop()
                self._cache.copy_slot(slot, copy, decoding.filled)
                slot = copy
            slots.append(slot)
        decoding.slots = slots

    def _language(self, number: int) -> str:
        """The most probable language of the window that a sound has in the cache."""
        x = self._model.decoder.prompt([self.tokens.sot], number * self._rows, number, self._cache)
        logits = self._model.decoder.logits(x).to_numpy()[0]
        return max(self.tokens.languages, key=lambda code: float(logits[self.tokens.languages[code]]))

    def _align(self, number: int, ask: Align) -> Aligned:
        """The words of a window that a sound has in the cache."""
        import numpy as np

        model, text = self._model, [token for segment in ask.segments for token in segment]
        positions = ask.window.count // 2
        max_tokens = model.config.max_target_positions - len(ask.start) - 2
        if not text or not positions or len(text) > max_tokens:
            return Aligned([[] for _ in ask.segments], 0.0)
        tokens = [*ask.start, self.tokens.no_timestamps, *text, self.tokens.eot]
        heads = alignment_heads(model.config)
        x, scores = model.decoder.attention(tokens, number * self._rows, number, self._cache, heads, positions)
        skipped = len(ask.start)
        logits = model.decoder.logits(x[skipped : skipped + len(text)]).to_numpy()[:, : self.tokens.eot]
        chances = [_probability(row, token) for row, token in zip(logits, text, strict=True)]
        begins = starts(scores, skipped) * POSITION
        return timed(self.tokens, ask.segments, np.asarray(begins).tolist(), chances, ask.language)


def alignment_heads(config: WhisperConfig) -> list[list[int]]:
    """Those of the model; of one that names none, all of the upper half of the decoder's layers."""
    if config.alignment_heads:
        return config.alignment_heads
    layers = range(config.decoder_layers // 2, config.decoder_layers)
    return [[layer, head] for layer in layers for head in range(config.decoder_attention_heads)]


def _probability(logits: Any, token: int) -> float:
    import numpy as np

    wide = logits.astype(np.float64)
    return float(np.exp(wide[token] - wide.max()) / np.exp(wide - wide.max()).sum())
