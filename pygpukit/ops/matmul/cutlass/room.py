"""Parts that products by CUTLASS share: where its kernels are to be had, their parameters, and where they write."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.core.choices import by_device
from pygpukit.jit.compile import nvrtc
from pygpukit.jit.cutlass import place
from pygpukit.kernels import KernelSpec, builder
from pygpukit.kernels.structure import in_header
from pygpukit.ops import copying, plans, raw
from pygpukit.ops.matmul import precision, times
from pygpukit.ops.matmul.cutlass import raster
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, aligned_length
from pygpukit.ops.matmul.sm90 import common, tensor_maps
from pygpukit.ops.matmul.tile.tiling import Tile
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

BACKEND = "cutlass"
UNMEASURED = "they were not measured to be faster on this device"
_CALL = in_header("cutlass_kernel.cuh", "CutlassCall")
_DIVISION = in_header("cutlass_kernel.cuh", "Division")
_INCOMPLETE = (13, 3)  # the NVRTC whose own mma.h includes a header that it does not bring
_PIECE_ROWS = 64  # cutlass_write.cuh: kPieceRows


@dataclass(frozen=True)
class Shape:
    """The tile of a block. str() as plans show it."""

    rows: int
    columns: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}"


def lacking() -> str:
    """The headers that these kernels are compiled with and that are not here, "" for none."""
    return place.missing() or nvrtc.lacks_libcudacxx() or _incomplete()


def _incomplete() -> str:
    if nvrtc.missing() or nvrtc.open_nvrtc()[1] != _INCOMPLETE:
        return ""
    version = "{}.{}".format(*_INCOMPLETE)
    return f"the headers inside NVRTC {version} lack crt/mma.h, which CUTLASS reads; another version has it"


def source(module: str, file: str) -> KernelSpec:
    """The spec of a source that includes CUTLASS."""
    return KernelSpec(
        module,
        file,
        shared_bytes=common.SHARED_BYTES,
        cluster=(common.CLUSTER, 1, 1),
        ahead=("sm_90a",),
        instead=True,
        wants=lacking,
    )


@by_device
def missing(kernel: KernelSpec, extents: tuple[int, int, int, int]) -> str:
    """Why CUTLASS cannot make a product on the current device, "" where it can, as far as is known. extents: products,
    m, n, k."""
    if is_sim():
        return "the simulated device does not run CUTLASS's kernels for SM 9.0"
    if precision.switched_on("PYGPUKIT_NO_CUTLASS"):
        return "PYGPUKIT_NO_CUTLASS=1 forbids it"
    capability = device.current().capability
    if capability != common.SM:
        return f"its kernels are those of SM 9.0; this device is SM {capability / 10:.1f}"
    if max(extents) >= 2**31 - 512 or prod(extents[:3]) >= 2**43:
        return f"extents of {extents} are more than these kernels count"
    if (why := lacking()) and not builder.is_bundled(kernel):
        return why
    return builder.missing(kernel) or tensor_maps.refusal()


@plans.follows
def measured(family: str) -> tuple[Tile, ...]:
    """The tiles of a family that the device's table has times of, of a cluster's blocks together."""
    return tuple(Tile(**fields) for fields in times.table().get("cutlass", {}).get(family, []))


def clusters() -> int:
    """Clusters that the current device runs at a time."""
    return max(device.current().sm_count // common.CLUSTER, 1)


def call(extents: tuple[int, int, int, int], shape: Shape) -> tuple[bytes, int]:
    """A launch's first parameter, and its blocks. extents: products, m, n, k."""
    products, m, n, k = extents
    tiles = raster.of(m, n, products, shape.rows, shape.columns, common.CLUSTER)
    packed = _CALL.pack(
        batch=_DIVISION.pack(**raster.division(tiles.product)),
        line=_DIVISION.pack(**raster.division(tiles.line)),
        m=m,
        n=n,
        k=k,
        products=products,
        tiles=products * tiles.product,
        swizzle=tiles.swizzle,
        along_m=tiles.along_m,
    )
    return packed, min(products * tiles.product, clusters() * common.CLUSTER)


def target(out: GPUArray) -> GPUArray:
    """The array that a kernel writes: the result where its rows are whole 16 bytes, else a new array of such rows."""
    width = aligned_length(out.shape[-1], out.itemsize)
    if out.is_contiguous() and width == out.shape[-1] and raw.address(out) % ALIGNMENT == 0:
        return out
    return native.empty((*out.shape[:-1], width), out.dtype)


def result(into: GPUArray, out: GPUArray) -> tuple[GPUArray, bytes]:
    """The parameters that describe what is written: the array and the rest of its map."""
    m, n, lead, products = out.shape[-2], out.shape[-1], into.shape[-1], prod(out.shape[:-2])
    tail = tensor_maps.tail(out.itemsize, _PIECE_ROWS, n, m, lead, products, m * lead, to_tf32=False)
    return span(into)[0], tail


def finish(into: GPUArray, out: GPUArray) -> None:
    """The result where it belongs, once it is written."""
    if into is not out:
        copying.copy_to(native.view(into, out.shape, tuple(into.strides), into.offset), out)
