"""Products of a warp group: wgmma, by the functions of pk_sim_ptx_wgmma.h."""

from __future__ import annotations

import re
from functools import lru_cache

from pygpukit.jit.ptx.operation import Operation, instruction
from pygpukit.jit.ptx.parser import Number, OperandNumber, Vector
from pygpukit.jit.ptx.types import TYPES

_B32, _B64, _PRED, _S32, _U32 = TYPES["b32"], TYPES["b64"], TYPES["pred"], TYPES["s32"], TYPES["u32"]
_PLACE = "__builtin_FILE(), __builtin_LINE()"
_SHAPE = re.compile(r"m64n(\d+)k(\d+)")
_DEPTH = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32, "b1": 256}
_FACTORS = {"f16": ("f16",), "bf16": ("bf16",), "tf32": ("tf32",), "e4m3": ("e4m3", "e5m2"), "e5m2": ("e4m3", "e5m2"),
            "s8": ("s8", "u8"), "u8": ("s8", "u8"), "b1": ("b1",)}  # fmt: skip
_SUMS = {"f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "e4m3": ("f16", "f32"), "e5m2": ("f16", "f32"),
         "s8": ("s32",), "u8": ("s32",), "b1": ("s32",)}  # fmt: skip
_LETTERS = {"f32": "f", "f16": "r", "s32": "r"}
_ELEMENT = re.compile(r"\((?P<array>(?:\w|\.|::|->)+)\[(?P<index>\s*\d+\s*(?:\+\s*\d+\s*)*)\]\)")
_HELD = 4  # registers of a warp's rows


@instruction("wgmma")
def _group(op: Operation) -> None:
    op.need("wgmma")
    what = op.one_of("mma_async", "fence", "commit_group", "wait_group")
    op.one_of("sync")
    op.one_of("aligned")
    if what == "mma_async":
        _product(op)
    elif what == "wait_group":
        op.no_more(1)
        op.line(f"pk_ptx_wait_products({op.read(0, _U32)});")
    else:
        op.no_more(0)
        op.line("pk_ptx_commit_products();" if what == "commit_group" else "__pk_fence();")


def _product(op: Operation) -> None:
    shape = _SHAPE.fullmatch(op.peek())
    if shape is None:
        raise op.unknown()
    op.one_of(op.peek())
    columns, depth = map(int, shape.groups())
    saturates = op.flag("satfinite")
    result = op.one_of("f16", "f32", "s32")
    saturates = op.flag("satfinite") or saturates
    left, right = op.one_of(*_DEPTH), op.one_of(*_DEPTH)
    whole = result == "s32"
    steps = range(8, 257, 8) if not whole else (8, 24, *range(16, 257, 16))
    if right not in _FACTORS[left] or result not in _SUMS[left] or depth != _DEPTH[left] or columns not in steps:
        raise op.unknown()
    if left == "b1":
        op.one_of("and")
        op.one_of("popc")
    if saturates and (not whole or left == "b1"):
        raise op.unknown()
    held = isinstance(op.operand(1), Vector)
    turns = (0 if _DEPTH[left] != 16 else 1 if held else 2) if not whole else 0
    op.no_more(4 if whole else 6 + turns)
    sums = op.items(0)
    if len(sums) != columns * (1 if result == "f16" else 2) // 4:
        raise op.fault(f"takes {columns * (1 if result == 'f16' else 2) // 4} registers of sums, {len(sums)} are given")
    for item in sums:
        if isinstance(item, OperandNumber) and op.block.operands[item.index].letter != _LETTERS[result]:
            raise op.fault(f'sums are operands of the constraint "+{_LETTERS[result]}"', item.at)
    places = op.places(sums)
    registers = "nullptr"
    if held:
        items = op.items(1)
        if len(items) != _HELD:
            raise op.fault(f"takes {_HELD} registers of rows, {len(items)} are given")
        registers = op.block.fresh("rows")
        op.line(f"const unsigned {registers}[] = {{{', '.join(op.read_term(item, _B32) for item in items)}}};")
    signs = ["false", "false"] if whole else [_negative(op, index) for index in (4, 5)]
    transposed = [f"({op.read(index, _S32)} != 0)" for index in range(6, 6 + turns)]
    a_transposed, b_transposed = (["false"] * (2 - turns) + transposed) if turns else ("false", "false")
    arguments = (
        str(columns), _array(places), registers,
        "0ull" if held else op.read(1, _B64), op.read(2, _B64), op.read(3, _PRED), *signs, a_transposed, b_transposed,
        str(saturates).lower(), _PLACE,
    )  # fmt: skip
    op.line(f"pk_ptx_wgmma<{', '.join(f'pk_sim_mma_{one}' for one in (result, left, right))}>({', '.join(arguments)});")


def _array(places: list[str]) -> str:
    """The address of the first of a thread's sums, which are elements of one array; a null pointer where they are not.
    What the text shows, the compiler need not compare."""
    first = _element(places[0])
    if first and all(_element(place) == (first[0], first[1] + i) for i, place in enumerate(places)):
        return f"pk_ptx_elements({places[0]}, {places[-1]}, {len(places)})"
    return f"pk_ptx_neighbours({', '.join(places)})"


@lru_cache(maxsize=512)  # the same for every type of element
def _element(place: str) -> tuple[str, int] | None:
    """The array's name and the index, where a place is an element by a number."""
    match = _ELEMENT.fullmatch(place)
    return (match["array"], sum(map(int, match["index"].split("+")))) if match else None


def _negative(op: Operation, index: int) -> str:
    """True where an operand is multiplied by -1."""
    term = op.operand(index)
    if isinstance(term, Number) and term.value not in (1, -1):
        raise op.fault(f"a scale is 1 or -1, {term.value} is given", term.at)
    return f"({op.read(index, _S32)} < 0)"
