"""PlayerWidget: a sound in a cell, with its waveform and spectrogram; also one that still comes while it plays."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.array.png import palette
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.jupyter.widgets.base import Widget
from pygpukit.jupyter.widgets.samples import HEARD_CHANNELS, Samples
from pygpukit.ops.audio import picture
from pygpukit.ops.audio.buffer import AudioBuffer, from_pcm

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

CHUNK_BYTES = 256 << 10
FIRST_BYTES = 128 << 10  # comes with the state: playing begins at once
COLUMNS, ROWS = 800, 128  # of the picture
PICTURE_S = 1.0  # between two pictures of a stream, at least
PICTURE_SHARE = 0.05  # of the time, at most, that they may take
# A server of Jupyter drops what comes faster than a million bytes a second: beyond this the page asks for chunks.
PUSHED_BYTES_PER_S, PUSHED_BURST = 600e3, 1.5e6


class PlayerWidget(Widget):
    """A player: play, pause, seek, volume, waveform, spectrogram. Samples travel as they are, float32.

    sound: an AudioBuffer, whose rich picture this is, or samples as from_pcm() takes them, with their sample_rate in
    Hz. Without one, a stream: sample_rate and channels, then push() while it plays, and end(). autoplay: play as soon
    as something is there, where the browser lets it. Raises InvalidSpecError, what from_pcm() raises, and RuntimeError
    when the front-end bundle has not been built.
    """

    module = "player.js"

    def __init__(
        self, sound: Any = None, sample_rate: int = 0, channels: int | None = None, *, autoplay: bool = False
    ) -> None:
        count = 1 if channels is None else channels  # of a stream
        if sound is None and not (isinstance(sample_rate, int) and sample_rate > 0 and count >= 1):
            raise InvalidSpecError(
                f"PlayerWidget: a stream needs its sample_rate in Hz and its channels; they are {sample_rate!r} and "
                f"{channels!r}. A sound is an AudioBuffer: gp.ops.audio.from_pcm(samples, sample_rate)",
                "sample_rate",
            )
        if sound is not None and not isinstance(sound, AudioBuffer):
            if not sample_rate:
                raise InvalidSpecError(
                    f"PlayerWidget: sound is {type(sound).__name__}, whose rate is not known: give it behind the "
                    "samples, PlayerWidget(samples, 44100)",
                    "sample_rate",
                )
            sound = from_pcm(sound, sample_rate, channels or 0)
        elif sound is not None and sample_rate not in (0, sound.sample_rate):
            raise InvalidSpecError(
                f"PlayerWidget: the sound has {sound.sample_rate} Hz, not {sample_rate}; resample() it", "sample_rate"
            )
        self._sound = sound
        self._samples = Samples(sample_rate, count) if sound is None else Samples.of(sound)
        self._autoplay = autoplay
        self._sending = threading.RLock()
        self._looked_at = False
        self._left, self._left_at = PUSHED_BURST, 0.0
        self._picture_due_s = 0.0
        super().__init__()

    @property
    def sound(self) -> AudioBuffer:
        """The sound, of a stream what there is of it now, on the device."""
        if self._sound is not None:
            return self._sound
        samples = self._samples
        kept = samples.read(samples.first, samples.frames)
        return from_pcm(kept[0] if samples.channels == 1 else kept, samples.rate, samples.channels)

    def push(self, samples: AudioBuffer | GPUArray | Any) -> None:
        """Add samples to a stream: what from_pcm() takes, (n,), (channels, n) or (n, channels). They
        are heard in order, none twice.

        Returns at once. Raises ShapeError for another number of channels, InvalidSpecError after end() and for another
        rate.
        """
        if not isinstance(samples, AudioBuffer):
            count = self._samples.channels
            known = np.ndim(samples) == 2 and count in np.shape(samples)
            samples = from_pcm(samples, self._samples.rate, count if known else 0)
        if samples.sample_rate != self._samples.rate:
            raise InvalidSpecError(
                f"push: the sound has {samples.sample_rate} Hz, the player {self._samples.rate}; resample() it",
                "samples",
            )
        if samples.channels != self._samples.channels:
            raise ShapeError(f"push: the sound has {samples.channels} channels, the player {self._samples.channels}")
        chunk = samples.to_numpy().reshape(samples.channels, len(samples))
        with self._sending:
            at = self._samples.append(chunk)
            if self._looked_at and self.comm is not None:
                max_frames = CHUNK_BYTES // (4 * self._heard)
                for begin in range(at, self._samples.frames, max_frames):
                    count = min(max_frames, self._samples.frames - begin)
                    self._send_chunk(begin, count if self._may_push(4 * self._heard * count) else 0)
                self._send_picture()

    def end(self) -> None:
        """The stream is whole: the player ends where it ends."""
        with self._sending:
            self._samples.end()
            if self._looked_at and self.comm is not None:
                self._send_chunk(self._samples.frames, 0)
                self._send_picture(now=True)
                self._send_still(now=True)

    def __repr__(self) -> str:
        samples = self._samples
        more = "" if samples.ended else " so far"
        channels = "1 channel" if samples.channels == 1 else f"{samples.channels} channels"
        return f"PlayerWidget({samples.frames / samples.rate:.3f} s{more}, {samples.rate} Hz, {channels})"

    def fallback(self) -> dict[str, str]:
        return {"text/html": picture.html(self.sound, "Run the cell for the player.")}

    @property
    def _heard(self) -> int:
        return min(self._samples.channels, HEARD_CHANNELS)

    def _received(self, content: dict[str, Any]) -> bool:
        kind, at = content.get("type"), content.get("at")
        if kind == "view":
            self._page_looks()
            self._send_state()
            if self._sound is None:  # of a sound that is whole the cell's output has it already
                self._send_still(now=True)
        elif kind == "want" and isinstance(at, int) and not isinstance(at, bool) and at >= 0:
            with self._sending:
                self._send_chunk(at, CHUNK_BYTES // (4 * self._heard))
        else:
            return False
        return True

    def _send_state(self) -> None:
        samples = self._samples
        with self._sending:
            self._looked_at = True
            self.tell_page(
                {
                    "type": "sound",
                    "rate": samples.rate,
                    "channels": self._heard,
                    "frames": samples.frames,
                    "first": samples.first,
                    "ended": samples.ended,
                    "autoplay": self._autoplay,
                    "note": self._note(),
                }
            )
            self._send_chunk(samples.first, FIRST_BYTES // (4 * self._heard))
            self._send_picture(now=True)

    def _send_chunk(self, at: int, max_frames: int) -> None:
        """So many samples from one on, or only how many there are by now."""
        samples = self._samples
        block = np.nan_to_num(samples.read(at, max_frames)[: self._heard], posinf=0.0, neginf=0.0)
        content = {"type": "chunk", "at": at, "frames": samples.frames, "first": samples.first, "ended": samples.ended}
        self.tell_page(content, *([block.tobytes()] if block.size else []))

    def _send_picture(self, now: bool = False) -> None:
        began_s = time.monotonic()
        if (not now and began_s < self._picture_due_s) or self._samples.frames == 0:
            return
        sound = self.sound
        bounds, levels = picture.envelope(sound, COLUMNS), picture.spectrogram(sound, COLUMNS, ROWS)
        content = {"type": "look", "first": self._samples.first, "frames": len(sound), "columns": COLUMNS, "rows": ROWS}
        self.tell_page(content, bounds.tobytes(), levels.tobytes(), palette(picture.LEVELS))
        ended_s = time.monotonic()
        self._picture_due_s = ended_s + max(PICTURE_S, (ended_s - began_s) / PICTURE_SHARE)

    def _may_push(self, size: int) -> bool:
        now = time.monotonic()
        self._left = min(PUSHED_BURST, self._left + (now - self._left_at) * PUSHED_BYTES_PER_S)
        self._left_at = now
        if self._left < size:
            return False
        self._left -= size
        return True

    def _note(self) -> str:
        """Sentences that are to be known of the samples before they are heard."""
        if self._sound is None or len(self._sound) == 0:
            return ""
        host = self._samples.read(0, self._samples.frames)
        not_finite = int(host.size - np.isfinite(host).sum())
        peak = float(np.abs(np.nan_to_num(host, posinf=0.0, neginf=0.0)).max())
        notes = [
            f"{not_finite} samples are not finite and are played as 0." if not_finite else "",
            f"The peak is {peak:.3g}: what is beyond 1 is clipped. normalize() makes it 1." if peak > 1 else "",
            f"Of {self._samples.channels} channels the first two are heard; to_mono() mixes them."
            if self._samples.channels > HEARD_CHANNELS
            else "",
        ]
        return " ".join(filter(None, notes))
