"""Matrix products with an epilogue (scale, bias, activation, an array added): in the plain kernel, or after others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import bfloat16, float16, float32
from pygpukit.ops import host
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul import few, plain
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

Product = Callable[["GPUArray", "GPUArray", "GPUArray"], None]  # out = a @ b
SOURCE = kernels.KernelSpec(__file__, "fused.cu")
_LAYOUT = SOURCE.structure("GemmLayout", Operands=4)
_ROWS = SOURCE.structure("Layout", Operands=2)
_AFTER = SOURCE.structure("After")
_BLOCK = 256
FINISHED = (float16, bfloat16, float32)  # types that finish() is compiled for
# By name: their numbers in activation.cuh.
ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4, "swiglu": 5}


@dataclass(frozen=True)
class After:
    """act(alpha sum + bias) + beta residual, of each element of a product.

    act: a key of ACTIVATIONS; "swiglu": silu of the first half of the columns times the second half. bias: as many
    numbers as the product has columns, contiguous. residual: of the result's shape. Both of the result's type.
    """

    alpha: float = 1.0
    bias: GPUArray | None = None
    act: str | None = None
    residual: GPUArray | None = None
    beta: float = 1.0

    def arrays(self) -> list[GPUArray]:
        """Those that there are."""
        return [x for x in (self.bias, self.residual) if x is not None]

    def is_nothing(self) -> bool:
        """Whether the sum itself is the result."""
        return self.alpha == 1 and self.act is None and not self.arrays()

    def packed(self, columns: int) -> bytes:
        """epilogue.cuh: After."""
        return _AFTER.pack(
            alpha=self.alpha,
            beta=self.beta,
            columns=columns,
            activation=ACTIVATIONS[self.act],
            has_bias=self.bias is not None,
            has_residual=self.residual is not None,
            unused=0,
        )

    def on_host(self, sums: Any) -> Any:
        """The result of sums in float32 or float64, by NumPy."""
        import numpy as np

        from pygpukit.ops.elementwise import host_functions as functions

        if self.alpha != 1:
            sums = sums * sums.dtype.type(self.alpha)
        if self.bias is not None:
            sums = sums + host.values(self.bias)
        if self.act == "swiglu":
            columns = sums.shape[-1] // 2
            sums = functions.silu(sums[..., :columns]) * sums[..., columns:]
        elif self.act == "relu":
            sums = np.maximum(sums, 0)
        elif self.act is not None:
            sums = getattr(functions, self.act)(sums)
        if self.residual is None:
            return sums
        return sums + sums.dtype.type(self.beta) * host.values(self.residual)


def product(plan: Product, a: GPUArray, b: GPUArray, out: GPUArray, after: After) -> None:
    """out = after(a @ b): as plain.product(), of floats. plan: what makes a @ b by its plan."""
    if host.computes() and plan is plain.product:
        native.host_launch("matmul", lambda: _on_host(a, b, out, after), [a, b, out, *after.arrays()])
        return
    residual = out if after.residual is None else after.residual
    if after.is_nothing():
        plan(a, b, out)
        return
    if plan is not plain.product:
        sums = native.empty((*out.shape[:-1], b.shape[-1]), out.dtype)
        plan(a, b, sums)
        finish(sums, out, after)
        return
    (m, n), k = out.shape[-2:], a.shape[-1]
    packed, (left, right, target, other) = plain.packed_layout(_LAYOUT, n, a, b, out, residual)
    arrays = (left, right, target if after.bias is None else after.bias, other, target)
    if after.act != "swiglu" and m <= n and few.takes(out.dtype, m, n, k):
        few.launch(a, b, arrays, packed, prod(out.shape[:-2]), after.packed(n))
        return
    one = plain.tile(out)
    spec = SOURCE.of(f"pk::gemm_after<{CTYPES[out.dtype.name]}{plain.sizes(one)}>")
    kernels.launch(spec, plain.grid(out, one), plain.THREADS, *arrays, packed, after.packed(n))


def finish(sums: GPUArray, out: GPUArray, after: After) -> None:
    """out = after(sums): of a kernel's product, dense and rounded to the type."""
    residual = out if after.residual is None else after.residual
    steps = [tuple(step // x.itemsize for step in x.strides) for x in (out, residual)]
    extents, strides = layout.collapse(out.shape, steps)
    (target, first), (other, second) = span(out), span(residual)
    packed = _ROWS.pack(size=out.size, ndim=len(extents), shape=extents, start=(first, second), stride=strides)
    spec = SOURCE.of(f"pk::finish<{CTYPES[out.dtype.name]}>")
    arrays = (sums, target if after.bias is None else after.bias, other, target)
    kernels.launch(spec, (-(-out.size // _BLOCK), 1, 1), (_BLOCK, 1, 1), *arrays, packed, after.packed(out.shape[-1]))


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that product() can ask for."""
    for dtype in promotion.FLOATS:
        ctype = CTYPES[dtype.name]
        yield tuple(f"pk::gemm_after<{ctype}{plain.sizes(one)}>" for one in plain.tiles(dtype))
    yield tuple(f"pk::finish<{CTYPES[dtype.name]}>" for dtype in FINISHED)


def _on_host(a: GPUArray, b: GPUArray, out: GPUArray, after: After) -> None:
    import numpy as np

    with np.errstate(all="ignore"):
        host.store(out, after.on_host(plain.on_host(a, b)))
