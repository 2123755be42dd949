"""Execution contexts: sessions that threads and asyncio tasks do not mix, limits that hold, commands with futures."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import _pygpukit_rust as rust
import pygpukit as gp
from _pygpukit_rust import dispatching
from pygpukit import _core, scheduler
from pygpukit._core import native
from pygpukit.core.errors import (
    ContextDestroyedError,
    GPUError,
    InvalidSpecError,
    KernelArgumentError,
    OutOfMemoryError,
)
from pygpukit.scheduler import MB, AsyncKernelRequest, Scheduler, create_context
from pygpukit.scheduler.contexts import Contexts

PATIENCE_S = 60
STEP = """
extern "C" __global__ void step(unsigned *x, unsigned factor, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * factor + i;
}
"""
BUSY = """
extern "C" __global__ void busy(float *out, int rounds) {
    float x = threadIdx.x;
    for (int i = 0; i < rounds; ++i) x = fmaf(x, 0.999f, 1.0f);
    if (x == -1.0f) out[0] = x;
}
"""
HOLD = "__global__ void hold(int *flag) { while (*(volatile int *)flag == 0) {} }"
COUNT = 1000


@pytest.fixture(autouse=True)
def no_context_is_left(backend_name):
    """What a test allocated and did not free counts for its contexts, which are all gone in the end."""
    yield
    scheduler.reset()
    gc.collect()
    assert scheduler.list_contexts() == [] and scheduler.stats().used_vram == 0
    assert not scheduler.is_session_active()


def step_kernel():
    return gp.jit(STEP, func="step")


def zeros():
    return gp.zeros(COUNT, dtype="uint32")


def stepped(times: int, factor: int = 3) -> np.ndarray:
    x = np.zeros(COUNT, dtype=np.uint32)
    for _ in range(times):
        x = x * np.uint32(factor) + np.arange(COUNT, dtype=np.uint32)
    return x


def tenant_of(array) -> str:
    return next(_core.name(row[3]) for row in _core.pool_blocks() if row[0] == array.block)


def launcher(backend_name):
    """Some 100 us of work on either backend, as (kernel, grid, block, arguments)."""
    kernel = gp.jit(BUSY, func="busy")
    out = gp.zeros(1)
    return (kernel, 64, 256, out, 20_000) if backend_name == "cuda" else (kernel, 1, 32, out, 500)


# ---- sessions ----


def test_code_in_a_session_works_on_the_contexts_stream_and_account():
    context = create_context("chat", "64MB", 0.5)
    outside, stream = gp.zeros(1000), gp.current_stream()
    with context as entered:
        assert entered is context and gp.current_stream() == context.stream and context.is_session_active()
        assert scheduler.is_session_active() and context.stats.state == "Running"
        inside = gp.zeros(1000) + gp.ones(1000)
        with gp.Stream() as other:
            assert gp.current_stream() == other
        assert gp.current_stream() == context.stream
    assert gp.current_stream() == stream and not context.is_session_active() and not scheduler.is_session_active()
    np.testing.assert_array_equal(inside.to_numpy(), np.ones(1000, dtype=np.float32))
    assert (tenant_of(outside), tenant_of(inside)) == ("", "chat")
    assert context.stats.used_vram == 4096 and context.stats.buffer_count == 1
    assert context.stats.peak_vram == 3 * 4096 and context.stats.launches > 0
    del inside
    gc.collect()
    assert context.stats.used_vram == 0 and context.stats.state == "Idle"


def test_sessions_nest_and_end_when_an_exception_leaves_them():
    first, second = create_context("first"), create_context("second")
    with first:
        with pytest.raises(KeyError), second:
            assert gp.current_stream() == second.stream
            raise KeyError
        assert gp.current_stream() == first.stream
        with pytest.raises(GPUError, match="not in a session of context 'second'"):
            second.end_session()
    assert gp.current_stream().id == 0


def test_asyncio_tasks_in_different_sessions_do_not_mix():
    contexts = [create_context(f"model {i}", max_vram=MB) for i in range(3)]
    seen = []

    async def work(context, rounds):
        await asyncio.sleep(0)
        async with context:
            for _ in range(rounds):
                array = gp.ones(1000)
                with gp.Stream() as own:
                    await asyncio.sleep(0)
                    seen.append(gp.current_stream() == own)
                seen.append(gp.current_stream() == context.stream)
                await asyncio.sleep(0.0001)
                seen.append(tenant_of(array) == context.llm_id and context.stats.buffer_count == 1)
        seen.append(gp.current_stream().id == 0)

    async def all_of_them():
        await asyncio.gather(*(work(context, 5 + i) for i, context in enumerate(contexts)))

    asyncio.run(all_of_them())
    assert len(seen) == 3 * 18 + 3 and all(seen)


def test_to_thread_takes_the_session_along_and_leaves_its_stream_alone():
    first, second = create_context("first"), create_context("second")

    async def other():
        async with second:
            assert await asyncio.to_thread(lambda: gp.current_stream() == second.stream)

    async def work():
        async with first:
            with gp.Stream() as own:
                assert await asyncio.to_thread(lambda: gp.current_stream() == first.stream)
                await asyncio.create_task(other())
                assert gp.current_stream() == own

    asyncio.run(work())


def test_threads_in_different_sessions_do_not_mix():
    contexts = [create_context(f"model {i}", share=0.3) for i in range(3)]
    kernel, wrong = step_kernel(), []

    def work(context, factor):
        with context:
            for _ in range(20):
                x = zeros()
                for _ in range(5):
                    kernel(x, factor, COUNT)
                if not (np.array_equal(x.to_numpy(), stepped(5, factor)) and tenant_of(x) == context.llm_id):
                    wrong.append(context)

    threads = [threading.Thread(target=work, args=(context, 3 + i)) for i, context in enumerate(contexts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not wrong and all(context.stats.launches == 20 * 6 for context in contexts)


def test_a_task_is_its_own_tenant_wherever_it_was_submitted():
    context = create_context("chat")

    def task():
        array = gp.zeros(10)
        with context:
            return tenant_of(array), tenant_of(gp.zeros(10)), gp.current_stream() == context.stream

    with context:
        queue = Scheduler()
        queued = queue.submit(task, name="summary")
        queue.step()
        assert gp.current_stream() == context.stream and tenant_of(gp.zeros(10)) == "chat"
    assert queued.result(PATIENCE_S) == ("summary", "chat", True)
    with Scheduler() as running, context:
        left_open = running.submit(context.start_session)
        left_open.result(PATIENCE_S)
        assert running.submit(task, name="later").result(PATIENCE_S) == ("later", "chat", True)
    context._entered = 0  # the task never left


def test_one_session_over_all_contexts_waits_for_what_they_were_given(backend_name):
    context = create_context("chat")
    work = launcher(backend_name)
    with scheduler.session():
        assert scheduler.is_session_active()
        futures = [context.launch(*work) for _ in range(10)]
    assert all(future.is_ready() for future in futures) and not scheduler.is_session_active()
    with scheduler.context_session("chat") as entered:
        assert entered is context and gp.current_stream() == context.stream
    with pytest.raises(InvalidSpecError, match="no context; there are chat"):
        scheduler.context_session("chart")


# ---- memory ----


def test_a_limit_holds_for_whatever_is_called_in_a_session():
    context = create_context("chat", max_vram="8MB")
    with context:
        kept = gp.zeros(MB)  # 4 MB
        with pytest.raises(OutOfMemoryError) as caught:
            _ = kept.astype("float64")
        error = caught.value
        assert (error.tenant, error.requested, error.used, error.limit, error.free) == (
            "chat",
            8 * MB,
            4 * MB,
            8 * MB,
            4 * MB,
        )
        assert "'chat' asked for 8 MiB and holds 4 MiB of the 8 MiB" in str(error)
        assert (kept + kept).nbytes == 4 * MB
    assert gp.zeros(4 * MB).nbytes == 16 * MB, "outside of it there is no such limit"
    assert context.stats.available_vram == 4 * MB
    del kept


def test_what_is_evicted_still_counts():
    context = create_context("chat", max_vram="8MB")
    with context:
        arrays = [gp.full(MB, i, dtype="float32") for i in (1, 2)]
        context.synchronize()
        for array in arrays:
            _core.pool_evict(0, array.block)
        with pytest.raises(OutOfMemoryError, match="'chat' asked"):
            gp.zeros(MB)
        assert [int(array.to_numpy()[-1]) for array in arrays] == [1, 2]
    assert context.stats.peak_vram == 8 * MB


def test_contexts_stay_within_their_budget_together():
    scheduler.initialize(total_vram_budget="16MB")
    small, rest = create_context("small", "12MB"), create_context("rest")
    with pytest.raises(OutOfMemoryError, match="max_vram: 8388608 bytes asked") as caught:
        create_context("more", "8MB")
    assert (caught.value.requested, caught.value.limit, caught.value.free) == (8 * MB, 16 * MB, 4 * MB)
    with pytest.raises(OutOfMemoryError):
        scheduler.initialize(total_vram_budget="8MB")
    with rest:
        held = gp.zeros(2 * MB)
    with small, pytest.raises(OutOfMemoryError, match="'contexts' asked for 12 MiB and holds 8 MiB of the 16 MiB"):
        gp.zeros(3 * MB)
    stats = scheduler.stats()
    assert (stats.used_vram, stats.available_vram, stats.total_vram_budget) == (8 * MB, 8 * MB, 16 * MB)
    assert stats.initialized and stats.context_count == 2 and stats.device_total_memory == native.memory_info()[1]
    del held


# ---- resizing ----


def test_a_limit_is_changed_while_arrays_are_held():
    context = create_context("chat", max_vram="8MB", share=0.5)
    with context:
        held = gp.zeros(MB)  # 4 MB
        context.resize(max_vram="4MB")
        assert (context.max_vram, context.share) == (4 * MB, 0.5), "what is not given stays"
        with pytest.raises(OutOfMemoryError, match="'chat' asked for 1 KiB and holds 4 MiB of the 4 MiB"):
            gp.zeros(256)
        context.resize(max_vram="16MB")
        more = gp.zeros(3 * MB)
        assert (context.stats.max_vram, context.stats.available_vram) == (16 * MB, 0)
        scheduler.resize_context("chat", max_vram=0)
        most = gp.zeros(4 * MB)
    assert context.stats.used_vram == 32 * MB and context.max_vram == 0
    del held, more, most


def test_what_a_context_cannot_be_resized_to_is_refused_by_field_and_changes_nothing():
    scheduler.initialize(total_vram_budget="32MB")
    context, other = create_context("chat", "8MB", 0.5), create_context("speech", "16MB", 0.3)
    with context:
        held = gp.zeros(MB)
    for arguments, field, said in (
        ({"max_vram": "3MB"}, "max_vram", "3145728 bytes asked, 'chat' holds 4194304; free arrays of it first"),
        ({"max_vram": "3MB", "share": 0.6}, "max_vram", "holds 4194304"),
        ({"max_vram": "6MB", "share": 0.8}, "share", "0.8 asked, 0.3 of device 0 is promised to other contexts"),
        ({"max_vram": "lots"}, "max_vram", "no size"),
        ({"share": 1.5}, "share", "out of range"),
        ({"share": -0.1}, "share", "out of range"),
    ):
        with pytest.raises(InvalidSpecError, match=said) as caught:
            context.resize(**arguments)
        assert caught.value.field == field
    with pytest.raises(OutOfMemoryError, match=r"max_vram: 17825792 bytes asked, .* 16777216 of the budget"):
        context.resize(max_vram="17MB", share=0.1)
    with pytest.raises(InvalidSpecError, match="'speach' is no context; there are 'chat', 'speech'") as caught:
        scheduler.resize_context("speach", share=0.1)
    assert caught.value.field == "llm_id"
    for attribute in ("share", "max_vram"):
        with pytest.raises(AttributeError):
            setattr(context, attribute, 0)
    stats = context.stats
    assert (context.max_vram, context.share, stats.max_vram, stats.share) == (8 * MB, 0.5, 8 * MB, 0.5)
    with context, pytest.raises(OutOfMemoryError, match="of the 8 MiB"):
        gp.zeros(2 * MB)
    context.resize(max_vram="16MB", share=0.7)
    other.resize(max_vram="16MB", share=0.3)
    assert other.destroy()
    for resize in (other.resize, lambda **limits: other.resize(share=0.1, **limits)):
        with pytest.raises(ContextDestroyedError, match="'speech' was destroyed"):
            resize()
    again = create_context("speech", share=0.3)
    with pytest.raises(ContextDestroyedError, match="'speech' was destroyed"):
        other.resize(share=0.1)
    assert again.share == 0.3, "the one of that name is another"
    del held


def test_a_share_is_changed_under_work_that_waits(backend_name):
    """One context has a row of commands deferred beside another that keeps the device busy: they end all the same.

    The gate has the new shares at once; that it paces by them what waits already, pacing_simulation.rs shows.
    """
    context, rival = create_context("chat", share=0.01), create_context("rival", share=0.9)
    work, stop = launcher(backend_name), threading.Event()
    context.launch(*work).wait()
    thread = threading.Thread(target=contend, args=(rival, work, stop))
    thread.start()
    try:
        futures = [context.launch(*work) for _ in range(16)]
        rival.resize(share=0.1)
        context.resize(share=0.9)
        assert (context.core.share_ppm, rival.core.share_ppm) == (900_000, 100_000)
        assert all(future.wait().success for future in futures)
        assert (context.stats.share, rival.stats.share) == (0.9, 0.1)
    finally:
        stop.set()
        thread.join(PATIENCE_S)


MODELS = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), MODELS, st.integers(0, 6), st.integers(0, 7)),
        st.tuples(st.just("resize"), MODELS, st.integers(0, 6), st.integers(0, 7)),
        st.tuples(st.just("destroy"), MODELS, st.just(0), st.just(0)),
        st.tuples(st.just("allocate"), MODELS, st.integers(1, 5), st.just(0)),
        st.tuples(st.just("free"), MODELS, st.integers(0, 9), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_contexts_against_a_ledger(steps):
    """Units of 64 KB; budget 10; limits and shares as asked; arrays of a destroyed context go on counting for all."""
    unit, budget = 64 * 1024, 10
    contexts = Contexts()
    contexts.initialize(total_vram_budget=budget * unit)
    limits: dict[str, int] = {}
    shares: dict[str, int] = {}
    made: dict[str, object] = {}
    arrays: list[tuple[object, int, gp.GPUArray]] = []  # owner, units

    def held(owner=None):
        return sum(units for who, units, _ in arrays if owner is None or who is owner)

    for action, name, number, tenths in steps:
        if action == "create":
            fits = sum(limits.values()) + number <= budget and sum(shares.values()) + tenths <= 10
            if name not in limits and fits:
                made[name] = contexts.create(name, number * unit, tenths / 10, 0, 64, "low")
                limits[name], shares[name] = number, tenths
            else:
                with pytest.raises((InvalidSpecError, OutOfMemoryError)):
                    contexts.create(name, number * unit, tenths / 10, 0, 64, "low")
        elif action == "resize" and name in limits:
            room = budget - sum(limits.values()) + limits[name] >= number
            left = 10 - sum(shares.values()) + shares[name] >= tenths
            if room and left and (number == 0 or held(made[name]) <= number):
                made[name].resize(max_vram=number * unit, share=tenths / 10)
                limits[name], shares[name] = number, tenths
            else:
                with pytest.raises((InvalidSpecError, OutOfMemoryError)):
                    made[name].resize(max_vram=number * unit, share=tenths / 10)
        elif action == "destroy":
            context = contexts.get(name)
            assert (context is not None) == (name in limits)
            if context is not None:
                assert context.destroy() and not context.destroy()
                del limits[name], shares[name]
        elif action == "allocate" and name in limits:
            owner = made[name]
            fits = held() + number <= budget and held(owner) + number <= (limits[name] or budget)
            with owner:
                if fits:
                    arrays.append((owner, number, gp.empty(number * unit, dtype="uint8")))
                else:
                    with pytest.raises(OutOfMemoryError):
                        gp.empty(number * unit, dtype="uint8")
        elif action == "free" and arrays:
            arrays.pop(number % len(arrays))
        assert contexts.ids() == sorted(limits)
        assert contexts.stats().used_vram == held() * unit
        for name in limits:
            stats = contexts.get(name).stats
            assert stats.used_vram == held(made[name]) * unit
            assert (stats.max_vram, stats.share) == (limits[name] * unit, shares[name] / 10)
    arrays.clear()
    contexts.reset()
    assert contexts.stats().used_vram == 0


# ---- commands ----


def test_commands_run_in_order_and_tell_when_they_are_done():
    context, kernel = create_context("chat", share=0.5), step_kernel()
    x, y = zeros(), zeros()
    gp.synchronize()
    futures = [context.launch(kernel, 4, 256, x, 3, COUNT) for _ in range(5)]
    copied = context.copy(y, x)
    results = [future.wait() for future in (*futures, copied)]
    assert all(result.success and result.error is None for result in results)
    assert all(0 < result.exec_time < PATIENCE_S for result in results)
    np.testing.assert_array_equal(y.to_numpy(), stepped(5))
    assert [future.state for future in futures] == ["Completed"] * 5
    assert len({future.id for future in futures}) == 5 and copied.try_get() is not None
    assert (copied.context_id, copied.stream_id) == ("chat", context.stream_id)
    assert gp.current_stream().id == 0 and not context.is_session_active()
    stats = context.command_stats()
    assert (stats.dispatched, stats.completed, stats.failed) == (6, 6, 0)
    assert stats.avg_exec_time == pytest.approx(sum(result.exec_time for result in results) / 6)


def test_a_graph_is_replayed_as_one_command():
    context, kernel = create_context("chat"), step_kernel()
    x, y = zeros(), zeros()
    with gp.Stream() as stream, stream.capture() as graph:
        for _ in range(3):
            kernel(x, 3, COUNT)
        native.copy(y, x)
    gp.synchronize()
    assert context.replay(graph).wait().success
    np.testing.assert_array_equal(y.to_numpy(), stepped(3))


def test_requests_name_kernels_by_handle():
    context, kernel, x = create_context("chat"), step_kernel(), zeros()
    gp.synchronize()
    handle = scheduler.kernel_handle(kernel)
    assert handle == scheduler.kernel_handle(kernel) and isinstance(handle, int)
    request = AsyncKernelRequest.linear(handle, COUNT).with_args([x, 3, COUNT])
    assert (request.grid, request.block) == ((4, 1, 1), (256, 1, 1))
    same = AsyncKernelRequest(handle).with_grid(2).with_block(512).with_shared_mem(128).with_args([x, 3, COUNT])
    assert context.dispatch_async(request).wait().success and context.dispatch_async(same).wait().success
    np.testing.assert_array_equal(x.to_numpy(), stepped(2))
    del kernel
    gc.collect()
    for wrong in (handle + 1000, -1, "step", x.device_ptr):
        with pytest.raises(InvalidSpecError, match="is no handle of a kernel") as caught:
            context.dispatch_async(AsyncKernelRequest(wrong))
        assert caught.value.field == "kernel_handle"


def test_futures_are_awaited_from_several_tasks(backend_name):
    contexts = [create_context("a", share=0.7), create_context("b", share=0.3)]
    work = launcher(backend_name)

    async def model(context):
        results = []
        for _ in range(10):
            results.append(await context.launch(*work))
        return results + [await future for future in [context.launch(*work) for _ in range(10)]]

    async def both():
        return await asyncio.gather(*(model(context) for context in contexts))

    results = asyncio.run(both())
    assert all(result.success and result.exec_time > 0 for one in results for result in one)
    assert all(context.command_stats().completed == 20 for context in contexts)


def contend(rival, work, stop):
    with rival:
        while not stop.is_set():
            for _ in range(10):
                work[0][work[1], work[2]](*work[3:])


def test_deferred_commands_are_issued_without_python_and_can_be_cancelled(backend_name):
    context, rival = create_context("chat", share=0.1), create_context("rival", share=0.9)
    work, stop = launcher(backend_name), threading.Event()
    context.launch(*work).wait()
    thread = threading.Thread(target=contend, args=(rival, work, stop))
    thread.start()
    try:
        end = time.monotonic() + PATIENCE_S
        cancelled = []
        while not cancelled and time.monotonic() < end:
            futures = [context.launch(*work) for _ in range(8)]
            cancelled = [future for future in futures if future.cancel()]
            for future in futures:
                result = future.wait()
                assert result.success == (future not in cancelled), result.error
        assert cancelled and all(future.state == "Cancelled" for future in cancelled)
        assert all("cancelled before" in future.wait().error for future in cancelled)
        assert context.command_stats().cancelled == len(cancelled) and context.stats.paced > 0
        waiting = [context.launch(*work) for _ in range(32)]
        assert context.destroy()
        states = {future.wait() and future.state for future in waiting}
        assert states <= {"Completed", "Cancelled"}
    finally:
        stop.set()
        thread.join(PATIENCE_S)


def test_no_more_commands_are_unfinished_than_allowed(backend_name):
    context, work = create_context("chat", max_in_flight=3), launcher(backend_name)
    for _ in range(20):
        context.launch(*work)
        assert len(context.unfinished()) <= 3


# ---- faults ----


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"llm_id": ""}, "llm_id"),
        ({"llm_id": 7}, "llm_id"),
        ({"llm_id": "x" * 10_000}, "llm_id"),
        ({"llm_id": "taken"}, "llm_id"),
        ({"share": 0.6}, "share"),
        ({"share": 1.5}, "share"),
        ({"share": "half"}, "share"),
        ({"max_vram": "lots"}, "max_vram"),
        ({"max_vram": -1}, "max_vram"),
        ({"device_id": 99}, "device_id"),
        ({"max_in_flight": 0}, "max_in_flight"),
        ({"priority": "urgent"}, "priority"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_field(arguments, field):
    create_context("taken", share=0.5)
    with pytest.raises(InvalidSpecError) as caught:
        create_context(**{"llm_id": "new", **arguments})
    assert caught.value.field == field
    assert scheduler.list_contexts() == ["taken"]
    assert create_context("new", share=0.5).share == 0.5, "nothing had changed"


def test_wrong_commands_are_refused_before_anything_is_submitted():
    context, kernel, x = create_context("chat"), step_kernel(), zeros()
    for call, field in (
        (lambda: context.launch(print, 1, 1), "kernel"),
        (lambda: scheduler.kernel_handle(len), "kernel"),
        (lambda: context.replay(kernel), "graph"),
        (lambda: context.dispatch_async(kernel), "request"),
        (lambda: AsyncKernelRequest(1).with_grid(0), "grid"),
        (lambda: AsyncKernelRequest(1).with_block(1, "y"), "block"),
        (lambda: AsyncKernelRequest.linear(1, 10, 0), "block_size"),
    ):
        with pytest.raises(InvalidSpecError) as caught:
            call()
        assert caught.value.field == field
    for arguments in ((x, 3), (x.device_ptr, 3, COUNT), (x, 3.5, COUNT)):
        with pytest.raises(KernelArgumentError):
            context.launch(kernel, 4, 256, *arguments)
    assert context.command_stats().dispatched == 0 and gp.current_stream().id == 0


def test_a_destroyed_context_says_so():
    context, kernel, x = create_context("chat"), step_kernel(), zeros()
    array = None
    with context:
        array = gp.ones(1000)
        assert scheduler.destroy_context("chat") and not scheduler.destroy_context("chat")
        for call in (lambda: gp.zeros(10), lambda: array + array, lambda: kernel(x, 3, COUNT), gp.current_stream):
            with pytest.raises(ContextDestroyedError, match="'chat' was destroyed"):
                call()
    assert float(array.to_numpy().sum()) == 1000, "its arrays stay"
    for call in (context.__enter__, context.synchronize, lambda: context.launch(kernel, 4, 256, x, 3, COUNT)):
        with pytest.raises(ContextDestroyedError, match="'chat' was destroyed"):
            call()
    assert context.stats is None and scheduler.get_context("chat") is None and not context.destroy()
    again = create_context("chat", max_vram=MB)
    assert again.stats.used_vram == 0 and scheduler.stats().used_vram == 4096


# ---- the documented classes ----


def test_the_documented_controller():
    controller, x = rust.MultiLLMController(), zeros()
    assert not controller.is_initialized()
    controller.initialize(0, 0, 64 * MB)
    assert controller.is_initialized() and controller.available_vram() == 64 * MB
    stream = controller.create_context("llm", 8 * MB)
    assert stream == controller.get_stream_id("llm") and controller.context_count() == 1
    assert controller.list_contexts() == ["llm"] and scheduler.list_contexts() == []
    stats = controller.get_context("llm")
    assert stats.state == rust.ContextState.Idle and stats.max_vram == 8 * MB and stats.stream_id == stream
    assert controller.start_context_session("llm") and controller.is_context_session_active("llm")
    held = gp.zeros(MB)
    assert controller.used_vram() == 4 * MB and controller.get_context("llm").buffer_count == 1
    assert controller.end_context_session("llm") and not controller.is_context_session_active("llm")
    kernel = step_kernel()
    gp.synchronize()
    request = rust.AsyncKernelRequest.linear(scheduler.kernel_handle(kernel), COUNT).with_args([x, 3, COUNT])
    future = controller.dispatch_async("llm", request)
    assert controller.get_future("llm", future.id) is future
    assert future.wait().success and future.state == rust.FutureState.Completed
    assert controller.get_pending_futures("llm") == [] and not controller.cancel_future("llm", future.id)
    counts = controller.async_stats("llm")
    assert (counts.total_dispatched, counts.completed_count, counts.pending_count) == (1, 1, 0)
    for method, arguments in (
        ("mark_future_launched", ()),
        ("mark_future_completed", (0.1,)),
        ("mark_future_failed", ("",)),
    ):
        with pytest.warns(DeprecationWarning, match="changes nothing"):
            getattr(controller, method)("llm", future.id, *arguments)
    with pytest.warns(DeprecationWarning), pytest.raises(MemoryError):
        controller.track_allocation("llm", 1, 5 * MB)
    with pytest.warns(DeprecationWarning):
        assert controller.track_allocation("llm", 1, 4 * MB)
    assert controller.used_vram() == 4 * MB, "only the pool counts"
    assert controller.get_context("none") is None and controller.get_stream_id("none") is None
    with pytest.raises(ValueError, match="no context 'none'; there are llm"):
        controller.dispatch_async("none", request)
    controller.start_session()
    assert controller.is_session_active()
    controller.end_session()
    del held
    assert controller.destroy_context("llm") and not controller.destroy_context("llm")
    controller.reset()
    assert not controller.is_initialized() and controller.stats().context_count == 0


def test_a_thread_that_used_no_device_may_wait_for_a_command():
    out, results = gp.zeros(1), []
    context = scheduler.create_context("waited for")
    try:
        future = context.launch(gp.jit(BUSY, func="busy"), 1, 32, out, 1000)
        thread = threading.Thread(target=lambda: results.append(future.wait()))
        thread.start()
        thread.join()
    finally:
        context.destroy()
    assert results[0].success, results[0].error


def test_the_documented_dispatcher(backend_name):
    dispatcher, kernel = rust.KernelDispatcher(max_in_flight=2), gp.jit(BUSY, func="busy")
    handle, out = scheduler.kernel_handle(kernel), gp.zeros(1)
    rounds = 2_000_000 if backend_name == "cuda" else 50_000
    config = rust.LaunchConfig((1, 1, 1), (32, 1, 1), 0, 7)
    hold, flag = gp.jit(HOLD, func="hold"), gp.ones(1, "int32")
    kernel[1, 32](out, 1)
    hold[1, 1](flag)
    gp.synchronize()  # a driver may load code only while nothing runs

    def fill_up():
        """As many as may be in flight, which end when they are let go."""
        native.copy_from_host(flag, np.zeros(1, np.int32))
        gp.synchronize()
        one = rust.LaunchConfig((1, 1, 1), (1, 1, 1), 0, 7)
        held = [dispatcher.queue(scheduler.kernel_handle(hold), one, [flag], priority=9) for _ in range(2)]
        end = time.monotonic() + PATIENCE_S
        while dispatcher.get_in_flight(7) != held and time.monotonic() < end:
            time.sleep(0.001)
        assert dispatcher.get_in_flight(7) == held

    def let_go():
        with gp.Stream():
            native.copy_from_host(flag, np.ones(1, np.int32))

    fill_up()
    try:
        ids = [dispatcher.queue(handle, config, [out, rounds], "task", priority=i // 4) for i in range(12)]
        assert [request.priority for request in dispatcher.get_ready(100)] == [2] * 4 + [1] * 4 + [0] * 4
        assert len(dispatcher.get_in_flight(7)) == 2
    finally:
        let_go()
    while dispatcher.has_pending_work():
        assert len(dispatcher.get_in_flight(7)) <= 2
        waiting = [request.priority for request in dispatcher.get_ready(100)]
        assert waiting == sorted(waiting, reverse=True)
    requests = [dispatcher.get_request(req_id) for req_id in ids]
    assert [request.state for request in requests] == [rust.dispatch.KernelState.Completed] * 12
    assert all(request.state.is_terminal() and request.duration() > 0 for request in requests)
    launched = sorted(requests, key=lambda request: request.launched_at)
    assert [request.priority for request in launched] == [2] * 4 + [1] * 4 + [0] * 4
    stats = dispatcher.stats()
    assert (stats.total_queued, stats.completed_count, stats.launches_per_stream) == (14, 14, {7: 14})
    assert dispatcher.get_requests_for_task("task") == requests
    fill_up()
    try:
        more = [dispatcher.queue_for_task("more", handle, config, [out, rounds]) for _ in range(20)]
        assert dispatcher.cancel(more[-1]) and not dispatcher.cancel(ids[0]) and not dispatcher.cancel(10_000)
        assert dispatcher.get_request(more[-1]).state == rust.dispatch.KernelState.Cancelled
        wrong = dispatcher.queue(handle, rust.LaunchConfig.linear(100), [out])
    finally:
        let_go()
    while dispatcher.has_pending_work():
        time.sleep(0.001)
    assert "KernelArgumentError" in dispatcher.get_request(wrong).error and dispatcher.stats().failed_count == 1
    with pytest.raises(InvalidSpecError, match="no handle of a kernel"):
        dispatcher.queue(handle + 1000, config)
    with pytest.warns(DeprecationWarning, match="changes nothing"):
        assert dispatcher.mark_completed(ids[0])
    dispatcher.gc()
    assert dispatcher.get_request(ids[0]) is None and dispatcher.stats().total_queued == 37
    dispatcher.clear()


def test_a_request_that_is_seen_launched_is_counted_and_has_its_time(monkeypatch):
    """However long the dispatcher's thread rests before it notes them."""
    dispatcher, kernel, x = rust.KernelDispatcher(), step_kernel(), zeros()
    seen = []

    class Clock:
        @staticmethod
        def time():
            if threading.current_thread().name == "pygpukit-dispatch":
                seen.extend(request.state for request in dispatcher.get_requests_for_task("task"))
            return time.time()

    monkeypatch.setattr(dispatching, "time", Clock)
    config = rust.LaunchConfig.linear(COUNT)
    request = dispatcher.get_request(dispatcher.queue(scheduler.kernel_handle(kernel), config, [x, 3, COUNT], "task"))
    while dispatcher.has_pending_work():
        time.sleep(0.001)
    assert seen == [rust.dispatch.KernelState.Queued]
    assert request.launched_at <= request.completed_at and dispatcher.stats().launches_per_stream == {0: 1}
    dispatcher.clear()
