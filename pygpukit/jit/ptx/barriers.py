"""Barriers of a block, of a warp and of a cluster, and mbarriers in shared memory."""

from __future__ import annotations

from pygpukit.jit.ptx.memory import SCOPES, address, space_of
from pygpukit.jit.ptx.operation import Operation, instruction
from pygpukit.jit.ptx.parser import Sink
from pygpukit.jit.ptx.types import TYPES

_U32, _U64, _PRED = TYPES["u32"], TYPES["u64"], TYPES["pred"]


@instruction("bar", "barrier")
def _barrier(op: Operation) -> None:
    if op.name == "barrier" and op.flag("cluster"):
        _cluster(op)
        return
    if op.name == "bar" and op.flag("warp"):
        op.one_of("sync")
        op.no_more(1)
        op.line(f"__syncwarp({op.read(0, _U32)});")
        return
    op.flag("cta")
    what = op.one_of("sync", "red", "arrive")
    how = op.one_of("popc", "and", "or") if what == "red" else ""
    op.flag("aligned")
    if what == "arrive" or (not how and op.count == 2):
        op.no_more(2)
        op.need("parts")
        op.line(f"pk_ptx_part({op.read(0, _U32)}, {op.read(1, _U32)}, {str(what == 'sync').lower()}, 0u);")
        return
    op.need("barrier")
    if not how:
        op.no_more(1)
        _whole(op, 0, 1)
        op.line("__syncthreads();")
        return
    kind = op.type("u32" if how == "popc" else "pred")
    op.no_more((3, 4))
    if op.count == 4:
        op.need("parts")
        vote = f"({op.read(3, _PRED)} ? 1u : 65536u)"
        votes = op.temporary("unsigned", f"pk_ptx_part({op.read(1, _U32)}, {op.read(2, _U32)}, true, {vote})")
        values = {"popc": f"({votes} & 0xffffu)", "and": f"({votes} < 65536u)", "or": f"(({votes} & 0xffffu) != 0)"}
        op.write(0, kind, values[how])
        return
    _whole(op, 1, op.count)
    value = f"__syncthreads_{'count' if how == 'popc' else how}({op.read(op.count - 1, _PRED)})"
    op.write(0, kind, f"(unsigned){value}" if how == "popc" else f"({value} != 0)")


def _whole(op: Operation, number: int, threads: int) -> None:
    """That the barrier is one of the whole block."""
    count = op.read(threads, _U32) if threads < op.count else "0u"
    op.line(f"pk_ptx_whole_block({op.read(number, _U32)}, {count});")


def _cluster(op: Operation) -> None:
    what = op.one_of("arrive", "wait")
    op.one_of(*(("release", "relaxed") if what == "arrive" else ("acquire",)), default="")
    op.flag("aligned")
    op.no_more(0)
    op.line("__threadfence();")
    op.line(f"__cluster_barrier_{what}();")


@instruction("mbarrier")
def _mbarrier(op: Operation) -> None:
    op.need("barrier")
    what = op.one_of("init", "inval", "expect_tx", "complete_tx", "arrive", "arrive_drop", "test_wait", "try_wait",
                     "pending_count")  # fmt: skip
    if what == "pending_count":
        op.type("b64")
        op.no_more(2)
        op.write(0, _U32, f"pk_ptx_pending({op.read(1, _U64)})")
        return
    parity = what.endswith("wait") and op.flag("parity")
    expects = what.startswith("arrive") and op.flag("expect_tx")
    op.one_of("release", "acquire", "relaxed", default="")
    op.one_of(*SCOPES, default="")
    stays = what.startswith("arrive") and op.flag("noComplete")
    space = space_of(op)
    if space not in ("", "shared", "cluster"):
        raise op.unknown()
    op.type("b64")
    if what in ("init", "expect_tx", "complete_tx"):
        op.no_more(2)
        op.line(f"pk_ptx_barrier_{what}({address(op, op.operand(0), space)}, {op.read(1, _U32)});")
    elif what == "inval":
        op.no_more(1)
        op.line(f"pk_ptx_barrier_inval({address(op, op.operand(0), space)});")
    elif what.endswith("wait"):
        op.no_more((3, 4) if what == "try_wait" else 3)
        held = f"({op.read(2, _U32)} & 1u)" if parity else f"((unsigned){op.read(2, _U64)} & 1u)"
        op.write(0, _PRED, f"pk_ptx_barrier_over({address(op, op.operand(1), space)}, {held})")
    else:
        op.no_more(3 if expects or stays else (2, 3))
        count = "1u" if expects or op.count == 2 else op.read(2, _U32)
        bytes_ = op.read(2, _U32) if expects else "0u"
        dropped = str(what == "arrive_drop").lower()
        arrive = f"pk_ptx_barrier_arrive({address(op, op.operand(1), space)}, {count}, {bytes_}, {dropped})"
        if isinstance(op.operand(0), Sink):
            op.line(f"{arrive};")
        else:
            op.write(0, _U64, arrive)
