"""Sound that comes in pieces: a ring of samples on the device, overlapping chunks of it, and a resampler with a
memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit._core import native
from pygpukit.array.factory import from_numpy
from pygpukit.core.dtypes import float32
from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying, elementwise
from pygpukit.ops.audio.inputs import floats, positive
from pygpukit.ops.audio.polyphase import upfirdn
from pygpukit.ops.audio.resampling import design, ratio
from pygpukit.ops.audio.windows import get_window
from pygpukit.ops.operands import is_array
from pygpukit.ops.shape import joining

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["AudioRingBuffer", "AudioStream", "StreamResampler"]


class AudioRingBuffer:
    """The last `capacity` samples, float32, on the device; what is written when it is full replaces the oldest."""

    def __init__(self, capacity: int, sample_rate: int = 16000) -> None:
        self.capacity = positive(capacity, "capacity", "AudioRingBuffer")
        self.sample_rate = sample_rate
        self._ring = native.empty((self.capacity,), "float32")
        self._end = 0  # where the next sample goes
        self._count = 0

    @property
    def samples_available(self) -> int:
        """The number of samples that can be read."""
        return self._count

    @property
    def duration_available(self) -> float:
        """The same in seconds."""
        return self._count / self.sample_rate

    def write(self, samples: Any) -> int:
        """Appends samples (1-D: array, NumPy floats or AudioBuffer); how many are kept: capacity at most.

        Raises ShapeError, DTypeError."""
        new = _samples(samples, "AudioRingBuffer.write")
        new = new[max(new.shape[0] - self.capacity, 0) :]
        first = min(new.shape[0], self.capacity - self._end)
        if first:
            copying.copy_to(new[:first], self._ring[self._end : self._end + first])
        if new.shape[0] > first:
            copying.copy_to(new[first:], self._ring[: new.shape[0] - first])
        self._end = (self._end + new.shape[0]) % self.capacity
        self._count = min(self._count + new.shape[0], self.capacity)
        return int(new.shape[0])

    def read(self, num_samples: int, offset: int = 0) -> GPUArray:
        """num_samples from the oldest one on, after offset of them, as a new array; they stay. Raises ValueError where
        there are not so many."""
        if num_samples < 0 or offset < 0 or offset + num_samples > self._count:
            raise ValueError(
                f"AudioRingBuffer.read: {num_samples} samples after {offset} are wanted, {self._count} are there"
            )
        start = (self._end - self._count + offset) % self.capacity
        first = min(num_samples, self.capacity - start)
        head, tail = self._ring[start : start + first], self._ring[: num_samples - first]
        return joining.concatenate([head, tail]) if tail.size else copying.clone(head)

    def drop(self, num_samples: int) -> None:
        """Forgets the oldest samples. Raises ValueError where there are not so many."""
        if not 0 <= num_samples <= self._count:
            raise ValueError(f"AudioRingBuffer.drop: {num_samples} samples, {self._count} are there")
        self._count -= num_samples

    def clear(self) -> None:
        """Forgets all samples."""
        self._end = self._count = 0


class AudioStream:
    """Overlapping chunks of what is pushed: push(), then pop_chunk() while has_chunk(). Samples wait on the device.

    chunk_size: samples of a chunk; hop_size: from chunk to chunk, half of it by default. buffer_duration: seconds that
    can wait. Raises ValueError.
    """

    def __init__(
        self,
        chunk_size: int = 480,
        hop_size: int | None = None,
        sample_rate: int = 16000,
        buffer_duration: float = 30.0,
    ) -> None:
        what = "AudioStream"
        self.chunk_size = positive(chunk_size, "chunk_size", what)
        self.hop_size = max(1, chunk_size // 2) if hop_size is None else positive(hop_size, "hop_size", what)
        self.sample_rate = sample_rate
        capacity = round(buffer_duration * sample_rate)
        if capacity < max(self.chunk_size, self.hop_size):
            raise ValueError(f"{what}: buffer_duration {buffer_duration} s has {capacity} samples, less than a chunk")
        self._ring = AudioRingBuffer(capacity, sample_rate)
        self._skipped = 0  # samples between chunks that are still to come
        self._window = from_numpy(get_window("hann", self.chunk_size).astype(np.float32))

    @property
    def chunks_available(self) -> int:
        """The number of chunks that pop_chunk() can give."""
        left = self._ring.samples_available - self.chunk_size
        return 0 if left < 0 else 1 + left // self.hop_size

    def push(self, samples: Any) -> int:
        """Appends samples; how many there was room for: the rest is to be pushed again after chunks were taken."""
        new = _samples(samples, "AudioStream.push")
        taken = self._ring.write(new[: self._ring.capacity - self._ring.samples_available])
        self._skip(self._skipped)
        return taken

    def has_chunk(self) -> bool:
        """True where there are samples for a chunk."""
        return self.chunks_available > 0

    def pop_chunk(self, apply_window: bool = True) -> GPUArray:
        """The next chunk, (chunk_size,), times a periodic Hann window or as it is. Raises ValueError where there is
        none."""
        if not self.has_chunk():
            raise ValueError(
                f"AudioStream.pop_chunk: {self._ring.samples_available} samples are there, not {self.chunk_size}"
            )
        chunk = self._ring.read(self.chunk_size)
        self._skip(self.hop_size)
        return elementwise.mul(chunk, self._window) if apply_window else chunk

    def reset(self) -> None:
        """Forgets all samples."""
        self._ring.clear()
        self._skipped = 0

    def _skip(self, count: int) -> None:
        there = min(count, self._ring.samples_available)
        self._ring.drop(there)
        self._skipped = count - there


class StreamResampler:
    """resample() of a signal that comes in blocks: push() each, then flush(); together the bits of the whole.

    res_type: "soxr_hq", "polyphase" or "sinc". The filter's delay is taken out, so that output lags behind input by
    half its length. Blocks are (..., samples), of one type and batch. Raises ValueError.
    """

    def __init__(self, orig_sr: float, target_sr: float, res_type: str = "soxr_hq") -> None:
        self._up, self._down = ratio(orig_sr, target_sr)
        taps, self._place = design(res_type, self._up, self._down)  # of the next output, from self._kept's start
        self._taps, self._seen, self._produced = taps, 0, 0
        self._kept: GPUArray | None = None

    def push(self, block: Any) -> GPUArray:
        """Take samples in; return the outputs that can be computed now, (..., samples)."""
        block = floats(block, "StreamResampler.push: block")
        self._kept = block if self._kept is None else joining.concatenate([self._kept, block], -1)
        self._seen += block.shape[-1]
        # An output needs the samples up to its place on the raised signal.
        ready = max(0, -(-(self._kept.shape[-1] * self._up - self._place) // self._down))
        return self._outputs(ready)

    def flush(self) -> GPUArray:
        """The rest, as if zeros followed; the resampler then begins anew. Raises ValueError before any push()."""
        if self._kept is None:
            raise ValueError("StreamResampler.flush: nothing was pushed")
        rest = self._outputs(-(-self._seen * self._up // self._down) - self._produced)
        self._kept, self._seen, self._produced, self._place = None, 0, 0, len(self._taps) // 2
        return rest

    def _outputs(self, count: int) -> GPUArray:
        assert self._kept is not None
        result = upfirdn(self._kept, self._taps, self._up, self._down, self._place, count)
        self._produced += count
        self._place += count * self._down
        # The oldest sample that the next output needs.
        past = max(0, -(-(self._place - len(self._taps) + 1) // self._up))
        past = min(past, self._kept.shape[-1])
        self._kept = copying.clone(self._kept[..., past:])
        self._place -= past * self._up
        return result


def _samples(samples: Any, what: str) -> GPUArray:
    """1-D float32 on the device."""
    data = getattr(samples, "data", samples) if not isinstance(samples, np.ndarray) else samples
    array = floats(data if is_array(data) else from_numpy(np.ascontiguousarray(data)), what)
    if array.ndim != 1:
        raise ShapeError(f"{what}: samples have shape {array.shape} and must be 1-D; take one channel")
    return array if array.dtype == float32 else copying.astype(array, float32)
