"""A prepared call does what the call as written does, and is never used where that would do something else.

Kernels run on the simulator; the simulated device prepares calls for these tests only.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import scheduler
from pygpukit._core import native
from pygpukit.ops import host
from pygpukit.ops.elementwise import pointwise
from pygpukit.ops.prepared import prepared


@pytest.fixture(autouse=True)
def kernels_and_prepared_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pointwise, "_learn", lambda *_: None)  # operators would go to these kernels in later tests, too
    native.forget_prepared()
    native.prepare_calls(True)
    with host.built_in_kernels():
        yield
    native.prepare_calls(None)
    native.forget_prepared()


def used() -> int:
    return native.prepared_calls()["used"]


def held() -> int:
    return native.prepared_calls()["held"]


def as_written(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    native.prepare_calls(False)
    try:
        return call(*args, **kwargs)
    finally:
        native.prepare_calls(True)


def drawn(rng: np.random.Generator) -> Callable[[], gp.GPUArray]:
    """Arrays of one layout: somewhere in a larger one, with steps, possibly backwards or transposed."""
    rows, columns = (int(n) for n in rng.integers(2, 40, 2))
    first, down, right = (int(n) for n in rng.integers([1, 1, 1], [5, 3, 4]))  # never dense: that is a way of its own
    backwards, turned = rng.random(2) < 0.3
    shape = (first + rows * down, first + columns * right)

    def made() -> gp.GPUArray:
        array = gp.from_numpy(rng.standard_normal(shape, np.float32))[first::down, first::right]
        array = array[:, ::-1] if backwards else array
        return gp.swapaxes(array, 0, 1) if turned else array

    return made


OPERATIONS: dict[str, Callable[[gp.GPUArray, gp.GPUArray], Any]] = {
    "add": lambda x, y: x + y,
    "add a row": lambda x, y: x + y[:1],
    "number": lambda x, y: x + 2.5,
    "copy": lambda x, y: x.clone(),
    "in place": lambda x, y: gp.add(x, y, out=x),
    "turned copy": lambda x, y: gp.swapaxes(x, 0, 1).clone(),
    "concatenate": lambda x, y: gp.concatenate((x, y), 0),
    "stack": lambda x, y: gp.stack([x, y], axis=1),
    "sum": lambda x, y: gp.sum(x, 1),
    "sum of all": lambda x, y: x.sum(),
    "softmax": lambda x, y: gp.softmax(x),
    "take": lambda x, y: gp.take(x, [0, -1, 0], 0),
    "sort": lambda x, y: gp.topk(x, 1, 1),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_prepared_call_gives_the_bits_of_the_call_as_written(name: str) -> None:
    rng, call = np.random.default_rng(), OPERATIONS[name]
    for _ in range(4):
        made = drawn(rng)
        for _ in range(2):  # the first may make what belongs to the stream
            call(made(), made())
        for _ in range(2):
            x, y = made(), made()
            expected = as_written(call, x.clone() if name == "in place" else x, y)
            before = used()
            found = call(x, y)
            assert used() > before, "the layout was seen before"
            pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
            for ours, fresh in pairs:
                assert (ours.dtype, ours.shape) == (fresh.dtype, fresh.shape)
                assert ours is x or ours.strides == fresh.strides
                np.testing.assert_array_equal(ours.to_numpy(), fresh.to_numpy())
            assert name != "in place" or found is x


A = np.random.default_rng().standard_normal((6, 8), np.float32)


def test_what_decides_is_in_the_signature() -> None:
    """Types, shapes, strides, places, shared memory, which arrays are one, numbers and their types, keywords."""

    @prepared
    def concerned(*args: Any, **kwargs: Any) -> None:
        calls.append(args)

    calls: list[Any] = []
    x, y = gp.from_numpy(A), gp.from_numpy(A)
    different: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((x, y), {}), ((x, x), {}), ((x, x[:]), {}), ((x[1:], x[:-1]), {}), ((x[:-1], x[1:]), {}), ((x[1:], y[1:]), {}),
        ((x[::2], y[::2]), {}), ((x.astype("int32"), y), {}), ((x.reshape(8, 6), y), {}), ((x, 1), {}), ((x, 1.0), {}),
        ((x, True), {}), ((x, 0.0), {}), ((x, -0.0), {}), ((x, None), {}), ((x, "1"), {}), ((x, 1j), {}), ((x, ()), {}),
        ((x, []), {}), ((x, (1, 2)), {}), ((x, (1, (2,))), {}), ((x, slice(1)), {}), ((x, ...), {}),
        ((x, gp.int32), {}), ((x,), {"axis": 1}), ((x,), {"order": 1}), (([x, y],), {}), (((x, y),), {}),
    ]  # fmt: skip
    native.forget_prepared()  # what made them
    for position, (args, kwargs) in enumerate(different):
        concerned(*args, **kwargs)
        assert (len(calls), held()) == (position + 1, position + 1), args
    for args, kwargs in different:
        concerned(*args, **kwargs)
    assert len(calls) == len(different), "all were prepared"
    for args in ((x, 2**70), (x, np.float32(1)), (x, np.ones(3)), (x, object())):
        concerned(*args)
    assert (len(calls), held()) == (len(different) + 4, len(different)), "what it does not know runs as written"


def test_what_cannot_be_repeated_runs_as_written() -> None:
    calls: list[str] = []
    elsewhere = gp.zeros(8)

    def check(name: str, function: Callable[[gp.GPUArray], Any], kept: bool = False, first: int = 0) -> None:
        def noted(x: gp.GPUArray) -> Any:
            calls.append(name)
            return function(x)

        native.forget_prepared()
        call = prepared(noted)
        results = [call(gp.from_numpy(A)[first:]) for _ in range(2)]
        assert calls.count(name) == (1 if kept else 2), name
        assert held() == kept, name
        assert type(results[0]) is type(results[1])

    check("nothing", lambda x: None, kept=True)
    check("itself", lambda x: x, kept=True)
    check("a view", lambda x: x[1:, ::2], kept=True)
    check("new", lambda x: gp.empty(7), kept=True)
    check("of its elements", lambda x: native.view(x[1:], (8,), (4,), 32), kept=True, first=1)
    check("beyond its elements", lambda x: native.view(x[1:], (8,), (4,), 0), first=1)
    check("elements read", lambda x: x.to_numpy() is None)
    check("an address", lambda x: x.device_ptr and None)
    check("the size of its memory", lambda x: x.storage_nbytes and None)
    check("another array", lambda x: native.copy(elsewhere, gp.empty(8)))
    check("another result", lambda x: elsewhere)
    check("no array", lambda x: 3)
    check("from the host", lambda x: gp.from_numpy(A))
    check("a stream", lambda x: native.set_current_stream(native.current_stream()))
    check("foreign", lambda x: native.wrap(0, 0, (0,), "float32"))


def test_launches_with_numbers_are_repeated_and_those_with_what_may_change_are_not() -> None:
    kernel = gp.jit(
        """extern "C" __global__ void put(float *x, int n, float by, bool flag, float *none, double far)
        { int i = threadIdx.x; if (i < n) x[i] += flag && none == nullptr ? by + (float)far : -1; }"""
    )[1, 64]
    calls: list[Any] = []

    @prepared
    def put(x: gp.GPUArray, n: int, by: float) -> None:
        calls.append(n)
        kernel(x, n, by, True, None, 0.25)

    @prepared
    def put_of_numpy(x: gp.GPUArray) -> None:
        calls.append("numpy")
        kernel(x, np.int32(2), 0.5, True, None, 0.25)

    rng = np.random.default_rng()
    for n, by in ((3, 0.5), (64, -2.0), (3, 0.5), (0, 1.0)):
        for _ in range(2):
            values = rng.standard_normal(64, np.float32)
            x = gp.from_numpy(values)
            put(x, n, by)
            values[:n] += np.float32(by + 0.25)
            np.testing.assert_array_equal(x.to_numpy(), values)
    assert calls == [3, 64, 0]
    for _ in range(2):
        put_of_numpy(gp.zeros(64))
    assert calls[3:] == ["numpy"] * 2


def test_work_of_the_host_is_not_repeated_without_it() -> None:
    ran: list[int] = []

    @prepared
    def on_the_host(x: gp.GPUArray) -> None:
        native.host_launch("host", lambda: ran.append(1), [x])

    for _ in range(3):
        on_the_host(gp.zeros(4))
    assert len(ran) == 3


def test_what_prepares_its_own_method_is_collected() -> None:
    class Owner:
        def __init__(self) -> None:
            self.call = native.Prepared(self.run)

        def run(self, x: gp.GPUArray) -> None:
            pass

    owner = Owner()
    owner.call(gp.zeros(2))
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


def test_arrays_of_earlier_calls_are_not_kept() -> None:
    x = gp.from_numpy(A)[:, ::2]
    for _ in range(3):
        y = x + x
    expected = y.to_numpy()
    del x, y
    gc.collect()
    others = [gp.full((6, 8), 7.0) for _ in range(4)]  # where the freed ones were
    x = gp.from_numpy(A)[:, ::2]
    np.testing.assert_array_equal((x + x).to_numpy(), expected)
    assert all((other.to_numpy() == 7).all() for other in others)


def test_shared_memory_and_out_are_respected() -> None:
    x = gp.from_numpy(A)
    for _ in range(3):
        x = gp.from_numpy(A)
        gp.add(x[1:], x[:-1], out=x[1:])
        np.testing.assert_array_equal(x.to_numpy()[1:], A[1:] + A[:-1])
        y, out = gp.from_numpy(A), gp.zeros((5, 8))
        assert gp.add(y[1:], y[:-1], out=out) is out
        np.testing.assert_array_equal(out.to_numpy(), A[1:] + A[:-1])


def test_the_current_stream_and_a_capture() -> None:
    x, stream = gp.from_numpy(A)[:, ::2], gp.Stream()
    expected = (x + x).to_numpy()
    with stream:
        before, found = used(), x + x
        assert used() == before + 1 and found.stream_id == stream.id
    stream.synchronize()
    np.testing.assert_array_equal(found.to_numpy(), expected)
    out = gp.zeros(expected.shape)
    gp.add(x, x, out=out)
    gp.add(x, x, out=out)
    out.fill(0.0)
    gp.synchronize()
    before = used()
    with stream.capture() as graph:
        gp.add(x, x, out=out)
    assert used() == before and not out.to_numpy().any(), "nothing has run"
    graph.launch()
    np.testing.assert_array_equal(out.to_numpy(), expected)


def test_memory_is_the_running_contexts_and_a_destroyed_one_says_so() -> None:
    x = gp.from_numpy(A)[:, ::2]
    x + x
    context = scheduler.create_context("prepared", max_vram="1MB")
    try:
        with context:
            before = used()
            found = x + x
            assert used() == before + 1 and context.stats.used_vram >= found.nbytes
            scheduler.destroy_context("prepared")
            with pytest.raises(gp.ContextDestroyedError, match="'prepared' was destroyed"):
                x + x
    finally:
        scheduler.destroy_context("prepared")


def test_bad_input_is_never_prepared() -> None:
    x = gp.from_numpy(A)
    count = held()
    for _ in range(3):
        with pytest.raises(gp.ShapeError, match="concatenate: shapes"):
            gp.concatenate((x, x[:, :3]))
        with pytest.raises(gp.ShapeError, match="add"):
            x[:, ::2] + x[:, :3]
        with pytest.raises(TypeError, match="unexpected keyword"):
            gp.softmax(x, axes=0)  # type: ignore[call-arg]
        with pytest.raises(gp.DTypeError):
            gp.sum(A)  # type: ignore[arg-type]
    assert held() == count


def test_an_index_out_of_range_is_reported_each_time() -> None:
    x = gp.from_numpy(A)
    for _ in range(3):
        good, bad = gp.from_numpy(np.array([1, 0])), gp.from_numpy(np.array([1, 99]))
        np.testing.assert_array_equal(gp.take(x, good, 0).to_numpy(), A[[1, 0]])
        found = gp.take(x, bad, 0)
        with pytest.raises(IndexError, match="99"):
            found.to_numpy()
    before = used()
    gp.take(x, good, 0).to_numpy()
    assert used() == before + 1


def test_they_are_bounded_and_the_newest_is_there() -> None:
    calls: list[int] = []

    @prepared
    def row(x: gp.GPUArray, number: int) -> gp.GPUArray:
        calls.append(number)
        return native.view(x, (8,), (4,), number % 6 * 32)

    x, most = gp.from_numpy(A), native.prepared_calls()["most"]
    for number in range(3 * most):
        row(x, number)
        np.testing.assert_array_equal(row(x, number).offset, number % 6 * 32)
    assert len(calls) == 3 * most and most / 2 < held() <= most
    native.forget_prepared()
    assert held() == 0


def test_a_thread_prepares_and_uses_them_too() -> None:
    from concurrent.futures import ThreadPoolExecutor

    x = gp.from_numpy(A)[:, ::2]
    expected = as_written(lambda: x + x).to_numpy()
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(lambda _: (x + x).to_numpy(), range(40)):
            np.testing.assert_array_equal(found, expected)
    assert used() and held() == 1
