"""Products of fp4 with fp4 on tensor cores that take the scales of blocks: which device has them, and the launch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit.core import device
from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import float8_e4m3, uint8
from pygpukit.kernels import KernelSpec, launch
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.fp4.encoding import NUMBERS, SCALES, Fp4Matrix
from pygpukit.ops.operands import span

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DataType

SOURCE = KernelSpec(__file__, "block_scaled.cu", ahead=("sm_120a",))
_CALL = SOURCE.structure("Fp4Blocks")
_SIDE, _THREADS = 128, 256  # block_scaled.cu: kSide, kBlocksThreads
_SM = 12
FORMATS = ((float8_e4m3, 16), (uint8, 32))


def refusal() -> str:
    """Why the open device has no such products, "" where it has."""
    capability = device.current().capability
    if is_sim() or capability // 10 == _SM:
        return ""
    return f"the kernel for two fp4 operands has instructions of SM 12.0; this device is SM {capability / 10:.1f}"


def product(a: Fp4Matrix, b: Fp4Matrix, out: GPUArray) -> None:
    """out = a @ b^T, dense, of matrices of one format of FORMATS, as matrices.filled() gives them."""
    (m, n), operands = out.shape, (a, b)
    arrays, factors = zip(*(each.scale_parts() for each in operands), strict=True)
    call = _CALL.pack(
        m=m,
        n=n,
        k=a.columns,
        factor=factors[0] * factors[1],
        scaled=[array is not None for array in arrays],
        unused=0,
    )
    launch(
        SOURCE.of(_expression(out.dtype, a.scales.dtype, a.block)),
        (-(-m // _SIDE) * -(-n // _SIDE), 1, 1),
        (_THREADS, 1, 1),
        a.codes,
        b.codes,
        a.scales,
        b.scales,
        *(each.scales if array is None else span(array)[0] for each, array in zip(operands, arrays, strict=True)),
        out,
        call,
    )


def _expression(dtype: DataType, scales: DataType, block: int) -> str:
    return f"pk::fp4_blocks<{CTYPES[dtype.name]}, {SCALES[scales.name]}, {block}>"


@SOURCE.lists
def _listing() -> Iterator[tuple[str, ...]]:
    for scales, block in FORMATS:
        yield tuple(_expression(dtype, scales, block) for dtype in NUMBERS)
