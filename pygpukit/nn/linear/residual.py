"""Products that read the residual stream, and those that are added to it: their norms and factors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.nn.linear.adapters import AdapterRows, adapt
from pygpukit.nn.linear.layer import Epilogue, LinearBF16, norm_rows
from pygpukit.nn.norm import Norm
from pygpukit.ops import host
from pygpukit.ops.elementwise import add, mul

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType


def project_residual(
    x: GPUArray,
    linear: LinearBF16,
    out: GPUArray,
    start: int | None,
    norm: Norm | None,
    epilogue: Epilogue = "store",
    adapters: tuple[AdapterRows, ...] = (),
) -> None:
    """out = epilogue(linear(norm(x))), or of x itself where norm is None: x float32 (R, in).
    start, adapters: Batch's."""
    if norm is None and x.dtype != linear.weight.dtype:
        x = x.astype(linear.weight.dtype)
    linear.project(x, out, start, norm=norm, epilogue=epilogue, overlaps=start is None)
    adapt(adapters, linear, x, out, start, norm, epilogue)


def normalised_rows(x: GPUArray, norm: Norm | None, dtype: DataType) -> GPUArray:
    """The rows of x, after a norm where there is one, of that type; those of x itself where they are that."""
    if norm is None:
        return x if x.dtype == dtype else x.astype(dtype.name)
    if norm.operation is not None:
        return norm.rows(x, dtype)
    out = native.empty(x.shape, dtype)
    if host.computes():
        arrays = [x, out, *norm.arrays]
        native.host_launch("norm", lambda: host.store(out, norm.on_host(host.values(x))), arrays)
    else:
        norm_rows(x, norm, out)
    return out


def add_product(
    x: GPUArray,
    linear: LinearBF16,
    y: GPUArray,
    start: int | None,
    post_norm: Norm | None = None,
    scale: float = 1.0,
    adapters: tuple[AdapterRows, ...] = (),
    norm: Norm | None = None,
) -> None:
    """x += scale * linear(norm(y)), or scale * post_norm(linear(norm(y))): x float32 (R, out), y (R, in), float32 where
    there is a norm. start, adapters: Batch's."""
    decodes = start is None
    if post_norm is None and scale == 1.0:
        linear.project(y, x, start, norm=norm, epilogue="add", overlaps=decodes)
        adapt(adapters, linear, y, x, start, norm, epilogue="add")
        return
    out = native.empty(x.shape, x.dtype if post_norm is None else linear.weight.dtype)
    linear.project(y, out, start, norm=norm, overlaps=decodes)
    adapt(adapters, linear, y, out, start, norm)
    if post_norm is not None:
        out = post_norm(out)
    add(x, out if scale == 1.0 else mul(out, scale), out=x)
