"""Mamba2: the layer of a state-space model, a convolution and a scan between two products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.dtypes import float32
from pygpukit.core.errors import ShapeError
from pygpukit.nn.linear.residual import add_product, project_residual
from pygpukit.nn.linear.tensor import TYPES
from pygpukit.nn.mamba import device
from pygpukit.nn.mamba.host import norm_on_host, scan_on_host
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.batch import Batch
    from pygpukit.nn.config import TransformerConfig
    from pygpukit.nn.linear.blocks import Blocks
    from pygpukit.nn.linear.layer import LinearBF16
    from pygpukit.nn.mamba.cache import LayerState
    from pygpukit.nn.mamba.state_space import StateSpace
    from pygpukit.nn.norm import Norm


class Mamba2:
    """out(norm(scan(conv(x, B, C), dt) * silu(z))), where z, x, B, C and dt are in(x).

    in_proj: (2 inner + 2 groups state + heads, hidden), of z, x, B, C and dt below each other; out_proj: (hidden,
    inner). conv: (channels, conv) of x, B and C, with or without a bias. step_bias and skip (D): (heads,), of the
    weights' type; rate_logs, float32 (heads,): states fall by exp(-dt exp(that)). norm: of the inner elements, each
    group for itself.
    """

    def __init__(
        self,
        config: TransformerConfig,
        space: StateSpace,
        in_proj: LinearBF16,
        conv: GPUArray,
        conv_bias: GPUArray | None,
        step_bias: GPUArray,
        rate_logs: GPUArray,
        skip: GPUArray,
        norm: Norm,
        out_proj: LinearBF16,
    ) -> None:
        self.config, self.space, self.in_proj, self.out_proj, self.norm = config, space, in_proj, out_proj, norm
        self.conv, self.conv_bias, self.step_bias = conv, conv_bias, step_bias
        self.rate_logs, self.skip = rate_logs, skip
        self.heads, self.head_dim = config.num_heads, config.head_dim
        self.inner = self.heads * self.head_dim
        self.channels = space.channels(self.inner)
        width = self.inner + self.channels + self.heads
        if in_proj.out_features != width or conv.shape != (self.channels, space.conv):
            raise ShapeError(
                f"a Mamba-2 layer of {self.heads} heads of {self.head_dim}, {space.groups} groups and {space.state} "
                f"numbers of state has a first product of {width} rows and a convolution ({self.channels}, "
                f"{space.conv}); these have {in_proj.out_features} and {conv.shape}"
            )

    @property
    def linears(self) -> tuple[LinearBF16, LinearBF16]:
        """Both products."""
        return self.in_proj, self.out_proj

    @property
    def arrays(self) -> list[GPUArray]:
        """Everything but the products' weights and the norm's."""
        both = [self.conv] if self.conv_bias is None else [self.conv, self.conv_bias]
        return [*both, self.step_bias, self.rate_logs, self.skip]

    def shares(self) -> Iterator[tuple[GPUArray | Blocks, float]]:
        """Each weight, and the share of it that a row reads."""
        yield from ((array, 1.0) for array in (*self.arrays, *self.norm.arrays))
        yield from ((weight, 1.0) for linear in self.linears for weight in linear.parts)

    def forward(self, x: GPUArray, batch: Batch, norm: Norm, cache: LayerState) -> None:
        """x += mamba(norm(x)): x float32 (R, hidden). The cache has what came before of each sequence."""
        on_host = host.computes()
        scan, norm_groups = (scan_on_host, norm_on_host) if on_host else (device.scan, device.norm_groups)
        projected = native.empty((batch.count, self.in_proj.out_features), self.skip.dtype)
        project_residual(x, self.in_proj, projected, batch.start, norm)
        scanned = native.empty((batch.count, self.inner), float32)
        scan(self, batch, cache, projected, scanned)
        if self.space.groups == 1 and self.skip.dtype in TYPES and not on_host:
            # A norm of whole rows, which the product begins with.
            add_product(x, self.out_proj, scanned, batch.start, None, self.config.residual_scale, norm=self.norm)
            return
        rows = native.empty(scanned.shape, self.skip.dtype)
        norm_groups(self, scanned, rows)
        add_product(x, self.out_proj, rows, batch.start, None, self.config.residual_scale)
