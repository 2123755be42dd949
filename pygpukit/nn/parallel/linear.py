"""RowParallel: a product whose inputs are divided among devices, which add up what each makes of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.dtypes import float32
from pygpukit.nn.linear.layer import Epilogue, LinearBF16
from pygpukit.ops import copying
from pygpukit.ops.elementwise import add

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.norm import Norm
    from pygpukit.nn.parallel.seat import Seat


class RowParallel(LinearBF16):
    """y = sum over devices of x W^T, + b of the first. own: this device's columns of the weight, (out, in / devices).

    Sums are float32, and added in the order of the devices.
    """

    def __init__(self, own: LinearBF16, seat: Seat) -> None:
        super().__init__(own.weight, own.bias)
        self._own, self._seat = own, seat

    def __call__(self, x: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
        """x: (..., in / devices) gives (..., out)."""
        rows = x.reshape(-1, self.in_features)
        result = native.empty((rows.shape[0], self.out_features), x.dtype) if out is None else out
        self.project(rows, result.reshape(rows.shape[0], self.out_features), None)
        return result.reshape(*x.shape[:-1], self.out_features)

    def project(
        self,
        x: GPUArray,
        out: GPUArray,
        start: int | None,
        *,
        norm: Norm | None = None,
        epilogue: Epilogue = "store",
        overlaps: bool = False,
        bests: GPUArray | None = None,
    ) -> None:
        """As LinearBF16's, of the epilogues "store" and "add"."""
        assert norm is None and bests is None and epilogue in ("store", "add")
        total = native.empty((x.shape[0], self.out_features), float32)
        self._own.project(x, total, start, overlaps=overlaps)
        self._seat.add_up(total)
        if epilogue == "add":
            add(out, total, out=out)
        else:
            copying.copy_to(total, out)
