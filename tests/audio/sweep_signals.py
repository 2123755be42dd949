"""The kernels of filters, resampling and pitch, by their source."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.ops.audio import polyphase, recursion, yin_curve

_FLOATS = ("float32", "float64")


def _polyphase(_: str) -> Iterator[Call]:
    for dtype in _FLOATS:
        for up, down, first, outputs, count in (
            (1, 1, 0, 75, 70),
            (2, 3, 11, 40, 23),
            (7, 2, 3, 500, 9),
            (5, 4, 0, 90, 1),
            (41, 9, 30, 290, 200),
        ):
            taps = np.random.default_rng().uniform(-1, 1, count)

            def filtered(
                x: gp.GPUArray,
                taps: np.ndarray = taps,
                up: int = up,
                down: int = down,
                rest: tuple[int, int] = (first, outputs),
            ) -> gp.GPUArray:
                return polyphase.upfirdn(x, taps, up, down, *rest)

            yield Call(filtered, (numbers(dtype, 3, 67),))


def _recursive(_: str) -> Iterator[Call]:
    for dtype in _FLOATS:
        for order in recursion.ORDERS:
            # Above 2 the order below the kernel's, for the zeros; poles well inside the circle.
            poles = np.random.default_rng().uniform(-0.6, 0.6, order - (order > 2))
            a, b = np.poly(poles), np.random.default_rng().uniform(-1, 1, len(poles) + 1)

            def filtered(
                x: gp.GPUArray, zi: gp.GPUArray, b: np.ndarray = b, a: np.ndarray = a
            ) -> tuple[gp.GPUArray, gp.GPUArray]:
                return recursion.linear(x, b, a, zi)

            yield Call(filtered, (numbers(dtype, 3, 530), numbers("float64", 3, len(poles))))
        yield Call(lambda x: recursion.decaying_peak(gp.abs(x), 0.99), (numbers(dtype, 2, 530),))


def _yin(_: str) -> Iterator[Call]:
    periods = yin_curve.Periods(5, 40, 101, 30)
    for dtype in _FLOATS:
        yield Call(lambda y: yin_curve._difference(y, periods, "sweep"), (numbers(dtype, 2, 333),))


FAMILIES = (
    Family("polyphase", (polyphase.SOURCE.source,), lambda _: "all", _polyphase),
    Family("recursive", (recursion.SOURCE.source,), lambda _: "all", _recursive),
    Family("yin", (yin_curve.SOURCE.source,), lambda _: "all", _yin),
)
