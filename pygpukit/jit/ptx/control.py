"""Branches, and instructions that end or stop a thread or let others run."""

from __future__ import annotations

from pygpukit.jit.ptx.operation import Operation, instruction
from pygpukit.jit.ptx.parser import Name
from pygpukit.jit.ptx.types import TYPES


@instruction("bra")
def _branch(op: Operation) -> None:
    op.flag("uni")
    op.no_more(1)
    target = op.operand(0)
    if not isinstance(target, Name):
        raise op.fault("takes a label of the asm statement")
    op.line(f"goto {op.block.label(target.text, target.at)};")


@instruction("trap")
def _trap(op: Operation) -> None:
    op.no_more(0)
    op.line("__trap();")


@instruction("exit")
def _exit(op: Operation) -> None:
    op.no_more(0)
    op.line("pk_sim_exit(__builtin_FILE(), __builtin_LINE());")


@instruction("brkpt", "pmevent")
def _breakpoint(op: Operation) -> None:
    op.flag("mask")
    op.no_more(0 if op.name == "brkpt" else 1)


@instruction("nanosleep")
def _sleep(op: Operation) -> None:
    kind = op.type("u32")
    op.no_more(1)
    op.line(f"__nanosleep({op.read(0, kind)});")


@instruction("membar", "fence")
def _fence(op: Operation) -> None:
    """Every fence orders all memory."""
    if op.name == "membar":
        op.one_of("cta", "gl", "sys")
    else:
        what = op.one_of("sc", "acq_rel", "acquire", "release", "proxy", "mbarrier_init", default="acq_rel")
        if what == "proxy":
            op.one_of("alias", "async", "async::generic", "tensormap::generic")
            op.one_of("global", "shared::cta", "shared::cluster", "shared", "release", "acquire", default="")
        if what == "mbarrier_init":
            op.one_of("release")
        if what in ("acquire", "release") and op.flag("sync_restrict::shared::cta", "sync_restrict::shared::cluster"):
            pass
        op.one_of("cta", "cluster", "gpu", "sys", default="")
    op.no_more((0, 2))
    op.line("__threadfence();")


@instruction("griddepcontrol")
def _dependency(op: Operation) -> None:
    """A launch begins after the one before it has ended: there is nothing to wait for."""
    op.one_of("launch_dependents", "wait")
    op.no_more(0)


@instruction("setmaxnreg")
def _registers(op: Operation) -> None:
    """Registers are no bound here."""
    op.one_of("inc", "dec")
    op.one_of("sync")
    op.one_of("aligned")
    kind = op.type("u32")
    op.no_more(1)
    op.line(f"(void)({op.read(0, TYPES[kind.name])});")
