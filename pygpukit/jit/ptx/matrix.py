"""Matrix instructions of a warp: mma.sync, ldmatrix, stmatrix, movmatrix, by the functions of pk_sim_mma.h."""

from __future__ import annotations

import re

from pygpukit.jit.ptx.memory import address
from pygpukit.jit.ptx.operation import Operation, instruction
from pygpukit.jit.ptx.types import TYPES, Type

_B32 = TYPES["b32"]
_PLACE = "__builtin_FILE(), __builtin_LINE()"
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_SUMS = ("f16", "f32", "f64", "s32")
_FACTORS = ("f16", "bf16", "tf32", "f64", "s8", "u8", "s4", "u4", "b1", "e4m3", "e5m2")
_HELD = {"f32": TYPES["f32"], "f64": TYPES["f64"], "s32": TYPES["s32"]}  # others are words of bits


@instruction("mma")
def _product(op: Operation) -> None:
    op.one_of("sync")
    op.one_of("aligned")
    shape = _SHAPE.fullmatch(op.peek())
    if shape is None:
        raise op.unknown()
    op.one_of(op.peek())
    layouts = [("row", "col").index(op.one_of("row", "col")) for _ in range(2)]
    how = 1 if op.flag("satfinite") else 0
    types = [op.one_of(*_SUMS), op.one_of(*_FACTORS), op.one_of(*_FACTORS), op.one_of(*_SUMS)]
    if types[1] == "b1":
        how = {"xor": 2, "and": 3}[op.one_of("xor", "and")]
        op.one_of("popc")
    op.no_more(4)
    op.need("mma")
    given = [_array(op, index, _HELD.get(types[index], _B32)) for index in (1, 2, 3)]
    result = _HELD.get(types[0], _B32)
    to = op.block.fresh("sums")
    op.line(f"{result.cpp} {to}[{len(op.items(0))}];")
    arguments = ", ".join((*shape.groups(), *(f"pk_sim_mma_{one}" for one in types), *map(str, layouts), str(how)))
    op.line(f"pk_sim_mma<{arguments}>({to}, {', '.join(given)}, {_PLACE});")
    for index, item in enumerate(op.items(0)):
        op.write_term(item, result, f"{to}[{index}]")


def _array(op: Operation, index: int, kind: Type) -> str:
    """A vector operand's registers as an array."""
    name = op.block.fresh("registers")
    op.line(f"const {kind.cpp} {name}[] = {{{', '.join(op.read_term(item, kind) for item in op.items(index))}}};")
    return name


def _matrices(op: Operation) -> str:
    """Takes the modifiers that ldmatrix and stmatrix share: how many matrices, and whether they are turned."""
    op.one_of("sync")
    op.one_of("aligned")
    op.one_of("m8n8")
    count = op.one_of("x1", "x2", "x4")[1]
    turned = str(op.flag("trans")).lower()
    op.one_of("shared", "shared::cta", default="shared")
    op.one_of("b16")
    op.no_more(2)
    op.need("mma")
    return f"{count}, {turned}"


@instruction("ldmatrix")
def _load(op: Operation) -> None:
    shape = _matrices(op)
    items = op.items(0)
    if len(items) != int(shape[0]):
        raise op.fault(f"takes {shape[0]} registers, {len(items)} are given")
    to = op.block.fresh("matrices")
    op.line(f"unsigned {to}[{len(items)}];")
    op.line(f"pk_sim_ldmatrix<{shape}>({to}, {address(op, op.operand(1), 'shared')}, {_PLACE});")
    for index, item in enumerate(items):
        op.write_term(item, _B32, f"{to}[{index}]")


@instruction("stmatrix")
def _store(op: Operation) -> None:
    shape = _matrices(op)
    if len(op.items(1)) != int(shape[0]):
        raise op.fault(f"takes {shape[0]} registers, {len(op.items(1))} are given")
    registers = _array(op, 1, _B32)
    op.line(f"pk_sim_stmatrix<{shape}>({address(op, op.operand(0), 'shared')}, {registers}, {_PLACE});")


@instruction("movmatrix")
def _turn(op: Operation) -> None:
    for word in ("sync", "aligned", "m8n8", "trans", "b16"):
        op.one_of(word)
    op.no_more(2)
    op.need("mma")
    op.write(0, _B32, f"pk_sim_movmatrix({op.read(1, _B32)}, {_PLACE})")
