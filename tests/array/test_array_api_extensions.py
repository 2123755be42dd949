"""Every function of the array API standard's extensions, fft and linalg, against array-api-strict on random inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from array_api_help import COMPLEX, FLOATS, INEXACT, NUMERIC, Case, Extension, call, compare, strict, values

from pygpukit import array_api as xp

pytestmark = pytest.mark.usefixtures("backend_name")


def test_the_extensions_are_covered_name_by_name() -> None:
    assert set(transforms()) == set(xp.fft.__all__)
    assert set(matrices()) == set(strict.linalg.__all__) == set(xp.linalg.__all__)


def transforms() -> dict[str, Callable[[], Iterator[Case]]]:
    """Calls of every function of the standard's extension `fft`."""

    def along_one(*dtypes: str) -> Iterator[Case]:
        for dtype in dtypes:
            yield (values((3, 8), dtype),), {}
            yield (values((3, 8), dtype),), {"n": 5, "axis": 0, "norm": "ortho"}

    def along_some(*dtypes: str) -> Iterator[Case]:
        for dtype in dtypes:
            yield (values((3, 8, 5), dtype),), {}
            yield (values((3, 8, 5), dtype),), {"s": (4, 6), "axes": (0, 2), "norm": "forward"}

    def shifts(*dtypes: str) -> Iterator[Case]:
        for dtype in dtypes:
            yield (values((3, 8), dtype),), {}
            yield (values((3, 8), dtype),), {"axes": 0}

    def frequencies() -> Iterator[Case]:
        for n in (1, 8, 9):
            yield (n,), {"d": 0.5}
            yield (n,), {"dtype": "float32"}

    real, spectra = ("rfft", "ihfft"), ("fft", "ifft", "irfft", "hfft")
    found = {name: lambda: along_one(*FLOATS) for name in real} | {
        name: lambda: along_one(*COMPLEX) for name in spectra
    }
    found |= {name: lambda: along_some(*COMPLEX) for name in ("fftn", "ifftn", "irfftn")}
    found |= {name: lambda: shifts(*INEXACT) for name in ("fftshift", "ifftshift")}
    found |= dict.fromkeys(("fftfreq", "rfftfreq"), frequencies)
    return found | {"rfftn": lambda: along_some(*FLOATS)}


@pytest.mark.parametrize("name", sorted(transforms()))
def test_function_of_the_extension_fft_equals_the_reference(name: str) -> None:
    for case in transforms()[name]():
        result = call(name, Extension(xp, "fft"), case)
        compare(name, result, call(name, Extension(strict, "fft"), case), case)


def matrices() -> dict[str, Callable[[], Iterator[Case]]]:
    """Calls of every function of the standard's extension `linalg`."""

    def of(*shapes: tuple[int, ...], dtypes: tuple[str, ...] = INEXACT, **more: Any) -> Callable[[], Iterator[Case]]:
        def made() -> Iterator[Case]:
            for dtype in dtypes:
                yield tuple(values(shape, dtype, 1) for shape in shapes), more

        return made

    def regular(*more: tuple[int, ...]) -> Callable[[], Iterator[Case]]:
        """Of a matrix whose inverse is small, so that rounding stays within the tolerance at every draw."""

        def made() -> Iterator[Case]:
            for dtype in INEXACT:
                a = values((2, 4, 4), dtype, -1, 1) + 8 * np.eye(4, dtype=dtype)
                yield (a, *(values(shape, dtype, 1) for shape in more)), {}

        return made

    def definite() -> Iterator[Case]:
        for dtype in INEXACT:
            a = values((2, 4, 4), dtype, 1)
            yield (a @ a.conj().swapaxes(-1, -2) + np.eye(4, dtype=dtype),), {"upper": dtype == "float64"}

    def symmetric() -> Iterator[Case]:
        for dtype in INEXACT:
            a = values((2, 4, 4), dtype)
            yield (a + a.conj().swapaxes(-1, -2),), {}

    def powers() -> Iterator[Case]:
        for n in (-1, 0, 3):
            yield (values((2, 3, 3), "float64", 1), n), {}

    square, tall = (2, 4, 4), (2, 5, 3)
    return {
        "cholesky": definite,
        "cross": of((4, 3), (4, 3), dtypes=NUMERIC),
        "det": regular(),
        "diagonal": of(tall, dtypes=NUMERIC, offset=1),
        "eigh": symmetric,
        "eigvalsh": symmetric,
        "inv": regular(),
        "matmul": of(square, (4, 3), dtypes=NUMERIC),
        "matrix_norm": of(tall, ord="nuc", keepdims=True),
        "matrix_power": powers,
        "matrix_rank": of(tall, rtol=0.2),
        "matrix_transpose": of(tall, dtypes=NUMERIC),
        "outer": of((4,), (3,), dtypes=NUMERIC),
        "pinv": of(tall),
        "qr": of(tall, mode="complete"),
        "slogdet": regular(),
        "solve": regular((4, 3)),
        "svd": of(tall, full_matrices=False),  # what more vectors there are is each one's own
        "svdvals": of(tall),
        "tensordot": of((3, 4), (4, 3), dtypes=NUMERIC, axes=1),
        "trace": of(tall, dtypes=NUMERIC, offset=-1),
        "vecdot": of((2, 3), (2, 3), dtypes=NUMERIC),
        "vector_norm": of(tall, axis=1, ord=3),
    }


@pytest.mark.parametrize("name", sorted(matrices()))
def test_function_of_the_extension_linalg_equals_the_reference(name: str) -> None:
    for case in matrices()[name]():
        result, expected = (call(name, Extension(namespace, "linalg"), case) for namespace in (xp, strict))
        if name in (
            "eigh",
            "qr",
            "svd",
        ):  # the signs of vectors are each one's own; tests/ops/linalg/test_linalg.py has the rest
            result, expected = (
                type(one)(*(namespace.abs(x) for x in one)) for one, namespace in ((result, xp), (expected, strict))
            )
        compare(name, result, expected, case)
