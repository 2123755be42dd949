"""Experts: the weights of all of a mixture's feed-forward layers, and what they make of the rows that are theirs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import uint8
from pygpukit.core.errors import ShapeError
from pygpukit.nn.batch import product
from pygpukit.nn.linear import tensor
from pygpukit.nn.linear.blocks import Blocks, values_of
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.moe import few_rows, in_blocks
from pygpukit.nn.moe.routing import Arranged, Routed
from pygpukit.ops import host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.grouped import grouped_rows

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType
    from pygpukit.nn.parallel.seat import Seat

# Sums and activations stand in a row's bits.
SOURCE = kernels.KernelSpec(__file__, "experts.cu", options=kernels.SAME_BITS)
_CALL = SOURCE.structure("ExpertsCall")
_THREADS, _LOAD = 256, 16  # linear.cuh: kThreads; rows.cuh: bytes of a load


@dataclass(frozen=True)
class Gate:
    """The product of gate and up: silu(gate) * up, or of a limit min(gate, limit) * sigmoid(alpha * gate) *
    (clamp(up, -limit, limit) + 1). interleaved: they are every other row of a weight, else its halves."""

    limit: float = 0.0
    alpha: float = 1.0
    interleaved: bool = False


class Between(NamedTuple):
    """Arrays that a pass over the choices of rows, C in all and by experts, writes before its sums.

    gathered: (C, hidden), what experts get; products: (C, 2 * inner), gate and up; activated: (C, inner); outputs:
    (C, hidden), which may be gathered.
    """

    gathered: GPUArray
    products: GPUArray
    activated: GPUArray
    outputs: GPUArray


class Experts:
    """gate_up: (experts * 2 * inner, hidden), each expert's gate and up below each other, the experts as well; down:
    (experts * hidden, inner). Biases are those of these rows. weighs_rows: Routing's. seat: of
    several devices, which have a part of every expert's inner numbers each and add up what comes of them."""

    def __init__(
        self,
        count: int,
        gate_up: LinearBF16,
        down: LinearBF16,
        gate: Gate | None = None,
        weighs_rows: bool = False,
        seat: Seat | None = None,
    ) -> None:
        self.seat = seat
        self.count, self.gate_up, self.down, self.gate = count, gate_up, down, gate or Gate()
        self.weighs_rows = weighs_rows
        self.hidden, self.inner = gate_up.in_features, down.in_features
        if (gate_up.out_features, down.out_features) != (count * 2 * self.inner, count * self.hidden):
            raise ShapeError(
                f"experts: gate and up have shape {gate_up.weight.shape}, down {down.weight.shape}; of {count} experts "
                f"they must be ({count} * 2 * inner, hidden) and ({count} * hidden, inner)"
            )

    @property
    def linears(self) -> tuple[LinearBF16, LinearBF16]:
        """Both products."""
        return self.gate_up, self.down

    def add(
        self,
        x: GPUArray,
        rows: GPUArray,
        routed: Routed,
        arranged: Arranged,
        scale: float,
        between: Between | None = None,
        start: int | None = 0,
    ) -> None:
        """x += scale * the weighted sum of what a row's experts make of it, on a device: x float32 (R, hidden), rows
        (R, hidden) of the weights' type. start: Batch.start."""
        chosen, dtype, place = routed.experts.shape[1], rows.dtype, arranged.sources
        own, products, activated, outputs = between or self._between(place.size, dtype)
        self._launch("gather_rows", own, chosen, rows, place, routed.weights, own)
        self._multiply(own, self.gate_up, arranged.counts, products, start)
        bias = self.gate_up.bias
        added = products if bias is None else bias
        self._launch(
            "activate_experts", activated, chosen, products, routed.experts, place, added, activated, bias=bias
        )
        self._multiply(activated, self.down, arranged.counts, outputs, start)
        bias = self.down.bias
        operands = outputs, routed.experts, arranged.places, routed.weights, outputs if bias is None else bias, x
        self._launch("combine", x, chosen, *operands, bias=bias, scale=scale, dtype=dtype.name)

    def _multiply(self, x: GPUArray, linear: LinearBF16, counts: GPUArray, out: GPUArray, start: int | None) -> None:
        """out = rows by experts times the weights of these: of a step by the bytes of the weights."""
        if isinstance(linear.weight, Blocks) and in_blocks.takes(linear.weight):
            in_blocks.product(x, linear.weight, counts, out)
            return
        weight = values_of(linear.weight)
        if start is None and weight.dtype in tensor.TYPES:
            few_rows.product(x, weight, counts, out)
        else:
            grouped_rows(x, _stacked(weight, self.count), counts, out)

    def _between(self, count: int, dtype: DataType) -> Between:
        gathered = native.empty((count, self.hidden), dtype)
        products, activated = (native.empty((count, width), dtype) for width in (2 * self.inner, self.inner))
        return Between(gathered, products, activated, gathered)

    def _launch(
        self, name: str, out: GPUArray, chosen: int, *arrays: GPUArray, bias: GPUArray | None = None,
        scale: float = 1.0, dtype: str | None = None,
    ) -> None:  # fmt: skip
        gate, (rows, width) = self.gate, out.shape
        call = _CALL.pack(
            n=width,
            chosen=chosen,
            has_bias=bias is not None,
            interleaved=gate.interleaved,
            weighs_rows=self.weighs_rows,
            limit=gate.limit,
            alpha=gate.alpha,
            scale=scale,
        )
        spec = SOURCE.of(f"pk::{name}<{CTYPES[dtype or out.dtype.name]}>", overlapping=True)
        each = _LOAD // arrays[0].itemsize
        kernels.launch(spec, (-(-width // (_THREADS * each)), rows, 1), (_THREADS, 1, 1), *arrays, call)

    def on_host(self, rows: Any, experts: Any, weights: Any, between: list[tuple[Any, ...]] | None = None) -> Any:
        """The weighted sums of float32 rows with NumPy, inside a host launch. between: gets Between's arrays, of each
        expert that has rows."""
        import numpy as np

        products = np.empty((*experts.shape, self.hidden), np.float32)
        for expert in sorted(set(experts.reshape(-1).tolist())):
            row, place = np.nonzero(experts == expert)
            own = rows[row]
            if self.weighs_rows:
                own = host.converted(own * weights[row, place, None], self.gate_up.weight.dtype)
            gate_up = _product(own, self.gate_up, self.count, expert)
            with np.errstate(all="ignore"):
                activated = host.converted(self._gated(gate_up), self.gate_up.weight.dtype)
            products[row, place] = outputs = _product(activated, self.down, self.count, expert)
            if between is not None:
                between.append((own, gate_up, activated, outputs))
        total = np.zeros(rows.shape, np.float32)
        for slot in range(experts.shape[1]):
            total += products[:, slot] * (np.float32(1) if self.weighs_rows else weights[:, slot : slot + 1])
        return total

    def _gated(self, gate_up: Any) -> Any:
        import numpy as np

        gate, up = (gate_up[:, ::2], gate_up[:, 1::2]) if self.gate.interleaved else np.split(gate_up, 2, axis=1)
        gate = np.ascontiguousarray(gate)
        limit, alpha = np.float32(self.gate.limit), np.float32(self.gate.alpha)
        if not limit:
            return gate / (np.float32(1) + np.exp(-gate)) * up
        gate = np.minimum(gate, limit)
        return gate / (np.float32(1) + np.exp(-alpha * gate)) * (np.clip(up, -limit, limit) + np.float32(1))


def _stacked(weight: GPUArray, count: int) -> GPUArray:
    """A weight of all experts as (experts, in, out)."""
    rows, columns, size = weight.shape[0] // count, weight.shape[1], weight.itemsize
    return native.view(weight, (count, columns, rows), (rows * columns * size, size, columns * size), weight.offset)


def _product(x: Any, linear: LinearBF16, count: int, expert: int) -> Any:
    """x W^T + bias of one expert, inside a host launch."""
    import numpy as np

    rows, x = linear.out_features // count, np.ascontiguousarray(x, np.float32)
    own = slice(expert * rows, (expert + 1) * rows)
    if isinstance(linear.weight, Blocks):
        result = np.concatenate(
            [
                product(x, part.array, part.kind if part.array.dtype == uint8 else "")
                for part in linear.weight[own].parts
            ],
            axis=1,
        )
    else:
        result = product(x, linear.weight[own])
    if linear.bias is not None:
        result += host.values(linear.bias)[own]
    return result


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that experts can ask for."""
    for name in ("float32", "float16", "bfloat16"):
        yield tuple(f"pk::{kernel}<{CTYPES[name]}>" for kernel in ("gather_rows", "activate_experts", "combine"))
