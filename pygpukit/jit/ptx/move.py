"""Moves between registers, and addresses of the kinds of memory."""

from __future__ import annotations

from pygpukit.jit.ptx.operation import Operation, instruction
from pygpukit.jit.ptx.parser import Address, Name, Vector
from pygpukit.jit.ptx.types import TYPES, Type

_SPACES = ("shared", "shared::cta", "shared::cluster", "global", "local", "const", "param")


@instruction("mov")
def _move(op: Operation) -> None:
    kind = op.type()
    if kind.kind == "x" or kind.bits == 8:
        raise op.unknown()
    op.no_more(2)
    to, source = op.operand(0), op.operand(1)
    if isinstance(to, Vector) or isinstance(source, Vector):
        _pack(op, kind)
    elif isinstance(source, Name) and source.text.startswith("%"):
        op.write(0, kind, _register(op, kind))
    else:
        op.write(0, kind, op.read(1, kind))


def _register(op: Operation, kind: Type) -> str:
    """A register's value. A special one may be read as fewer or more bits."""
    source = op.operand(1)
    have = op.block.variable(source)
    if have.writable or have.type is None or have.type.bits == kind.bits or have.type.kind == "p":
        return op.read(1, kind)
    return f"(({kind.cpp}){have.name})"


def _pack(op: Operation, kind: Type) -> None:
    """Parts into one register, or one register's parts."""
    to, source = op.operand(0), op.operand(1)
    vector = to if isinstance(to, Vector) else source
    assert isinstance(vector, Vector)
    count = len(vector.items)
    if kind.kind != "b" or (isinstance(to, Vector) and isinstance(source, Vector)) or count not in (2, 4):
        raise op.unknown()
    if kind.bits // count < 8:
        raise op.unknown()
    part = TYPES[f"b{kind.bits // count}"]
    if isinstance(source, Vector):
        parts = [f"(({kind.cpp}){op.read_term(item, part)} << {part.bits * i})" for i, item in enumerate(source.items)]
        op.write(0, kind, f"({kind.cpp})({' | '.join(parts)})")
        return
    whole = op.temporary(kind.cpp, op.read(1, kind))
    for i, item in enumerate(vector.items):
        op.write_term(item, part, f"({part.cpp})({whole} >> {part.bits * i})")


@instruction("cvta")
def _address(op: Operation) -> None:
    to = op.flag("to")
    space = op.one_of(*_SPACES)
    kind = op.type("u32 u64")
    op.no_more(2)
    if kind.bits == 32:
        raise op.fault("addresses of all memory have 64 bits")
    value = op.read(1, kind)
    if not to and space.startswith("shared"):
        value = f"(unsigned long long)pk_ptx_shared({value})"
    op.write(0, kind, value)


@instruction("isspacep")
def _in_space(op: Operation) -> None:
    space = op.one_of(*_SPACES)
    if space == "param":
        raise op.unknown()
    op.no_more(2)
    op.need("memory")
    where = "shared" if space == "shared::cta" else space.replace("::", "_of_")
    op.write(0, TYPES["pred"], f"pk_ptx_is_{where}({op.read(1, TYPES['u64'])})")


@instruction("mapa")
def _map(op: Operation) -> None:
    space = op.one_of("shared::cluster", default="")
    kind = op.type("u32 u64")
    op.no_more(3)
    if isinstance(op.operand(1), Address) or (kind.bits == 32 and not space):
        raise op.unknown()
    value, rank = op.read(1, kind), op.read(2, TYPES["u32"])
    address = f"pk_ptx_shared({value})" if space else f"(void *){value}"
    op.write(0, kind, f"({kind.cpp})(size_t)__cluster_map_shared_rank({address}, {rank})")


@instruction("getctarank")
def _rank(op: Operation) -> None:
    space = op.one_of("shared::cluster", default="")
    kind = op.type("u32 u64")
    op.no_more(2)
    value = op.read(1, kind)
    address = f"pk_ptx_shared_of_cluster({value})" if space else f"(void *){value}"
    op.write(0, TYPES["u32"], f"__cluster_query_shared_rank({address})")
