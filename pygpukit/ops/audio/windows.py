"""Windows, computed in float64 and kept on the device; those of SciPy that are not here come from the extra audio."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from pygpukit.core.extras import need
from pygpukit.ops.audio.inputs import positive
from pygpukit.ops.operands import is_array

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

    Window: TypeAlias = str | tuple[Any, ...] | float | Callable[[int], Any] | "np.ndarray[Any, Any]" | GPUArray

__all__ = ["get_window"]

# Sums of cosines, a0 - a1 cos + a2 cos 2x - ... (Harris 1978; flattop: D'Antona and Ferrero 2006).
_COSINES = {
    "boxcar": (1.0,),
    "hann": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
}
_ALIASES = {"ones": "boxcar", "rect": "boxcar", "rectangular": "boxcar", "hanning": "hann"}


def get_window(window: Window, Nx: int, *, fftbins: bool = True) -> np.ndarray[Any, Any]:
    """A window of Nx samples in float64, on the host, as librosa.filters.get_window().

    window: a name ("hann", "hamming", "blackman", "nuttall", "blackmanharris", "flattop", "boxcar", "ones"), what
    scipy.signal.get_window takes besides (a tuple with parameters, a Kaiser beta; extra audio), a function of the
    length, or the samples. fftbins: periodic, for transforms; else symmetric. Raises ValueError.
    """
    import numpy as np

    Nx = positive(Nx, "the length", "get_window")
    if callable(window) and not is_array(window):
        return _samples(np.asarray(window(Nx), np.float64), Nx)
    if isinstance(window, (str, tuple, int, float)):
        name = _ALIASES.get(window, window) if isinstance(window, str) else ""
        if name in _COSINES:
            return _cosines(_COSINES[name], Nx, fftbins)
        scipy = need("scipy.signal", "audio", f"the window {window!r}")
        return np.asarray(scipy.get_window(window, Nx, fftbins=fftbins), np.float64)
    return _samples(np.asarray(window.to_numpy() if is_array(window) else window, np.float64), Nx)


def centred(window: Window, win_length: int, n_fft: int, what: str) -> np.ndarray[Any, Any]:
    """A periodic window of win_length samples in the middle of n_fft, zeros around it. Raises ValueError."""
    import numpy as np

    if win_length > n_fft:
        raise ValueError(f"{what}: win_length is {win_length}, more than n_fft, {n_fft}; a frame must hold its window")
    before = (n_fft - win_length) // 2
    return np.pad(get_window(window, win_length), (before, n_fft - win_length - before))


def _samples(window: np.ndarray[Any, Any], length: int) -> np.ndarray[Any, Any]:
    if window.shape != (length,):
        raise ValueError(f"get_window: the window has shape {window.shape}, must have ({length},)")
    return window


def _cosines(weights: tuple[float, ...], length: int, periodic: bool) -> np.ndarray[Any, Any]:
    import numpy as np

    if length == 1:
        return np.ones(1)
    angle = 2 * np.pi * np.arange(length) / (length if periodic else length - 1)
    return np.asarray(sum((-1) ** k * weight * np.cos(k * angle) for k, weight in enumerate(weights)))
