"""LoadingStrategy and the documented three: which layers a LazyModelLoader has on the device while a model computes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit.core.errors import InvalidSpecError, OutOfMemoryError
from pygpukit.core.sizes import whole

if TYPE_CHECKING:
    from pygpukit.compat.lazy_loading.loader import LazyModelLoader

TEMPLATE = "model.layers.{}."  # what tensors of a layer begin with, as LLaMA's file names them


class LoadingStrategy(ABC):
    """The rule by which a LayerStreamingContext loads and unloads before and after each layer computes. Subclasses may
    load in on_layer_start(), by the loader's get(), and unload in on_layer_end()."""

    @abstractmethod
    def on_layer_start(self, loader: LazyModelLoader, layer_idx: int, num_layers: int) -> None:
        """A layer computes next."""

    @abstractmethod
    def on_layer_end(self, loader: LazyModelLoader, layer_idx: int, num_layers: int) -> None:
        """A layer has been launched."""

    def on_start(self, loader: LazyModelLoader, num_layers: int) -> None:  # noqa: B027 - nothing, unless overridden
        """The context begins."""

    def on_end(self, loader: LazyModelLoader, num_layers: int) -> None:  # noqa: B027 - nothing, unless overridden
        """The context ends, with an error or without."""

    @staticmethod
    def layer_prefix(layer_idx: int, prefix_template: str = TEMPLATE) -> str:
        """The beginning of the names of a layer's tensors."""
        return prefix_template.format(layer_idx)


@dataclass
class SimpleStreaming(LoadingStrategy):
    """One layer at a time: loaded when it computes next, unloaded when it has been launched.

    Parameters
    ----------
    prefix_template : str
        What the tensors of a layer begin with, {} being its number.
    """

    prefix_template: str = TEMPLATE

    def on_layer_start(self, loader: LazyModelLoader, layer_idx: int, num_layers: int) -> None:
        """Begin to copy the layer. Raises OutOfMemoryError, before that, for one larger than the loader's budget, and
        InvalidSpecError where no tensor begins so."""
        _load(loader, _checked(loader, [self.layer_prefix(layer_idx, self.prefix_template)]))

    def on_layer_end(self, loader: LazyModelLoader, layer_idx: int, num_layers: int) -> None:
        """Unload the layer."""
        loader.unload_layer(self.layer_prefix(layer_idx, self.prefix_template))


@dataclass
class SlidingWindow(LoadingStrategy):
    """Neighbouring layers: the one that computes, some that come next, whose copies go on meanwhile, and as many of
    those before it as are left of the window.

    Parameters
    ----------
    window_size : int
        Layers on the device at a time, at most; 1 or more.
    prefetch_ahead : int
        Of these, layers that come next: as many at most, and one less than the window has.
    prefix_template : str
        What the tensors of a layer begin with, {} being its number.

    Raises
    ------
    InvalidSpecError
        For other numbers.
    """

    window_size: int = 4
    prefetch_ahead: int = 1
    prefix_template: str = TEMPLATE

    def __post_init__(self) -> None:
        for field, smallest in (("window_size", 1), ("prefetch_ahead", 0)):
            value, expected = getattr(self, field), f"a whole number of {smallest} or more"
            if whole(value, field, expected) < smallest:
                raise InvalidSpecError(f"{field}={value!r}; give {expected}", field)

    def on_layer_start(self, loader: LazyModelLoader, layer_idx: int, num_layers: int) -> None:
        """Unload what the window leaves, and begin to copy what it reaches. Raises OutOfMemoryError, before that, for a
        window larger than the loader's budget, and InvalidSpecError where no tensor begins so."""
        window = self._window(layer_idx, num_layers)
        prefixes = _checked(loader, [self.layer_prefix(number, self.prefix_template) for number in window])
        self._unload_others(loader, window, num_layers)
        _load(loader, prefixes[window.index(layer_idx) :])

    def on_layer_end(self, loader: LazyModelLoader, layer_idx: int, num_layers: int) -> None:
        """Unload what the next layer's window leaves."""
        self._unload_others(loader, self._window(layer_idx + 1, num_layers), num_layers)

    def _window(self, layer: int, num_layers: int) -> range:
        ahead = min(self.prefetch_ahead, self.window_size - 1)
        return range(max(layer + ahead + 1 - self.window_size, 0), min(layer + ahead + 1, num_layers))

    def _unload_others(self, loader: LazyModelLoader, window: range, num_layers: int) -> None:
        for number in range(num_layers):
            if number not in window:
                loader.unload_layer(self.layer_prefix(number, self.prefix_template))


@dataclass
class AutoLRU(LoadingStrategy):
    """As many layers as the loader's budget has room for: the least recently used tensors give way to the next layer.

    Parameters
    ----------
    prefix_template : str
        What the tensors of a layer begin with, {} being its number.
    unload_on_end : bool
        Whether everything is unloaded when the context ends.
    """

    prefix_template: str = TEMPLATE
    unload_on_end: bool = False

    def on_layer_start(self, loader: LazyModelLoader, layer_idx: int, num_layers: int) -> None:
        """Begin to copy what is missing of the layer. Raises as SimpleStreaming's."""
        _load(loader, _checked(loader, [self.layer_prefix(layer_idx, self.prefix_template)]))

    def on_layer_end(self, loader: LazyModelLoader, layer_idx: int, num_layers: int) -> None:
        """Nothing: the layer stays until others need its room."""

    def on_end(self, loader: LazyModelLoader, num_layers: int) -> None:
        """Unload everything, where that was asked for."""
        if self.unload_on_end:
            loader.unload_model()


def _checked(loader: LazyModelLoader, prefixes: list[str]) -> list[str]:
    """The same. Raises InvalidSpecError where no tensor begins so, OutOfMemoryError where the budget is too small."""
    for prefix in prefixes:
        if not loader.get_layer_tensors(prefix):
            raise InvalidSpecError(
                f"no tensor of the loader begins with {prefix!r}; give the prefix_template of its files (tensor_names)",
                "prefix_template",
            )
    size, budget = sum(map(loader.layer_size, prefixes)), loader.memory_budget
    if size > budget:
        raise OutOfMemoryError(
            f"{', '.join(prefixes)} take {size} bytes, the loader's memory_budget is {budget}; give a larger budget"
            + (", or a smaller window_size" if len(prefixes) > 1 else ""),
            requested=size,
            limit=budget,
        )
    return prefixes


def _load(loader: LazyModelLoader, prefixes: Sequence[str]) -> None:
    for prefix in prefixes:
        for name in loader.get_layer_tensors(prefix):
            loader.get(name)
