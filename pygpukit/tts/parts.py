"""Making the model's parts from weights by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pygpukit.core.dtypes import DataType, float16, float32
from pygpukit.core.errors import InvalidSpecError
from pygpukit.nn.linear.layer import Linear
from pygpukit.tts.layers.convolution import Conv1d, ConvTranspose1d
from pygpukit.tts.layers.layer_norm import LayerNorm
from pygpukit.tts.layers.lstm import LSTM
from pygpukit.tts.layers.residual import AdaINResBlock
from pygpukit.tts.layers.style import AdaIN

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class Part:
    """The weights below a module's name. Every method raises InvalidSpecError for one that is not there."""

    def __init__(self, weights: Mapping[str, GPUArray], prefix: str = "") -> None:
        self._weights, self._prefix = weights, prefix + "." if prefix else ""
        self.norms: list[AdaIN] = []  # that were made of it, and of modules in it

    def of(self, name: str) -> Part:
        """The module of that name in this one."""
        part = Part(self._weights, self._prefix + name)
        part.norms = self.norms
        return part

    def has(self, name: str) -> bool:
        """True if there is such a weight."""
        return self._prefix + name in self._weights

    def array(self, name: str) -> GPUArray:
        """One weight."""
        try:
            return self._weights[self._prefix + name]
        except KeyError:
            raise InvalidSpecError(f"the model has no weight {self._prefix + name!r}; Kokoro needs it", name) from None

    def linear(self, name: str) -> Linear:
        """A Linear; its bias may be missing."""
        return Linear(self.array(f"{name}.weight"), self._bias(name))

    def layer_norm(self, name: str, eps: float) -> LayerNorm:
        """A LayerNorm."""
        return LayerNorm(self.array(f"{name}.weight"), self.array(f"{name}.bias"), eps)

    def conv(
        self, name: str, stride: int = 1, padding: int = 0, dilation: int = 1, core: DataType | None = None
    ) -> Conv1d:
        """A Conv1d; its bias may be missing."""
        return Conv1d(self.array(f"{name}.weight"), self._bias(name), stride, padding, dilation, core)

    def lstm(self, name: str) -> LSTM:
        """A bidirectional LSTM."""
        part = self.of(name)
        forward, backward = (
            [part.array(f"{kind}_l0{direction}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
            for direction in ("", "_reverse")
        )
        return LSTM(forward[0], forward[1], forward[2], forward[3], True, *backward)

    def adain(self, name: str) -> AdaIN:
        """An AdaIN."""
        self.norms.append(AdaIN(self.array(f"{name}.fc.weight"), self.array(f"{name}.fc.bias")))
        return self.norms[-1]

    def residual(self, name: str, rounded: bool = False) -> AdaINResBlock:
        """An AdaINResBlock: with a shortcut's convolution and a pool where there are weights of them. rounded: its
        convolutions may run on tensor cores."""
        part = self.of(name)
        pool = None
        if part.has("pool.weight"):
            weight = part.array("pool.weight")
            pool = ConvTranspose1d(weight, part._bias("pool"), 2, 1, 1, weight.shape[0])
        first, other = (float16, float32) if rounded else (None, None)
        conv1, conv2 = part.conv("conv1", padding=1, core=first), part.conv("conv2", padding=1, core=other)
        shortcut = part.conv("conv1x1", core=other) if part.has("conv1x1.weight") else None
        return AdaINResBlock(conv1, conv2, part.adain("norm1"), part.adain("norm2"), shortcut, pool)

    def _bias(self, name: str) -> GPUArray | None:
        return self.array(f"{name}.bias") if self.has(f"{name}.bias") else None
