"""The kernels of gp.fft on the simulator against double precision, and the plans and tables that they work from."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import kernels
from pygpukit.ops import host
from pygpukit.ops.fft import device, tables
from pygpukit.ops.fft.plan import CHOSEN, LONGEST, RADICES, halves, held, padded, plan, smooth

Host = np.ndarray[Any, Any]
RNG = np.random.default_rng()
LIMITS = {"complex64": 5e-7, "complex128": 1e-15}  # the second one times log2(n)
# Between them every radix, one to four steps, and steps that are not of one size.
LENGTHS = (1, 2, 3, 7, 16, 18, 20, 40, 63, 120, 143, 182, 396, 1000)
# Each is a compile for each type: of the wider one those that have every radix again.
EVERY = [*((n, "complex64") for n in LENGTHS), *((n, "complex128") for n in (1, 2, 16, 18, 20, 40, 63, 120, 143))]


def values(dtype: str, *shape: int) -> Host:
    drawn = RNG.standard_normal(shape)
    return np.asarray(drawn + 1j * RNG.standard_normal(shape) if dtype[0] == "c" else drawn).astype(dtype)


def error(found: gp.GPUArray, expected: Host) -> float:
    assert found.shape == expected.shape
    return float(np.linalg.norm(found.to_numpy() - expected) / np.linalg.norm(expected))


def limit(dtype: str, n: int) -> float:
    if dtype == "complex128":
        return 1e-15 * max(np.log2(n), 1) * (1 if smooth(n) else 4)
    return 5e-7 if smooth(n) and n <= 4096 else 1.5e-6


def wide(a: Host) -> Host:
    return a.astype("complex128" if a.dtype.kind == "c" else "float64")


@pytest.mark.turns(2)
@pytest.mark.parametrize(("n", "dtype"), EVERY)
def test_every_radix_both_ways_through_strides(kernels_on_sim: None, n: int, dtype: str) -> None:
    a = values(dtype, 2, 3, n)
    x = gp.from_numpy(a)
    assert error(gp.fft.fft(x), np.fft.fft(wide(a))) <= limit(dtype, n)
    assert error(gp.fft.ifft(x[::-1, ::2, ::-1]), np.fft.ifft(wide(a)[::-1, ::2, ::-1])) <= limit(dtype, n)


def test_every_radix_is_in_a_length_above() -> None:
    assert {radix for n in LENGTHS for radix in plan(n, 16).radices} == {*RADICES, 1}


@pytest.mark.parametrize("n", [n for n in CHOSEN if n <= 3000])
def test_radices_that_were_chosen(kernels_on_sim: None, n: int) -> None:
    a = values("complex64", 3, n)
    assert error(gp.fft.fft(gp.from_numpy(a)), np.fft.fft(wide(a))) <= limit("complex64", n)


@pytest.mark.parametrize("axis", [0, 1])
def test_transforms_that_lie_side_by_side(kernels_on_sim: None, axis: int) -> None:
    a = values("complex64", 40, 40, 3)
    out = gp.full((3, 40, 40), np.nan, "complex64").T
    assert gp.fft.fft(gp.from_numpy(a), axis=axis, out=out) is out
    assert error(out, np.fft.fft(wide(a), axis=axis)) <= 5e-7


@pytest.mark.parametrize("n", [2, 24, 25, 34])
def test_real_numbers_of_even_and_odd_length(kernels_on_sim: None, n: int) -> None:
    for extent in (n - 1, n, n + 3):
        a = values("float32", 3, extent)
        assert error(gp.fft.rfft(gp.from_numpy(a), n), np.fft.rfft(wide(a), n)) <= limit("complex64", n)
        half = values("complex64", 3, max(extent // 2 + 1, 1))
        assert error(gp.fft.irfft(gp.from_numpy(half), n), np.fft.irfft(wide(half), n)) <= limit("complex64", n)


@pytest.mark.parametrize(("n", "dtype"), [(17, "complex64"), (34, "complex128"), (4099, "complex64")])
def test_a_chirp_makes_lengths_of_large_primes(kernels_on_sim: None, n: int, dtype: str) -> None:
    a = values(dtype, 2, n + 1)
    x = gp.from_numpy(a)
    assert error(gp.fft.fft(x, n, norm="ortho"), np.fft.fft(wide(a), n, norm="ortho")) <= limit(dtype, n)
    assert error(gp.fft.ifft(x[:, :-2], n), np.fft.ifft(wide(a)[:, :-2], n)) <= limit(dtype, n)


def test_the_longest_of_one_kernel_passes_its_memory_in_halves(kernels_on_sim: None) -> None:
    a = values("complex64", 16384)
    assert held(16384, 8)
    assert error(gp.fft.fft(gp.from_numpy(a)), np.fft.fft(wide(a))) <= limit("complex64", 16384)


@pytest.mark.parametrize(("n", "dtype"), [(10000, "complex64"), (9000, "complex128"), (8575, "float32")])
def test_two_kernels_make_long_lengths(kernels_on_sim: None, n: int, dtype: str) -> None:
    a = values(dtype, n + 5, 2)[::-1]
    x = gp.from_numpy(a.copy())
    tolerance = limit("complex128" if dtype == "complex128" else "complex64", n)
    assert error(gp.fft.fft(x, n, 0), np.fft.fft(wide(a), n, 0)) <= tolerance
    if dtype == "float32":
        assert error(gp.fft.rfft(x, n, 0), np.fft.rfft(wide(a), n, 0)) <= tolerance
    else:
        half = a[: n // 2 + 1]
        assert error(gp.fft.irfft(gp.from_numpy(half.copy()), n, 0), np.fft.irfft(wide(half), n, 0)) <= tolerance


def test_a_row_has_the_bits_that_it_has_alone(kernels_on_sim: None) -> None:
    for n in (30, 17):
        x = gp.from_numpy(values("complex64", 11, n))
        whole = gp.fft.fft(x).to_numpy()
        np.testing.assert_array_equal(gp.fft.fft(x).to_numpy(), whole)
        np.testing.assert_array_equal(gp.fft.fft(x[4]).to_numpy(), whole[4])
        np.testing.assert_array_equal(gp.fft.fft(x.T.contiguous(), axis=0).to_numpy(), whole.T)


def test_real_rows_have_the_same_bits_wherever_they_begin(kernels_on_sim: None) -> None:
    n = 36
    apart = gp.from_numpy(values("float32", 4, n + 3))  # rows that begin at odd elements, which no pairs are read from
    rows = apart[:, 1 : n + 1]
    spectrum = gp.fft.rfft(rows)
    np.testing.assert_array_equal(gp.fft.rfft(rows.contiguous()).to_numpy(), spectrum.to_numpy())
    np.testing.assert_array_equal(gp.fft.rfft(rows.T.contiguous(), axis=0).to_numpy(), spectrum.to_numpy().T)
    gp.fft.irfft(spectrum, n, out=rows)
    np.testing.assert_array_equal(gp.fft.irfft(spectrum, n).to_numpy(), rows.to_numpy())


@pytest.mark.parametrize("n", [8, 40])
def test_rows_that_fill_no_block_are_transformed_in_place(kernels_on_sim: None, n: int) -> None:
    a = values("complex64", 131, n)
    x = gp.from_numpy(a)
    gp.fft.fft(x, out=x)
    assert error(x, np.fft.fft(wide(a))) <= limit("complex64", n)


def test_nothing_is_written_beside_the_result(kernels_on_sim: None) -> None:
    block = gp.full((4, 32), np.nan, "complex64")
    gp.fft.fft(gp.from_numpy(values("complex64", 2, 10)), out=block[1:3, 5:25:2])
    written = ~np.isnan(block.to_numpy())
    assert written[1:3, 5:25:2].all() and written.sum() == 20


def test_nan_stays_in_its_row(kernels_on_sim: None) -> None:
    a = values("complex64", 3, 17)
    a[1, 5] = np.nan
    found = np.isnan(gp.fft.fft(gp.from_numpy(a)).to_numpy())
    assert found[1].all() and not found[[0, 2]].any()


def test_plans_hold_what_a_block_has() -> None:
    for itemsize, longest in LONGEST.items():
        for n in filter(smooth, range(1, longest + 1)):
            made = plan(n, itemsize)
            assert made.length == n and set(made.radices) <= {*RADICES, *CHOSEN.get(n, ()), 1}
            for side_by_side in (False, True):
                lines = made.lines(side_by_side)
                assert made.shared_bytes(lines) <= 99 << 10  # the least of the supported devices
                assert not held(n, itemsize) or lines * made.threads <= 1024
    assert halves(1 << 20) == (1 << 10, 1 << 10) and halves(30030) == (182, 165)
    for n in (17, 97, 1021, 4099, 8191):
        m = padded(n, 8)
        assert smooth(m) and 2 * n - 1 <= m <= 4 * n


@pytest.mark.parametrize(("name", "n"), [("fft", 512), ("ifft", 480), ("rfft", 512), ("irfft", 512), ("fft", 149)])
def test_more_kernels_make_lengths_beyond_two(
    kernels_on_sim: None, monkeypatch: pytest.MonkeyPatch, name: str, n: int
) -> None:
    monkeypatch.setitem(LONGEST, 8, 16)
    extent = n // 2 + 1 if name == "irfft" else n
    a = values("float32" if name == "rfft" else "complex64", 2, extent)
    found = getattr(gp.fft, name)(gp.from_numpy(a), n, norm="ortho")
    assert error(found, getattr(np.fft, name)(wide(a), n, norm="ortho")) <= 1.5e-6


def circle(k: int, n: int) -> tuple[float, float]:
    """Cosine and minus sine of 2 pi k / n, rounded once, by their series in 60 decimal digits."""
    with localcontext() as context:
        context.prec = 60
        angle = 2 * Decimal("3.14159265358979323846264338327950288419716939937510582097494459") * k / n
        term, sums = Decimal(1), [Decimal(0)] * 4
        for i in range(1, 90):
            sums[(i - 1) % 4] += term
            term = term * angle / i
        return tuple(float(x) if abs(x) > Decimal("1e-40") else 0.0 for x in (sums[0] - sums[2], sums[3] - sums[1]))  # type: ignore[return-value]


@pytest.mark.parametrize("n", [1, 2, 8, 12, 97, 400, 1000])
def test_tables_are_correct_to_the_last_bit(n: int) -> None:
    exact = np.array([complex(*circle(k, n)) for k in range(n)])
    np.testing.assert_array_equal(tables.turns(np.arange(n), n), exact)
    made = tables.whole_roots(n, 3, gp.complex64).to_numpy().reshape(n, 3)
    np.testing.assert_array_equal(made[:, 0], 1)
    np.testing.assert_array_equal(made[:, 1], tables.turns(np.arange(n), 3 * n).astype("complex64"))
    radices = plan(n, 8).radices if smooth(n) else (n,)
    made, done = tables.steps(radices, gp.complex64, True).to_numpy(), radices[0]
    np.testing.assert_array_equal(made[n:], tables.turns(np.arange(n), 2 * n).astype("complex64"))
    for radix in radices[1:]:
        turns = [exact[j * k * (n // (done * radix))] for k in range(1, radix) for j in range(done)]
        np.testing.assert_array_equal(made[done : done * radix], np.array(turns).astype("complex64"))
        done *= radix


def test_tables_of_long_lengths_are_correct_to_the_last_bit() -> None:
    n = 1 << 26
    k = RNG.integers(0, n, 50)
    np.testing.assert_array_equal(tables.turns(k, n), [complex(*circle(int(one), n)) for one in k])


def test_tables_are_kept_until_they_are_too_many() -> None:
    made: list[int] = []

    def table(size: int) -> gp.GPUArray:
        return kept.get(size, lambda: made.append(size) or np.zeros(size, np.complex64))  # type: ignore[func-returns-value]

    kept = tables.Tables(1000)
    assert table(50) is table(50) and made == [50]
    table(60)
    table(50)
    table(20)  # 130 elements are 1040 bytes: the 60 have not been used for the longest time
    table(50)
    assert made == [50, 60, 20]
    table(60)
    assert made == [50, 60, 20, 60]
    assert table(500).size == 500


def test_common_lengths_are_compiled_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {expression for group in device.instantiations() for expression in group}
    asked: list[str] = []
    monkeypatch.setattr(host, "computes", lambda: False)
    monkeypatch.setattr(kernels, "launch", lambda spec, *_: asked.append(spec.expression))
    for n in (64, 400, 480, 1024, 4096):
        gp.fft.fft(gp.zeros((3, n), "complex64"))
        gp.fft.irfft(gp.fft.rfft(gp.zeros((3, n))), n)
    assert len(asked) == 15 and set(asked) <= listed
