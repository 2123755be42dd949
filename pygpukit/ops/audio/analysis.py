"""Signals cut to frames and transformed: one launch where one can do it all, else step by step."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit.core.dtypes import DataType, float64
from pygpukit.ops import copying, elementwise, host
from pygpukit.ops.audio import mel_filters, spectra, windows
from pygpukit.ops.audio.framing import check_continuation, check_frame, frames, padded
from pygpukit.ops.audio.inputs import complex_of, positive, signal
from pygpukit.ops.audio.powers import squared, to_power
from pygpukit.ops.elementwise.math import log10
from pygpukit.ops.fft import rfft
from pygpukit.ops.fft.tables import TABLES
from pygpukit.ops.matmul.gemm import matmul

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.audio.windows import Window

_FORMS: dict[float, int] = {1: spectra.MAGNITUDE, 2: spectra.POWER}


@dataclass(frozen=True)
class Analysis:
    """y: (..., samples). window: as long as a frame. before: samples added at both ends, as pad_mode says."""

    y: GPUArray
    window: GPUArray
    hop: int
    before: int
    pad_mode: str

    @property
    def count(self) -> int:
        """The number of frames."""
        return 1 + (self.y.shape[-1] + 2 * self.before - self.window.size) // self.hop

    @property
    def fused(self) -> bool:
        """True where one launch does it all."""
        return not host.computes() and spectra.fits(self.window.size, self.y.dtype)

    def complex(self) -> GPUArray:
        """(..., frames, bins)."""
        if self.fused:
            return self._launched(spectra.COMPLEX)
        around = padded(self.y, self.before, self.before, self.pad_mode, "stft")
        D = rfft(elementwise.mul(frames(around, self.window.size, self.hop, "stft"), self.window))
        dtype = complex_of(self.y.dtype)
        return D if D.dtype == dtype else copying.astype(D, dtype)

    def sizes(self, power: float) -> GPUArray:
        """The magnitudes to a power: (..., frames, bins)."""
        if self.fused and power in _FORMS:
            return self._launched(_FORMS[power])
        D = self.complex()
        return squared(D) if power == 2 else to_power(elementwise.abs(D), power)

    def bands(self, power: float, how: mel_filters.How) -> GPUArray:
        """The magnitudes to a power in mel bands: (..., frames, bands)."""
        if self.fused and power in _FORMS:
            return self._launched(_FORMS[power] | spectra.BANDS, mel_filters.sparse(self.y.dtype, *how))
        return matmul(self.sizes(power), mel_filters.dense(self.y.dtype, *how))

    def logarithms(self, how: mel_filters.How, amin: float) -> GPUArray:
        """log10 of the power in mel bands, of `amin` and more."""
        if self.fused:
            bank = mel_filters.sparse(self.y.dtype, *how)
            return self._launched(spectra.POWER | spectra.BANDS | spectra.LOG, bank, amin)
        return log10(elementwise.maximum(self.bands(2, how), amin))

    def _launched(self, form: int, bank: spectra.Bank | None = None, amin: float = 0.0) -> GPUArray:
        return spectra.spectra(self.y, self.window, self.hop, self.before, self.count, self.pad_mode, form, bank, amin)


def prepared(
    y: Any,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Window,
    center: bool,
    pad_mode: str,
    what: str,
) -> Analysis:
    """The analysis that stft()'s arguments ask for. Raises as stft()."""
    y = signal(y, what)
    n_fft = positive(n_fft, "n_fft", what)
    win_length = n_fft if win_length is None else positive(win_length, "win_length", what)
    hop_length = max(1, win_length // 4) if hop_length is None else positive(hop_length, "hop_length", what)
    # On the host frames are float64 and rounded once, as librosa's: bins far below the largest one keep their digits.
    bent = on_device(window, win_length, n_fft, float64 if host.computes() else y.dtype, what)
    check_continuation(y, pad_mode, what)
    if not center:
        check_frame(y, n_fft, what)
    return Analysis(y, bent, hop_length, n_fft // 2 if center else 0, pad_mode)


def warn_of_short(analysis: Analysis, what: str) -> None:
    """A warning for a signal that is shorter than a frame, as librosa.stft() gives it."""
    n_fft, samples = analysis.window.size, analysis.y.shape[-1]
    if analysis.before and n_fft > samples:
        warnings.warn(f"{what}: n_fft is {n_fft}, the signal has {samples} samples only", stacklevel=4)


def on_device(window: Window, win_length: int, n_fft: int, dtype: DataType, what: str) -> GPUArray:
    """The centred window as an array of dtype; of named windows the one that was made before."""
    from pygpukit.array.factory import from_numpy

    def make() -> Any:
        return windows.centred(window, win_length, n_fft, what).astype(dtype.to_numpy_dtype())

    if isinstance(window, (str, tuple, int, float)):
        return TABLES.get(("window", window, win_length, n_fft, dtype), make)
    return from_numpy(make())
