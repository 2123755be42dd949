"""Products of NVFP4 with NVFP4 and of MXFP4 with MXFP4 by CUTLASS on SM 12.0: which ones, and the launch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.core.choices import by_device
from pygpukit.kernels import KernelSpec, builder, launch
from pygpukit.ops import copying
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul import precision
from pygpukit.ops.matmul.cutlass import room
from pygpukit.ops.matmul.fp4.encoding import NUMBERS, Fp4Matrix
from pygpukit.ops.matmul.sm90 import tensor_maps
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

BACKEND = room.BACKEND
SIDE = DEPTH = 128  # block_scaled.cu: kFp4Side, kFp4Depth
_SM, _SHARED_BYTES = 12, 101376
_FORMATS = {"float8_e4m3": ("cutlass::float_ue4m3_t", 16), "uint8": ("cutlass::float_ue8m0_t", 32)}
SOURCE = KernelSpec(
    __file__, "block_scaled.cu", shared_bytes=_SHARED_BYTES, ahead=("sm_120a",), instead=True, wants=room.lacking
)
_CALL = SOURCE.structure("Fp4Call")


@by_device
def missing() -> str:
    """Why CUTLASS cannot make such products on the current device, "" where it can, as far as is known."""
    if is_sim():
        return "the simulated device does not run CUTLASS's kernels for SM 12.0"
    if precision.switched_on("PYGPUKIT_NO_CUTLASS"):
        return "PYGPUKIT_NO_CUTLASS=1 forbids it"
    capability = device.current().capability
    if capability // 10 != _SM:
        return f"its kernels for two fp4 operands are those of SM 12.0; this device is SM {capability / 10:.1f}"
    kernel = SOURCE.of(next(iter(_listing()))[0])
    if (why := room.lacking()) and not builder.is_bundled(kernel):
        return why
    return builder.missing(kernel) or tensor_maps.refusal()


def product(a: Fp4Matrix, b: Fp4Matrix, out: GPUArray) -> None:
    """out = a @ b^T, dense, of matrices of one format, as matrices.filled() gives them."""
    (m, n), operands = out.shape, (a, b)
    arrays, factors = zip(*(each.scale_parts() for each in operands), strict=True)
    down, across, steps = -(-m // SIDE), -(-n // SIDE), -(-a.columns // DEPTH)
    call = _CALL.pack(
        m=m,
        n=n,
        steps=steps,
        across=across,
        tiles=down * across,
        factor=factors[0] * factors[1],
        scaled=[array is not None for array in arrays],
    )
    maps: list[GPUArray | bytes] = []
    for each in operands:
        lines, length = each.codes.shape
        tail = tensor_maps.tail(1, SIDE, length, lines, length, 1, 0, line=DEPTH // 2)
        maps += [span(each.codes)[0], tail]
    kind, block = _FORMATS[a.scales.dtype.name]
    launch(
        SOURCE.of(_expression(CTYPES[out.dtype.name], kind, block)),
        (min(down * across, multiprocessors()), 1, 1),
        (384, 1, 1),
        call,
        *maps,
        *(in_atoms(each) for each in operands),
        *(each.scales if array is None else span(array)[0] for each, array in zip(operands, arrays, strict=True)),
        out,
    )


def multiprocessors() -> int:
    """Of the current device, each of which runs one block at a time."""
    return device.current().sm_count


def in_atoms(matrix: Fp4Matrix) -> GPUArray:
    """The scales as tensor cores of SM 10.0 and 12.0 read them, filled up with zeros to whole 128 rows and steps of k.

    512 bytes are those of 128 rows and four scales of each: row r and scale s at 16 (r % 32) + 4 (r // 32) + s. Along k
    they follow each other.
    """
    rows, count = matrix.scales.shape
    down, steps = -(-rows // SIDE), -(-matrix.columns // DEPTH)
    wide = steps * DEPTH // matrix.block
    scales = matrix.scales.view("uint8")
    if (down * SIDE, wide) != (rows, count):
        padded = native.empty((down * SIDE, wide), scales.dtype)
        native.fill(padded, bytes(1))
        copying.copy_to(scales, padded[:rows, :count])
        scales = padded
    atoms = copying.contiguous(scales).reshape(down, 4, 32, wide // 4, 4)
    return copying.contiguous(atoms.transpose(0, 3, 2, 1, 4))


def _expression(result: str, kind: str, block: int) -> str:
    return f"pk::cutlass_block_scaled<{result}, {kind}, {block}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for kind, block in _FORMATS.values():
        for dtype in NUMBERS:
            yield (_expression(CTYPES[dtype.name], kind, block),)
