"""gp.fft against NumPy in double precision, on both backends: names, arguments, types, lengths, views and errors."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from backends import WITHOUT_KERNELS
from hypothesis import given, settings
from hypothesis import strategies as st

import pygpukit as gp
from pygpukit import _core, array_api, scheduler
from pygpukit.ops.fft import tables

pytestmark = pytest.mark.usefixtures("operation_backend")

Host = np.ndarray[Any, Any]
ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
AXES = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
FROM_REAL = ("rfft", "ihfft", "rfftn", "rfft2")
NORMS = (None, "backward", "ortho", "forward")
WIDE = {"float32": "float64", "complex64": "complex128"}
# Of the array API standard's extension.
STANDARD = "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift"
# Primes and composites of large ones, beside what lies between.
LENGTHS = [
    *range(1, 513), 521, 997, 1000, 1009, 1021, 1536, 2039, 2187, 3000, 4093, 4096, 4099, 6000, 8191, 16384, 30030
]  # fmt: skip


def sample(shape: tuple[int, ...], dtype: str) -> Host:
    rng = np.random.default_rng()
    if np.dtype(dtype).kind in "biu":
        return rng.integers(0, 100, shape).astype(dtype)
    values = rng.standard_normal(shape)
    return np.asarray(values + 1j * rng.standard_normal(shape) if dtype[0] == "c" else values).astype(dtype)


def limit(dtype: str, n: int) -> float:
    """The largest error of a result, as a vector beside the exact one."""
    if dtype in ("float64", "complex128"):
        return 1e-15 * max(np.log2(n), 1) * (1 if _smooth(n) else 4)
    return 5e-7 if _smooth(n) and n <= 4096 else 1.5e-6


def _smooth(n: int) -> bool:
    for p in (2, 3, 5, 7, 11, 13):
        while n % p == 0:
            n //= p
    return n == 1


def agree(found: gp.GPUArray, expected: Host, n: int, what: object = "") -> None:
    """expected: in double precision."""
    assert found.shape == expected.shape, what
    assert WIDE.get(found.dtype.name, found.dtype.name) == expected.dtype.name, what
    error = np.linalg.norm(found.to_numpy() - expected) / max(float(np.linalg.norm(expected)), 1e-30)
    assert error <= limit(found.dtype.name, n), f"{what}: off by {error:.2e}"


def check(name: str, a: Host, n: int, *args: Any, **keywords: Any) -> None:
    """One function of gp.fft of a, against NumPy's of the same numbers. n: the length that the error's limit is of."""
    wide = a.astype(WIDE.get(a.dtype.name, a.dtype.name))
    found = getattr(gp.fft, name)(gp.from_numpy(a), *args, **keywords)
    agree(found, getattr(np.fft, name)(wide, *args, **keywords), n, (name, a.shape, a.dtype, args, keywords))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ONE_AXIS)
def test_every_length(operation_backend: str, name: str, dtype: str) -> None:
    kind = dtype if name in FROM_REAL else {"float32": "complex64", "float64": "complex128"}[dtype]
    # Of their kernels each is compiled; those of test_fft_kernels.py have every radix.
    count = {"numpy": len(LENGTHS), "kernels": 2, "cuda": 12}[operation_backend]
    for n in map(int, np.random.default_rng().choice(LENGTHS, count, replace=False)):
        extent = n // 2 + 1 if name in ("irfft", "hfft") else n
        check(name, sample((2, extent), kind), n, n)


@pytest.mark.parametrize("name", ONE_AXIS)
def test_types_are_numpys(name: str) -> None:
    for dtype in ("bool", "int8", "uint16", "int64", "float32", "float64", "complex64", "complex128"):
        a = sample((3, 12), dtype)
        if name in FROM_REAL and dtype.startswith("c"):
            with pytest.raises(gp.DTypeError, match=f"{name}.*real"):
                getattr(gp.fft, name)(gp.from_numpy(a))
            continue
        found = getattr(gp.fft, name)(gp.from_numpy(a))
        single = dtype in ("float32", "complex64")
        types = ("float64", "float32") if name in ("irfft", "hfft") else ("complex128", "complex64")
        assert found.dtype == types[single]
        check(name, a, 12)
    for dtype in ("float16", "bfloat16"):
        x = gp.from_numpy(sample((3, 12), "float32")).astype(dtype)
        found = getattr(gp.fft, name)(x)
        assert found.dtype.name in ("float32", "complex64")
        np.testing.assert_array_equal(found.to_numpy(), getattr(gp.fft, name)(x.astype("float32")).to_numpy())


def test_functions_that_are_numpys_by_name_and_signature() -> None:
    import inspect

    assert set(gp.fft.__all__) == set(np.fft.__all__)
    for name in (*ONE_AXIS, *AXES, "fftshift", "ifftshift"):
        theirs = [p for p in inspect.signature(getattr(np.fft, name)).parameters if p != "out"]
        assert [p for p in inspect.signature(getattr(gp.fft, name)).parameters if p != "out"] == theirs, name


@WITHOUT_KERNELS
@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_shape_axis_length_and_norm(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    n = data.draw(st.none() | st.integers(-1, 14))
    name, norm = data.draw(st.sampled_from(ONE_AXIS)), data.draw(st.sampled_from(NORMS))
    types = ["float32", "float64", "int32"] + ["complex64"] * (name not in FROM_REAL)
    a = sample(shape, data.draw(st.sampled_from(types)))
    a, x = viewed(data, a)
    wide = a.astype(WIDE.get(a.dtype.name, a.dtype.name))
    try:
        expected = getattr(np.fft, name)(wide, n, axis, norm)
    except ValueError:
        with pytest.raises(gp.ShapeError, match=name):
            getattr(gp.fft, name)(x, n, axis, norm)
        return
    agree(getattr(gp.fft, name)(x, n, axis, norm), expected, n or a.shape[axis], (name, a.shape, axis, n, norm))


@WITHOUT_KERNELS
@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_axes_and_extents(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=2, max_size=4)))
    name, norm = data.draw(st.sampled_from(AXES)), data.draw(st.sampled_from(NORMS))
    axes = data.draw(st.none() | st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=3))
    if axes is None and name.endswith("2"):
        axes = [-2, -1]
    s = None
    if axes is not None and data.draw(st.booleans()):
        s = data.draw(st.lists(st.integers(2, 8), min_size=len(axes), max_size=len(axes)))
    a = sample(shape, data.draw(st.sampled_from(["float32", "float64"] + ["complex64"] * (name not in FROM_REAL))))
    a, x = viewed(data, a)
    wide = a.astype(WIDE.get(a.dtype.name, a.dtype.name))
    try:
        expected = getattr(np.fft, name)(wide, s, axes, norm)
    except ValueError:
        with pytest.raises(gp.ShapeError, match=name):
            getattr(gp.fft, name)(x, s, axes, norm)
        return
    agree(getattr(gp.fft, name)(x, s, axes, norm), expected, 4096, (name, a.shape, s, axes, norm))


def viewed(data: st.DataObject, a: Host) -> tuple[Host, gp.GPUArray]:
    """The same view of a on the host and on the device."""
    key = tuple(slice(None, None, data.draw(st.sampled_from([1, 1, -1, 2]))) for _ in a.shape)
    order = data.draw(st.permutations(range(a.ndim)))
    return a[key].transpose(order), gp.from_numpy(a)[key].transpose(tuple(order))


def test_several_axes_at_once() -> None:
    a = sample((4, 6, 10), "complex64")
    for name in AXES:
        one = a.real if name in FROM_REAL else a
        check(name, one, 240)
        check(name, one, 240, axes=(0, 2), norm="ortho")
        check(name, one, 240, (5, 8), (1, 0))
    check("fftn", a, 240, (3, -1), (0, 1))
    check("fftn", a, 240, axes=(1, 1))
    check("fftn", a, 240, axes=())
    check("rfftn", a.real, 240, axes=(0, 0))  # the second time as long as the first
    check("irfftn", a, 240, (-1, -1), (1, 2))
    assert gp.fft.fftn(gp.asarray(3.0)).item() == 3


def test_out_is_written_and_returned() -> None:
    a = sample((3, 8), "complex64")
    x = gp.from_numpy(a)
    for name in ("fft", "ifft", "fftn", "ifft2"):
        wide = gp.full((3, 16), 7, "complex128")[:, ::2]
        assert getattr(gp.fft, name)(x, out=wide) is wide
        agree(wide.astype("complex64"), getattr(np.fft, name)(a.astype("complex128")), 8, name)
    same = gp.from_numpy(a)
    assert gp.fft.fft(same, out=same) is same
    agree(same, np.fft.fft(a.astype("complex128")), 8)
    block = gp.zeros((3, 9), "complex64")
    block[:, :8] = x
    gp.fft.fft(block[:, :8], out=block[:, 1:])
    agree(block[:, 1:], np.fft.fft(a.astype("complex128")), 8)
    half = gp.zeros((3, 5), "complex64")
    assert gp.fft.ihfft(x.real, out=half) is half
    agree(half, np.fft.ihfft(a.real.astype("float64")), 8)
    with pytest.raises(gp.ShapeError, match=r"fft: out has shape \(3, 7\)"):
        gp.fft.fft(x, out=gp.zeros((3, 7), "complex64"))
    with pytest.raises(gp.DTypeError, match="rfft: a complex64 result"):
        gp.fft.rfft(x.real, out=gp.zeros((3, 5)))


def test_empty_batches_and_axes() -> None:
    for name in ONE_AXIS:
        found = getattr(gp.fft, name)(gp.zeros((0, 6)))
        assert found.shape == getattr(np.fft, name)(np.zeros((0, 6))).shape
        with pytest.raises(gp.ShapeError, match=f"{name}: an axis of 0 elements.*give n"):
            getattr(gp.fft, name)(gp.zeros((2, 0)))
        np.testing.assert_array_equal(getattr(gp.fft, name)(gp.zeros((2, 0)), 3).to_numpy(), 0)


def test_nan_and_infinity_reach_their_row_only() -> None:
    for n in (8, 12, 30, 17, 400):
        a = sample((3, n), "float32")
        a[1, n // 2] = np.nan
        for name in ("fft", "ifft", "rfft"):
            found = np.isnan(getattr(gp.fft, name)(gp.from_numpy(a)).to_numpy())
            assert found[1].all() and not found[[0, 2]].any(), (name, n)
        a[1, n // 2] = np.inf
        found = gp.fft.fft(gp.from_numpy(a)).to_numpy()
        assert not np.isfinite(found[1]).any() and np.isfinite(found[[0, 2]]).all()


def test_the_parts_that_cannot_matter_do_not() -> None:
    a = sample((5,), "complex64")
    plain = a.copy()
    plain[0], plain[-1] = plain[0].real, plain[-1].real
    found, wanted = (gp.fft.irfft(gp.from_numpy(x), 8).to_numpy() for x in (a, plain))
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_there_and_back() -> None:
    for n in (9, 16, 37, 400):
        a = sample((2, n), "float32")
        x = gp.from_numpy(a)
        np.testing.assert_allclose(gp.fft.irfft(gp.fft.rfft(x), n).to_numpy(), a, atol=2e-6)
        np.testing.assert_allclose(gp.fft.ifft(gp.fft.fft(x)).real.to_numpy(), a, atol=2e-6)
        np.testing.assert_allclose(gp.fft.hfft(gp.fft.ihfft(x), n).to_numpy(), a, atol=2e-6)


def test_a_row_has_the_same_bits_each_time_and_in_every_batch() -> None:
    for n in (15, 64, 37, 1000, 5003):
        x = gp.from_numpy(sample((7, n), "complex64"))
        whole = gp.fft.fft(x).to_numpy()
        np.testing.assert_array_equal(gp.fft.fft(x).to_numpy(), whole)
        for row in (0, 6):
            np.testing.assert_array_equal(gp.fft.fft(x[row]).to_numpy(), whole[row])
        np.testing.assert_array_equal(gp.fft.fft(x.T.contiguous(), axis=0).to_numpy(), whole.T)


def test_frequencies_and_shifts() -> None:
    for n in (1, 2, 7, 8):
        for name in ("fftfreq", "rfftfreq"):
            np.testing.assert_array_equal(getattr(gp.fft, name)(n, 0.25).to_numpy(), getattr(np.fft, name)(n, 0.25))
    assert gp.fft.fftfreq(4, dtype="float32", device=0).dtype == "float32"
    with pytest.raises(gp.ShapeError, match="rfftfreq: n is 0"):
        gp.fft.rfftfreq(0)
    a = sample((5, 4, 3), "float32")
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 0, -1, (0, 2), ()):
            found = getattr(gp.fft, name)(gp.from_numpy(a), axes).to_numpy()
            np.testing.assert_array_equal(found, getattr(np.fft, name)(a, axes))
        assert getattr(gp.fft, name)(gp.zeros(())).shape == ()
        with pytest.raises(gp.ShapeError, match=name):
            getattr(gp.fft, name)(gp.from_numpy(a), 3)


def test_bad_arguments_are_refused_by_name() -> None:
    x = gp.zeros((2, 4))
    for call, error, message in (
        (lambda: gp.fft.fft(x, 0), gp.ShapeError, "fft: n is 0"),
        (lambda: gp.fft.ihfft(x, -2), gp.ShapeError, "ihfft: n is -2"),
        (lambda: gp.fft.fft(x, axis=2), gp.ShapeError, "fft: axis 2"),
        (lambda: gp.fft.fft(gp.zeros(())), gp.ShapeError, "fft: axis -1"),
        (lambda: gp.fft.hfft(x, norm="unit"), gp.InvalidSpecError, "hfft: norm is 'unit'"),
        (lambda: gp.fft.fft(np.zeros(4)), gp.DTypeError, "fft: expected a GPUArray"),
        (lambda: gp.fft.fft(gp.zeros(4, "uint8").view("float8_e4m3")), gp.DTypeError, "storage type"),
        (lambda: gp.fft.fftn(x, (2,), (0, 1)), gp.ShapeError, "fftn: s has 1 extents for 2 axes"),
        (lambda: gp.fft.fftn(x, (2, 0), (0, 1)), gp.ShapeError, "fftn: an extent in s is 0"),
        (lambda: gp.fft.rfftn(x, axes=()), gp.ShapeError, "rfftn: there is no axis"),
        (lambda: gp.fft.irfft2(gp.zeros(4)), gp.ShapeError, "irfft2: axis -2"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_numpys_functions_are_dispatched() -> None:
    a = sample((4, 6), "float64")
    x = gp.from_numpy(a)
    agree(np.fft.rfft(x, axis=0, norm="ortho"), np.fft.rfft(a, axis=0, norm="ortho"), 4)
    agree(np.fft.fft2(x), np.fft.fft2(a), 24)
    np.testing.assert_array_equal(np.fft.fftshift(x, axes=1).to_numpy(), np.fft.fftshift(a, axes=1))


def test_the_standards_extension() -> None:
    assert set(array_api.fft.__all__) == set(STANDARD.split())
    a = sample((3, 8), "complex64")
    found = array_api.fft.ifft(gp.from_numpy(a), n=5, axis=-1, norm="backward")
    agree(found, np.fft.ifft(a.astype("complex128"), 5), 5)


def test_the_angle_of_complex_numbers() -> None:
    a = np.concatenate([sample((50,), "complex64"), np.array([0, -1, 1j, -1j, np.nan], "complex64")])
    np.testing.assert_allclose(gp.angle(gp.from_numpy(a)).to_numpy(), np.angle(a), rtol=1e-6)
    np.testing.assert_allclose(gp.angle(gp.from_numpy(a), deg=True).to_numpy(), np.angle(a, deg=True), rtol=1e-6)
    np.testing.assert_allclose(gp.angle(gp.asarray([-2.0, 3.0])).to_numpy(), np.angle([-2.0, 3.0]))


def test_the_package_is_imported_without_the_transforms() -> None:
    code = "import sys, pygpukit as gp; assert not any('fft' in name for name in sys.modules); gp.fft.rfft"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tables_count_for_no_context_and_go_with_gc() -> None:
    with scheduler.create_context("first") as context:
        tables.chirp(1031, gp.complex64)
        assert context.stats is not None and context.stats.used_vram == 0
    scheduler.reset()
    before = _core.pool_stats().used
    assert before >= 1031 * 8
    assert gp.gc().nbytes >= 1031 * 8
    assert _core.pool_stats().used <= before - 1031 * 8
