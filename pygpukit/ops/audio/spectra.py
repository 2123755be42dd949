"""From samples to spectra in one launch (spectra.cu): continuation, window, transform, magnitudes, sums in bands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import DataType
from pygpukit.ops import copying
from pygpukit.ops.audio.framing import PAD_MODES
from pygpukit.ops.audio.inputs import complex_of
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.fft import tables
from pygpukit.ops.fft.plan import held, plan, smooth

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "spectra.cu", options=kernels.GENERIC_LAMBDAS)
_CALL = SOURCE.structure("SpectraCall")
_MODES = {"constant": 0, "edge": 1, "reflect": 2, "symmetric": 3}  # spectra.cu: continued()
COMPLEX, MAGNITUDE, POWER, BANDS, LOG = 0, 1, 2, 4, 8  # spectra.cu: forms; the last two are added
# Lengths whose kernels are compiled ahead of time; others are compiled when they are first used.
AHEAD = {"float32": (400, 512, 1024, 2048), "float64": (400,)}

assert set(_MODES) == set(PAD_MODES)


@dataclass(frozen=True)
class Bank:
    """Filters of a few neighbouring bins each. extents: (bands, 3) int32: the first bin, how many, where their weights
    begin."""

    weights: GPUArray
    extents: GPUArray

    @property
    def bands(self) -> int:
        """The number of filters."""
        return self.extents.shape[0]


def fits(n_fft: int, dtype: DataType) -> bool:
    """True for lengths that one launch transforms: even ones, of prime factors up to 13, that a block holds."""
    half = n_fft // 2
    return n_fft % 2 == 0 and half >= 2 and smooth(half) and held(half, complex_of(dtype).itemsize, at_once=True)


def spectra(
    y: GPUArray,
    window: GPUArray,
    hop: int,
    before: int,
    frames: int,
    mode: str,
    form: int,
    bank: Bank | None = None,
    amin: float = 0.0,
) -> GPUArray:
    """(..., frames, bins) of signals (..., samples), in the form asked for; with a bank (..., frames, bands).

    window: as long as a frame. before: samples that the first frame begins ahead of the signal. amin: what is taken
    the logarithm of, at least. Nothing is checked here.
    """
    y = copying.contiguous(y)
    n_fft, lead = window.size, y.shape[:-1]
    if bank is None:
        out = native.empty((*lead, frames, n_fft // 2 + 1), complex_of(y.dtype) if form == COMPLEX else y.dtype)
    else:
        out = native.empty((*lead, frames, bank.bands), y.dtype)
    if not out.size:
        return out
    dtype, lines = complex_of(y.dtype), prod(lead) * frames
    chosen = plan(n_fft // 2, dtype.itemsize)
    together = chosen.lines(False)
    call = _CALL.pack(
        lines=lines,
        frames=frames,
        samples=y.shape[-1],
        start=-before,
        hop=hop,
        amin=amin,
        form=form,
        mode=_MODES[mode],
        bands=0 if bank is None else bank.bands,
        lines_first=(0, 0),
    )
    spec = SOURCE.of(_expression(y.dtype, together, chosen.radices), shared_bytes=chosen.shared_bytes(together))
    kernels.launch(
        spec,
        (-(-lines // together), 1, 1),
        (together * chosen.threads, 1, 1),
        y,
        window,
        tables.steps(chosen.radices, dtype, True),
        window if bank is None else bank.weights,
        _nothing() if bank is None else bank.extents,
        out,
        call,
    )
    return out


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of kernels for common lengths."""
    for name, lengths in AHEAD.items():
        dtype = DataType.from_string(name)
        for n_fft in lengths:
            chosen = plan(n_fft // 2, complex_of(dtype).itemsize)
            yield (_expression(dtype, chosen.lines(False), chosen.radices),)


def _expression(dtype: DataType, lines: int, radices: tuple[int, ...]) -> str:
    return f"pk::spectra<{CTYPES[dtype.name]}, {lines}, {', '.join(map(str, radices))}>"


def _nothing() -> GPUArray:
    return native.empty(1, "int32")  # not read
