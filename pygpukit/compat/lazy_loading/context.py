"""LayerStreamingContext: `with` it a LazyModelLoader has the layers of a model on the device, by a strategy."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from pygpukit.compat.lazy_loading.loader import LazyModelLoader
from pygpukit.compat.lazy_loading.strategies import TEMPLATE, AutoLRU, LoadingStrategy, SimpleStreaming, SlidingWindow
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import GB, whole

_BY_NAME: dict[str, Callable[..., LoadingStrategy]] = {
    "simple": SimpleStreaming,
    "simple_streaming": SimpleStreaming,
    "sliding": SlidingWindow,
    "sliding_window": SlidingWindow,
    "auto": AutoLRU,
    "auto_lru": AutoLRU,
    "lru": AutoLRU,
}


class LayerStreamingContext:
    """`with context:`, prepare(n) before layer n is launched has its tensors on the device, or on their way.

    Parameters
    ----------
    loader : LazyModelLoader
        Whose array(name) gives the tensors.
    strategy : LoadingStrategy
        What is loaded and unloaded.
    num_layers : int
        Of the model; 1 or more.
    prefix_template : str
        What the tensors of a layer begin with, {} being its number; the strategy's.

    Raises
    ------
    InvalidSpecError
        For no such number, a template without {}, and one that is not the strategy's.

    Examples
    --------
    >>> import pygpukit as gp
    >>> loader = gp.llm.LazyModelLoader("64MB")
    >>> context = gp.llm.LayerStreamingContext(loader, gp.llm.SlidingWindow(window_size=3), num_layers=30)
    >>> context.layer_prefix(7)
    'model.layers.7.'
    """

    def __init__(
        self, loader: LazyModelLoader, strategy: LoadingStrategy, num_layers: int, prefix_template: str = TEMPLATE
    ) -> None:
        expected = "a whole number of 1 or more"
        if whole(num_layers, "num_layers", expected) < 1:
            raise InvalidSpecError(f"num_layers={num_layers!r}; give {expected}", "num_layers")
        if "{}" not in prefix_template:
            raise InvalidSpecError(
                f"prefix_template={prefix_template!r} has no {{}} for the layer's number", "prefix_template"
            )
        own = getattr(strategy, "prefix_template", prefix_template)
        if own != prefix_template:
            raise InvalidSpecError(
                f"prefix_template={prefix_template!r}, and the strategy has {own!r}; give both the same",
                "prefix_template",
            )
        self.loader, self.strategy, self.num_layers = loader, strategy, num_layers
        self.prefix_template = prefix_template
        self._current: int | None = None
        self._is_open = False

    @property
    def current_layer(self) -> int | None:
        """The layer that prepare() was last called for; None before and after."""
        return self._current

    @property
    def memory_stats(self) -> dict[str, Any]:
        """The loader's figures: quota_gb, used_gb and available_gb in 2^30 bytes, utilization_pct, active_blocks,
        eviction_count."""
        stats = self.loader.pool_stats
        return {
            "quota_gb": stats.quota / GB,
            "used_gb": stats.used / GB,
            "available_gb": stats.available / GB,
            "utilization_pct": stats.utilization,
            "active_blocks": stats.active_blocks,
            "eviction_count": stats.eviction_count,
        }

    def __enter__(self) -> LayerStreamingContext:
        self.strategy.on_start(self.loader, self.num_layers)
        self._is_open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        try:
            self._end_layer()
        finally:
            self.strategy.on_end(self.loader, self.num_layers)

    def prepare(self, layer_idx: int) -> None:
        """End the layer before, and have the tensors of a layer on the device, or on their way.

        Raises InvalidSpecError outside of `with`, and for a layer that the model has not; and what the strategy raises.
        """
        if not self._is_open:
            raise InvalidSpecError("prepare() is for `with context:`; enter it first", "layer_idx")
        expected = f"a whole number of 0 to {self.num_layers - 1}"
        if not 0 <= whole(layer_idx, "layer_idx", expected) < self.num_layers:
            raise InvalidSpecError(f"layer_idx={layer_idx!r}; give {expected}", "layer_idx")
        if layer_idx != self._current:
            self._end_layer()
        self._current = layer_idx
        self.strategy.on_layer_start(self.loader, layer_idx, self.num_layers)

    def layer_prefix(self, layer_idx: int) -> str:
        """The beginning of the names of a layer's tensors."""
        return self.strategy.layer_prefix(layer_idx, self.prefix_template)

    def _end_layer(self) -> None:
        layer, self._current = self._current, None
        if layer is not None:
            self.strategy.on_layer_end(self.loader, layer, self.num_layers)


def create_streaming_context(
    loader: LazyModelLoader,
    strategy: str | LoadingStrategy,
    num_layers: int,
    prefix_template: str = TEMPLATE,
    **kwargs: Any,
) -> LayerStreamingContext:
    """A LayerStreamingContext by a strategy's name.

    Parameters
    ----------
    loader, num_layers, prefix_template
        As LayerStreamingContext's.
    strategy : str or LoadingStrategy
        "simple", "sliding" or "auto", of the class SimpleStreaming, SlidingWindow or AutoLRU; or one that is made.
    **kwargs
        Of that class, such as window_size=3; none beside a strategy that is made.

    Returns
    -------
    LayerStreamingContext
        To be entered by `with`.

    Raises
    ------
    InvalidSpecError
        For another name, kwargs beside a strategy that is made, and as LayerStreamingContext.
    """
    if isinstance(strategy, str):
        if strategy.lower() not in _BY_NAME:
            raise InvalidSpecError(f"strategy={strategy!r}; give 'simple', 'sliding' or 'auto'", "strategy")
        strategy = _BY_NAME[strategy.lower()](prefix_template=prefix_template, **kwargs)
    elif kwargs:
        raise InvalidSpecError(
            f"{', '.join(kwargs)}: settings of a strategy by name; this one is made already, by {strategy!r}",
            "strategy",
        )
    return LayerStreamingContext(loader, strategy, num_layers, prefix_template)
