"""Arrays of the layer under the package: views, shapes, subclasses, owners, pins, blocks of the pool."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import DTypeError, OutOfMemoryError, ShapeError

pytestmark = pytest.mark.usefixtures("backend_name")


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "dtype"),
    [
        ((9,), (4,), 0, None),
        ((8,), (4,), 4, None),
        ((2,), (-4,), 0, None),
        ((1,), (4,), -4, None),
        ((1,), (4,), 2**63 - 4, None),
        ((1,), (4,), -(2**63), None),
        ((2,), (2**62,), 0, None),
        ((3,), (2**62,), 0, None),
        ((3,), (-(2**62),), 0, None),
        ((2**32, 2**32), (0, 0), 0, None),
        ((2**62,), (0,), 0, None),
        ((1,), (4,), 2, None),
        ((2,), (6,), 0, None),
        ((1,), (8,), 4, "float64"),
        ((2, 2), (4,), 0, None),
        ((-1,), (4,), 0, None),
        ((1,) * 17, (4,) * 17, 0, None),
    ],
)
def test_views_never_leave_their_storage(shape: Any, strides: Any, offset: int, dtype: Any) -> None:
    array = gp.ones(8)
    with pytest.raises(ShapeError):
        native.view(array, shape, strides, offset, dtype)


def test_views_that_fit() -> None:
    array = gp.from_numpy(np.arange(8, dtype=np.float32))
    assert native.view(array, (8,), (-4,), 28).to_numpy().tolist() == list(range(7, -1, -1))
    assert native.view(array, (3, 2), (0, 4), 8).to_numpy().tolist() == [[2, 3]] * 3
    assert native.view(array, (1, 2), (2**60, 8), 0).is_contiguous() is False
    assert native.view(array, (1, 2), (2**60, 4), 0).is_contiguous() is True
    assert native.view(array, (5, 0), (4, 4), 2**40).size == 0
    inner = native.view(native.view(array, (2,), (4,), 24), (8,), (4,), 0)  # bounds are the storage's, not the view's
    assert inner.size == 8


def test_a_list_that_changes_while_it_is_read() -> None:
    class Shrinks:
        def __index__(self) -> int:
            shape.clear()
            return 2

    shape: list[Any] = [Shrinks(), 3, 4]
    assert gp.empty(shape).shape == (2, 3, 4)


@pytest.mark.parametrize("shape", [(-1,), (2**31, 2**31, 2**31), (2**63 - 1,), (2**40, 2**40, 0), (1,) * 17])
def test_shapes_that_are_none(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError):
        native.empty(shape)


def test_empty_refuses_wrong_calls() -> None:
    for call, error in (
        (lambda: native.empty((2**50,)), OutOfMemoryError),
        (lambda: native.empty((2,), "float31"), DTypeError),
        (lambda: native.empty((2,), []), DTypeError),
        (lambda: native.empty((2**70,)), OverflowError),
        (lambda: native.empty("ab"), TypeError),  # type: ignore[arg-type]
        (lambda: native.empty(), TypeError),  # type: ignore[call-arg]
        (lambda: native.empty((2,), shape=(2,)), TypeError),  # type: ignore[misc]
        (lambda: native.empty((2,), "int8", "int8"), ValueError),  # type: ignore[call-arg]
        (lambda: native.wrap(-1, 8, 1, "int8"), OverflowError),
        (lambda: native.wrap(2**64, 8, 1, "int8"), OverflowError),
        (lambda: native.wrap(256, 7, 2, "int32"), ValueError),
    ):
        with pytest.raises(error):
            call()


def test_subclasses_and_weak_references() -> None:
    class Named(gp.GPUArray):
        note = "kept"

    array = gp.ones(3)
    array.__class__ = type("Slim", (gp.GPUArray,), {"__slots__": ()})
    assert (array + array).to_numpy().tolist() == [2, 2, 2]
    with pytest.raises(TypeError):
        array.__class__ = Named  # has a __dict__: another layout
    gone: list[object] = []
    reference = weakref.ref(array, gone.append)
    assert reference() is array
    del array
    assert reference() is None and gone == [reference]


def test_a_wrapped_array_keeps_its_owner_as_long_as_any_view() -> None:
    class Owner:
        pass

    memory = gp.ones(8)
    owner = Owner()
    alive = weakref.ref(owner)
    array = native.wrap(memory.device_ptr, memory.nbytes, (8,), "float32", owner)
    part = array[2:4]
    del owner, array
    assert alive() is not None and part.to_numpy().tolist() == [1, 1]
    del part
    assert alive() is None


def test_pins_are_paired() -> None:
    _core.pool_trim(0)  # so that it has a segment of its own, which no worker of an earlier test shares
    array = gp.ones(3 << 20)
    native.pin(array)
    with pytest.raises(RuntimeError):
        _core.pool_evict(0, array.block)
    native.unpin(array)
    with pytest.raises(ValueError, match="not pinned"):
        native.unpin(array)
    _core.pool_evict(0, array.block)
    assert not array.resident and (array.to_numpy() == 1).all()


def test_pool_reads_stay_inside_the_block() -> None:
    pool = _core.MemoryPool(1 << 20)
    block = pool.allocate(256)
    for size, offset in ((257, 0), (1 << 62, 0), (1, 256), (None, 257), (1, 2**64 - 1)):
        with pytest.raises(ValueError, match="not inside block"):
            pool.read(block, size, offset)
    assert pool.read(block, None, 256) == b""


def test_shorten_gives_the_end_of_the_memory_back() -> None:
    array = native.empty(8 << 20, "uint8")
    native.copy_from_host(array, np.arange(8 << 20, dtype=np.uint8))
    gc.collect()  # what earlier tests left is not collected meanwhile
    before = _core.pool_stats().used
    address = array.device_ptr
    native.shorten(array, 900)
    assert array.shape == (900,) and array.size == 900 and array.device_ptr == address
    assert before - _core.pool_stats().used == (8 << 20) - 1024
    assert np.array_equal(array.to_numpy(), np.arange(900).astype(np.uint8))
    other = native.empty(4 << 20, "uint8")  # in what was given back, or elsewhere: never in what is left
    native.fill(other, b"\xff")
    assert np.array_equal(array.to_numpy(), np.arange(900).astype(np.uint8))
    native.shorten(array, 0)
    assert array.shape == (0,)


def test_shorten_refuses_what_others_see() -> None:
    array = native.empty(100, "float32")
    part = native.view(array, (3,), (4,), 0)
    for held, count in ((array, 10), (part, 1)):
        with pytest.raises(ValueError, match="shorten"):
            native.shorten(held, count)
    del part, held
    for count in (-1, 101):
        with pytest.raises(ValueError, match="shorten"):
            native.shorten(array, count)
    with pytest.raises(ValueError, match="shorten"):
        native.shorten(native.empty((4, 4)), 4)
    native.shorten(array, 100)
    assert array.shape == (100,)


def test_an_interrupt_while_a_dtype_is_looked_up_is_not_lost() -> None:
    class Interrupted:
        def __hash__(self) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gp.empty(3, dtype=Interrupted())  # type: ignore[arg-type]
    with pytest.raises(DTypeError):
        gp.empty(3, dtype=[])  # type: ignore[arg-type]
