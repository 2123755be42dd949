"""MoELayer: a router and its experts as the feed-forward half of a block, with an expert that all rows share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.dtypes import float32
from pygpukit.core.elsewhere import Elsewhere
from pygpukit.core.errors import InvalidSpecError
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.linear.joining import joined
from pygpukit.nn.linear.residual import normalised_rows
from pygpukit.nn.moe.experts import Experts
from pygpukit.nn.moe.routing import Routed, Router
from pygpukit.ops import host
from pygpukit.ops.elementwise import add, mul

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.linear.adapters import AdapterRows
    from pygpukit.nn.linear.blocks import Blocks
    from pygpukit.nn.linear.layer import LinearBF16
    from pygpukit.nn.mlp import MLP
    from pygpukit.nn.norm import Norm


_WATCHED: ContextVar[list[tuple[MoELayer, Routed]] | None] = ContextVar("watched", default=None)


@contextmanager
def watching() -> Iterator[list[tuple[MoELayer, Routed]]]:
    """A list that gets each mixture that this thread computes meanwhile, and where its rows went."""
    routes: list[tuple[MoELayer, Routed]] = []
    token = _WATCHED.set(routes)
    try:
        yield routes
    finally:
        _WATCHED.reset(token)


class MoELayer:
    """A mixture of experts.

    Parameters
    ----------
    config : TransformerConfig
        num_experts_per_tok, routing and residual_scale count here.
    gate_weight : GPUArray or Router
        The router: (experts, hidden), of float32, float16 or bfloat16.
    expert_weights : sequence of (gate, up, down), or Experts
        Of each expert, (inner, hidden), (inner, hidden) and (hidden, inner), of the router's type.
    shared : MLP, optional
        What every row passes beside its experts.

    Raises
    ------
    InvalidSpecError
        Where router and experts are not equally many, or more are chosen than there are.
    """

    def __init__(
        self,
        config: TransformerConfig,
        gate_weight: GPUArray | Router,
        expert_weights: Sequence[tuple[GPUArray, GPUArray, GPUArray]] | Experts,
        shared: MLP | None = None,
    ) -> None:
        if not isinstance(gate_weight, Router):
            gate_weight = Router(gate_weight, config.num_experts_per_tok, config.routing)
        if not isinstance(expert_weights, Experts):
            gate_up = [weight for gate, up, _ in expert_weights for weight in (gate, up)]
            down = [weight for *_, weight in expert_weights]
            both, last = (joined(weights, [None] * len(weights)) for weights in (gate_up, down))
            expert_weights = Experts(len(down), both, last, weighs_rows=gate_weight.routing.weighs_rows)
        self.config, self.router, self.experts, self.shared = config, gate_weight, expert_weights, shared
        self.num_experts, self.num_experts_per_tok = self.router.experts, self.router.chosen
        self.hidden_size, self.intermediate_size = self.experts.hidden, self.experts.inner
        if self.experts.count != self.num_experts:
            raise InvalidSpecError(
                f"the router has {self.num_experts} experts, but there are {self.experts.count}", "expert_weights"
            )

    @property
    def gate(self) -> GPUArray:
        """The router's weight."""
        return self.router.weight

    @property
    def linears(self) -> tuple[LinearBF16, ...]:
        """The products of all experts, and of the shared one."""
        return *self.experts.linears, *(() if self.shared is None else self.shared.linears)

    def shares(self) -> Iterator[tuple[GPUArray | Blocks, float]]:
        """Each weight, and the share of it that a row reads."""
        yield from ((array, 1.0) for array in self.router.arrays)
        share = self.num_experts_per_tok / self.num_experts
        yield from ((weight, share) for linear in self.experts.linears for weight in linear.parts)
        if self.shared is not None:
            yield from self.shared.shares()

    forward_zero_alloc = Elsewhere("pygpukit.compat.decoding.experts")

    def __call__(self, x: GPUArray) -> GPUArray:
        """The experts' sums of rows x (..., hidden) of the weights' type, each row for itself; of x's shape and type.

        Examples
        --------
        >>> import numpy as np, pygpukit as gp
        >>> config = gp.llm.TransformerConfig(hidden_size=8, num_heads=1, num_experts=4, num_experts_per_tok=2)
        >>> random = np.random.default_rng(0)
        >>> weight = lambda *shape: gp.from_numpy(random.standard_normal(shape, dtype=np.float32))
        >>> experts = [(weight(16, 8), weight(16, 8), weight(8, 16)) for _ in range(4)]
        >>> gp.llm.MoELayer(config, weight(4, 8), experts)(weight(3, 8)).shape
        (3, 8)
        """
        rows = x.reshape(-1, self.hidden_size)
        total = factory.zeros(rows.shape, "float32")
        self._add(total, rows, None, 0, 1.0)
        return total.astype(x.dtype.name).reshape(*x.shape)

    def forward(
        self,
        x: GPUArray,
        start: int | None,
        norm: Norm | None,
        between: GPUArray,
        post_norm: Norm | None = None,
        adapters: tuple[AdapterRows, ...] = (),
    ) -> None:
        """x += residual_scale * experts(norm(x)), after post_norm: as MLP.forward(). No adapter is of experts."""
        scale = self.config.residual_scale
        if post_norm is None:
            self._add(x, x, norm, start, scale)
            return
        total = factory.zeros(x.shape, "float32")
        self._add(total, x, norm, start, 1.0)
        total = post_norm(total.astype(self.gate.dtype.name))
        add(x, total if scale == 1.0 else mul(total, scale), out=x)

    def _add(self, total: GPUArray, x: GPUArray, norm: Norm | None, start: int | None, scale: float) -> None:
        """total += scale * experts(norm(x))."""
        if not x.shape[0]:
            return
        rows = normalised_rows(x, norm, self.gate.dtype)
        seat = self.experts.seat
        sums = total if seat is None else factory.zeros(total.shape, "float32")
        if host.computes():
            routed = self._by_host(sums, rows, scale)
        else:
            routed = self.router.route(rows)
            self.experts.add(sums, rows, routed, self.router.arrange(routed.experts), scale, start=start)
        if seat is not None:
            seat.add_up(sums)
            add(total, sums, out=total)
        watched = _WATCHED.get()
        if watched is not None:
            watched.append((self, routed))
        if self.shared is not None:
            self.shared.add(total, rows, start, scale)

    def _by_host(self, total: GPUArray, rows: GPUArray, scale: float) -> Routed:
        import numpy as np

        shape = (rows.shape[0], self.num_experts_per_tok)
        routed = Routed(native.empty(shape, "int32"), native.empty(shape, float32))

        def compute() -> None:
            values = host.values(rows)
            experts, weights = self.router.on_host(values)
            host.memory(routed.experts)[:], host.memory(routed.weights)[:] = experts, weights
            products = self.experts.on_host(values, experts, weights)
            host.store(total, host.values(total) + np.float32(scale) * products)

        memory = [array for linear in self.experts.linears for array in linear.memory]
        native.host_launch("experts", compute, [total, rows, *routed, *self.router.arrays, *memory])
        return routed
