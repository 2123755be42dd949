"""Instructions that the lanes of a warp do together: shuffles, votes, matches, reductions, elections."""

from __future__ import annotations

from pygpukit.jit.ptx.operation import Operation, instruction
from pygpukit.jit.ptx.parser import Pair, Sink, Term
from pygpukit.jit.ptx.types import TYPES

_U32, _B32, _PRED = TYPES["u32"], TYPES["b32"], TYPES["pred"]


def _two(op: Operation) -> tuple[Term, Term | None]:
    """A result and the predicate that may follow it."""
    to = op.operand(0)
    return (to.first, to.second) if isinstance(to, Pair) else (to, None)


@instruction("shfl")
def _shuffle(op: Operation) -> None:
    op.one_of("sync")
    mode = op.one_of("up", "down", "bfly", "idx")
    op.type("b32")
    op.no_more(5)
    op.need("warp")
    to, inside = _two(op)
    number = ("up", "down", "bfly", "idx").index(mode)
    lane, limits, mask = (op.read(index, _U32) for index in (2, 3, 4))
    is_inside = op.block.fresh("inside")
    op.line(f"bool {is_inside};")
    value = op.temporary(
        "unsigned", f"pk_ptx_shuffle({number}, {op.read(1, _B32)}, {lane}, {limits}, {mask}, {is_inside})"
    )
    op.write_term(to, _B32, value)
    if inside is not None and not isinstance(inside, Sink):
        op.write_term(inside, _PRED, is_inside)


@instruction("vote")
def _vote(op: Operation) -> None:
    op.one_of("sync")
    mode = op.one_of("all", "any", "uni", "ballot")
    kind = op.type("b32" if mode == "ballot" else "pred")
    op.no_more(3)
    mask = op.temporary("unsigned", op.read(2, _U32))
    said = op.temporary("bool", op.read(1, _PRED))
    if mode == "uni":
        value = f"pk_ptx_same({mask}, __ballot_sync({mask}, {said}), {said})"
        op.need("warp")
    else:
        value = f"__{mode}_sync({mask}, {said})"
    op.write(0, kind, value if kind is not _PRED else f"({value} != 0)")


@instruction("match")
def _match(op: Operation) -> None:
    mode = op.one_of("any", "all")
    op.one_of("sync")
    kind = op.type("b32 b64")
    op.no_more(3)
    to, same = _two(op)
    value, mask = op.read(1, kind), op.read(2, _U32)
    if mode == "any":
        if same is not None:
            raise op.unknown()
        op.write_term(to, _B32, f"__match_any_sync({mask}, {value})")
        return
    flag = op.block.fresh("same")
    op.line(f"int {flag};")
    lanes = op.temporary("unsigned", f"__match_all_sync({mask}, {value}, &{flag})")
    op.write_term(to, _B32, lanes)
    if same is not None and not isinstance(same, Sink):
        op.write_term(same, _PRED, f"({flag} != 0)")


@instruction("activemask")
def _active(op: Operation) -> None:
    op.type("b32")
    op.no_more(1)
    op.write(0, _B32, "__activemask()")


@instruction("redux")
def _reduce(op: Operation) -> None:
    op.one_of("sync")
    how = op.one_of("add", "min", "max", "and", "or", "xor")
    kind = op.type("b32" if how in ("and", "or", "xor") else "u32 s32")
    op.no_more(3)
    value = f"__reduce_{how}_sync({op.read(2, _U32)}, {op.read(1, kind)})"
    op.write(0, kind, f"({kind.cpp}){value}")


@instruction("elect")
def _elect(op: Operation) -> None:
    """The lowest lane leads."""
    op.one_of("sync")
    op.no_more(2)
    to, chosen = _two(op)
    mask = op.temporary("unsigned", op.read(1, _U32))
    leader = op.temporary("unsigned", f"(unsigned)__builtin_ctz({mask})")
    op.line(f"__syncwarp({mask});")
    if not isinstance(to, Sink):
        op.write_term(to, _U32, leader)
    if chosen is not None and not isinstance(chosen, Sink):
        op.write_term(chosen, _PRED, f"(pk_ptx_lane() == {leader})")
