"""LayerWeights: what an architecture's file builds a layer of, from a checkpoint's tensors by their roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.core.dtypes import float32
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.mamba.mixer import Mamba2
from pygpukit.nn.moe.experts import Experts, Gate
from pygpukit.nn.moe.routing import Router
from pygpukit.nn.norm import Norm
from pygpukit.nn.parallel.linear import RowParallel
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.llm.models.architecture import Architecture
    from pygpukit.nn.config import TransformerConfig
    from pygpukit.nn.loading import TensorLoader
    from pygpukit.nn.mamba.state_space import StateSpace
    from pygpukit.nn.parallel.seat import Seat

_LAST = ("o_proj", "down_proj", "fc2", "shared_down_proj")  # products whose inputs several devices divide


class LayerWeights:
    """The weights of one layer by their role, as layers on the device.

    seat: of several devices that have a part of the layer each; config is of a part then.
    """

    def __init__(
        self,
        loader: TensorLoader,
        architecture: Architecture,
        config: TransformerConfig,
        number: int,
        seat: Seat | None = None,
    ) -> None:
        self.config, self.number, self._seat = config, number, seat
        self._loader, self._architecture, self._weights = loader, architecture, architecture.weights
        q, kv = config.num_heads * config.head_dim, config.kv_heads * config.head_dim
        width, inner = config.hidden_size, config.ffn_size
        # (out, in) of every product
        self._shapes = {
            "q_proj": (q, width),
            "k_proj": (kv, width),
            "v_proj": (kv, width),
            "qkv_proj": (q + 2 * kv, width),
            "o_proj": (width, q),
            "gate_proj": (inner, width),
            "up_proj": (inner, width),
            "gate_up_proj": (2 * inner, width),
            "down_proj": (width, inner),
            "fc1": (inner, width),
            "fc2": (width, inner),
            "expert_gate_proj": (config.expert_size, width),
            "expert_up_proj": (config.expert_size, width),
            "expert_down_proj": (width, config.expert_size),
            "shared_gate_proj": (config.expert_size, width),
            "shared_up_proj": (config.expert_size, width),
            "shared_down_proj": (width, config.expert_size),
        }

    def linear(self, label: str, *roles: str) -> LinearBF16:
        """One product of these weights, one below the other, with their biases. label: what its memory is called."""
        parts = [
            (self._name(role), self._name(f"{role.removesuffix('_proj')}_bias"), self._shapes[role][0])
            for role in roles
        ]
        linear = self._loader.linear(f"layers.{self.number:02d}/{label}", self._shapes[roles[0]][1], parts)
        return RowParallel(linear, self._seat) if self._seat is not None and roles[0] in _LAST else linear

    def router(self) -> Router:
        """The router of a mixture, with its bias where the file has one."""
        config, label = self.config, f"layers.{self.number:02d}/router"
        count = config.num_experts or 0
        bias = self._name("moe_gate_bias")
        return Router(
            self._loader.table(str(self._name("moe_gate")), label, (count, config.hidden_size)),
            config.num_experts_per_tok,
            config.routing,
            None if bias is None else self._loader.table(bias, f"{label}.bias", (count,)),
        )

    def experts(self, gate: Gate | None = None) -> Experts:
        """All experts of a mixture, each with tensors of its own."""
        gate_up = self._of_experts("experts_gate_up", "expert_gate_proj", "expert_up_proj")
        down = self._of_experts("experts_down", "expert_down_proj")
        weighs_rows = self.config.routing.weighs_rows
        return Experts(self.config.num_experts or 0, gate_up, down, gate, weighs_rows, self._seat)

    def _of_experts(self, label: str, *roles: str) -> LinearBF16:
        """One product of these weights of each expert, the experts below each other."""
        biases = {role: self._weights.get(f"{role.removesuffix('_proj')}_bias") for role in roles}
        parts: list[tuple[str | None, str | None, int]] = [
            (
                self._weights[role].format(self.number, expert),
                None if biases[role] is None else str(biases[role]).format(self.number, expert),
                self._shapes[role][0],
            )
            for expert in range(self.config.num_experts or 0)
            for role in roles
        ]
        columns = self._shapes[roles[0]][1]
        return self._loader.linear(f"layers.{self.number:02d}/{label}", columns, parts, as_one=not host.computes())

    def has(self, role: str) -> bool:
        """True if the file has a tensor of that role."""
        return self._loader.has(self._name(role))

    def stacked_experts(self, gate: Gate, transposed: bool) -> Experts:
        """All experts of a mixture whose file has them in one tensor each. transposed: inputs are rows there."""
        config, layer = self.config, f"layers.{self.number:02d}"
        count = config.num_experts or 0
        gate_up, down = (
            self._loader.stacked(
                f"{layer}/{role}", str(self._name(role)), self._name(f"{role}_bias"), (count, *shape), transposed
            )
            for role, shape in (
                ("experts_gate_up", (2 * config.expert_size, config.hidden_size)),
                ("experts_down", (config.hidden_size, config.expert_size)),
            )
        )
        return Experts(count, gate_up, down, gate, config.routing.weighs_rows, self._seat)

    def sinks(self) -> GPUArray:
        """A score of each head of queries that takes its part of the weights, float32."""
        label = f"layers.{self.number:02d}/sinks"
        return self._loader.table(str(self._name("sinks")), label, (self.config.num_heads,), dtype=float32)

    def norm(self, role: str) -> Norm:
        """A norm of rows."""
        return self._norm(role, self.config.hidden_size)

    def head_norm(self, role: str) -> Norm:
        """A norm of each head."""
        return self._norm(role, self.config.head_dim)

    def plain_head_norm(self, label: str) -> Norm:
        """A norm of each head without weights in the file."""
        return self._loader.plain_norm(f"layers.{self.number:02d}/{label}", self.config.head_dim, self.config.norm_eps)

    def norm_of_heads(self, role: str, product: str) -> Norm:
        """A norm of all heads together that a product gives."""
        return self._norm(role, self._shapes[product][0])

    def mixer(self, space: StateSpace) -> Mamba2:
        """A Mamba-2 layer."""
        config, label = self.config, f"layers.{self.number:02d}"
        inner = config.num_heads * config.head_dim
        channels = space.channels(inner)

        def table(role: str, *shape: int, dtype: DataType | None = None) -> GPUArray:
            return self._loader.table(str(self._name(role)), f"{label}/{role}", shape, dtype=dtype)

        in_proj, out_proj = (
            self._loader.linear(f"{label}/{role}", columns, [(self._name(role), self._name(f"{role}_bias"), rows)])
            for role, rows, columns in (
                ("in_proj", inner + channels + config.num_heads, config.hidden_size),
                ("out_proj", config.hidden_size, inner),
            )
        )
        return Mamba2(
            config,
            space,
            in_proj,
            table("conv", channels, 1, space.conv).reshape(channels, space.conv),
            table("conv_bias", channels) if self._loader.has(self._name("conv_bias")) else None,
            table("step_bias", config.num_heads),
            table("rate_logs", config.num_heads, dtype=float32),
            table("skip", config.num_heads),
            self._norm("mixer_norm", inner),
            out_proj,
        )

    def _norm(self, role: str, size: int) -> Norm:
        label, config, offset = f"layers.{self.number:02d}/{role}", self.config, self._architecture.norm_offset
        names = str(self._name(role)), self._name(f"{role}_bias")
        return self._loader.norm_of(*names, label, size, config.norm_type, config.norm_eps, offset)

    def _name(self, role: str) -> str | None:
        template = self._weights.get(role)
        return None if template is None else template.format(self.number)
