"""A method of MoELayer that writes into arrays of the caller only."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.dtypes import DataType, float32, float64, int32
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError
from pygpukit.nn.moe.experts import Between, Gate
from pygpukit.nn.moe.routing import Arranged, Routed
from pygpukit.ops import copying, host
from pygpukit.ops.elementwise import add
from pygpukit.ops.indexing import take
from pygpukit.ops.indexing.triangles import triu
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.operands import check_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.moe.layer import MoELayer


class _Step:
    """The arrays of a call as the layer takes them, and what it needs besides."""

    def __init__(self, layer: MoELayer, rows: int, arrays: dict[str, GPUArray]) -> None:
        self.rows, self.arrays = rows, arrays
        dtype, chosen, count = layer.gate.dtype, layer.num_experts_per_tok, layer.num_experts
        hidden, inner, choices = layer.hidden_size, layer.intermediate_size, rows * layer.num_experts_per_tok

        def own(name: str, *shape: int, types: tuple[DataType, ...] = (dtype,)) -> GPUArray:
            return _of_shape(name, arrays[name], shape, types)

        self.logits = own("router_logits", rows, count)
        self.weights = own("router_weights", rows, chosen, types=(dtype, float32))
        self.routed = Routed(own("expert_indices", rows, chosen, types=(int32,)), native.empty((rows, chosen), float32))
        shapes = {"expert_counts": count, "permute_indices": choices, "reverse_perm": choices}
        self.arranged = Arranged(*(own(name, size, types=(int32,)) for name, size in shapes.items()))
        self.offsets = own("expert_offsets", count + 1, types=(int32,))
        self.row_experts = own("row_expert_ids", choices, types=(int32,))
        self.gate_out, self.up_out = own("gate_out", choices, inner), own("up_out", choices, inner)
        self.between = Between(
            own("gathered", choices, hidden),
            native.empty((choices, 2 * inner), dtype),
            own("intermediate", choices, inner),
            own("expert_outputs", choices, hidden),
        )
        # Counts and their sums up to each expert, exact in float64 by a product: a scan allocates.
        self.counts, self.sums = (native.empty((1, size), float64) for size in (count, count + 1))
        self.before = triu(factory.ones((count, count + 1), float64), 1)
        self.total = native.empty((rows, hidden), float32)
        self.scores = native.empty((rows, count), float32)
        self.output = own("output", rows, hidden)

    @property
    def written(self) -> list[GPUArray]:
        """The arrays that experts write."""
        return [*self.routed, *self.arranged, *self.between, self.total]


_STEPS: WeakKeyDictionary[MoELayer, _Step] = WeakKeyDictionary()


def forward_zero_alloc(
    self: MoELayer,
    x: GPUArray,
    router_logits: GPUArray,
    router_weights: GPUArray,
    expert_indices: GPUArray,
    expert_counts: GPUArray,
    expert_offsets: GPUArray,
    permute_indices: GPUArray,
    reverse_perm: GPUArray,
    row_expert_ids: GPUArray,
    gathered: GPUArray,
    gate_out: GPUArray,
    up_out: GPUArray,
    intermediate: GPUArray,
    expert_outputs: GPUArray,
    output: GPUArray,
) -> GPUArray:
    """The layer's result for rows, as __call__ gives it, and all that it is made of, in arrays of the caller; for a
    graph: after the first call with the same arrays nothing is allocated. DecodeBuffers have them for one row.

    A choice is an expert of a row: C = rows * num_experts_per_tok, E experts. All arrays are contiguous, of the
    weights' type or int32, and may have any shape with as many elements.

    Parameters
    ----------
    x : GPUArray
        (rows, hidden), of the weights' type.
    router_logits, router_weights, expert_indices : GPUArray
        (rows, E); (rows, num_experts_per_tok), which may be float32, and int32: the choices of each row, best first.
    expert_counts, expert_offsets : GPUArray
        int32 (E,), choices of each expert; (E + 1,), those of the experts before it.
    permute_indices, reverse_perm, row_expert_ids : GPUArray
        int32 (C,): in the order of experts, which choice stands there; the place of each choice; the expert there.
    gathered, gate_out, up_out, intermediate, expert_outputs : GPUArray
        In the order of experts: (C, hidden), the rows; (C, inner), their products, and silu(gate) * up; (C, hidden).
    output : GPUArray
        (rows, hidden).

    Returns
    -------
    GPUArray
        output.

    Raises
    ------
    InvalidSpecError
        Of a mixture with biases, an expert that all rows share, or another gate than SwiGLU: call the layer.
    ShapeError, DTypeError
        For arrays of other sizes or types.
    """
    _check_layer(self)
    hidden = self.hidden_size
    if check_array(x, "forward_zero_alloc: x").shape[-1:] != (hidden,):
        raise ShapeError(f"forward_zero_alloc: x has shape {x.shape}, must be (rows, {hidden}) for the layer")
    rows = _of_shape("x", x, (x.size // hidden, hidden), (self.gate.dtype,))
    arrays = {
        "router_logits": router_logits, "router_weights": router_weights, "expert_indices": expert_indices,
        "expert_counts": expert_counts, "permute_indices": permute_indices, "reverse_perm": reverse_perm,
        "expert_offsets": expert_offsets, "row_expert_ids": row_expert_ids, "gathered": gathered,
        "gate_out": gate_out, "up_out": up_out, "intermediate": intermediate, "expert_outputs": expert_outputs,
        "output": output,
    }  # fmt: skip
    step = _STEPS.get(self)
    if step is None or step.rows != rows.shape[0] or any(step.arrays[name] is not arrays[name] for name in arrays):
        step = _STEPS[self] = _Step(self, rows.shape[0], arrays)
    if not rows.size:
        return output
    matmul(rows, self.gate.T, out=step.logits)
    if self.router.bias is not None:
        add(step.logits, self.router.bias, out=step.logits)
    if host.computes():
        linears = [array for linear in self.experts.linears for array in linear.memory]
        operands = [rows, *step.written, *self.router.arrays, *linears]
        native.host_launch("experts", lambda: _on_host(self, rows, step), operands)
    else:
        self.router.route(rows, step.routed, step.scores)
        self.router.arrange(step.routed.experts, step.arranged)
        native.fill(step.total, bytes(4))
        self.experts.add(step.total, rows, step.routed, step.arranged, 1.0, step.between)
    copying.copy_to(step.arranged.counts, step.counts[0])
    matmul(step.counts, step.before, out=step.sums)
    take(step.routed.experts.reshape(-1), step.arranged.sources, out=step.row_experts)
    inner = self.intermediate_size
    for source, target in (
        (step.sums[0], step.offsets),
        (step.routed.weights, step.weights),
        (step.between.products[:, :inner], step.gate_out),
        (step.between.products[:, inner:], step.up_out),
        (step.total, step.output),
    ):
        copying.copy_to(source, target)
    return output


def _check_layer(layer: MoELayer) -> None:
    experts = layer.experts
    has = {
        "biases": any(linear.bias is not None for linear in experts.linears),
        "an expert that all rows share": layer.shared is not None,
        "another gate than SwiGLU": experts.gate != Gate(),
    }
    for what in (what for what, is_so in has.items() if is_so):
        raise InvalidSpecError(f"forward_zero_alloc: the mixture has {what}; call the layer instead", "x")


def _of_shape(name: str, array: GPUArray, shape: tuple[int, ...], types: tuple[DataType, ...]) -> GPUArray:
    """An array of the caller as that shape. Raises where it has not so many elements, or another type."""
    what, size = f"forward_zero_alloc: {name}", 1
    for extent in shape:
        size *= extent
    if check_array(array, what).size != size or not array.is_contiguous():
        raise ShapeError(f"{what} has shape {array.shape}, must be {shape} and contiguous")
    if array.dtype not in types:
        raise DTypeError(f"{what} is {array.dtype}, must be {' or '.join(map(str, dict.fromkeys(types)))}")
    return array.reshape(shape)


def _on_host(layer: MoELayer, rows: GPUArray, step: _Step) -> None:
    import numpy as np

    values = host.values(rows)
    experts, weights = layer.router.on_host(values)
    order = np.argsort(experts.reshape(-1), kind="stable")
    counts = np.bincount(experts.reshape(-1), minlength=layer.num_experts)
    for array, numbers in zip(step.arranged, (counts, order, np.argsort(order)), strict=True):
        host.memory(array)[:] = numbers
    host.memory(step.routed.experts)[:], host.memory(step.routed.weights)[:] = experts, weights
    parts: list[tuple[np.ndarray, ...]] = []
    host.memory(step.total)[:] = layer.experts.on_host(values, experts, weights, parts)
    for array, of_experts in zip(step.between, zip(*parts, strict=True), strict=True):
        host.store(array, np.concatenate(of_experts))
