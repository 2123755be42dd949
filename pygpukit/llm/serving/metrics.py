"""Metrics: counters and gauges of a server's models, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pygpukit.core.extras import need

if TYPE_CHECKING:
    from pygpukit.llm.generation import Completion, Token
    from pygpukit.llm.model import CausalTransformerModel

_FIRST_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_BETWEEN_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_LABEL = ["model"]


class Metrics:
    """Counters of answers as they come, and gauges of the moment in which they are asked for.

    models: gives the language models that are loaded; loaded: of every model whether it is. Raises ModuleNotFoundError
    without the extra `serve`.
    """

    def __init__(
        self, models: Callable[[], Iterable[CausalTransformerModel]], loaded: Callable[[], Mapping[str, bool]]
    ) -> None:
        self._library: Any = need("prometheus_client", "serve", "serving a model")
        library, self._models, self._loaded = self._library, models, loaded
        self._registry = registry = library.CollectorRegistry()

        def counter(name: str, what: str, *labels: str) -> Any:
            return library.Counter(f"pygpukit_{name}", what, [*_LABEL, *labels], registry=registry)

        def histogram(name: str, what: str, buckets: tuple[float, ...]) -> Any:
            return library.Histogram(f"pygpukit_{name}", what, _LABEL, registry=registry, buckets=buckets)

        self._answers = counter("answers", "Answers that have ended, by how.", "finish_reason")
        self._prompt_tokens = counter("prompt_tokens", "Tokens of the prompts of these answers.")
        self._cached_tokens = counter("cached_prompt_tokens", "Of those, the ones whose keys were in the KV cache.")
        self._tokens = counter("generated_tokens", "Tokens of answers.")
        self._refused = counter("refused_requests", "Requests refused because too many wait.")
        self._drops = counter("model_drops", "Times that a model gave its memory to another.")
        self._first = histogram("time_to_first_token_seconds", "From a request to its first token.", _FIRST_S)
        self._between = histogram("time_between_tokens_seconds", "From a token to the next one.", _BETWEEN_S)
        self._of_tokens: dict[str, tuple[Any, Any, Any]] = {}  # by model: labels() for each token would cost more
        registry.register(self)

    def token(self, model: str, token: Token, before: float | None) -> None:
        """A token has come; before: seconds of the one before it."""
        own = self._of_tokens.get(model)
        if own is None:
            all_of_them = self._tokens, self._first, self._between
            own = self._of_tokens[model] = tuple(metric.labels(model) for metric in all_of_them)
        tokens, first, between = own
        tokens.inc()
        if before is None:
            first.observe(token.seconds)
        else:
            between.observe(token.seconds - before)

    def answer(self, model: str, completion: Completion) -> None:
        """An answer has ended."""
        self._answers.labels(model, completion.finish_reason).inc()
        self._prompt_tokens.labels(model).inc(completion.prompt_tokens)
        self._cached_tokens.labels(model).inc(completion.figures.reused_tokens)

    def refusal(self, model: str) -> None:
        """A request was refused because too many wait."""
        self._refused.labels(model).inc()

    def drop(self, model: str) -> None:
        """A model gave its memory to another."""
        self._drops.labels(model).inc()

    def page(self) -> tuple[bytes, str]:
        """The page, and its content type."""
        return self._library.generate_latest(self._registry), self._library.CONTENT_TYPE_LATEST

    def describe(self) -> list[Any]:
        """For the registry: nothing has to be asked now."""
        return []

    def collect(self) -> Iterator[Any]:
        """The gauges, for the registry."""
        family = self._library.metrics_core.GaugeMetricFamily
        running = family("pygpukit_requests_running", "Answers under way.", labels=_LABEL)
        waiting = family("pygpukit_requests_waiting", "Requests that wait for their turn.", labels=_LABEL)
        blocks = family("pygpukit_kv_blocks", "Blocks of the KV cache.", labels=_LABEL)
        used = family("pygpukit_kv_blocks_used", "Blocks that hold keys of answers under way.", labels=_LABEL)
        gauges = (running, waiting, blocks, used)
        for model in self._models():
            for gauge, value in zip(gauges, model.engine.occupancy, strict=True):
                gauge.add_metric([model.name], value)
        loaded = family("pygpukit_model_loaded", "1 where the model is loaded, 0 where it will be.", labels=_LABEL)
        for name, is_loaded in self._loaded().items():
            loaded.add_metric([name], is_loaded)
        yield from (*gauges, loaded)
