"""VoiceActivityDetector: where somebody speaks in sound that comes in blocks, by energy or by a trained model."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

import numpy as np

from pygpukit.asr.features import RATE
from pygpukit.asr.silero import SileroVAD
from pygpukit.asr.speech import CHUNK
from pygpukit.core.errors import InvalidSpecError
from pygpukit.tts.wav import as_samples

_BEFORE_S = 0.2  # of sound before the first loud frame that belongs to an utterance: soft consonants


class VADState(Enum):
    """SILENCE: nobody speaks. SPEECH: somebody does. TRAILING: it became quiet; is it a pause, or the end?"""

    SILENCE = auto()
    SPEECH = auto()
    TRAILING = auto()


@dataclass
class VADConfig:
    """Thresholds are root mean squares of a frame (full scale is 1), or probabilities where a model tells them;
    durations in seconds, the rate in Hz. silero() has what Silero's model takes.

    Speech begins at a frame of energy_threshold or louder, and counts once min_speech_duration of it was not quiet; it
    may end at a frame below silence_threshold, and ends when none of energy_threshold comes for min_silence_duration,
    or when the utterance is max_speech_duration long. Raises InvalidSpecError for what cannot be.
    """

    energy_threshold: float = 0.01
    silence_threshold: float = 0.005
    min_speech_duration: float = 0.1
    min_silence_duration: float = 0.5
    max_speech_duration: float = 30.0
    frame_duration_ms: int = 30
    sample_rate: int = 16000

    def __post_init__(self) -> None:
        if not 0 < self.silence_threshold <= self.energy_threshold:
            raise InvalidSpecError(
                f"silence_threshold is {self.silence_threshold}, must be above 0 and at most energy_threshold, "
                f"{self.energy_threshold}",
                "silence_threshold",
            )
        for name in ("min_speech_duration", "min_silence_duration"):
            if not getattr(self, name) >= 0:
                raise InvalidSpecError(f"{name} is {getattr(self, name)}, must be 0 s or more", name)
        if not self.max_speech_duration > self.min_speech_duration:
            raise InvalidSpecError(
                f"max_speech_duration is {self.max_speech_duration}, must be longer than min_speech_duration, "
                f"{self.min_speech_duration} s",
                "max_speech_duration",
            )
        if self.sample_rate < 1 or self.frame_samples < 1:
            raise InvalidSpecError(
                f"frame_duration_ms is {self.frame_duration_ms}, must give a sample at {self.sample_rate} Hz at least",
                "frame_duration_ms",
            )

    @classmethod
    def silero(cls, **settings: Any) -> VADConfig:
        """Silero's thresholds, 0.5 and 0.35, and its frames of 32 ms at 16 kHz; settings: other fields."""
        return cls(**{"energy_threshold": 0.5, "silence_threshold": 0.35, "frame_duration_ms": 32, **settings})

    @property
    def frame_samples(self) -> int:
        """Samples of a frame."""
        return round(self.frame_duration_ms * self.sample_rate / 1000)

    def frames(self, seconds: float) -> int:
        """Number of frames that last so long: at least one."""
        return max(1, int(np.ceil(seconds * self.sample_rate / self.frame_samples - 1e-9)))


@dataclass
class VADEvent:
    """event_type: "speech_start" or "speech_end". timestamp: of the utterance's first loud frame, or of its end: in
    seconds since the first sample. audio: of "speech_end", the utterance, float32 (n,), from up to 0.2 s before its
    first loud frame; duration: of it."""

    event_type: str
    timestamp: float
    audio: np.ndarray[Any, Any] | None = None
    duration: float = 0.0


class Meter(Protocol):
    """Tells the level of frames that follow each other, float32 (frames x frame samples,): (frames,)."""

    def __call__(self, samples: np.ndarray[Any, Any], /) -> np.ndarray[Any, Any]: ...

    def reset(self) -> None:
        """Other sound follows."""


class Energy:
    """The root mean square of each frame."""

    def __init__(self, frame_samples: int) -> None:
        self._size = frame_samples

    def __call__(self, samples: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        frames = samples.reshape(-1, self._size)
        return np.asarray(np.sqrt(np.mean(np.square(frames, dtype=np.float64), axis=1)))

    def reset(self) -> None:
        """It remembers nothing."""


class VoiceActivityDetector:
    """Tells where utterances begin and end. The events do not depend on how the sound is cut into blocks.

    model: None for energy, or a SileroVAD, whose probabilities count then; the configuration is VADConfig.silero() by
    default. Raises InvalidSpecError where its frames are not those of the model.
    """

    state: VADState
    _utterance: list[np.ndarray[Any, Any]]  # its frames, from before its first loud one on
    _first: int  # number of its first loud frame
    _loud: int  # frames of it in SPEECH
    _quiet: int  # frames in TRAILING since the last one in SPEECH
    _reported: bool

    def __init__(self, config: VADConfig | None = None, model: SileroVAD | None = None) -> None:
        self.config = config or (VADConfig() if model is None else VADConfig.silero())
        frame = self.config.frame_samples, self.config.sample_rate
        if model is not None and frame != (CHUNK, RATE):
            raise InvalidSpecError(
                f"a frame has {frame[0]} samples at {frame[1]} Hz; Silero's has {CHUNK} at {RATE}: VADConfig.silero()",
                "frame_duration_ms",
            )
        self._meter: Meter = Energy(self.config.frame_samples) if model is None else model.stream()
        self.reset()

    @property
    def is_speaking(self) -> bool:
        """True if an utterance has begun, and its "speech_start" was told."""
        return self._reported

    def reset(self) -> None:
        """Forget all sound; time begins at 0 again."""
        self.state = VADState.SILENCE
        self._meter.reset()
        self._rest = np.zeros(0, np.float32)  # less than a frame
        self._frames = 0  # seen so far
        self._before: deque[np.ndarray[Any, Any]] = deque(maxlen=self.config.frames(_BEFORE_S))
        self._forget()

    def process_audio(self, audio: Any) -> list[VADEvent]:
        """The events that a block of sound brings, in order.

        audio: one channel of floats, (n,), any length, of the host or the device; events are decided on the host.
        Raises InvalidSpecError for other shapes and types, NaN and infinity; the detector is as before then.
        """
        sound = np.concatenate([self._rest, as_samples(audio)])
        size = self.config.frame_samples
        full_size = sound.size // size
        levels = self._meter(sound[: full_size * size])
        self._rest = sound[full_size * size :].copy()
        frames = sound[: full_size * size].reshape(full_size, size)
        return [event for frame, level in zip(frames, levels, strict=True) for event in self._take(frame, level)]

    def flush(self) -> list[VADEvent]:
        """No more sound comes: the end of an utterance that was begun. The detector waits for the next one."""
        return self._end() if self.state is not VADState.SILENCE else []

    def _take(self, frame: np.ndarray[Any, Any], level: float) -> list[VADEvent]:
        config = self.config
        self._frames += 1
        if self.state is VADState.SILENCE:
            if level < config.energy_threshold:
                self._before.append(frame)
                return []
            self._utterance = [*self._before]
            self._first = self._frames - 1
        self._utterance.append(frame)
        self.state = self._next(level)
        self._quiet = self._quiet + 1 if self.state is VADState.TRAILING else 0
        self._loud += self.state is VADState.SPEECH
        begins = not self._reported and self._loud >= config.frames(config.min_speech_duration)
        self._reported |= begins
        events = [VADEvent("speech_start", self._seconds(self._first))] if begins else []
        over = self.state is VADState.TRAILING and self._quiet >= config.frames(config.min_silence_duration)
        if over or self._frames - self._first >= config.frames(config.max_speech_duration):
            events += self._end()
        return events

    def _next(self, level: float) -> VADState:
        """Between the two thresholds it stays what it is."""
        if level >= self.config.energy_threshold:
            return VADState.SPEECH
        if level < self.config.silence_threshold:
            return VADState.TRAILING
        return self.state

    def _end(self) -> list[VADEvent]:
        """The end of the utterance; a noise too short to be speech ends without a word."""
        events = []
        if self._reported:
            audio = np.concatenate(self._utterance)
            duration = audio.size / self.config.sample_rate
            events = [VADEvent("speech_end", self._seconds(self._frames), audio, duration)]
        self.state = VADState.SILENCE
        self._before.clear()
        self._forget()
        return events

    def _forget(self) -> None:
        self._utterance = []
        self._first = self._quiet = self._loud = 0
        self._reported = False

    def _seconds(self, frames: int) -> float:
        return frames * self.config.frame_samples / self.config.sample_rate
