"""The filters of constant-Q and variable-Q transforms, in float64 on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit.ops.audio import intervals as octave
from pygpukit.ops.audio.windows import get_window

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.ops.audio.windows import Window

    Values = np.ndarray[Any, Any]


def interval_frequencies(n_bins: int, fmin: float, intervals: str | Sequence[float], bins_per_octave: int) -> Values:
    """n_bins frequencies from fmin on, rising: of named intervals, or of an octave's ratios. Raises ValueError."""
    import numpy as np

    if isinstance(intervals, str):
        ratios = octave.ratios(intervals, bins_per_octave)
    else:
        ratios = np.asarray(intervals, np.float64)
    octaves = 2.0 ** np.arange(np.ceil(n_bins / len(ratios)))
    return np.sort((octaves[:, None] * ratios).ravel()[:n_bins]) * fmin


def relative_bandwidths(hz: Values, bins_per_octave: int) -> Values:
    """Of each frequency, from its neighbours' distance; of a single one, from equal temperament."""
    import numpy as np

    if len(hz) == 1:
        ratio = 2.0 ** (2 / bins_per_octave)
        return np.array([(ratio - 1) / (ratio + 1)])
    octaves = np.log2(hz)
    apart = np.concatenate(([octaves[1] - octaves[0]], (octaves[2:] - octaves[:-2]) / 2, [octaves[-1] - octaves[-2]]))
    ratios = 2.0 ** (2 * apart)
    return (ratios - 1) / (ratios + 1)


def lengths(hz: Values, sr: float, alpha: Values, filter_scale: float, gamma: float | None) -> tuple[Values, Values]:
    """(samples of each filter, its gamma in Hz). gamma None: that of hearing's rectangular bandwidths."""
    import numpy as np

    width = alpha * 24.7 / 0.108 if gamma is None else np.full(len(hz), float(gamma))
    return filter_scale / alpha * sr / (hz + width / alpha), width


def highest(hz: Values, alpha: Values, filter_scale: float, width: Values, window: Window) -> float:
    """The highest frequency that a filter passes, in Hz."""
    import numpy as np

    shape = get_window(window, 1000)
    spread = len(shape) * (shape**2).sum() / shape.sum() ** 2
    return float(np.max(hz * (1 + 0.5 * spread * alpha / filter_scale) + 0.5 * width))


def basis(
    hz: Values,
    sr: float,
    alpha: Values,
    filter_scale: float,
    norm: float | None,
    sparsity: float,
    window: Window,
    gamma: float | None,
    shortest: int = 1,
) -> Values:
    """(filters, 1 + n_fft // 2): filters as spectra, n_fft the power of two that holds the longest (and shortest
    samples), without the least bins that have a part of sparsity of a filter's magnitude."""
    import numpy as np

    samples, _ = lengths(hz, sr, alpha, filter_scale, gamma)
    n_fft = int(2.0 ** np.ceil(np.log2(max(samples.max(), shortest))))
    # In single precision, as librosa's: which bins are left out hangs on the last digits.
    rows = np.zeros((len(hz), n_fft), np.complex64)
    for row, length, each in zip(rows, samples, hz, strict=True):
        places = np.arange(-length // 2, length // 2)
        filtered = np.exp(2j * np.pi * each / sr * places) * get_window(window, len(places))
        if norm is not None:
            size = np.linalg.norm(filtered, norm)
            filtered /= size if size >= np.finfo(np.float32).tiny else 1.0
        before = (n_fft - len(places)) // 2
        row[before : before + len(places)] = filtered
    rows *= samples[:, None] / n_fft
    spectra = np.fft.fft(rows, axis=1)[:, : n_fft // 2 + 1].astype(np.complex64)
    sizes = np.abs(spectra)
    ordered = np.sort(sizes, axis=1)
    kept = np.argmin(np.cumsum(ordered / sizes.sum(axis=1, keepdims=True), axis=1) < sparsity, axis=1)
    return np.where(sizes >= np.take_along_axis(ordered, kept[:, None], 1), spectra, 0)
