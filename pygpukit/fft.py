"""gp.fft: discrete Fourier transforms with NumPy's names, arguments and results, of any length, on the device."""

from pygpukit.ops.fft import fft, hfft, ifft, ihfft, irfft, rfft
from pygpukit.ops.fft.axes import fft2, fftn, ifft2, ifftn, irfft2, irfftn, rfft2, rfftn
from pygpukit.ops.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def __dir__() -> list[str]:
    """The module's public names, without what it imports."""
    return sorted(__all__)
