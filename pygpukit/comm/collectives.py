"""Launching the kernels of collectives on one rank's device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit import kernels
from pygpukit.comm.planning import TWO_SHOT, Plan, plan, two_shot
from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import STORAGE_ONLY, DataType
from pygpukit.core.errors import DTypeError
from pygpukit.ops.elementwise.pointwise import CTYPES

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

SOURCE = kernels.KernelSpec(__file__, "collective.cu")
_COLLECTIVE = SOURCE.structure("Collective")
_ALL = -1  # collective.cu: every rank sends
ADDED = ("float32", "bfloat16")  # types of sums that are added onto float32
REDUCTIONS = ("sum", "max", "min")  # collective.cu: Reduction
_COMPLEX = ("complex64", "complex128")
# Moving elements without looking at them, by item size.
WORDS = {
    1: "unsigned char",
    2: "unsigned short",
    4: "unsigned int",
    8: "unsigned long long",
    16: "pk::complex_t<double>",
}


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel, by the type of elements."""
    yield tuple(f"pk::exchange<{word}>" for word in WORDS.values())
    for ctype in CTYPES.values():
        yield f"pk::reduce_once<{ctype}>", f"pk::reduce_twice<{ctype}>"
    for dtype in ADDED:
        yield f"pk::add_once<{CTYPES[dtype]}>", f"pk::add_twice<{CTYPES[dtype]}>"


def check_reduction(dtype: DataType, op: str, what: str) -> None:
    """Raises DTypeError for a type that does not add up, or has no order; and for another op than REDUCTIONS."""
    if op not in REDUCTIONS:
        raise DTypeError(f"{what}: op={op!r} is unknown; it is one of {', '.join(REDUCTIONS)}")
    if dtype in STORAGE_ONLY:
        raise DTypeError(f"{what}: {dtype} is a storage type without arithmetic; convert to a type that computes first")
    if op != "sum" and dtype.name in _COMPLEX:
        raise DTypeError(f"{what}: {dtype} has no order, so no {op}; reduce .real and .imag, or gp.abs(x)")


def reduce(x: GPUArray, out: GPUArray, peers: bytes, call: int, size: int, *, op: str, scatter: bool = False) -> None:
    """out = op of all ranks' x, or with scatter of their parts for this rank. Both are contiguous, of one type."""
    chosen = plan(out.size * x.itemsize, x.dtype, "reduce_scatter" if scatter else "all_reduce", size=size)
    _reduce(chosen, x, out, peers, call, op=op, step=out.size if scatter else 0)


def add(x: GPUArray, onto: GPUArray, peers: bytes, call: int, size: int) -> None:
    """onto += the sum of all ranks' x, which is of the type of x; onto is float32. Both are contiguous."""
    _reduce(plan(x.nbytes, x.dtype, size=size), x, onto, peers, call, op="sum", form="add")


def reduce_twice(x: GPUArray, out: GPUArray, peers: bytes, call: int, size: int, *, op: str) -> None:
    """reduce() by two shots, whatever the size."""
    _reduce(two_shot(out.nbytes, size), x, out, peers, call, op=op)


def add_twice(x: GPUArray, onto: GPUArray, peers: bytes, call: int, size: int) -> None:
    """add() by two shots, whatever the size."""
    _reduce(two_shot(x.nbytes, size), x, onto, peers, call, op="sum", form="add")


def _reduce(
    chosen: Plan, x: GPUArray, out: GPUArray, peers: bytes, call: int, *, op: str, step: int = 0, form: str = "reduce"
) -> None:
    shots = "twice" if chosen.algorithm == TWO_SHOT else "once"
    _launch(
        f"pk::{form}_{shots}<{CTYPES[x.dtype.name]}>",
        x,
        out,
        peers,
        call,
        blocks=chosen.blocks,
        count=out.size,
        piece=chosen.piece_bytes // x.itemsize,
        send_step=step,
        reduction=REDUCTIONS.index(op),
    )


def exchange(
    x: GPUArray,
    out: GPUArray,
    peers: bytes,
    call: int,
    size: int,
    *,
    name: str,
    count: int,
    send_step: int = 0,
    step: int = 0,
    root: int = _ALL,
) -> None:
    """Elements of every rank, or of root alone, to all others. count: those that one rank sends to one."""
    chosen = plan(count * x.itemsize, x.dtype, name, size=size)
    _launch(
        f"pk::exchange<{WORDS[x.itemsize]}>",
        x,
        out,
        peers,
        call,
        blocks=chosen.blocks,
        count=count,
        piece=chosen.piece_bytes // x.itemsize,
        send_step=send_step,
        step=step,
        root=root,
    )


def _launch(
    kernel: str,
    x: GPUArray,
    out: GPUArray,
    peers: bytes,
    call: int,
    *,
    blocks: int,
    count: int,
    piece: int,
    send_step: int = 0,
    step: int = 0,
    reduction: int = 0,
    root: int = _ALL,
) -> None:
    fields = _COLLECTIVE.pack(
        count=count,
        piece=piece,
        send_step=send_step,
        step=step,
        reduction=reduction,
        root=root,
        call=call,
        reserved=0,
    )
    kernels.launch(SOURCE.of(kernel), (blocks, 1, 1), (threads(), 1, 1), x, out, peers, fields)


def threads() -> int:
    """Threads of a block: few on the simulated device, which starts one after the other."""
    return 32 if is_sim() else 512
