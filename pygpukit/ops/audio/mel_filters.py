"""mel: triangular filters from bins to mel bands."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from pygpukit.core.dtypes import DataType, as_dtype
from pygpukit.ops.audio import scales
from pygpukit.ops.audio.documented import keywords
from pygpukit.ops.audio.inputs import positive, rate
from pygpukit.ops.audio.spectra import Bank
from pygpukit.ops.fft.tables import TABLES

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike

    Values = np.ndarray[Any, Any]

How = tuple[Any, ...]  # filters()'s arguments

__all__ = ["mel"]


@keywords(sample_rate="sr", f_min="fmin", f_max="fmax")
def mel(
    *,
    sr: float,
    n_fft: int,
    n_mels: int = 128,
    fmin: float = 0.0,
    fmax: float | None = None,
    htk: bool = False,
    norm: str | float | None = "slaney",
    dtype: DTypeLike = "float32",
) -> GPUArray:
    """Triangular filters (n_mels, 1 + n_fft // 2) from bins to mel bands, as librosa.filters.mel().

    sr: samples a second. fmin, fmax: in Hz; fmax is sr / 2 by default. htk: HTK's scale instead of Slaney's. norm:
    "slaney" for filters of one area, a number for filters of that norm (1, 2, inf), None for peaks of one. Warns of
    filters without a bin. Computed in float64. Raises ValueError.
    """
    from pygpukit.array.factory import from_numpy

    return from_numpy(filters(sr, n_fft, n_mels, fmin, fmax, htk, norm).astype(as_dtype(dtype).to_numpy_dtype()))


def filters(
    sr: float, n_fft: int, n_mels: int, fmin: float, fmax: float | None, htk: bool, norm: str | float | None
) -> Values:
    """mel()'s filters on the host, as float32 numbers; the norm is applied to those, as in librosa."""
    import numpy as np

    sr, n_fft, n_mels = rate(sr), positive(n_fft, "n_fft", "mel"), positive(n_mels, "n_mels", "mel")
    top = sr / 2 if fmax is None else fmax
    if not 0 <= fmin < top:
        raise ValueError(f"mel: fmin is {fmin} and fmax {top}; 0 <= fmin < fmax must hold")
    low, high = (float(scales.hz_to_mel(hz, htk)) for hz in (fmin, top))
    edges = scales.mel_to_hz(np.linspace(low, high, n_mels + 2), htk)
    ramps = edges[:, None] - scales.fft_frequencies(sr, n_fft)
    apart = np.diff(edges)[:, None]
    bank = np.maximum(0, np.minimum(-ramps[:-2] / apart[:-1], ramps[2:] / apart[1:])).astype(np.float32)
    if norm == "slaney":
        bank *= (2.0 / (edges[2:] - edges[:-2]))[:, None]
    elif isinstance(norm, str):
        raise ValueError(f"mel: norm {norm!r} is unknown; use 'slaney', a number or None")
    elif norm is not None:
        size = np.linalg.norm(bank.astype(np.float64), norm, axis=1, keepdims=True)
        bank /= np.where(size < np.finfo(np.float32).tiny, 1, size)
    if not ((edges[:-2] == 0) | (bank.max(axis=1) > 0)).all():
        warnings.warn("mel: some filters have no bin and give zeros; take fewer n_mels or a larger n_fft", stacklevel=4)
    return bank


def dense(dtype: DataType, *how: Any) -> GPUArray:
    """The filters as (bins, n_mels), on the device, made once. how: as filters()."""
    return TABLES.get(("mel", dtype, how), lambda: filters(*how).T.astype(dtype.to_numpy_dtype(), order="C"))


def sparse(dtype: DataType, *how: Any) -> Bank:
    """The filters by the few bins that each has, on the device, made once. how: as filters()."""
    import numpy as np

    def rows() -> list[Values]:
        bank = filters(*how)
        inside = (np.flatnonzero(row) for row in bank)
        return [row[at[0] : at[-1] + 1] if at.size else row[:0] for row, at in zip(bank, inside, strict=True)]

    def extents() -> Values:
        counts = [len(row) for row in rows()]
        first = (filters(*how) != 0).argmax(axis=1)
        return np.stack([first, counts, np.cumsum(counts) - counts], axis=1).astype(np.int32)

    def weights() -> Values:
        return np.concatenate([*rows(), np.zeros(1)]).astype(dtype.to_numpy_dtype())

    return Bank(TABLES.get(("mel weights", dtype, how), weights), TABLES.get(("mel extents", how), extents))
