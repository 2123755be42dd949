"""Copies of boxes of an array by a tensor map: cp.async.bulk.tensor, by the functions of pk_sim_ptx_tensor.h."""

from __future__ import annotations

from pygpukit.jit.ptx.memory import address
from pygpukit.jit.ptx.operation import Operation
from pygpukit.jit.ptx.parser import Address, Vector
from pygpukit.jit.ptx.types import TYPES

_S32, _U16 = TYPES["s32"], TYPES["u16"]
_PLACE = "__builtin_FILE(), __builtin_LINE()"


def prefetch(op: Operation) -> None:
    """cp.async.bulk.prefetch.tensor: only its operands are looked at."""
    rank = _rank(op)
    for word in ("L2", "global"):
        op.one_of(word)
    op.one_of("tile", default="tile")
    policy = op.flag("L2::cache_hint")
    op.no_more(1 + policy)
    described, _ = _box(op, 0, rank)
    op.line(f"(void){described};")


def copy(op: Operation) -> None:
    rank = _rank(op)
    to = op.one_of("shared::cluster", "shared::cta", "global")
    op.one_of("shared::cta" if to == "global" else "global")
    op.one_of("tile", default="tile")  # im2col has maps of its own
    op.need("tensor")
    if to == "global":
        op.one_of("bulk_group")
        policy = op.flag("L2::cache_hint")
        op.no_more(2 + policy)
        described, at = _box(op, 0, rank)
        tile = address(op, op.operand(1), "shared")
        op.line(f"pk_ptx_store_tensor<{rank}>({described}, {at}, {tile}, {_PLACE});")
        return
    op.one_of("mbarrier::complete_tx::bytes")
    several = to == "shared::cluster" and op.flag("multicast::cluster")
    policy = op.flag("L2::cache_hint")
    op.no_more(3 + several + policy)
    space = "cluster" if to == "shared::cluster" and not several else "shared"
    described, at = _box(op, 1, rank)
    tile, barrier = address(op, op.operand(0), space), address(op, op.operand(2), space)
    ranks = op.read(3, _U16) if several else "0u"
    op.line(f"pk_ptx_load_tensor<{rank}>({tile}, {described}, {at}, {barrier}, {ranks}, {_PLACE});")


def _rank(op: Operation) -> int:
    return int(op.one_of("1d", "2d", "3d", "4d", "5d")[0])


def _box(op: Operation, index: int, rank: int) -> tuple[str, str]:
    """The address of the tensor map in an operand, and an array of where the box begins."""
    term = op.operand(index)
    if not isinstance(term, Address) or len(term.more) != 1 or not isinstance(term.more[0], Vector):
        raise op.fault("takes a tensor map's address and coordinates, [map, {x, ...}]", term.at)
    items = term.more[0].items
    if len(items) != rank:
        raise op.fault(f"takes {rank} coordinates, {len(items)} are given", term.at)
    at = op.block.fresh("at")
    op.line(f"const int {at}[] = {{{', '.join(op.read_term(item, _S32) for item in items)}}};")
    return address(op, term, ""), at
