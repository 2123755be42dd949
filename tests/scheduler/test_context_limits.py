"""Execution contexts: limits of memory and shares that hold, and change under way."""

from __future__ import annotations

import threading

import pytest
from context_help import PATIENCE_S, contend, launcher
from context_help import no_context_is_left as no_context_is_left
from hypothesis import given, settings
from hypothesis import strategies as st

import pygpukit as gp
from pygpukit import _core, scheduler
from pygpukit._core import native
from pygpukit.core.errors import ContextDestroyedError, InvalidSpecError, OutOfMemoryError
from pygpukit.scheduler import MB, create_context
from pygpukit.scheduler.contexts import Contexts


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
