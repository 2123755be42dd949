"""Matrix instructions of a warp: mma.sync, ldmatrix, stmatrix, movmatrix, by the functions of pk_sim_mma.h."""

from __future__ import annotations

import re

from pygpukit.jit.ptx.memory import address
from pygpukit.jit.ptx.operation import Operation, instruction
from pygpukit.jit.ptx.types import TYPES, Type

_B32, _U16 = TYPES["b32"], TYPES["u16"]
_PLACE = "__builtin_FILE(), __builtin_LINE()"
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_SUMS = ("f16", "f32", "f64", "s32")
_FACTORS = ("f16", "bf16", "tf32", "f64", "s8", "u8", "s4", "u4", "b1", "e4m3", "e5m2")
# By kind and blocks of k that have a scale of their own: the shape, factors, and types of scales.
_SCALED = {
    ("mxf4", "2X"): ("m16n8k64", ("e2m1",), ("ue8m0",)),
    ("mxf4nvf4", "2X"): ("m16n8k64", ("e2m1",), ("ue8m0",)),
    ("mxf4nvf4", "4X"): ("m16n8k64", ("e2m1",), ("ue4m3",)),
    ("mxf8f6f4", "1X"): ("m16n8k32", ("e4m3", "e5m2"), ("ue8m0",)),
}
_HELD = {"f32": TYPES["f32"], "f64": TYPES["f64"], "s32": TYPES["s32"]}  # others are words of bits


@instruction("mma")
def _product(op: Operation) -> None:
    op.one_of("sync")
    op.one_of("aligned")
    scaling = _scaling(op)  # before the shape, as CUTLASS has it, or after the layouts, as PTX is documented
    shape = _SHAPE.fullmatch(op.peek())
    if shape is None:
        raise op.unknown()
    op.one_of(op.peek())
    layouts = [("row", "col").index(op.one_of("row", "col")) for _ in range(2)]
    if scaling := scaling or _scaling(op):
        _scaled_product(op, scaling, shape.group(), layouts)
        return
    how = 1 if op.flag("satfinite") else 0
    types = [op.one_of(*_SUMS), op.one_of(*_FACTORS), op.one_of(*_FACTORS), op.one_of(*_SUMS)]
    if types[1] == "b1":
        how = {"xor": 2, "and": 3}[op.one_of("xor", "and")]
        op.one_of("popc")
    if op.flag("satfinite"):  # ptxas takes it here, too
        how = 1
    op.no_more(4)
    op.need("mma")
    operands = [_array(op, index, _HELD.get(types[index], _B32)) for index in (1, 2, 3)]
    result = _HELD.get(types[0], _B32)
    to = op.block.fresh("sums")
    op.line(f"{result.cpp} {to}[{len(op.items(0))}];")
    arguments = ", ".join((*shape.groups(), *(f"pk_sim_mma_{one}" for one in types), *map(str, layouts), str(how)))
    op.line(f"pk_sim_mma<{arguments}>({to}, {', '.join(operands)}, {_PLACE});")
    for index, item in enumerate(op.items(0)):
        op.write_term(item, result, f"{to}[{index}]")


def _scaling(op: Operation) -> tuple[str, str] | None:
    """Takes the kind of a product with a scale for every block of k, and how many blocks; None where there are none."""
    if not op.peek().startswith("kind::"):
        return None
    kind = op.one_of(*dict.fromkeys(f"kind::{one}" for one, _ in _SCALED)).removeprefix("kind::")
    op.one_of("block_scale")
    default = None if kind == "mxf4nvf4" else next(f"scale_vec::{each}" for one, each in _SCALED if one == kind)
    return kind, op.one_of(*(f"scale_vec::{one}" for _, one in _SCALED), default=default).removeprefix("scale_vec::")


def _scaled_product(op: Operation, scaling: tuple[str, str], shape: str, layouts: list[int]) -> None:
    if scaling not in _SCALED or layouts != [0, 1]:
        raise op.unknown()
    (_, each), (known, factors, scales) = scaling, _SCALED[scaling]
    op.one_of("f32")
    types = [op.one_of(*factors), op.one_of(*factors)]
    op.one_of("f32")
    types.append(op.one_of(*scales))
    if shape != known:
        raise op.unknown()
    op.no_more(8)
    op.need("mma_scaled")
    operands = [_array(op, index, kind) for index, kind in ((1, _B32), (2, _B32), (3, _HELD["f32"]))]
    for words in (4, 6):
        places = op.items(words + 1)
        if len(places) != 2:
            raise op.fault("takes the byte and the thread that have the first scale, {byte, thread}")
        if len(op.items(words)) != 1:
            raise op.fault("takes the scales of a lane in one register")
        parts = (op.read_term(op.items(words)[0], _B32), *(f"(unsigned){op.read_term(one, _U16)}" for one in places))
        operands.append(op.block.fresh("scales"))
        op.line(f"const pk_sim_scales {operands[-1]} = {{{', '.join(parts)}}};")
    depth = int(known.rpartition("k")[2])
    to = op.block.fresh("sums")
    op.line(f"float {to}[{len(op.items(0))}];")
    arguments = ", ".join((str(depth), str(depth // int(each[0])), *(f"pk_sim_mma_{one}" for one in types)))
    op.line(f"pk_sim_mma_scaled<{arguments}>({to}, {', '.join(operands)}, {_PLACE});")
    for index, item in enumerate(op.items(0)):
        op.write_term(item, _HELD["f32"], f"{to}[{index}]")


def _array(op: Operation, index: int, kind: Type) -> str:
    """A vector operand's registers as an array."""
    name = op.block.fresh("registers")
    op.line(f"const {kind.cpp} {name}[] = {{{', '.join(op.read_term(item, kind) for item in op.items(index))}}};")
    return name


def _matrices(op: Operation) -> str:
    """Takes the modifiers that ldmatrix and stmatrix share: how many matrices, and whether they are transposed."""
    op.arrange(("sync",), ("aligned",), ("m8n8",), ("x1", "x2", "x4"), ("trans",), ("shared", "shared::cta"))
    op.one_of("sync")
    op.one_of("aligned")
    op.one_of("m8n8")
    count = op.one_of("x1", "x2", "x4")[1]
    transposed = op.flag("trans")
    op.one_of("shared", "shared::cta", default="shared")
    op.one_of("b16")
    op.no_more(2)
    op.need("mma")
    return f"{count}, {str(transposed).lower()}"


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
