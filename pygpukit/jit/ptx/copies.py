"""Copies that a device makes while a thread goes on: cp.async and cp.async.bulk. Here each is made at once."""

from __future__ import annotations

from pygpukit.jit.ptx import tensor
from pygpukit.jit.ptx.memory import address
from pygpukit.jit.ptx.operation import Operation, instruction
from pygpukit.jit.ptx.parser import Number, OperandNumber
from pygpukit.jit.ptx.types import TYPES

_U32, _PRED = TYPES["u32"], TYPES["pred"]
_PLACE = "__builtin_FILE(), __builtin_LINE()"
_FETCHED = ("L2::64B", "L2::128B", "L2::256B")


@instruction("cp")
def _copy(op: Operation) -> None:
    op.one_of("async")
    if op.flag("bulk"):
        _bulk(op)
    elif op.flag("commit_group", "wait_all"):
        op.no_more(0)
    elif op.flag("wait_group"):
        op.no_more(1)
        op.line(f"(void){op.read(0, _U32)};")
    elif op.flag("mbarrier"):
        op.one_of("arrive")
        kept = op.flag("noinc")
        op.one_of("shared", "shared::cta", default="")
        op.type("b64")
        op.no_more(1)
        if kept:
            op.need("barrier")
            op.line(f"pk_ptx_barrier_arrive({address(op, op.operand(0), 'shared')}, 1u, 0u, false);")
        else:  # which counts the arrival as one more that was missing
            op.line(f"(void){address(op, op.operand(0), 'shared')};")
    else:
        _piece(op)


def _piece(op: Operation) -> None:
    """4, 8 or 16 bytes, of which the last may be zeros."""
    cached = op.one_of("ca", "cg")
    op.one_of("shared", "shared::cta")
    op.one_of("global")
    policy = op.flag("L2::cache_hint")
    op.one_of(*_FETCHED, default="")
    op.no_more((3, 5 if policy else 4))
    size = op.operand(2)
    if isinstance(size, Number) and (size.value not in (4, 8, 16) or (cached == "cg" and size.value != 16)):
        raise op.fault(f"copies 4, 8 or 16 bytes, with .cg 16; {size.value} are given")
    bytes_ = op.read(2, _U32)
    if isinstance(size, OperandNumber):  # "n": a constant of the source
        bytes_ = f"(unsigned){op.block.variable(size).name}"
    source_bytes = bytes_
    extra = op.count - 3 - policy
    if extra:
        term = op.operand(3)
        kind = None if isinstance(term, Number) else op.block.variable(term).type
        source_bytes = f"({op.read(3, _PRED)} ? 0u : {bytes_})" if kind is _PRED else op.read(3, _U32)
    to, source = address(op, op.operand(0), "shared"), address(op, op.operand(1), "global")
    _vector(op, to, source, bytes_, source_bytes)


def _vector(op: Operation, to: str, source: str, size: str, source_bytes: str) -> None:
    held = f"pk_ptx_vector<unsigned, ({size}) / 4>"
    count, target = op.temporary("unsigned", source_bytes), op.temporary("auto", to)
    origin, piece = op.temporary("auto", source), op.block.fresh("piece")
    op.line(f"{held} {piece} = {{}};")
    op.line(f"if ({count} >= {size}) {piece} = *(const {held} *){origin};")
    op.line(
        f"else for (unsigned pk_ptx_i = 0; pk_ptx_i < {count}; ++pk_ptx_i)"
        f" ((char *)&{piece})[pk_ptx_i] = ((const char *){origin})[pk_ptx_i];"
    )
    op.line(f"*({held} *){target} = {piece};")


def _bulk(op: Operation) -> None:
    if op.flag("commit_group"):
        op.no_more(0)
        return
    if op.flag("wait_group"):
        op.flag("read")
        op.no_more(1)
        op.line(f"(void){op.read(0, _U32)};")
        return
    if op.flag("prefetch"):
        _prefetch(op)
        return
    if op.flag("tensor"):
        tensor.copy(op)
        return
    to = op.one_of("shared::cluster", "shared::cta", "global")
    source = op.one_of("global", "shared::cta")
    done = op.one_of("mbarrier::complete_tx::bytes", "bulk_group")
    several = to == "shared::cluster" and op.flag("multicast::cluster")
    policy = op.flag("L2::cache_hint")
    grouped = to == "global"
    if (to == "global") == (source == "global") or grouped != (done == "bulk_group"):
        raise op.unknown()
    op.no_more((3 if grouped else 4) + several + policy)
    if several:
        op.need("tensor")
        places = [
            address(op, op.operand(index), space) for index, space in ((0, "shared"), (1, "global"), (3, "shared"))
        ]
        target, origin, barrier = places
        ranks = op.read(4, TYPES["u16"])
        op.line(f"pk_ptx_copy_to_blocks({target}, {origin}, {op.read(2, _U32)}, {barrier}, {ranks}, {_PLACE});")
        return
    spaces = {"shared::cluster": "cluster", "shared::cta": "shared", "global": "global"}
    target = op.temporary("auto", address(op, op.operand(0), spaces[to]))
    origin = op.temporary("auto", address(op, op.operand(1), spaces[source]))
    count = op.temporary("unsigned", op.read(2, _U32))
    held = "pk_ptx_vector<unsigned, 4>"
    op.line(
        f"for (unsigned pk_ptx_i = 0; pk_ptx_i < {count} / 16u; ++pk_ptx_i)"
        f" (({held} *){target})[pk_ptx_i] = ((const {held} *){origin})[pk_ptx_i];"
    )
    if not grouped:
        op.need("barrier")
        op.line(f"pk_ptx_barrier_complete_tx({address(op, op.operand(3), spaces[to])}, {count});")


def _prefetch(op: Operation) -> None:
    """Nothing to do, but for a look at the operands."""
    if op.flag("tensor"):
        tensor.prefetch(op)
        return
    op.one_of("L2")
    op.one_of("global")
    policy = op.flag("L2::cache_hint")
    op.no_more(2 + policy)
    op.line(f"(void){address(op, op.operand(0), 'global')}; (void){op.read(1, _U32)};")
