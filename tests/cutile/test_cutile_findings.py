"""Wrong kernels of cuTile in the interpreter: what is reported of each, with its line, and what is not a fault."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import KernelCheckError
from pygpukit.cutile import Kernel, ct


def line_of(kernel: Kernel, text: str) -> int:
    """The line of a kernel's source that has the text."""
    lines, first = inspect.getsourcelines(kernel.function)
    return first + next(at for at, line in enumerate(lines) if text in line)


def fault(kernel: Any, grid: Any, *arguments: Any) -> KernelCheckError:
    """The error of a launch that checked mode must end."""
    with pytest.raises(KernelCheckError) as caught:
        kernel.check(grid, *arguments)
    return caught.value


@ct.kernel
def copy(x, y, TILE: ct.Constant[int], BOUNDS: ct.Constant[bool] = True):
    i = ct.bid(0)
    tile = ct.load(x, (i,), (TILE,), check_bounds=BOUNDS)
    ct.store(y, (i,), tile)


def test_a_grid_that_is_too_large_is_out_of_bounds() -> None:
    x, y = np.ones(40, np.float32), np.zeros(40, np.float32)
    error = fault(copy, 4, x, y, 16)
    [one] = error.findings
    assert (one.kind, one.kernel, one.block, one.array) == ("out of bounds", "copy", (3, 0, 0), "x")
    assert one.line == line_of(copy, "ct.load") and one.index == 48
    place = f"copy, block (3, 0, 0), line {one.line} of test_cutile_findings.py (tile = ct.load(x, (i,), (TILE,), "
    assert str(error).startswith(place)
    assert "the tile (3,) of shape (16,) lies wholly outside of x, of shape (40,): elements 48 to 63 of axis 0" in str(
        error
    )
    assert y.tolist() == x.tolist(), "the blocks before have run; a remainder is stored as far as it goes"


def test_a_remainder_without_check_of_bounds_is_out_of_bounds() -> None:
    x = np.ones(40, np.float32)
    assert "goes past the end of x" in str(fault(copy, 3, x, x.copy(), 16, False))
    copy.check(2, x, x.copy(), 16, False)


def test_the_same_is_raised_by_a_launch_and_the_device_works_on() -> None:
    x, y = gp.ones(40), gp.zeros(40)
    with pytest.raises(KernelCheckError, match="wholly outside of x"):
        copy[4](x, y, 16)
    copy[3](x, y, 16)
    assert y.to_numpy().tolist() == [1.0] * 40


@ct.kernel
def negative(x):
    ct.store(x, (ct.bid(0) - 1,), 1)


@ct.kernel
def unchecked(x, LIMIT: ct.Constant[int]):
    at = ct.arange(8, dtype=ct.int32)
    ct.scatter(x, at + 1, ct.gather(x, at + 1, mask=at < LIMIT, check_bounds=False), mask=at < LIMIT)


def test_places_of_elements_are_checked() -> None:
    x = np.zeros(8, np.int32)
    assert "tile (-1,)" in str(fault(negative, 1, x))
    assert "ct.gather of x[8], of shape (8,), with check_bounds=False" in str(fault(unchecked, 1, x, 8))
    unchecked.check(1, x, 7)


@ct.kernel
def row_sums(x, y, COLUMNS: ct.Constant[int], PADDING: ct.Constant, MASKED: ct.Constant[bool]):
    values = ct.load(x, (ct.bid(0), 0), (1, COLUMNS), padding_mode=PADDING)
    if MASKED:
        values = ct.where(ct.arange(COLUMNS, dtype=ct.int32) < x.shape[1], values, 0)
    ct.store(y, (ct.bid(0),), ct.sum(values))


def test_a_sum_over_elements_past_the_end_is_uninitialised_unless_padded_or_masked() -> None:
    x, y = np.ones((3, 5), np.float32), np.zeros(3, np.float32)
    error = fault(row_sums, 3, x, y, 8, ct.PaddingMode.UNDETERMINED, False)
    assert error.findings[0].kind == "uninitialised" and error.findings[0].line == line_of(row_sums, "ct.store")
    assert "ct.store writes y[0] a value that depends on elements past the end of an array: give their load a " in str(
        error
    )
    for padding, masked in ((ct.PaddingMode.ZERO, False), (ct.PaddingMode.UNDETERMINED, True)):
        y[:] = 77
        row_sums.check(3, x, y, 8, padding, masked)
        assert y.tolist() == [5.0] * 3


@ct.kernel
def product(x, y, PADDING: ct.Constant):
    part = ct.load(x, (0, 0), (4, 4), padding_mode=PADDING)
    ct.store(y, (0, 0), ct.mma(part, part, ct.zeros((4, 4), ct.float32)))


def test_a_product_over_elements_past_the_end_is_uninitialised() -> None:
    x, y = np.ones((4, 3), np.float32), np.zeros((4, 4), np.float32)
    assert fault(product, 1, x, y, ct.PaddingMode.UNDETERMINED).findings[0].kind == "uninitialised"
    product.check(1, x, y, ct.PaddingMode.ZERO)


@ct.kernel
def condition(x):
    if ct.sum(ct.load(x, (0,), (8,))) > 0:
        ct.store(x, (0,), 0)


def test_a_condition_on_elements_past_the_end_is_uninitialised() -> None:
    error = fault(condition, 1, np.ones(5, np.float32))
    assert error.findings[0].line == line_of(condition, "if ")


@ct.kernel
def same_place(x):
    ct.store(x, (0,), ct.full((4,), 1.0, ct.float32))


@ct.kernel
def neighbour(x, TILE: ct.Constant[int]):
    i = ct.bid(0)
    left = ct.load(x, (max(i - 1, 0),), (TILE,))
    ct.store(x, (i,), left + 1)


@ct.kernel
def in_place(x, y, TILE: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(x, (i,), ct.load(x, (i,), (TILE,)) + ct.load(y, (0,), (TILE,)))


def test_blocks_that_touch_one_element_race() -> None:
    x = np.zeros(64, np.float32)
    error = fault(same_place, 2, x)
    [one] = error.findings
    assert (one.kind, one.block, one.array, one.line) == ("race", (1, 0, 0), "x", line_of(same_place, "ct.store"))
    assert f"writes x[0], which block (0, 0, 0) wrote at line {one.line} of" in str(error)
    error = fault(neighbour, 4, x, 16)
    assert f"reads x[0], which block (0, 0, 0) wrote at line {line_of(neighbour, 'ct.store')}" in str(error)
    assert error.findings[0].line == line_of(neighbour, "ct.load")
    in_place.check(4, x, np.ones(16, np.float32), 16)
    same_place.check(1, x)


def test_a_write_after_another_block_has_read_races() -> None:
    x = np.zeros(64, np.float32)
    error = fault(in_place, 4, x[:48], x[32:48], 16)  # memory is what counts, not the name
    assert error.findings[0].block == (2, 0, 0) and "x[32], which block (0, 0, 0) read at line" in str(error)


@ct.kernel
def counted(total, RELAXED: ct.Constant[bool], READS: ct.Constant[bool], SCOPE: ct.Constant):
    order = ct.MemoryOrder.RELAXED if RELAXED else ct.MemoryOrder.ACQ_REL
    ct.atomic_add(total, 0, 1, memory_order=order, memory_scope=SCOPE)
    if READS:
        ct.printf("%d", ct.load(total, (0,), ()))


def test_atomic_operations_do_not_race_with_each_other_but_with_plain_reads() -> None:
    total, device = np.zeros(1, np.int32), ct.MemoryScope.DEVICE
    for relaxed in (True, False):
        counted.check(5, total, relaxed, False, device)
        assert "which block (0, 0, 0)" in str(fault(counted, 5, total, relaxed, True, device))
    assert fault(counted, 2, total, True, False, ct.MemoryScope.BLOCK).findings[0].kind == "race"


@ct.kernel
def locked(x, lock, ORDERED: ct.Constant[bool]):
    acquire = ct.MemoryOrder.ACQUIRE if ORDERED else ct.MemoryOrder.RELAXED
    while ct.atomic_cas(lock, 0, 0, 1, memory_order=acquire) == 1:
        pass
    ct.store(x, (0,), ct.load(x, (0,), ()) + 1)
    ct.atomic_xchg(lock, 0, 0, memory_order=ct.MemoryOrder.RELEASE)


@ct.kernel
def last_block_sums(x, parts, counter, out, TILE: ct.Constant[int], BLOCKS: ct.Constant[int]):
    ct.store(parts, (ct.bid(0),), ct.sum(ct.load(x, (ct.bid(0),), (TILE,))))
    if ct.atomic_add(counter, 0, 1) == BLOCKS - 1:
        ct.store(out, (0,), ct.sum(ct.load(parts, (0,), (BLOCKS,))))


def test_what_acquires_after_a_release_is_ordered() -> None:
    x, lock = np.zeros(1, np.int32), np.zeros(1, np.int32)
    locked.check(6, x, lock, True)
    assert x[0] == 6
    assert fault(locked, 6, x, np.zeros(1, np.int32), False).findings[0].kind == "race"
    values, out = np.arange(64, dtype=np.int32), np.zeros(1, np.int32)
    last_block_sums.check(4, values, np.zeros(4, np.int32), np.zeros(1, np.int32), out, 16, 4)
    assert out[0] == values.sum()


@ct.kernel
def second_reader(x, flag, sink, RELEASES: ct.Constant[bool]):
    i = ct.bid(0)
    if i < 2:
        ct.store(sink, (i,), ct.load(x, (0,), ()))
        if RELEASES or i == 0:
            ct.atomic_add(flag, 0, 1)
    else:
        ct.atomic_add(flag, 0, 1)
        ct.store(x, (0,), 5)


def test_each_reader_before_a_write_must_be_ordered() -> None:
    x, flag, sink = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(2, np.int32)
    second_reader.check(3, x, flag, sink, True)
    error = fault(second_reader, 3, x, flag, sink, False)
    assert "writes x[0], which block (1, 0, 0) read at line" in str(error)


@ct.kernel
def twice(x, DIFFERENT: ct.Constant[bool]):
    at = ct.arange(8, dtype=ct.int32)
    ct.scatter(x, at // 2, at if DIFFERENT else at // 2)


@ct.kernel
def waiting(flag):
    while ct.load(flag, (0,), (), memory_order=ct.MemoryOrder.ACQUIRE, memory_scope=ct.MemoryScope.DEVICE) == 0:
        pass


def test_two_values_for_one_element_and_a_wait_that_does_not_end() -> None:
    x = np.zeros(4, np.int32)
    assert "one store gives x[0] two values" in str(fault(twice, 1, x, True))
    twice.check(1, x, False)
    assert x.tolist() == [0, 1, 2, 3]
    assert fault(waiting, 2, np.zeros(1, np.int32)).findings[0].kind == "deadlock"


@ct.kernel
def divided(x):
    ct.store(x, (0,), 7 // ct.load(x, (0,), (4,)))


@ct.kernel
def asserted(x):
    ct.assert_(ct.load(x, (0,), (4,)) > 0, "all are above 0")


def test_division_by_zero_and_assertions() -> None:
    error = fault(divided, 1, np.array([1, 0, 2, 3], np.int32))
    assert error.findings[0].kind == "integer division by zero" and "element (1,)" in str(error)
    divided.check(1, np.array([1, 5, 2, 3], np.int32))
    assert "assert: all are above 0" in str(fault(asserted, 1, np.zeros(4, np.int32)))


def helper(tile):
    return tile + ct.zeros((3,), tile.dtype)


@ct.kernel
def refusal(x, h, n, WHICH: ct.Constant[str]):
    tile = ct.load(x, (0,), (4,))
    if WHICH == "narrow":
        ct.store(h, (0,), tile)
    if WHICH == "shape":
        helper(tile)
    if WHICH == "dynamic":
        ct.zeros((n,), ct.float32)
    if WHICH == "sign":
        tile.astype(ct.int32) + tile.astype(ct.uint32)
    if WHICH == "halves":
        tile.astype(ct.float16) + tile.astype(ct.bfloat16)
    if WHICH == "bools":
        (tile > 0) + (tile > 1)
    if WHICH == "range":
        tile.astype(ct.uint8) + 300
    if WHICH == "accumulator":
        ct.mma(tile[:, None], tile[None, :], ct.zeros((4, 4), ct.float16))
    if WHICH == "rank":
        ct.load(x, (0, 0), (4, 4))
    if WHICH == "name":
        ct.mma_scaled(tile, tile)
    if WHICH == "condition":
        bool(1 if tile > 0 else 0)
    if WHICH == "static":
        ct.static_assert(x.dtype == ct.int32, f"x is {x.dtype}")
    if WHICH == "constant":
        ct.ensure_constant(ct.bid(0))
    if WHICH == "rounding":
        ct.add(tile, tile, rounding_mode=ct.RoundingMode.RZ)


@pytest.mark.parametrize(
    ("which", "error", "message"),
    [
        (
            "narrow",
            gp.DTypeError,
            r"ct.store\(h.*float32 does not become float16 by itself; convert it: .astype\(ct.float16\)",
        ),
        ("shape", gp.ShapeError, r"return tile \+ ct.zeros.*\(3,\): extents of tiles are powers of two, not 3"),
        ("dynamic", gp.GPUError, "must be known when the kernel is compiled: annotate it as ct.Constant"),
        ("sign", gp.DTypeError, "int32 and uint32 do not promote"),
        ("halves", gp.DTypeError, "float16 and bfloat16 do not promote"),
        ("bools", gp.DTypeError, "bools do no arithmetic"),
        ("range", gp.DTypeError, "300 is outside of the range of uint8"),
        ("accumulator", gp.DTypeError, "acc is float16; of float32 it must be float32"),
        ("rank", gp.ShapeError, "x has 1 axes, the index 2 and the tile 2"),
        ("name", AttributeError, "ct.mma_scaled: the interpreter of cuTile kernels has no such name"),
        ("condition", gp.ShapeError, r"a condition is a tile of shape \(4,\)"),
        ("static", gp.GPUError, "x is float32"),
        ("constant", gp.GPUError, "must be known when the kernel is compiled"),
        ("rounding", gp.GPUError, "rounding_mode"),
    ],
)
def test_what_the_compiler_refuses_is_refused_with_its_line(which: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        refusal.check(1, np.ones(4, np.float32), np.ones(4, np.float16), 4, which)


def test_arguments_are_refused_before_anything_runs() -> None:
    x = gp.zeros(8)
    cases: list[tuple[Any, tuple[Any, ...], str]] = [
        (1, (x,), "missing a required argument: 'y'"),
        (1, (x, "text", 4), "parameter 'y': 'text' is neither an array nor a number"),
        ((1, 2, 3, 4), (x, x, 4), r"grid=\(1, 2, 3, 4\)"),
        (-1, (x, x, 4), "grid=-1"),
    ]
    for grid, arguments, message in cases:
        with pytest.raises(gp.KernelArgumentError, match=message):
            copy[grid](*arguments)
    with pytest.raises(gp.DTypeError, match="parameter 'x': tiles have no complex64"):
        copy[1](gp.zeros(8, "complex64"), x, 4)
    with pytest.raises(gp.KernelArgumentError, match=r"4294967296 does not fit int32; annotate it as ct\.ScalarInt64"):
        refusal[1](x, x, 2**32, "")
    with pytest.raises(TypeError, match="is no kernel of cuTile"):
        Kernel(print)
    with pytest.raises(TypeError, match="launch it over a grid"):
        copy(x, x, 4)
    with pytest.raises(gp.GPUError, match=r"ct.bid\(\) is for kernels"):
        ct.bid(0)
    copy[0](x, x, 4)
