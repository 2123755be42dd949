"""The kernels of sound, by their source."""

from __future__ import annotations

from collections.abc import Iterator

from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.core.dtypes import DataType
from pygpukit.ops.audio import median, overlap, spectra
from pygpukit.ops.audio.analysis import prepared


def _overlap(_: str) -> Iterator[Call]:
    for dtype in ("float32", "float64"):
        for frames, length, hop, start, samples in ((7, 12, 5, 6, 31), (3, 9, 9, 0, 40), (2, 5, 8, 1, 17)):

            def add(x: gp.GPUArray, w: gp.GPUArray, *, hop: int = hop, start: int = start, n: int = samples) -> object:
                return overlap.added(x, w, hop, start, n)

            yield Call(add, (numbers(dtype, 2, frames, length), numbers(dtype, length)))


def _medians(_: str) -> Iterator[Call]:
    for dtype in ("float32", "float64"):
        for shape, width, axis in (((3, 5, 17), 7, -1), ((2, 19, 4), 8, 1), ((3, 2), 9, 0)):

            def median_of(x: gp.GPUArray, width: int = width, axis: int = axis) -> gp.GPUArray:
                return median.running_median(x, width, axis)

            yield Call(median_of, (numbers(dtype, *shape),))


def _spectra(_: str) -> Iterator[Call]:
    for dtype, lengths in spectra.AHEAD.items():
        assert all(spectra.fits(n_fft, DataType.from_string(dtype)) for n_fft in lengths)
        for n_fft, mode in zip(lengths, ("reflect", "constant", "edge", "symmetric"), strict=False):

            def analyse(y: gp.GPUArray, n_fft: int = n_fft, mode: str = mode) -> list[gp.GPUArray]:
                how = (16000.0, n_fft, 40, 0.0, None, False, "slaney")
                analysis = prepared(y, n_fft, n_fft // 3, n_fft - 7, "hann", True, mode, "sweep")
                off = prepared(y, n_fft, n_fft, None, "hamming", False, mode, "sweep")
                powers = [analysis.bands(1, how), analysis.bands(2, how), analysis.logarithms(how, 1e-3)]
                return [analysis.complex(), off.complex(), analysis.sizes(1), analysis.sizes(2), *powers]

            yield Call(analyse, (numbers(dtype, 2, 3 * n_fft + 5),))


SPECTRA = Family("spectra", (spectra.SOURCE.source,), lambda _: "all", _spectra)
OVERLAP = Family("overlap", (overlap.SOURCE.source,), lambda _: "all", _overlap)
MEDIAN = Family("median", (median.SOURCE.source,), lambda _: "all", _medians)
FAMILIES = (MEDIAN, OVERLAP, SPECTRA)
