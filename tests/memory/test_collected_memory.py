"""Device memory in reference cycles: Python's collector is asked for it before an allocation fails."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from context_help import no_context_is_left as no_context_is_left
from llm import tiny

import pygpukit as gp
from pygpukit.scheduler import MB, create_context

pytestmark = pytest.mark.usefixtures("backend_name")


@pytest.fixture
def cycle() -> Iterator[weakref.ref[object]]:
    """An object in a cycle with 6 MiB of the 8 MiB of the context that the test runs in; nothing else names it."""

    class Holder:
        pass

    gc.collect()
    enabled = gc.isenabled()
    with create_context("cycle", max_vram="8MB"):
        holder = Holder()
        holder.itself, holder.array = holder, gp.zeros(6 * MB, dtype="uint8")  # type: ignore[attr-defined]
        found = weakref.ref(holder)
        del holder
        yield found
    (gc.enable if enabled else gc.disable)()


def test_an_allocation_takes_what_lies_in_a_cycle(cycle: weakref.ref[object]) -> None:
    gc.disable()
    gc.enable()  # the counts that would start it by itself begin anew
    assert cycle() is not None
    assert gp.ones(4 * MB, dtype="uint8").to_numpy().all()
    assert cycle() is None


def test_where_the_collector_is_turned_off_the_error_comes(cycle: weakref.ref[object]) -> None:
    gc.disable()
    with pytest.raises(gp.OutOfMemoryError, match="'cycle' asked for 4 MiB and holds 6 MiB of the 8 MiB"):
        gp.zeros(4 * MB, dtype="uint8")
    assert cycle() is not None


def test_a_model_that_answered_goes_with_its_last_name() -> None:
    gc.collect()
    gc.disable()
    try:
        model = tiny.model("llama", context=64)
        model.generate([3, 14, 15], 4)
        found = weakref.ref(model)
        del model
        assert found() is None
    finally:
        gc.enable()
