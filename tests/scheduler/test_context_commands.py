"""Execution contexts: commands with futures, in order, deferred, cancelled and refused."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time

import numpy as np
import pytest
from context_help import BUSY, COUNT, PATIENCE_S, contend, launcher, step_kernel, stepped, zeros
from context_help import no_context_is_left as no_context_is_left

import pygpukit as gp
from pygpukit import scheduler
from pygpukit._core import native
from pygpukit.core.errors import InvalidSpecError, KernelArgumentError
from pygpukit.scheduler import AsyncKernelRequest, KernelFuture, create_context


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


@contextlib.contextmanager
def beside_a_rival(backend_name):
    """A context of a small share, and work for it, while another always wants the device."""
    context, rival = create_context("chat", share=0.1), create_context("rival", share=0.9)
    work, stop = launcher(backend_name), threading.Event()
    context.launch(*work).wait()
    thread = threading.Thread(target=contend, args=(rival, work, stop))
    thread.start()
    try:
        yield context, work
    finally:
        stop.set()
        thread.join(PATIENCE_S)


def test_deferred_commands_are_issued_without_python_and_can_be_cancelled(backend_name):
    with beside_a_rival(backend_name) as (context, work):
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


def test_cancelling_the_await_cancels_the_command(backend_name):
    with beside_a_rival(backend_name) as (context, work):

        async def given_up():
            """Of some commands that are awaited and given up at once, those that had not reached the device."""
            futures = [context.launch(*work) for _ in range(8)]
            awaits = [asyncio.ensure_future(future) for future in futures]
            await asyncio.sleep(0)
            for waiting in awaits:
                waiting.cancel()
            results = await asyncio.gather(*awaits, return_exceptions=True)
            assert all(isinstance(result, asyncio.CancelledError) or result.success for result in results)
            return [future for future in futures if future.wait().success is False]

        end = time.monotonic() + PATIENCE_S
        cancelled = []
        while not cancelled and time.monotonic() < end:
            cancelled = asyncio.run(given_up())
        assert cancelled and all(future.state == "Cancelled" for future in cancelled)


def test_a_time_limit_of_the_await_cancels_the_command():
    class Waiting:
        """A command whose turn never comes."""

        state = "Pending"
        error = "cancelled before the device had it"
        exec_ns = None

        def done(self):
            return self.state == "Cancelled"

        def wait(self):
            assert self.done()

        def cancel(self):
            self.state = "Cancelled"
            return True

    future = KernelFuture(Waiting(), "chat", 0)
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(future, 0.01))
    assert future.state == "Cancelled" and not future.try_get().success


def test_no_more_commands_are_unfinished_than_allowed(backend_name):
    context, work = create_context("chat", max_in_flight=3), launcher(backend_name)
    for _ in range(20):
        context.launch(*work)
        assert len(context.unfinished()) <= 3


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
