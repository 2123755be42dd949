"""RowParallel: a product whose inputs are divided among devices, which add up what each makes of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.dtypes import bfloat16, float32
from pygpukit.nn.linear.layer import Epilogue, LinearBF16
from pygpukit.ops import copying

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.norm import Norm
    from pygpukit.nn.parallel.seat import Seat


class RowParallel(LinearBF16):
    """y = sum over devices of x W^T, + b of the first. own: this device's columns of the weight, (out, in / devices).

    What a device makes is float32, or bfloat16 where the weights are and it is added to the residual stream: half the
    bytes travel then. It is added up in float32, in the order of the devices.
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
        adds = epilogue == "add"
        dtype = bfloat16 if adds and self.weight.dtype == bfloat16 else float32
        own = native.empty((x.shape[0], self.out_features), dtype)
        self._own.project(x, own, start, overlaps=overlaps)
        if adds:
            self._seat.add_onto(own, out)
        else:
            self._seat.add_up(own)
            copying.copy_to(own, out)
