"""AudioBuffer: samples on the device with their rate, which a notebook shows as a player."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from pygpukit.array.factory import asarray
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.ops import elementwise, reduce
from pygpukit.ops.audio.resampling import resample
from pygpukit.ops.audio.returned import in_place
from pygpukit.ops.operands import check_array

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

__all__ = ["AudioBuffer", "from_pcm"]

_FULL_SCALE = {"int16": 2.0**15, "int32": 2.0**31, "uint8": 2.0**7}


@dataclass(eq=False, repr=False)
class AudioBuffer:
    """Sound on the device: float32 samples, 1 as full scale, and their rate in Hz.

    data: shape (n,) for one channel, (channels, n) for several; float64 is converted. channels: of data, where given it
    must be data's. `len()`, slices and `duration` are in samples and seconds. A notebook shows it as a player. Raises
    DTypeError, ShapeError and InvalidSpecError.
    """

    data: GPUArray
    sample_rate: int
    channels: int = 0

    def __post_init__(self) -> None:
        data = check_array(self.data, "AudioBuffer: data")
        if data.dtype.name not in ("float32", "float64"):
            raise DTypeError(f"AudioBuffer: data is {data.dtype} and has to be float32; from_pcm() takes integers")
        self.data = data if data.dtype.name == "float32" else data.astype("float32")
        if data.ndim not in (1, 2) or (data.shape[0] == 0 and data.ndim == 2):
            raise ShapeError(f"AudioBuffer: data has shape {data.shape}, not (n,) or (channels, n)")
        rate = self.sample_rate
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not (0 < rate < 2**31 and rate == int(rate)):
            raise InvalidSpecError(
                f"AudioBuffer: sample_rate is {rate!r}, not a positive whole number of Hz", "sample_rate"
            )
        self.sample_rate = int(rate)
        channels = 1 if data.ndim == 1 else data.shape[0]
        if self.channels not in (0, channels):
            raise InvalidSpecError(
                f"AudioBuffer: channels is {self.channels} and data of shape {data.shape} has {channels}; leave it "
                "out, or let from_pcm() part interleaved samples",
                "channels",
            )
        self.channels = channels

    @property
    def duration(self) -> float:
        """The duration in seconds."""
        return len(self) / self.sample_rate

    def __len__(self) -> int:
        return self.data.shape[-1]

    def __getitem__(self, key: slice) -> AudioBuffer:
        """A part by numbers of samples, as a view: sound[:sr] is the first second, sound[::-1] the sound backwards."""
        if not isinstance(key, slice) or key.step not in (None, 1, -1):
            raise InvalidSpecError(
                f"AudioBuffer: it takes slices of samples with step 1 or -1, not {key!r}; .data has the samples", "key"
            )
        return AudioBuffer(self.data[..., key], self.sample_rate)

    def to_mono(self) -> AudioBuffer:
        """The mean of the channels; itself when it has one."""
        return self if self.data.ndim == 1 else AudioBuffer(reduce.mean(self.data, axis=0), self.sample_rate)

    def resample(self, target_rate: int) -> AudioBuffer:
        """The same sound at another rate, by gp.ops.audio.resample(). Raises InvalidSpecError and ValueError."""
        samples = resample(self.data, orig_sr=self.sample_rate, target_sr=target_rate)
        return AudioBuffer(samples, target_rate)

    def normalize(self, mode: Literal["peak", "rms"] = "peak", target_db: float = -20.0) -> AudioBuffer:
        """As loud as told: "peak" makes the largest magnitude 1, "rms" the root mean square target_db below full scale.

        In place; gives itself back. All channels by one factor. Silence stays as it is. Raises InvalidSpecError for
        another mode, and for NaN.
        """
        if mode not in ("peak", "rms"):
            raise InvalidSpecError(f'AudioBuffer.normalize: mode is {mode!r}, not "peak" or "rms"', "mode")
        if len(self) == 0:
            return self
        if mode == "peak":
            level, target_level = float(reduce.max(elementwise.abs(self.data))), 1.0
        else:
            level = float(reduce.mean(elementwise.mul(self.data, self.data))) ** 0.5
            target_level = 10 ** (target_db / 20)
        if not math.isfinite(level):
            raise InvalidSpecError("AudioBuffer.normalize: samples are not finite (NaN or infinite)", "data")
        return self if level == 0 else in_place(self, elementwise.mul(self.data, target_level / level))

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host, of data's shape."""
        return self.data.to_numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The samples for NumPy and what takes its arrays: they are copied from the device."""
        if copy is False:
            raise ValueError("AudioBuffer: its samples are on the device, so that an array on the host is a copy")
        host = self.to_numpy()
        return host if dtype is None else host.astype(dtype)

    def __repr__(self) -> str:
        channels = {1: "mono", 2: "stereo"}.get(self.channels, f"{self.channels} channels")
        return f"AudioBuffer({self.duration:.3f} s, {self.sample_rate} Hz, {channels}, {len(self)} samples)"

    def _repr_mimebundle_(self, **_kwargs: Any) -> Any:
        """The player in a notebook, a picture where there is no kernel; see pygpukit.jupyter.sound."""
        return import_module("pygpukit.jupyter.sound").mimebundle(self)


def from_pcm(samples: Any, sample_rate: int, channels: int = 0) -> AudioBuffer:
    """Sound of PCM samples, as files and microphones have them, on the device.

    samples: an array of int16, int32, uint8 (128 as zero), float32 or float64, on the host or the device; of one axis
    with several channels interleaved, of shape (channels, n), or (n, channels). channels: how many; 0 for one of one
    axis, and of two axes for the shorter one, the first of equal ones. Integers are scaled to -1 to 1, floats are kept.
    Raises DTypeError for other types, ShapeError where the samples are not whole frames of so many channels, and
    InvalidSpecError for samples that are NaN or infinite.
    """
    channels = operator.index(channels)
    array = asarray(samples)
    kind = array.dtype.name
    if kind in _FULL_SCALE:
        centred = elementwise.sub(array.astype("float32"), 128.0) if kind == "uint8" else array.astype("float32")
        array = elementwise.mul(centred, 1 / _FULL_SCALE[kind])
    elif kind not in ("float32", "float64"):
        raise DTypeError(f"from_pcm: samples are {kind}; they have to be int16, int32, uint8, float32 or float64")
    elif array.size and not math.isfinite(float(reduce.max(elementwise.abs(array)))):
        raise InvalidSpecError(_not_finite(array.to_numpy()), "samples")
    if array.ndim == 1 and channels not in (0, 1):
        if channels < 1 or array.size % channels:
            raise ShapeError(f"from_pcm: {array.size} samples are not whole frames of {channels} channels")
        array = array.reshape(-1, channels).T
    elif array.ndim == 2:
        array = _channels_first(array, channels)
    return AudioBuffer(array, sample_rate, channels)


def _channels_first(array: GPUArray, channels: int) -> GPUArray:
    first, last = array.shape
    if channels not in (0, first, last):
        raise ShapeError(f"from_pcm: samples of shape {array.shape} have no axis of {channels} channels")
    is_transposed = channels != first if channels else 0 < last < first or first == 0
    return array.T if is_transposed else array


def _not_finite(samples: np.ndarray[Any, Any]) -> str:
    import numpy as np

    bad = np.argwhere(~np.isfinite(samples))
    place = ", ".join(map(str, bad[0]))
    more = f", and {len(bad) - 1} more are not finite" if len(bad) > 1 else ""
    return f"from_pcm: samples[{place}] is {samples[tuple(bad[0])]}{more}; np.nan_to_num() makes silence of them"
