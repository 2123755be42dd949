"""Floating-point arithmetic: f32, f64, f16, bf16 and pairs of all but f64."""

from __future__ import annotations

from pygpukit.jit.ptx import integers
from pygpukit.jit.ptx.operation import Operation, instruction
from pygpukit.jit.ptx.types import TYPES, Type

SMALL = {"f16": "pk_ptx_f16", "bf16": "pk_ptx_bf16"}
_DIRECTED = {"rz": "rz", "rm": "rd", "rp": "ru", "rn": "rn"}
_ROUNDINGS = ("rn", "rz", "rm", "rp")
_PLAIN = {"add": "+", "sub": "-", "mul": "*"}


def is_float(op: Operation) -> bool:
    """True where the instruction is one of floating-point numbers."""
    return any(
        word in TYPES and TYPES[word].kind in "fx" and word[0] not in "us" for word in op.parsed.opcode.split(".")
    )


def _small_kind(op: Operation) -> tuple[Type, str, bool]:
    """The type, its format, and whether it is a pair."""
    kind = op.type("f16 f16x2 bf16 bf16x2")
    op.need("small")
    return kind, SMALL[kind.name.removesuffix("x2")], kind.name.endswith("x2")


def write_small(op: Operation, kind: Type, pair: bool, expression: str, first: int, operands: int) -> None:
    """Writes an expression of the bits a, b, c, of both halves for a pair. first: where a is."""
    values = [op.read(first + index, kind) for index in range(operands)]
    names = "abc"[:operands]
    parameters = ", ".join(f"unsigned short {name}" for name in names)
    code = f"[](({parameters}) -> unsigned short {{ return {expression}; }}".replace("[]((", "[](")
    function = "pk_ptx_both" if pair else "pk_ptx_one"
    op.write(0, kind, f"{function}({', '.join([code, *values])})")


def arithmetic(op: Operation) -> None:
    """add, sub, mul, fma and mad of numbers of 32 and 64 bits, rounded as asked for."""
    fused = op.name in ("fma", "mad")
    rounding = op.one_of(*_ROUNDINGS, default="")
    flush = op.flag("ftz")
    saturate = op.flag("sat")
    if op.peek() == "f32x2" and not saturate and op.name != "mad":
        _pair_arithmetic(op, rounding, flush)
        return
    if op.peek() not in ("f32", "f64"):
        _small_arithmetic(op, rounding, flush, saturate)
        return
    kind = op.type("f32" if flush or saturate else "f32 f64")
    op.no_more(4 if fused else 3)
    op.need("float")
    value = _rounded(op, kind, rounding, flush, [op.read(index, kind) for index in range(1, 4 if fused else 3)])
    op.write(0, kind, f"pk_ptx_saturated({value})" if saturate else value)


def _rounded(op: Operation, kind: Type, rounding: str, flush: bool, values: list[str]) -> str:
    """The sum, difference, product or fused product of two or three values, as an expression."""
    if flush:
        values = [f"pk_ptx_flushed({value})" for value in values]
    letter = "f" if kind.bits == 32 else "d"
    if len(values) == 3:
        function = "__fmaf" if kind.bits == 32 else "__fma"
        value = f"{function}_{_DIRECTED[rounding or 'rn']}({', '.join(values)})"
    elif rounding:
        value = f"__{letter}{op.name}_{_DIRECTED[rounding]}({', '.join(values)})"
    else:
        value = f"(({values[0]}) {_PLAIN[op.name]} ({values[1]}))"
    return f"pk_ptx_flushed({value})" if flush else value


def _pair_arithmetic(op: Operation, rounding: str, flush: bool) -> None:
    """Both halves of 64 bits, each a float."""
    kind = op.type("f32x2")
    if op.name == "fma" and not rounding:
        raise op.unknown()
    count = 3 if op.name == "fma" else 2
    op.no_more(count + 1)
    op.need("float")
    values = [op.temporary(kind.cpp, op.read(index + 1, kind)) for index in range(count)]
    low, high = (
        _rounded(
            op, TYPES["f32"], rounding, flush, [f"pk_ptx_bits<float>((unsigned)({one} >> {at}))" for one in values]
        )
        for at in (0, 32)
    )
    op.write(0, kind, f"(({kind.cpp})pk_ptx_bits<unsigned>({high}) << 32 | pk_ptx_bits<unsigned>({low}))")


def _small_arithmetic(op: Operation, rounding: str, flush: bool, saturate: bool) -> None:
    if rounding not in ("", "rn") or (op.name == "fma" and not rounding) or op.name == "mad":
        raise op.unknown()
    relu = op.name == "fma" and op.flag("relu")
    oob = op.name == "fma" and op.flag("oob")
    kind, name, pair = _small_kind(op)
    if oob or (name == "pk_ptx_bf16" and (flush or saturate)):
        raise op.unknown()
    count = 3 if op.name == "fma" else 2
    op.no_more(count + 1)
    names = list("abc"[:count])
    if flush:
        names = [f"pk_ptx_flushed_small<{name}>({one})" for one in names]
    if count == 3:
        value = f"pk_ptx_fused<{name}>({', '.join(names)})"
    else:
        a, b = (f"pk_ptx_value<{name}>({one})" for one in names)
        value = f"pk_ptx_nearest<{name}>({a} {_PLAIN[op.name]} {b})"
    if flush:
        value = f"pk_ptx_flushed_small<{name}>({value})"
    if saturate:
        value = f"pk_ptx_nearest<{name}>(__saturatef(pk_ptx_value<{name}>({value})))"
    if relu:
        value = f"pk_ptx_relu<{name}>({value})"
    write_small(op, kind, pair, value, 1, count)


@instruction("add", "sub")
def _add(op: Operation) -> None:
    arithmetic(op) if is_float(op) else integers.add_or_subtract(op)


@instruction("mul")
def _mul(op: Operation) -> None:
    arithmetic(op) if is_float(op) else integers.multiply(op)


@instruction("mad")
def _mad(op: Operation) -> None:
    arithmetic(op) if is_float(op) else integers.multiply(op)


instruction("fma")(arithmetic)


@instruction("div")
def _divide(op: Operation) -> None:
    if not is_float(op):
        integers.divide(op)
        return
    mode = op.one_of("approx", "full", *_ROUNDINGS)
    flush = op.flag("ftz")
    kind = op.type("f32" if flush or mode in ("approx", "full") else "f32 f64")
    op.no_more(3)
    op.need("float")
    a, b = op.read(1, kind), op.read(2, kind)
    if flush:
        a, b = f"pk_ptx_flushed({a})", f"pk_ptx_flushed({b})"
    letter = "f" if kind.bits == 32 else "d"
    value = f"__{letter}div_{_DIRECTED.get(mode, 'rn')}({a}, {b})"
    op.write(0, kind, f"pk_ptx_flushed({value})" if flush else value)


@instruction("abs", "neg")
def _sign(op: Operation) -> None:
    if not is_float(op):
        integers.sign(op)
        return
    flush = op.flag("ftz")
    if op.peek() not in ("f32", "f64"):
        kind, name, pair = _small_kind(op)
        op.no_more(2)
        value = f"(unsigned short)(a {'& 0x7fffu' if op.name == 'abs' else '^ 0x8000u'})"
        write_small(op, kind, pair, f"pk_ptx_flushed_small<{name}>({value})" if flush else value, 1, 1)
        return
    kind = op.type("f32" if flush else "f32 f64")
    op.no_more(2)
    suffix = "f" if kind.bits == 32 else ""
    value = op.read(1, kind)
    value = f"__builtin_fabs{suffix}({value})" if op.name == "abs" else f"-({value})"
    op.write(0, kind, f"pk_ptx_flushed({value})" if flush else value)


@instruction("copysign")
def _copysign(op: Operation) -> None:
    kind = op.type("f32 f64")
    op.no_more(3)
    suffix = "f" if kind.bits == 32 else ""
    op.write(0, kind, f"__builtin_copysign{suffix}({op.read(2, kind)}, {op.read(1, kind)})")


@instruction("min", "max")
def _extreme(op: Operation) -> None:
    if not is_float(op):
        integers.extreme(op)
        return
    flush = op.flag("ftz")
    spoils = str(op.flag("NaN")).lower()
    takes_min = str(op.name == "min").lower()
    size = op.flag("xorsign")
    if size:
        op.one_of("abs")
    function = "pk_ptx_extreme_size" if size else "pk_ptx_extreme"
    if op.peek() not in ("f32", "f64"):
        kind, name, pair = _small_kind(op)
        op.no_more(3)
        if not flush and not size:
            write_small(op, kind, pair, _extreme_bits(_INFINITY[kind.name[: -2 if pair else None]], op, spoils), 1, 2)
            return
        names = [f"pk_ptx_flushed_small<{name}>({one})" if flush else one for one in "ab"]
        a, b = (f"pk_ptx_value<{name}>({one})" for one in names)
        write_small(op, kind, pair, f"pk_ptx_nearest<{name}>({function}({a}, {b}, {takes_min}, {spoils}))", 1, 2)
        return
    kind = op.type("f32" if flush or size or spoils == "true" else "f32 f64")
    op.no_more((3, 4 if kind.bits == 32 else 3))
    op.need("float")
    values = [op.read(index, kind) for index in range(1, op.count)]
    if flush:
        values = [f"pk_ptx_flushed({value})" for value in values]
    value = f"{function}({values[0]}, {values[1]}, {takes_min}, {spoils})"
    for more in values[2:]:
        value = f"{function}({value}, {more}, {takes_min}, {spoils})"
    op.write(0, kind, value)


_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80}


def _extreme_bits(infinity: int, op: Operation, spoils: str) -> str:
    """The least or the largest of two numbers of 16 bits, a and b, by their bits alone: in the order of integers once
    the size of a negative one is turned round."""
    a, b = (f"(short)({one} ^ ((short){one} >> 15 & 0x7fff))" for one in "ab")
    a_spoils, b_spoils = (f"({one} & 0x7fff) > {infinity:#x}" for one in "ab")
    ordered = f"{a} {'<' if op.name == 'min' else '>'} {b} ? a : b"
    if spoils == "true":
        return f"{a_spoils} || {b_spoils} ? 0x7fff : {ordered}"
    return f"{a_spoils} ? ({b_spoils} ? 0x7fff : b) : {b_spoils} ? a : {ordered}"


_FUNCTIONS = {
    "ex2": "__builtin_exp2f({})", "lg2": "__builtin_log2f({})", "sin": "__builtin_sinf({})",
    "cos": "__builtin_cosf({})", "tanh": "__builtin_tanhf({})", "rcp": "(1.0f / {})", "sqrt": "__builtin_sqrtf({})",
    "rsqrt": "(float)(1.0 / __builtin_sqrt((double){}))",
}  # fmt: skip


@instruction("ex2", "tanh", "lg2", "sin", "cos", "rsqrt")
def _approximate(op: Operation) -> None:
    op.one_of("approx")
    flush = op.flag("ftz")
    if op.name in ("ex2", "tanh") and op.peek() not in ("f32", "f64"):
        kind, name, pair = _small_kind(op)
        op.no_more(2)
        value = _FUNCTIONS[op.name].format(f"pk_ptx_value<{name}>(a)")
        write_small(op, kind, pair, f"pk_ptx_nearest<{name}>({value})", 1, 1)
        return
    kind = op.type("f32 f64" if op.name == "rsqrt" else "f32")
    op.no_more(2)
    op.need("float")
    value = op.read(1, kind)
    if kind.bits == 64:
        value = f"pk_ptx_reciprocal_root({value})" if flush else f"(1.0 / __builtin_sqrt({value}))"
    elif op.name == "ex2" and flush:  # of the least numbers it is 1, and no result is negative
        held = op.temporary("float", _FUNCTIONS["ex2"].format(value))
        value = f"({held} < 0x1p-126f ? 0.0f : {held})"
    else:
        value = _FUNCTIONS[op.name].format(f"pk_ptx_flushed({value})" if flush else f"({value})")
        value = f"pk_ptx_flushed({value})" if flush else value
    op.write(0, kind, value)


@instruction("rcp", "sqrt")
def _root(op: Operation) -> None:
    mode = op.one_of("approx", *_ROUNDINGS)
    flush = op.flag("ftz")
    wide = op.name == "rcp" and mode == "approx" and flush
    kind = op.type("f32 f64" if wide or (mode != "approx" and not flush) else "f32")
    op.no_more(2)
    op.need("float")
    value = op.read(1, kind)
    if kind.bits == 64 and mode == "approx":
        op.write(0, kind, f"pk_ptx_reciprocal({value})")
        return
    if flush:
        value = f"pk_ptx_flushed({value})"
    letter = "f" if kind.bits == 32 else "d"
    value = f"__{letter}{op.name}_{_DIRECTED.get(mode, 'rn')}({value})"
    op.write(0, kind, f"pk_ptx_flushed({value})" if flush else value)


_TESTS = {
    "finite": "FINITE", "infinite": "INFINITE", "number": "NUMBER", "notanumber": "NOT_A_NUMBER", "normal": "NORMAL",
    "subnormal": "SUBNORMAL",
}  # fmt: skip


@instruction("testp")
def _test(op: Operation) -> None:
    what = _TESTS[op.one_of(*_TESTS)]
    kind = op.type("f32 f64")
    op.no_more(2)
    op.need("float")
    op.write(0, TYPES["pred"], f"pk_ptx_is({op.read(1, kind)}, PK_PTX_{what})")
