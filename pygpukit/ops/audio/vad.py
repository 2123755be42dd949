"""VAD: where somebody speaks, by energy and zero crossings, without a trained model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.core.errors import ShapeError
from pygpukit.ops import elementwise, reduce
from pygpukit.ops.audio.framing import frames
from pygpukit.ops.audio.inputs import finite, signal
from pygpukit.ops.audio.levels import zero_crossing_rate

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["VAD", "SpeechSegment"]

_RANGE_DB = 6.0  # between the quiet and the loud frames, at least, for a threshold to be found


@dataclass(frozen=True)
class SpeechSegment:
    """Samples [start_sample, end_sample), and the same in seconds."""

    start_sample: int
    end_sample: int
    start_time: float
    end_time: float


class VAD:
    """Voice activity by energy: VAD(16000).detect(y).

    A frame has speech if its mean square is above energy_threshold and its zero-crossing rate from zcr_low to zcr_high,
    or above it while the energy is twice the threshold (hiss of consonants); what is below zcr_low is hum. Speech goes
    on for hangover_ms. energy_threshold None: a third of the way, in dB, from the quiet tenth of the frames to the loud
    one, if they are 6 dB apart; else there is no speech. Raises ValueError.
    """

    def __init__(
        self,
        sample_rate: int = 16000,
        frame_ms: float = 20.0,
        hop_ms: float = 10.0,
        energy_threshold: float | None = None,
        hangover_ms: float = 100.0,
        zcr_low: float = 0.02,
        zcr_high: float = 0.25,
    ) -> None:
        self.sample_rate = sample_rate
        self.frame_size, self.hop_size = round(frame_ms * sample_rate / 1000), round(hop_ms * sample_rate / 1000)
        if self.frame_size < 1 or self.hop_size < 1:
            raise ValueError(
                f"VAD: frame_ms {frame_ms} and hop_ms {hop_ms} must give a sample at {sample_rate} Hz at least"
            )
        if hangover_ms < 0 or not 0 <= zcr_low <= zcr_high:
            raise ValueError(
                f"VAD: hangover_ms {hangover_ms} >= 0 and 0 <= zcr_low {zcr_low} <= zcr_high {zcr_high} must hold"
            )
        self.energy_threshold = energy_threshold
        self.zcr_low, self.zcr_high = zcr_low, zcr_high
        self._hangover = round(hangover_ms / hop_ms)

    def get_frame_features(self, audio: Any) -> tuple[GPUArray, GPUArray]:
        """(mean square, zero-crossing rate) of each frame, (frames,) each, on the device."""
        y = self._mono(audio)
        energy = reduce.mean(frames(elementwise.square(y), self.frame_size, self.hop_size, "VAD"), -1)
        rate = zero_crossing_rate(y, frame_length=self.frame_size, hop_length=self.hop_size, center=False)
        return energy, rate[..., 0, :]

    def detect(self, audio: Any) -> list[SpeechSegment]:
        """The pieces with speech, in order. audio: (samples,), array or AudioBuffer of sample_rate; of several channels
        the mean. Decided on the host. A signal shorter than a frame has none. Raises ShapeError, DTypeError, ValueError
        (NaN, infinity, another rate)."""
        y = finite(self._mono(audio), "VAD")
        if y.shape[-1] < self.frame_size:
            return []
        energy, rate = (array.to_numpy() for array in self.get_frame_features(y))
        speech = self._speech(energy.astype(np.float64), rate)
        edges = np.flatnonzero(np.diff(np.concatenate(([0], speech.astype(int), [0])))).reshape(-1, 2)
        return [self._segment(int(first), int(last), y.shape[-1]) for first, last in edges]

    def _mono(self, audio: Any) -> GPUArray:
        own = getattr(audio, "sample_rate", self.sample_rate)
        if own != self.sample_rate:
            raise ValueError(f"VAD: audio has {own} Hz, the VAD {self.sample_rate}; resample it, or make VAD({own})")
        y = signal(audio, "VAD")
        if y.ndim > 2:
            raise ShapeError(f"VAD: audio has shape {y.shape} and must be (samples,) or (channels, samples)")
        return reduce.mean(y, 0) if y.ndim == 2 else y

    def _speech(self, energy: np.ndarray[Any, Any], rate: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        threshold = self._threshold(energy) if self.energy_threshold is None else self.energy_threshold
        loud = (energy > threshold) & (rate >= self.zcr_low)
        active = np.flatnonzero(loud & ((rate <= self.zcr_high) | (energy > 2 * threshold)))
        speech = np.zeros(len(energy), bool)
        for frame in active:
            speech[frame : frame + self._hangover + 1] = True
        return speech

    def _threshold(self, energy: np.ndarray[Any, Any]) -> float:
        levels = 10 * np.log10(np.maximum(energy, 1e-12))
        quiet, loud = np.percentile(levels, (10, 90))
        if loud - quiet < _RANGE_DB:
            return float("inf")
        return float(10 ** ((quiet + (loud - quiet) / 3) / 10))

    def _segment(self, first: int, last: int, samples: int) -> SpeechSegment:
        start = first * self.hop_size
        end = min((last - 1) * self.hop_size + self.frame_size, samples)
        return SpeechSegment(start, end, start / self.sample_rate, end / self.sample_rate)
