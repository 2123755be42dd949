"""Products of 1 to 256 rows with a weight of 16 bits on tensor cores: which kernel, in what parts.

A row has the same bits by all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core import device
from pygpukit.core.choices import by_device
from pygpukit.core.dtypes import bfloat16, float16

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.norm import Norm

# Norms and epilogues stand in kernels of several forms: contracted apart, they would differ.
SOURCE = kernels.KernelSpec(__file__, "tensor_rows.cu", options=kernels.SAME_BITS)
TYPES = (float16, bfloat16)
_SLICES, _PIECE, _TILE = 8, 128, 16  # pieces.cuh: kSlices; bytes of a piece; columns of a tile at least
_GROUPS = 1  # tensor_rows.cu: kGroups
_WARP = 32
_STAGES = {False: (6, 5, 4, 2), True: (3, 2)}  # of the kernels for one row, of single columns and of pairs
_HALF = 112 << 10  # bytes of a block's memory of which a multiprocessor of SM 9.0 has twice as many
_FIXED = 1 << 10  # bytes that a launch has of its own


class Form(NamedTuple):
    """The part of a product that a block of some_rows() takes: 16 down rows of the weight, 8 across of x,
    by so many groups of eight warps.
    stages: of both on their way."""

    down: int
    across: int
    groups: int
    stages: int

    @property
    def shared_bytes(self) -> int:
        """Of dynamic shared memory."""
        return self.stages * (16 * self.down + 8 * self.across) * _PIECE * _SLICES * self.groups

    @property
    def fits(self) -> bool:
        """True if the device's blocks have as much shared memory, with that of the partial sums."""
        return self.shared_bytes + self.groups * _SLICES * 8 * self.across * 17 * 4 + _FIXED <= _shared_bytes()

    def text(self) -> str:
        """As a kernel's template has it."""
        return f"{self.down}, {self.across}, {self.stages}, {self.groups}"


# The first that fits for so many rows: where none does, blocks in y take the rest. The last two are for devices whose
# blocks have less shared memory.
FORMS = (Form(2, 1, 1, 5), Form(2, 2, 1, 4), Form(2, 4, 1, 3), Form(2, 4, 1, 2), Form(2, 1, 1, 2))


def one_row_stages(columns: int, pairs: bool) -> int:
    """Of the weight that are on their way beside a row of so many elements; 0 where a block has no room for two."""
    room = row_bytes() - -(-columns * 2 // _PIECE) * _PIECE
    stage = _GROUPS * _SLICES * _PIECE * _TILE * (2 if pairs else 1)
    return next((count for count in _STAGES[pairs] if count * stage <= room), 0)


def blocks(columns: int) -> int:
    """Of the kernels for one row: one for each multiprocessor."""
    return min(-(-columns // _TILE), device.current().sm_count)


def one_row(
    types: str,
    epilogue: str,
    stages: int,
    x: GPUArray,
    operands: tuple[GPUArray, GPUArray, GPUArray],
    call: bytes,
    norm: Norm | None,
    overlaps: bool,
    bests: GPUArray | None,
) -> None:
    """out = epilogue(norm(x) w^T + bias) of one row. types: of weight and out, in C++. operands: w, bias, out."""
    out = operands[2]
    arrays: tuple[GPUArray, ...] = (x, *operands)
    expression = f"pk::row_linear<{types}, {epilogue}, {stages}>"
    if norm is not None:
        arrays = x, norm.weight, norm.shift, *operands
        expression = f"pk::norm_linear<{types}, {epilogue}, {norm.centered}, {stages}>"
        if bests is not None:
            arrays += (bests,)
            expression = f"pk::norm_logits<{types.split(',')[0]}, {norm.centered}, {stages}>"
    spec = SOURCE.of(expression, shared_bytes=row_bytes(), overlapping=overlaps)
    threads = _WARP * _SLICES * _GROUPS
    kernels.launch(spec, (blocks(out.shape[1]), 1, 1), (threads, 1, 1), *arrays, call)


def some_rows(
    types: str,
    epilogue: str,
    x: GPUArray,
    operands: tuple[GPUArray, GPUArray, GPUArray],
    call: bytes,
    overlaps: bool,
    form: Form | None = None,
) -> None:
    """out = epilogue(x w^T + bias) of rows of the weight's type."""
    rows, columns = operands[2].shape
    form = form or form_of(rows)
    spec = SOURCE.of(
        f"pk::some_rows<{types}, {epilogue}, {form.text()}>", shared_bytes=form.shared_bytes, overlapping=overlaps
    )
    down = -(-rows // (8 * form.across))
    tiles = -(-columns // (_TILE * form.down // (2 if epilogue == "pk::kSilu" else 1)))
    across = max(1, min(tiles, device.current().sm_count // down))
    kernels.launch(spec, (across, down, 1), (_WARP * _SLICES * form.groups, 1, 1), x, *operands, call)


@by_device
def form_of(rows: int) -> Form:
    """The form of blocks for so many rows."""
    fitting = [form for form in FORMS if form.fits]
    return next((form for form in fitting if 8 * form.across >= rows), max(fitting, key=lambda form: form.across))


@cache
def _shared_bytes() -> int:
    return int(native.device_info(native.current_device())["max_shared_per_block_optin_bytes"])


def row_bytes() -> int:
    """Shared memory of a block of the kernels for one row, always as much: multiprocessors divide theirs into cache and
    shared memory by what a kernel asks for, and must be idle to divide it otherwise. Of two kernels a block each fits.
    """
    return min(_HALF, _shared_bytes() - 4 * _FIXED)


def expressions(ctype: str, forms: Iterable[tuple[str, str]]) -> Iterator[tuple[str, ...]]:
    """Name expressions for a type of weights. forms: types of the result and epilogues, in C++."""
    for out, epilogue in forms:
        pairs = epilogue == "pk::kSilu"
        yield tuple(f"pk::some_rows<{ctype}, {out}, {epilogue}, {form.text()}>" for form in FORMS)
        yield tuple(f"pk::row_linear<{ctype}, {out}, {epilogue}, {stages}>" for stages in _STAGES[pairs])
        for centered in ("false", "true"):
            yield tuple(
                f"pk::norm_linear<{ctype}, {out}, {epilogue}, {centered}, {stages}>" for stages in _STAGES[pairs]
            )
    for centered in ("false", "true"):
        yield tuple(f"pk::norm_logits<{ctype}, {centered}, {stages}>" for stages in _STAGES[False])
