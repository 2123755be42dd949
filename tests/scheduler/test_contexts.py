"""Execution contexts: sessions that threads and asyncio tasks do not mix, and what is refused or was destroyed."""

from __future__ import annotations

import asyncio
import gc
import threading

import numpy as np
import pytest
from context_help import COUNT, PATIENCE_S, launcher, step_kernel, stepped, tenant_of, zeros
from context_help import no_context_is_left as no_context_is_left

import pygpukit as gp
from pygpukit import scheduler
from pygpukit.core.errors import ContextDestroyedError, GPUError, InvalidSpecError
from pygpukit.scheduler import MB, Scheduler, create_context


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
    context.synchronize()  # to_numpy() waits for the current stream only
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
        queue = Scheduler(start=False)
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
