"""SpectrogramWidget: a spectrogram that moves on with the sound: a microphone's, or what a computation pushes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.array.png import palette
from pygpukit.core.errors import InvalidSpecError
from pygpukit.jupyter.widgets.base import Widget
from pygpukit.jupyter.widgets.recorder import RecorderWidget
from pygpukit.ops import elementwise
from pygpukit.ops.audio import picture
from pygpukit.ops.audio.buffer import AudioBuffer, from_pcm
from pygpukit.ops.audio.stft import stft

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

N_FFT = 1024
COLUMNS, ROWS = 480, 96


class SpectrogramWidget(Widget):
    """The last seconds of a sound by time and frequency, computed on the device block by block.

    source: a RecorderWidget, or None for a computation that calls push(). sample_rate: in Hz, of a recorder its own.
    hop_length: samples from column to column. A full-scale tone is the top of the scale. Raises InvalidSpecError, and
    RuntimeError when the front-end bundle has not been built.
    """

    module = "spectrogram.js"

    def __init__(self, source: RecorderWidget | None = None, *, sample_rate: int = 0, hop_length: int = 256) -> None:
        if source is not None:
            sample_rate = source.sample_rate
        for name, value in (("sample_rate", sample_rate), ("hop_length", hop_length)):
            if not isinstance(value, int) or value <= 0:
                raise InvalidSpecError(
                    f"SpectrogramWidget: {name} is {value!r}, not a whole number above 0; give sample_rate=",
                    name,
                )
        self.sample_rate, self.hop_length = sample_rate, hop_length
        self.columns = 0  # that there were so far
        self._levels = np.zeros((ROWS, COLUMNS), np.uint8)
        self._left = np.zeros(0, np.float32)  # of the block before: less than a frame
        self._lock = threading.Lock()
        super().__init__()
        if source is not None:
            source.on_block(self.push)

    def push(self, samples: AudioBuffer | GPUArray | Any) -> None:
        """Show a block of samples next, what from_pcm() takes; channels are mixed. Raises as from_pcm(), and
        InvalidSpecError for a sound of another rate."""
        sound = samples if isinstance(samples, AudioBuffer) else from_pcm(samples, self.sample_rate)
        if sound.sample_rate != self.sample_rate:
            raise InvalidSpecError(
                f"push: the sound has {sound.sample_rate} Hz, the spectrogram {self.sample_rate}; resample() it",
                "samples",
            )
        block = np.nan_to_num(sound.to_mono().to_numpy().ravel(), posinf=0.0, neginf=0.0)
        with self._lock:
            whole = np.concatenate([self._left, block])
            count = max(0, (len(whole) - N_FFT) // self.hop_length + 1)
            self._left = whole[count * self.hop_length :]
            if count == 0:
                return
            frames = from_pcm(whole[: (count - 1) * self.hop_length + N_FFT], self.sample_rate).data
            magnitudes = elementwise.abs(stft(frames, n_fft=N_FFT, hop_length=self.hop_length, center=False)).to_numpy()
            # A full-scale tone has a quarter of the frame's length under a Hann window.
            new = picture.levels(picture.banded(magnitudes**2, self.sample_rate, ROWS), (N_FFT / 4) ** 2)
            self._levels = np.concatenate([self._levels, new], axis=1)[:, -COLUMNS:]
            self.columns += count
            if self.comm is not None:
                self._send_columns(new[:, -COLUMNS:])
                self._send_still()

    def fallback(self) -> dict[str, str]:
        seconds = min(self.columns, COLUMNS) * self.hop_length / self.sample_rate
        shown = picture.image(self._levels, self.sample_rate) if self.columns else ""
        return {
            "text/html": '<div class="gk-sound" style="font: 13px system-ui, sans-serif">'
            f"<div>the last {seconds:.2f} s</div>{shown}</div>"
        }

    def __repr__(self) -> str:
        return f"SpectrogramWidget({self.columns} columns, {self.sample_rate} Hz)"

    def _received(self, content: dict[str, Any]) -> bool:
        if content.get("type") != "view":
            return False
        self._page_looks()
        with self._lock:
            state = {"rate": self.sample_rate, "hop": self.hop_length, "rows": ROWS, "columns": COLUMNS}
            self.tell_page({"type": "state", **state}, palette(picture.LEVELS))
            self._send_columns(self._levels[:, -max(1, min(self.columns, COLUMNS)) :])
            self._send_still(now=True)
        return True

    def _send_columns(self, levels: np.ndarray[Any, Any]) -> None:
        """Columns one after the other, so that the page takes each as it is."""
        self.tell_page({"type": "columns", "end": self.columns}, np.ascontiguousarray(levels.T).tobytes())
