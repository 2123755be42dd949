"""The standard's extension `fft`: the functions of gp.fft that it names."""

from pygpukit.ops.fft import fft, hfft, ifft, ihfft, irfft, rfft
from pygpukit.ops.fft.axes import fftn, ifftn, irfftn, rfftn
from pygpukit.ops.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]
