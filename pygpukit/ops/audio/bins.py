"""The frequencies of a spectrogram's bins, as features take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying
from pygpukit.ops.audio import scales
from pygpukit.ops.fft.tables import TABLES
from pygpukit.ops.operands import is_array
from pygpukit.ops.shape import expand_dims

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def frequencies(freq: Any, S: GPUArray, sr: float, n_fft: int, what: str) -> GPUArray:
    """Of each bin, (bins, 1), or of each bin and frame, (..., bins, frames), in S's type: freq, an array of the host or
    the device, else those of a transform. Raises ShapeError."""
    if freq is None:
        kind = S.dtype.to_numpy_dtype()
        key = ("bins", S.dtype, sr, n_fft)
        return TABLES.get(key, lambda: scales.fft_frequencies(sr, n_fft)[:, None].astype(kind))
    from pygpukit.array.factory import asarray

    array = copying.astype(freq if is_array(freq) else asarray(freq), S.dtype)
    if array.shape[-2 if array.ndim > 1 else -1] != S.shape[-2]:
        raise ShapeError(f"{what}: freq has shape {array.shape}, S has {S.shape[-2]} bins: S is {S.shape}")
    return expand_dims(array, -1) if array.ndim == 1 else array
