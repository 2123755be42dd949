"""Cases of suite `sound`: how much of it is measured, and float64 references of the first item."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Values = np.ndarray[Any, Any]

RATE = 16000
SHAPES = ((400, 160), (1024, 256))  # (n_fft, hop_length)
MELS = 80
CALL_RATE, CALL_SECONDS, CALL_FFT, CALL_HOP = 22050, 10, 2048, 512
ITERATIONS = 32  # of Griffin-Lim
CALLS, BATCHES = 200, 9


@dataclass(frozen=True)
class Size:
    """A batch of `items` signals of `seconds` at RATE; `windows` of 30 s for Whisper; `points` to resample."""

    items: int
    seconds: int
    windows: int
    points: int

    @property
    def params(self) -> dict[str, int]:
        """Those of the batch, as a row has them."""
        return {"items": self.items, "seconds": self.seconds}

    @property
    def words(self) -> list[str]:
        """For a peer's process."""
        return [str(value) for value in asdict(self).values()]


def size(backend: str | None, quick: bool) -> Size:
    """The whole on a GPU; less of it for a quick run, and little on the simulated device."""
    if backend == "sim":
        return Size(1, 1, 1, 10**5)
    return Size(8, 30, 16, 10**7) if quick else Size(64, 30, 256, 10**8)


def stft(y: Values, n_fft: int, hop: int, mode: str = "constant") -> Values:
    """(bins, frames) of one signal in float64, centred, with a Hann window."""
    import numpy as np

    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n_fft) / n_fft)
    around: Values = np.pad(y.astype(np.float64), n_fft // 2, mode=mode)  # type: ignore[call-overload]
    pieces = np.lib.stride_tricks.sliding_window_view(around, n_fft)[::hop]
    return np.asarray(np.fft.rfft(pieces * window).T)


def bands(power: Values) -> Values:
    """Mel bands of a power spectrogram."""
    import numpy as np

    from pygpukit.ops.audio.mel_filters import filters

    return np.asarray(filters(RATE, 2 * (len(power) - 1), MELS, 0.0, None, False, "slaney") @ power)


def whisper(y: Values) -> Values:
    """Whisper's log-mel spectrogram."""
    import numpy as np

    energies = bands(np.abs(stft(y, 400, 160, "reflect")[:, :-1]) ** 2)
    logarithms = np.log10(np.maximum(energies, 1e-10))
    return np.asarray((np.maximum(logarithms, logarithms.max() - 8) + 4) / 4)


def resampled(y: Values, res_type: str, outputs: int) -> Values:
    """The first outputs of 2 samples for every 3."""
    import numpy as np

    from pygpukit.ops.audio.resampling import design

    taps, delay = design(res_type, 2, 3)
    raised = np.zeros(2 * (2 * outputs + len(taps)))
    count = min(len(raised) // 2, len(y))
    raised[: 2 * count : 2] = y[:count]
    return np.convolve(raised, taps)[delay : delay + 3 * outputs : 3]


def error(result: Values, expected: Values) -> float:
    """The difference's norm over the result's. Raises ValueError for another shape."""
    import numpy as np

    if result.shape != expected.shape:
        raise ValueError(f"the result has shape {result.shape}, the reference {expected.shape}")
    return float(np.linalg.norm(result - expected) / np.linalg.norm(expected))
