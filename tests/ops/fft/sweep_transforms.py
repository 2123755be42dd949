"""The kernels of Fourier transforms, by the length and type of what they transform."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import partial

from sweep.engine import Call, Family, numbers

import pygpukit as gp
from pygpukit.ops.fft import device


def _variant(expression: str) -> str:
    """ "complex64 400" of a kernel of 400 complex64 in double or single precision, whatever it reads and writes."""
    radices = re.findall(r"\d+", expression.rpartition("<")[2])[2:]
    return f"{'complex128' if 'double' in expression else 'complex64'} {math.prod(map(int, radices))}"


def _transforms(variant: str) -> Iterator[Call]:
    """Of batches that fill no block, of views, cut and filled up, both ways; two real numbers are one complex one."""
    dtype, _, text = variant.partition(" ")
    n, real = int(text), "float32" if dtype == "complex64" else "float64"
    if n in device.AHEAD[dtype]:
        yield Call(gp.fft.fft, (numbers(dtype, 3, n),))
        yield Call(partial(gp.fft.ifft, n=n, norm="ortho"), (numbers(dtype, 2, 2, n + 3)[:, ::-1, ::-1],))
    if 2 * n in device.AHEAD[dtype]:
        yield Call(gp.fft.rfft, (numbers(real, 3, 2 * n),))
        yield Call(partial(gp.fft.rfft, n=2 * n), (numbers(real, 2, 2, 3 * n)[..., ::2],))
        yield Call(partial(gp.fft.irfft, n=2 * n), (numbers(dtype, 3, n + 1),))
        yield Call(partial(gp.fft.irfft, n=2 * n, norm="forward"), (numbers(dtype, 2, n + 3)[::-1, ::-1],))


FAMILIES = (Family("fft", (device.SOURCE.source,), _variant, _transforms),)
