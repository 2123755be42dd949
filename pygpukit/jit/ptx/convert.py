"""cvt: between integers, floating-point numbers, and formats of a few bits."""

from __future__ import annotations

from pygpukit.jit.ptx.floats import SMALL
from pygpukit.jit.ptx.operation import Operation, instruction
from pygpukit.jit.ptx.types import TYPES, Type

_INTEGER = ("rni", "rzi", "rmi", "rpi")
_FLOAT = ("rn", "rz", "rm", "rp", "rna")
_FUNCTIONS = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_DIRECTED = {"rz": "rz", "rm": "rd", "rp": "ru"}
_EIGHTHS = {"e4m3x2": "pk_ptx_e4m3", "e5m2x2": "pk_ptx_e5m2", "e2m3x2": "pk_ptx_e2m3", "e3m2x2": "pk_ptx_e3m2",
            "e2m1x2": "pk_ptx_e2m1"}  # fmt: skip
_SHORT = {"u64": "ull", "s64": "ll", "u32": "uint", "s32": "int"}


@instruction("cvt")
def _convert(op: Operation) -> None:
    if op.flag("pack"):
        _pack(op)
        return
    rounding = op.one_of(*_INTEGER, *_FLOAT, default="")
    relu, flush = False, False
    while op.peek() in ("relu", "ftz", "sat", "satfinite"):
        if op.flag("relu"):
            relu = True
        elif op.flag("ftz"):
            flush = True
        else:
            break
    finite = op.flag("satfinite")
    relu = op.flag("relu") or relu
    saturate = op.flag("sat")
    to, source = op.type(), op.type()
    if to.name in _EIGHTHS or source.name in _EIGHTHS or to.name in ("f16x2", "bf16x2"):
        _packed(op, to, source, rounding, relu, finite)
    elif to.name == "tf32" and source.name == "f32" and rounding in ("rn", "rz", "rna") and not flush and not saturate:
        op.no_more(2)
        op.need("small")
        value = f"pk_ptx_to_tf32({op.read(1, source)}, {_rounding(rounding)}, {_literal(relu)}, {_literal(finite)})"
        op.write(0, TYPES["b32"], value)
    elif finite or (relu and to.name not in SMALL):
        raise op.unknown()
    else:
        op.no_more(2)
        _plain(op, to, source, rounding, flush, saturate, relu)


def _literal(value: bool) -> str:
    return str(value).lower()


def _rounding(rounding: str) -> str:
    return f"PK_PTX_{rounding.upper()}"


def _plain(op: Operation, to: Type, source: Type, rounding: str, flush: bool, saturate: bool, relu: bool) -> None:
    from_float, to_float = source.kind in "fx", to.kind in "fx"
    for kind in (to, source):
        if not kind.is_integer and kind.name not in ("f32", "f64", *SMALL):
            raise op.unknown()
    if not from_float and not to_float:
        _integers(op, to, source, rounding, flush, saturate)
        return
    # A rounding belongs to a conversion that can lose something, and says to what.
    whole = rounding in _INTEGER
    narrows = to_float and (not from_float or source.bits > to.bits or {to.name, source.name} == set(SMALL))
    if (not to_float and not whole) or (to_float and not whole and bool(rounding) != narrows) or rounding == "rna":
        raise op.unknown()
    if whole and to_float and (not from_float or to.name != source.name):
        raise op.unknown()
    wider = source.bits < 64
    value = op.read(1, source, wider)
    if source.name in SMALL:
        op.need("small")
        value = f"pk_ptx_value<{SMALL[source.name]}>({value})"
    held = "double" if source.name == "f64" else "float"
    if flush and source.name == "f32":
        value = f"pk_ptx_flushed({value})"
    if not to_float:
        op.need("convert")
        suffix = "" if held == "double" else "f"
        value = f"__builtin_{_FUNCTIONS[rounding]}{suffix}({value})"
        op.write(0, to, f"pk_ptx_to_integer<{to.cpp}>({value}, {_literal(source.bits == 64 or to.bits == 64)})", True)
        return
    if from_float and whole:
        suffix = "" if held == "double" else "f"
        value = f"__builtin_{_FUNCTIONS[rounding]}{suffix}({value})"
    _to_float(op, to, source, value, "" if whole else rounding, flush, saturate, relu)


def _to_float(
    op: Operation, to: Type, source: Type, value: str, rounding: str, flush: bool, saturate: bool, relu: bool
) -> None:
    op.need("convert" if to.name not in SMALL else "small")
    directed = _DIRECTED.get(rounding, "")
    if to.name in SMALL:
        name = SMALL[to.name]
        if source.is_integer:
            op.need("convert")
            value = f"pk_ptx_odd({value})"
        if rounding in ("", "rn") and (source.kind == "x" or source.name == "f32"):
            value = f"pk_ptx_nearest<{name}>({value})"
        else:
            value = f"(unsigned short)pk_ptx_narrowed<{name}>({value}, {_rounding(rounding or 'rn')})"
        if saturate:
            value = f"pk_ptx_nearest<{name}>(__saturatef(pk_ptx_value<{name}>({value})))"
        if relu:
            value = f"pk_ptx_relu<{name}>({value})"
        op.write(0, to, value, True)
        return
    if source.is_integer and directed:
        wide = TYPES[f"{source.kind}{max(source.bits, 32)}"]
        function = f"__{_SHORT[wide.name]}2{to.cpp}_{directed}"
        exact = to.bits == 64 and source.bits <= 32
        value = f"((double){value})" if exact else f"{function}({value})"
    elif source.name == "f64" and to.name == "f32" and directed:
        value = f"__double2float_{directed}({value})"
    else:
        value = f"(({to.cpp}){value})"
    if flush and to.name == "f32":
        value = f"pk_ptx_flushed({value})"
    op.write(0, to, f"pk_ptx_saturated({value})" if saturate else value, True)
    op.need("float")


def _integers(op: Operation, to: Type, source: Type, rounding: str, flush: bool, saturate: bool) -> None:
    if rounding or flush:
        raise op.unknown()
    value = op.read(1, source, True)
    if saturate:
        op.need("convert")
        value = f"pk_ptx_limited<{to.cpp}>({value})"
    op.write(0, to, f"(({to.cpp}){value})", True)


def _packed(op: Operation, to: Type, source: Type, rounding: str, relu: bool, finite: bool) -> None:
    """Two numbers into, or out of, one word."""
    op.need("small")
    if source.name in _EIGHTHS:  # out of a pair of few bits
        if to.name != "f16x2" or rounding != "rn" or finite:
            raise op.unknown()
        op.no_more(2)
        value = f"pk_ptx_unpacked<{_EIGHTHS[source.name]}>({op.read(1, source, True)}, {_literal(relu)})"
        op.write(0, to, value)
        return
    if to.name in _EIGHTHS:
        if rounding != "rn" or not finite or (source.name == "f16x2" and to.name not in ("e4m3x2", "e5m2x2")):
            raise op.unknown()
        name = _EIGHTHS[to.name]
        if source.name == "f32":
            op.no_more(3)
            high, low = op.read(1, source), op.read(2, source)
        elif source.name == "f16x2":
            op.no_more(2)
            word = op.temporary("unsigned", op.read(1, source))
            high = f"pk_ptx_value<pk_ptx_f16>((unsigned short)({word} >> 16))"
            low = f"pk_ptx_value<pk_ptx_f16>((unsigned short){word})"
        else:
            raise op.unknown()
        op.write(0, to, f"({to.cpp})pk_ptx_packed<{name}>({low}, {high}, {_literal(relu)})")
        return
    if source.name != "f32" or rounding not in ("rn", "rz"):
        raise op.unknown()
    op.no_more(3)
    name = SMALL[to.name.removesuffix("x2")]
    if rounding == "rn" and not finite:
        expressions = [f"pk_ptx_nearest<{name}>({op.read(index, source)})" for index in (2, 1)]
    else:
        expressions = [
            f"(unsigned short)pk_ptx_narrowed<{name}>"
            f"({op.read(index, source)}, {_rounding(rounding)}, {_literal(finite)})"
            for index in (2, 1)
        ]
    if relu:
        expressions = [f"pk_ptx_relu<{name}>({value})" for value in expressions]
    op.write(0, to, f"((unsigned){expressions[0]} | (unsigned){expressions[1]} << 16)")


def _pack(op: Operation) -> None:
    op.one_of("sat")
    to, source = op.type("u16 s16 u8 s8"), op.type("s32")
    added = op.type("b32") if op.peek() else None
    if (to.bits == 8) != (added is not None):
        raise op.unknown()
    op.no_more(4 if added else 3)
    op.need("convert")
    a, b = (f"(unsigned)({TYPES[f'u{to.bits}'].cpp})pk_ptx_limited<{to.cpp}>({op.read(i, source)})" for i in (1, 2))
    value = f"({a} << {to.bits} | {b}"
    value += f" | {op.read(3, added)} << 16)" if added else ")"
    op.write(0, TYPES["b32"], value)
