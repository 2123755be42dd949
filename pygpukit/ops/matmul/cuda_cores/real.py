"""Products of float32 and float64 whose matrices have a dense axis each: by which block, and the launch of its kernel.

Their bits are those of strided.cu, which makes the others. float64 runs on tensor cores where these sum as
multiply-adds in ascending order: on SM 9.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.choices import by_device
from pygpukit.ops import copying, raw
from pygpukit.ops.elementwise.pointwise import CTYPES
from pygpukit.ops.matmul.cuda_cores import gemv
from pygpukit.ops.matmul.epilogue.epilogue import in_kernel
from pygpukit.ops.matmul.layout.operand import ALIGNMENT, Operand
from pygpukit.ops.matmul.layout.strided import with_epilogue
from pygpukit.ops.matmul.sm90 import common

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.matmul.epilogue.epilogue import Epilogue
    from pygpukit.ops.matmul.problem import Problem

CORES = kernels.KernelSpec(__file__, "real.cu")
TENSOR = kernels.KernelSpec(__file__, "double.cu", ahead=("sm_90a",))
_ACROSS, _ELEMENTS = 1, 2  # added up: real.cuh, RealRead
_BOTH_ACROSS = (_ACROSS, _ACROSS)
_READINGS = tuple((a | kind, b | kind) for kind in (0, _ELEMENTS) for a in (0, _ACROSS) for b in (0, _ACROSS))
_MAX_DEPTH = 2**31 - 64  # of k: it is filled up to whole steps, and counted by an int
_MAX_GRID_Y = 65535
_FIXED_US = 6.0  # of every launch
_COPIED_FROM, _COPIED_DEPTH = 3072, 512  # rows and columns, and k: then copies across k cost less than they save
finishes = in_kernel


@dataclass(frozen=True)
class Block:
    """The tile of one block, and its measured times.

    down, across: results of a thread; with tensor 16 rows and 8 columns of a warp. warps_down, warps_across: of a
    block. depth: of k, a step. stages: steps that shared memory holds. ahead: of k that a thread holds; with tensor in
    eights. blocks: of a multiprocessor, at least. alone_us: of 16 of k where a multiprocessor has few blocks; each_us:
    of 16 of k of each block where it has many. by_elements: times longer where it copies by elements. turns: whether
    what is dense along k is turned on its way to shared memory. tensor: on tensor cores. only_across: for operands that
    both lie across k.
    """

    down: int
    across: int
    warps_down: int
    warps_across: int
    depth: int
    stages: int
    ahead: int
    blocks: int
    alone_us: float
    each_us: float
    by_elements: float
    turns: bool = False
    tensor: bool = False
    only_across: bool = False

    def extents(self) -> tuple[int, int]:
        """Rows and columns of the result."""
        down, across = (16, 8) if self.tensor else (4, 8)  # double.cu; real.cu: kLanesDown, kLanesAcross
        return down * self.down * self.warps_down, across * self.across * self.warps_across

    def tiles(self, m: int, n: int) -> int:
        """Of a result."""
        rows, columns = self.extents()
        return -(-m // rows) * -(-n // columns)

    def reads(self, read: tuple[int, int]) -> tuple[int, int] | None:
        """The layouts it reads, of operands that can be read so; None where it reads none."""
        if self.turns:
            read = read[0] or _ELEMENTS, read[1] or _ELEMENTS
        return None if self.only_across and read != _BOTH_ACROSS else read

    def time_us(self, batches: int, m: int, n: int, k: int, read: tuple[int, int], multiprocessors: int) -> float:
        """The time of a product by the measured times."""
        each = -(-batches * self.tiles(m, n) // multiprocessors)
        steps = -(-k // 16) + (2 if self.blocks > 1 else 7)  # one block alone also waits while it begins and ends
        longer = self.by_elements if max(read) > _ACROSS else 1.0
        return _FIXED_US + steps * max(self.alone_us, each * self.each_us) * longer

    def threads(self) -> int:
        """Of a block."""
        return 32 * self.warps_down * self.warps_across

    def shared_bytes(self, itemsize: int, read: tuple[int, int]) -> int:
        """Of dynamic shared memory: pieces of both operands."""
        pad = 2 * ALIGNMENT if self.tensor else ALIGNMENT
        sizes = (
            self.depth * (extent * itemsize + pad) if how else extent * (self.depth * itemsize + pad)
            for extent, how in zip(self.extents(), read, strict=True)
        )
        return self.stages * sum(sizes)

    def expression(self, ctype: str, read: tuple[int, int]) -> str:
        """The kernel's name expression."""
        numbers = (self.down, self.across, self.warps_down, self.warps_across, self.depth, self.stages, self.ahead)
        return f"pk::real<{ctype}, {', '.join(map(str, (*numbers, self.blocks, *read)))}>"


BLOCKS = {
    "float32": (
        Block(8, 8, 4, 1, 32, 2, 2, 3, 3.0, 0.68, 1.0, only_across=True),
        Block(8, 8, 4, 1, 16, 3, 2, 4, 0.9, 0.74, 1.35, turns=True),
        Block(8, 4, 2, 2, 16, 4, 2, 4, 0.46, 0.42, 1.15, turns=True),
        Block(4, 4, 2, 2, 16, 4, 4, 4, 0.285, 0.24, 1.05),
        Block(4, 4, 2, 1, 32, 3, 8, 8, 0.275, 0.113, 1.3),
        Block(2, 2, 2, 2, 16, 6, 8, 8, 0.16, 0.1, 1.35),
        Block(2, 2, 2, 1, 16, 6, 8, 12, 0.13, 0.08, 1.15),
    ),
    "float64": (
        Block(4, 4, 2, 4, 16, 3, 2, 1, 1.14, 1.16, 1.5, tensor=True),
        Block(2, 4, 2, 2, 16, 3, 2, 3, 0.45, 0.31, 1.4, tensor=True),
        Block(1, 4, 2, 2, 16, 4, 2, 4, 0.285, 0.18, 1.7, tensor=True),
        Block(1, 2, 2, 2, 16, 4, 2, 6, 0.27, 0.147, 1.65, tensor=True),
        Block(8, 8, 2, 2, 16, 3, 2, 2, 1.9, 1.6, 1.15),
        Block(4, 4, 4, 2, 16, 3, 2, 2, 0.9, 0.97, 1.15),
        Block(4, 4, 2, 1, 16, 4, 4, 8, 0.28, 0.23, 1.15),
    ),
}


def refusal(p: Problem) -> str:
    """Why the kernels do not make a product, "" where they do."""
    if p.epilogue == "gated" or not (p.epilogue or p.extents[3]):
        return "they join no columns, and make no empty sums without an epilogue"
    return "" if readings(p.dtype.name, p.a, p.b) else "an operand has no dense axis, or another type"


def run(p: Problem, a: GPUArray, b: GPUArray, out: GPUArray, epilogue: Epilogue | None = None) -> None:
    """out = epilogue(a @ b)."""
    readable, n = operands(a, b), out.shape[-1]
    assert readable is not None
    a, b, read = readable
    packed, arrays = with_epilogue(gemv.LAYOUT, n, a, b, out, epilogue)
    launch(a, b, read, arrays, packed, None if epilogue is None else epilogue.packed(n))


def operands(a: GPUArray, b: GPUArray) -> tuple[GPUArray, GPUArray, tuple[int, int]] | None:
    """a and b as the kernels multiply them, and how they are read; None where there is an operand without a dense axis,
    or another type. Large ones of float32 that lie along k are copied: turning them piece by piece costs more."""
    if (read := readings(a.dtype.name, Operand.of(a), Operand.of(b))) is None:
        return None
    m, n = a.shape[-2], b.shape[-1]
    large = min(m, n) >= _COPIED_FROM and a.shape[-1] >= _COPIED_DEPTH
    aligned = m * a.itemsize % ALIGNMENT == n * a.itemsize % ALIGNMENT == 0
    if a.dtype.name != "float32" or not large or not aligned or read == _BOTH_ACROSS:
        return a, b, read
    if read[0] != _ACROSS:
        a = _across(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    return a, b if read[1] == _ACROSS else _across(b), _BOTH_ACROSS


def _across(x: GPUArray) -> GPUArray:
    """A dense copy; what a stack has for several of its products is copied once."""
    batch = (1 if step == 0 else extent for extent, step in zip(x.shape[:-2], x.strides[:-2], strict=True))
    once = native.view(x, (*batch, *x.shape[-2:]), x.strides, x.offset)
    copy = native.empty(once.shape, x.dtype)
    copying.copy_to(once, copy)
    steps = (0 if old == 0 else new for old, new in zip(x.strides[:-2], copy.strides[:-2], strict=True))
    return native.view(copy, x.shape, (*steps, *copy.strides[-2:]), copy.offset)


def readings(dtype: str, a: Operand, b: Operand) -> tuple[int, int] | None:
    """The layouts of a and b that the kernels read, as real.cuh numbers them; None for an operand without a dense axis,
    another type."""
    if dtype not in BLOCKS or a.shape[-1] > _MAX_DEPTH:
        return None
    left, right = _reading(a, -2, -1), _reading(b, -1, -2)
    if left is None or right is None:
        return None
    elements = max(left, right) & _ELEMENTS
    return left | elements, right | elements


def _reading(x: Operand, lines: int, along: int) -> int | None:
    if x.strides[along] == x.itemsize or x.shape[along] == 1:
        dense, across = along, 0
    elif x.strides[lines] == x.itemsize or x.shape[lines] == 1:
        dense, across = lines, _ACROSS
    else:
        return None
    others = (step for axis, step in enumerate(x.strides) if axis != len(x.shape) + dense)
    numbers = (x.address, x.shape[dense] * x.itemsize, *others)
    return across if raw.widest(*numbers) == ALIGNMENT else across | _ELEMENTS


def launch(
    a: GPUArray,
    b: GPUArray,
    read: tuple[int, int],
    arrays: Sequence[GPUArray],
    packed: bytes,
    epilogue: bytes | None = None,
) -> None:
    """c = epilogue(a @ b). read: of readings(). arrays: what its pointers point at. packed: a gemv.LAYOUT. epilogue: an
    Epilogue, not of swiglu."""
    *batch, m, k = a.shape
    n, batches = b.shape[-1], prod(batch)
    chosen = block(a.dtype.name, batches, m, n, k, read)
    read = chosen.reads(read) or read
    spec = (TENSOR if chosen.tensor else CORES).of(
        chosen.expression(CTYPES[a.dtype.name], read), shared_bytes=chosen.shared_bytes(a.itemsize, read)
    )
    grid = (chosen.tiles(m, n), min(batches, _MAX_GRID_Y), -(-batches // _MAX_GRID_Y))
    kernels.launch(
        spec, grid, (chosen.threads(), 1, 1), *arrays, packed, gemv.nothing() if epilogue is None else epilogue
    )


def block(dtype: str, batches: int, m: int, n: int, k: int, read: tuple[int, int]) -> Block:
    """The block whose measured times are shortest. Sums are the same for all."""
    return _fastest(dtype, batches, m, n, k, read, device.current().sm_count, device.current().capability == common.SM)


@by_device
def _fastest(dtype: str, batches: int, m: int, n: int, k: int, read: tuple[int, int], sms: int, tensor: bool) -> Block:
    fitting = [
        candidate
        for candidate in BLOCKS[dtype]
        if candidate.tensor == (tensor and dtype == "float64") and candidate.reads(read)
    ]
    return min(fitting, key=lambda candidate: candidate.time_us(batches, m, n, k, read, sms))


def _listed(tensor: bool) -> Iterator[tuple[str, ...]]:
    for dtype, blocks in BLOCKS.items():
        for candidate in blocks:
            if candidate.tensor == tensor:
                listed = dict.fromkeys(read for each in _READINGS if (read := candidate.reads(each)))
                yield from ((candidate.expression(CTYPES[dtype], read),) for read in listed)


CORES.lists(lambda: _listed(False))
TENSOR.lists(lambda: _listed(True))
