"""MLP: the feed-forward half of a block, GELU, SwiGLU or GeGLU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.errors import InvalidSpecError
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.linear.joining import joined, part
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.linear.residual import add_product, project_residual
from pygpukit.nn.norm import Norm
from pygpukit.ops.elementwise import mul
from pygpukit.ops.elementwise.activation import gelu

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.linear.adapters import AdapterRows
    from pygpukit.nn.linear.blocks import Blocks


class MLP:
    """fc2(gelu(fc1(x))), or down(silu(gate(x)) * up(x)) where gate_proj is given, with gelu in the place of silu where
    the configuration's activation is "geglu". Weights: (out, in).

    Gate and up are one product: gate_up_proj holds the rows of both; up_proj may be None when gate_proj is that.
    """

    def __init__(
        self,
        config: TransformerConfig,
        fc1_weight: LinearBF16 | GPUArray | Blocks | None = None,
        fc1_bias: GPUArray | None = None,
        fc2_weight: LinearBF16 | GPUArray | Blocks | None = None,
        fc2_bias: GPUArray | None = None,
        gate_proj: LinearBF16 | GPUArray | None = None,
        up_proj: LinearBF16 | GPUArray | None = None,
        down_proj: LinearBF16 | GPUArray | None = None,
    ) -> None:
        self.config, self.activation, self.intermediate_size = config, config.activation, config.ffn_size
        self.gate_up_proj: LinearBF16 | None = None
        if gate_proj is not None and down_proj is not None:
            self._up = self.gate_up_proj = joined([gate_proj, up_proj], [None, None])
            self._down = joined([down_proj], [None])
        elif fc1_weight is not None and fc2_weight is not None:
            self._up, self._down = joined([fc1_weight], [fc1_bias]), joined([fc2_weight], [fc2_bias])
        else:
            raise InvalidSpecError("MLP needs fc1 and fc2, or gate, up and down", "fc1_weight")

    @property
    def linears(self) -> tuple[LinearBF16, LinearBF16]:
        """Both products."""
        return self._up, self._down

    @property
    def fc1(self) -> LinearBF16 | None:
        """The first product of one that is not gated."""
        return self._up if self.gate_up_proj is None else None

    @property
    def fc2(self) -> LinearBF16 | None:
        """The last product of one that is not gated."""
        return self._down if self.gate_up_proj is None else None

    @property
    def gate_proj(self) -> LinearBF16 | None:
        """The rows of gate_up_proj that give gates."""
        both = self.gate_up_proj
        return None if both is None else part(both, 0, both.out_features // 2)

    @property
    def up_proj(self) -> LinearBF16 | None:
        """The rows of gate_up_proj that are gated."""
        both = self.gate_up_proj
        return None if both is None else part(both, both.out_features // 2, both.out_features)

    @property
    def down_proj(self) -> LinearBF16 | None:
        """The last product of a gated one."""
        return None if self.gate_up_proj is None else self._down

    def __call__(self, x: GPUArray) -> GPUArray:
        """The result for rows x (R, hidden) of the weights' type, each for itself; of their shape and type."""
        out = native.empty((x.shape[0], self._down.out_features), x.dtype)
        between = native.empty((x.shape[0], self._down.in_features), x.dtype)
        self._between(x, None, None, between)
        self._down.project(between, out, None)
        return out

    def shares(self) -> Iterator[tuple[GPUArray | Blocks, float]]:
        """Each weight, and the share of it that a row reads."""
        yield from ((weight, 1.0) for linear in self.linears for weight in linear.parts)

    def forward(
        self,
        x: GPUArray,
        start: int | None,
        norm: Norm | None,
        between: GPUArray,
        post_norm: Norm | None = None,
        adapters: tuple[AdapterRows, ...] = (),
    ) -> None:
        """x += residual_scale * mlp(norm(x)), after post_norm: x float32 (R, hidden); between: (R, intermediate) of the
        weights' type, written. start, adapters: Batch's."""
        self._between(x, start, norm, between, adapters)
        add_product(x, self._down, between, start, post_norm, self.config.residual_scale, adapters)

    def add(self, total: GPUArray, x: GPUArray, start: int | None, scale: float) -> None:
        """total += scale * mlp(x): x (R, hidden) of the weights' type, total float32."""
        between = native.empty((x.shape[0], self._down.in_features), x.dtype)
        self._between(x, start, None, between)
        add_product(total, self._down, between, start, None, scale)

    def _between(
        self,
        x: GPUArray,
        start: int | None,
        norm: Norm | None,
        between: GPUArray,
        adapters: tuple[AdapterRows, ...] = (),
    ) -> None:
        if self.activation == "geglu":
            gate_up = native.empty((x.shape[0], self._up.out_features), between.dtype)
            project_residual(x, self._up, gate_up, start, norm, adapters=adapters)
            gate, up = (gate_up[:, part : part + between.shape[1]] for part in (0, between.shape[1]))
            mul(gelu(gate, approximate="tanh"), up, out=between)
        else:
            project_residual(x, self._up, between, start, norm, self.activation, adapters)


LlamaMLP = MLP
