"""Comparisons and selections: setp, set, selp, slct."""

from __future__ import annotations

from pygpukit.jit.ptx.floats import SMALL
from pygpukit.jit.ptx.operation import Operation, instruction
from pygpukit.jit.ptx.parser import Pair, Sink
from pygpukit.jit.ptx.types import TYPES, Type

_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
          "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}  # fmt: skip
_EITHER = {"equ": "==", "neu": "!=", "ltu": "<", "leu": "<=", "gtu": ">", "geu": ">="}
_COMPARED = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64 f16 f16x2 bf16 bf16x2"
_PRED = TYPES["pred"]


def _holds(op: Operation, how: str, kind: Type, a: str, b: str) -> str:
    """The comparison of two values that may be floats."""
    if kind.kind not in "fx":
        unsigned = how in ("lo", "ls", "hi", "hs")
        if how not in _SIGNS or (unsigned and kind.kind != "u") or (kind.kind == "b" and how not in ("eq", "ne")):
            raise op.unknown()
        return f"({a} {_SIGNS[how]} {b})"
    if how in ("num", "nan"):
        unordered = f"__builtin_isunordered({a}, {b})"
        return unordered if how == "nan" else f"!{unordered}"
    if how in _EITHER:
        return f"(__builtin_isunordered({a}, {b}) || {a} {_EITHER[how]} {b})"
    if how not in _SIGNS or how in ("lo", "ls", "hi", "hs"):
        raise op.unknown()
    number = f"!__builtin_isunordered({a}, {b}) && " if how == "ne" else ""
    return f"({number}{a} {_SIGNS[how]} {b})"


def _compared(op: Operation, how: str, kind: Type, flush: bool) -> list[str]:
    """The comparison as one expression, for pairs one of each half."""
    name = SMALL.get(kind.name.removesuffix("x2"))
    values = [op.temporary(kind.cpp, op.read(index, kind)) for index in (1, 2)]
    if name is None:
        if flush:
            op.need("float")
            values = [op.temporary("float", f"pk_ptx_flushed({value})") for value in values]
        return [_holds(op, how, kind, *values)]
    op.need("small")
    results = []
    for shift in (0, 16) if kind.name.endswith("x2") else (0,):
        halves = []
        for value in values:
            bits = f"(unsigned short)({value} >> {shift})"
            bits = f"pk_ptx_flushed_small<{name}>({bits})" if flush else bits
            halves.append(op.temporary("float", f"pk_ptx_value<{name}>({bits})"))
        results.append(_holds(op, how, kind, *halves))
    return results


def _combined(op: Operation, how: str, result: str) -> str:
    if not how:
        return result
    sign = {"and": "&", "or": "|", "xor": "^"}[how]
    return f"(({result}) {sign} ({op.read(3, _PRED)}))"


def _parts(op: Operation) -> tuple[str, str]:
    return op.one_of(*_SIGNS, *_EITHER, "num", "nan"), op.one_of("and", "or", "xor", default="")


@instruction("setp")
def _set_predicate(op: Operation) -> None:
    how, combined = _parts(op)
    flush = op.flag("ftz")
    kind = op.type(_COMPARED)
    op.no_more(4 if combined else 3)
    results = _compared(op, how, kind, flush)
    to = op.operand(0)
    names = (to.first, to.second) if isinstance(to, Pair) else (to,)
    if len(names) == 2 and len(results) == 1:
        results.append(f"!{op.temporary('bool', results[0])}")
    predicates = [op.temporary("bool", _combined(op, combined, result)) for result in results]
    if len(names) == 1 and len(predicates) == 2:
        raise op.fault("takes two predicates, p|q")
    for name, value in zip(names, predicates, strict=True):
        if not isinstance(name, Sink):
            op.write_term(name, _PRED, value)


@instruction("set")
def _set(op: Operation) -> None:
    how, combined = _parts(op)
    flush = op.flag("ftz")
    to, kind = op.type("u32 s32 f32 u16 s16 f16 bf16 f16x2 bf16x2"), op.type(_COMPARED)
    op.no_more(4 if combined else 3)
    results = [op.temporary("bool", _combined(op, combined, one)) for one in _compared(op, how, kind, flush)]
    name = SMALL.get(to.name.removesuffix("x2"))
    if len(results) == 2:
        one = "0xffffu" if to.is_integer else f"(unsigned)pk_ptx_nearest<{name}>(1.0f)"
        if to.bits != 32 or to.kind == "f":
            raise op.unknown()
        op.write(0, to, f"(({results[0]} ? {one} : 0u) | ({results[1]} ? {one} << 16 : 0u))")
    elif to.name.endswith("x2"):
        raise op.unknown()
    elif name:
        op.need("small")
        op.write(0, to, f"({results[0]} ? pk_ptx_nearest<{name}>(1.0f) : (unsigned short)0)")
    elif to.kind == "f":
        op.write(0, to, f"({results[0]} ? 1.0f : 0.0f)")
    else:
        op.write(0, to, f"({results[0]} ? ({to.cpp})-1 : ({to.cpp})0)")


@instruction("selp")
def _select(op: Operation) -> None:
    kind = op.type("b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64")
    op.no_more(4)
    op.write(0, kind, f"({op.read(3, _PRED)} ? {op.read(1, kind)} : {op.read(2, kind)})")


@instruction("slct")
def _choose(op: Operation) -> None:
    flush = op.flag("ftz")
    kind = op.type("b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64")
    by = op.type("f32" if flush else "s32 f32")
    op.no_more(4)
    value = op.read(3, by)
    value = f"pk_ptx_flushed({value})" if flush else value
    op.write(0, kind, f"({value} >= 0 ? {op.read(1, kind)} : {op.read(2, kind)})")
