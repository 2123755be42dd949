"""export_spans(): what OpenTelemetry gets of tasks, requests and cells, and what becomes of spans inside of them."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from llm import tiny
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import pygpukit as gp
from pygpukit.core import ranges
from pygpukit.scheduler import Scheduler
from pygpukit.telemetry import export_spans

pytestmark = pytest.mark.usefixtures("backend_name")


class Told:
    """A provider whose spans are kept, and the spans that have ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")

    def spans(self) -> dict[str, Any]:
        return {span.name: span for span in self._exporter.get_finished_spans()}


@pytest.fixture
def told() -> Iterator[Told]:
    made = Told()
    heard = ranges.has_listeners()
    with export_spans(made.provider):
        yield made
    assert ranges.has_listeners() == heard


def test_a_task_is_a_span_from_its_submission_inside_the_submitters(told: Told) -> None:
    begin = time.time_ns()
    with Scheduler(total_memory="1MB", start=False) as scheduler, told.tracer.start_as_current_span("caller") as caller:

        def work() -> int:
            with told.tracer.start_as_current_span("inside"):
                return int(gp.ones(10).sum().item())

        task = scheduler.submit(work, name="sum", memory="64KB", bandwidth=0.25, policy="guaranteed")
        submitted = time.time_ns()
        assert task.result(60) == 10
    span = told.spans()["task sum"]
    assert span.parent.span_id == caller.get_span_context().span_id
    assert told.spans()["inside"].parent.span_id == span.context.span_id
    (started,) = span.events
    assert started.name == "started"
    # Two clocks are set beside each other, and a busy core may come in between.
    assert begin - 60 * 10**9 <= span.start_time <= submitted + 10**7
    assert span.start_time <= started.timestamp <= span.end_time
    about = span.attributes
    assert about["pygpukit.task.id"] == task.id and about["pygpukit.task.name"] == "sum"
    assert about["pygpukit.task.memory_bytes"] == 64 << 10 and about["pygpukit.task.share_ppm"] == 250_000
    assert about["pygpukit.task.policy"] == "Guaranteed"
    assert span.status.status_code is trace.StatusCode.UNSET


def test_a_task_that_raises_says_so(told: Told) -> None:
    with Scheduler(total_memory="1MB") as scheduler:
        task = scheduler.submit(lambda: 1 // 0, name="divide")
        with pytest.raises(ZeroDivisionError):
            task.result(60)
    span = told.spans()["task divide"]
    assert span.status.status_code is trace.StatusCode.ERROR and "ZeroDivisionError" in span.status.description
    assert [event.name for event in span.events] == ["started", "exception"]


def test_a_task_in_a_worker_process_is_a_span(told: Told) -> None:
    with Scheduler(total_memory="64MB") as scheduler:
        scheduler.create_partition("apart", memory="32MB", isolation="process")
        assert scheduler.submit(len, (1, 2), name="far", partition="apart").result(120) == 2
    assert told.spans()["task far"].attributes["pygpukit.task.partition"] == "apart"


def test_requests_tell_their_tokens_and_how_they_ended(told: Told) -> None:
    model = tiny.model("llama", slots=4, context=64)
    with told.tracer.start_as_current_span("caller") as caller:
        model.generate([3, 14, 15], 5, seed=1)
    name = f"request {model.name}"
    span = told.spans()[name]
    assert span.parent.span_id == caller.get_span_context().span_id
    assert span.attributes["gen_ai.request.model"] == model.name
    assert span.attributes["gen_ai.usage.input_tokens"] == 3
    assert span.attributes["gen_ai.usage.output_tokens"] == 5
    assert span.attributes["gen_ai.request.max_tokens"] == 5


def test_many_requests_and_one_that_nobody_holds_any_more(told: Told) -> None:
    model = tiny.model("llama", slots=4, context=64)
    model.generate_batch([[3, 14], [15, 92, 65]], 4, seed=1)
    spans = told._exporter.get_finished_spans()
    assert sorted(span.attributes["gen_ai.usage.input_tokens"] for span in spans) == [2, 3]
    stream = model.stream([3, 14, 15, 92], 20, seed=1)
    next(stream)
    del stream
    gc.collect()
    assert len(told._exporter.get_finished_spans()) == 2, "a finalizer calls no exporter"
    model.generate([1], 1, seed=1)
    assert len(told._exporter.get_finished_spans()) == 4


def test_a_span_that_ends_in_another_context_leaves_it_alone(told: Told) -> None:
    with told.tracer.start_as_current_span("outer") as outer:
        cell = copy_context().run(ranges.begin, "cell", "In[1]", dict)
        assert cell is not None
        cell.end()
        assert trace.get_current_span() is outer
    assert told.spans()["cell In[1]"].parent.span_id == outer.get_span_context().span_id


def test_nothing_is_told_before_and_after() -> None:
    told = Told()
    spans = export_spans(told.provider)
    spans.close()
    spans.close()
    with Scheduler(total_memory="1MB") as scheduler:
        scheduler.submit(lambda: None).result(60)
    assert not told.spans()


def test_without_opentelemetry_the_command_is_named() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import pygpukit as gp\n"
        "try:\n    gp.telemetry.export_spans()\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "exporting spans needs opentelemetry" in done.stdout and "otel" in done.stdout
