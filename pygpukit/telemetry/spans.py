"""export_spans(): cells, runs of tasks and requests of models as spans of OpenTelemetry."""

from __future__ import annotations

import time
from typing import Any

from pygpukit import _core
from pygpukit.core import ranges
from pygpukit.core.extras import need

_WHY = "exporting spans"
_SCOPE = "pygpukit"
# Attributes that OpenTelemetry has a name for already.
_NAMES = {
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "answer_tokens": "gen_ai.usage.output_tokens",
    "max_new_tokens": "gen_ai.request.max_tokens",
}


class Spans:
    """Spans that are exported, until close(). It is a context manager, too."""

    def __init__(self, tracer: Any) -> None:
        self._api = need("opentelemetry.trace", "otel", _WHY)
        self._context = need("opentelemetry.context", "otel", _WHY)
        self._tracer: Any = tracer
        ranges.listen(self._begin)

    def close(self) -> None:
        """Begin no more spans; those under way end as ever. Again does no harm."""
        ranges.unlisten(self._begin)

    def __enter__(self) -> Spans:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, kind: str, name: str, known: dict[str, Any]) -> ranges.End:
        now_ns = time.time_ns()
        since = known.get("submitted_ns")
        start_ns = now_ns if since is None else min(now_ns, now_ns - (_core.now_ns() - since))
        span = self._tracer.start_span(f"{kind} {name}", start_time=start_ns, attributes=_attributes(kind, known))
        span.set_attribute(f"pygpukit.{kind}.name", name)
        if kind == "request":
            span.set_attribute("gen_ai.request.model", name)
            token = None  # it may end in another thread
        else:
            span.add_event("started", timestamp=now_ns)
            token = self._context.attach(self._api.set_span_in_context(span))

        def end(known: dict[str, Any], error: BaseException | None) -> None:
            # A cell may end in another context than it ran in, which has gone with its span.
            if token is not None and self._api.get_current_span() is span:
                self._context.detach(token)
            span.set_attributes(_attributes(kind, known))
            if error is not None:
                span.record_exception(error)
                span.set_status(self._api.Status(self._api.StatusCode.ERROR, f"{type(error).__name__}: {error}"))
            span.end()

        return end


def _attributes(kind: str, known: dict[str, Any]) -> dict[str, Any]:
    return {
        _NAMES.get(key, f"pygpukit.{kind}.{key}"): value
        for key, value in known.items()
        if value is not None and key != "submitted_ns"
    }


def export_spans(provider: Any = None) -> Spans:
    """Make a span of OpenTelemetry of every cell, run of a task and request of a language model from now on.

    Parameters
    ----------
    provider : opentelemetry.trace.TracerProvider, optional
        Where spans go; the process's own (opentelemetry.trace.get_tracer_provider()) by default.

    Returns
    -------
    Spans
        With `close()`; it is a context manager, too. A task's span goes from its submission to the end of its work on
        the device, with an event "started"; it is a child of the span in which it was submitted, and the current span
        within its function. A request's goes from when it came until it ended. Attributes are `pygpukit.task.gpu_ns`
        and the like, and those of OpenTelemetry's `gen_ai` (docs/profiling.md).

    Raises
    ------
    ModuleNotFoundError
        OpenTelemetry is not there; it names the command that installs it.

    Examples
    --------
    >>> with gp.telemetry.export_spans():  # doctest: +SKIP
    ...     gp.scheduler.Scheduler().submit(train).result()
    """
    api = need("opentelemetry.trace", "otel", _WHY)
    return Spans((provider or api.get_tracer_provider()).get_tracer(_SCOPE))
