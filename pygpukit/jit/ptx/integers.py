"""Integer arithmetic, with and without carry, and instructions on bits."""

from __future__ import annotations

from pygpukit.jit.ptx.operation import Operation, instruction
from pygpukit.jit.ptx.types import TYPES, Type

_INTEGERS = "u16 u32 u64 s16 s32 s64"
_WIDE = {"16": "32", "32": "64"}
_U32 = TYPES["u32"]


def _pair(op: Operation, kind: Type, expression: str) -> None:
    """An instruction on two numbers of 16 bits."""
    op.need("integer")
    lane = "short" if kind.name[0] == "s" else "unsigned short"
    a, b = op.read(1, kind), op.read(2, kind)
    op.write(
        0, kind, f"pk_ptx_lanes<{lane}>({a}, {b}, [](int a, int b) -> {lane} {{ return ({lane})({expression}); }})"
    )


def add_or_subtract(op: Operation) -> None:
    """add, sub, addc and subc of integers."""
    plus = op.name.startswith("add")
    carried = op.name.endswith("c")
    keep = op.flag("cc")
    saturated = not carried and not keep and op.flag("sat")
    kind = op.type("u32 s32 u64 s64" if carried or keep else "s32" if saturated else f"{_INTEGERS} u16x2 s16x2")
    op.no_more(3)
    sign = "+" if plus else "-"
    if kind.name.endswith("x2"):
        _pair(op, kind, f"a {sign} b")
    elif saturated:
        op.need("integer")
        op.write(0, kind, f"pk_ptx_clamped((long long){op.read(1, kind)} {sign} {op.read(2, kind)})")
    elif carried or keep:
        op.need("integer")
        plain = TYPES[f"u{kind.bits}"]
        function = "pk_ptx_add" if plus else "pk_ptx_subtract"
        carry = "pk_ptx_carry()" if carried else "0u"
        value = f"{function}({op.read(1, plain)}, {op.read(2, plain)}, {carry}, {str(keep).lower()})"
        op.write(0, plain, value)
    else:
        op.write(0, kind, f"({kind.cpp})({op.read(1, kind)} {sign} {op.read(2, kind)})")


instruction("addc", "subc")(add_or_subtract)


def multiply(op: Operation) -> None:
    """mul and mad of integers."""
    adds = op.name in ("mad", "madc")
    part = op.one_of("lo", "hi", "wide")
    keep = adds and op.flag("cc")
    carried = op.name == "madc"
    saturated = op.name == "mad" and part == "hi" and op.flag("sat")
    kind = op.type(_INTEGERS if not saturated else "s32")
    if (part == "wide" and (kind.bits == 64 or keep or carried)) or ((keep or carried) and kind.bits == 16):
        raise op.unknown()
    op.no_more(4 if adds else 3)
    a, b = op.read(1, kind), op.read(2, kind)
    result = TYPES[kind.name[0] + _WIDE[str(kind.bits)]] if part == "wide" else kind
    if part == "hi":
        op.need("integer")
        product = f"pk_ptx_high({a}, {b})"
    elif part == "wide":
        product = f"({result.cpp})(({result.cpp}){a} * {b})"
    elif kind.bits == 16:
        product = f"({kind.cpp})((unsigned){a} * (unsigned){b})"
    else:
        product = f"({a} * {b})"
    if not adds:
        op.write(0, result, product)
    elif keep or carried:
        op.need("integer")
        plain = TYPES[f"u{kind.bits}"]
        carry = "pk_ptx_carry()" if carried else "0u"
        value = f"pk_ptx_add(({plain.cpp}){product}, {op.read(3, plain)}, {carry}, {str(keep).lower()})"
        op.write(0, plain, value)
    elif saturated:
        op.write(0, result, f"pk_ptx_clamped((long long){product} + {op.read(3, result)})")
    else:
        op.write(0, result, f"({result.cpp})({product} + {op.read(3, result)})")


instruction("madc")(multiply)


@instruction("mul24", "mad24")
def _multiply24(op: Operation) -> None:
    part = op.one_of("lo", "hi")
    saturated = op.name == "mad24" and part == "hi" and op.flag("sat")
    kind = op.type("s32" if saturated else "u32 s32")
    op.no_more(3 if op.name == "mul24" else 4)
    op.need("integer")
    function = "pk_ptx_high24" if part == "hi" else "__mul24" if kind.kind == "s" else "__umul24"
    product = f"{function}({op.read(1, kind)}, {op.read(2, kind)})"
    if op.name == "mul24":
        op.write(0, kind, product)
    elif saturated:
        op.write(0, kind, f"pk_ptx_clamped((long long){product} + {op.read(3, kind)})")
    else:
        op.write(0, kind, f"({product} + {op.read(3, kind)})")


def divide(op: Operation) -> None:
    """div and rem of integers."""
    kind = op.type(_INTEGERS)
    op.no_more(3)
    op.need("integer")
    function = "pk_ptx_quotient" if op.name == "div" else "pk_ptx_remainder"
    op.write(0, kind, f"{function}<{kind.cpp}>({op.read(1, kind)}, {op.read(2, kind)})")


instruction("rem")(divide)


@instruction("sad")
def _sad(op: Operation) -> None:
    kind = op.type(_INTEGERS)
    op.no_more(4)
    op.need("integer")
    plain = TYPES[f"u{kind.bits}"]
    distance = f"pk_ptx_distance_of<{kind.cpp}>({op.read(1, kind)}, {op.read(2, kind)})"
    op.write(0, plain, f"({plain.cpp})({op.read(3, plain)} + ({plain.cpp}){distance})")


def sign(op: Operation) -> None:
    """abs and neg of integers."""
    kind = op.type("s16 s32 s64")
    op.no_more(2)
    plain = TYPES[f"u{kind.bits}"]
    a = op.read(1, plain)
    if op.name == "neg":
        op.write(0, plain, f"({plain.cpp})(0u - {a})")
    else:
        op.write(0, plain, f"({plain.cpp})({op.read(1, kind)} < 0 ? 0u - {a} : {a})")


def extreme(op: Operation) -> None:
    """min and max of integers."""
    relu = op.flag("relu")
    kind = op.type("s32 s16x2" if relu else f"{_INTEGERS} u16x2 s16x2")
    op.no_more(3)
    relation = "<" if op.name == "min" else ">"
    if kind.name.endswith("x2"):
        chosen = f"a {relation} b ? a : b"
        _pair(op, kind, f"({chosen}) < 0 ? 0 : ({chosen})" if relu else chosen)
        return
    a, b = op.temporary(kind.cpp, op.read(1, kind)), op.temporary(kind.cpp, op.read(2, kind))
    chosen = op.temporary(kind.cpp, f"{a} {relation} {b} ? {a} : {b}")
    op.write(0, kind, f"{chosen} < 0 ? 0 : {chosen}" if relu else chosen)


# ---- bits


@instruction("and", "or", "xor", "not", "cnot")
def _logic(op: Operation) -> None:
    kind = op.type("b16 b32 b64" if op.name == "cnot" else "pred b16 b32 b64")
    op.no_more(2 if op.name.endswith("not") else 3)
    a = op.read(1, kind)
    if op.name == "cnot":
        op.write(0, kind, f"({kind.cpp})({a} == 0)")
    elif op.name == "not":
        op.write(0, kind, f"!{a}" if kind.kind == "p" else f"({kind.cpp})~{a}")
    else:
        sign = {"and": "&", "or": "|", "xor": "^"}[op.name]
        op.write(0, kind, f"({kind.cpp})(({a}) {sign} ({op.read(2, kind)}))")


@instruction("shl", "shr")
def _shift(op: Operation) -> None:
    kind = op.type("b16 b32 b64" if op.name == "shl" else f"b16 b32 b64 {_INTEGERS}")
    op.no_more(3)
    op.need("integer")
    function = "pk_ptx_left" if op.name == "shl" else "pk_ptx_right"
    op.write(0, kind, f"{function}<{kind.cpp}>({op.read(1, kind)}, {op.read(2, _U32)})")


@instruction("shf")
def _funnel_shift(op: Operation) -> None:
    way, mode = op.one_of("l", "r"), op.one_of("clamp", "wrap")
    kind = op.type("b32")
    op.no_more(4)
    function = f"__funnelshift_{way}{'c' if mode == 'clamp' else ''}"
    op.write(0, kind, f"{function}({op.read(1, kind)}, {op.read(2, kind)}, {op.read(3, kind)})")


@instruction("popc", "clz", "bfind")
def _count(op: Operation) -> None:
    if op.name == "bfind":
        amount = op.flag("shiftamt")
        kind = op.type("u32 u64 s32 s64")
        op.need("integer")
        value = f"pk_ptx_find<{kind.cpp}>({op.read(1, kind)}, {str(amount).lower()})"
    else:
        kind = op.type("b32 b64")
        value = f"(unsigned)__{op.name}{'ll' if kind.bits == 64 else ''}({op.read(1, kind)})"
    op.no_more(2)
    op.write(0, _U32, value)


@instruction("brev")
def _reverse(op: Operation) -> None:
    kind = op.type("b32 b64")
    op.no_more(2)
    op.write(0, kind, f"__brev{'ll' if kind.bits == 64 else ''}({op.read(1, kind)})")


@instruction("bfe", "bfi")
def _field(op: Operation) -> None:
    op.need("integer")
    if op.name == "bfe":
        kind = op.type("u32 u64 s32 s64")
        op.no_more(4)
        op.write(0, kind, f"pk_ptx_field<{kind.cpp}>({op.read(1, kind)}, {op.read(2, _U32)}, {op.read(3, _U32)})")
        return
    kind = op.type("b32 b64")
    op.no_more(5)
    fields = f"{op.read(1, kind)}, {op.read(2, kind)}, {op.read(3, _U32)}, {op.read(4, _U32)}"
    op.write(0, kind, f"pk_ptx_insert<{kind.cpp}>({fields})")


@instruction("szext", "bmsk")
def _mask(op: Operation) -> None:
    wrap = op.one_of("clamp", "wrap") == "wrap"
    kind = op.type("b32" if op.name == "bmsk" else "u32 s32")
    op.no_more(3)
    op.need("integer")
    a, b = op.read(1, _U32), op.read(2, _U32)
    wraps = str(wrap).lower()
    if op.name == "bmsk":
        op.write(0, kind, f"pk_ptx_mask({a}, {b}, {wraps})")
    else:
        op.write(0, _U32, f"pk_ptx_extended({a}, {b}, {str(kind.kind == 's').lower()}, {wraps})")


@instruction("fns")
def _fns(op: Operation) -> None:
    kind = op.type("b32")
    op.no_more(4)
    op.write(0, kind, f"__fns({op.read(1, kind)}, {op.read(2, kind)}, {op.read(3, TYPES['s32'])})")


@instruction("lop3")
def _lop3(op: Operation) -> None:
    kind = op.type("b32")
    op.no_more(5)
    op.need("integer")
    operands = ", ".join(op.read(index, kind) for index in range(1, 5))
    op.write(0, kind, f"pk_ptx_logic<{kind.cpp}>({operands})")


@instruction("prmt")
def _permute(op: Operation) -> None:
    kind = op.type("b32")
    modes = ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    mode = op.one_of(*modes, default="")
    op.no_more(4)
    op.need("integer")
    selector = op.read(3, kind)
    if mode:
        selector = f"pk_ptx_permutation({modes.index(mode)}, {selector})"
    op.write(0, kind, f"pk_ptx_permuted({op.read(1, kind)}, {op.read(2, kind)}, {selector})")


@instruction("dp4a", "dp2a")
def _dot(op: Operation) -> None:
    half = op.one_of("lo", "hi") if op.name == "dp2a" else ""
    a, b = op.type("u32 s32"), op.type("u32 s32")
    op.no_more(4)
    op.need("integer")
    signs = f"<{str(a.kind == 's').lower()}, {str(b.kind == 's').lower()}>"
    operands = ", ".join(op.read(index, _U32) for index in (1, 2, 3))
    if half:
        op.write(0, _U32, f"pk_ptx_dot2{signs}({operands}, {str(half == 'hi').lower()})")
    else:
        op.write(0, _U32, f"pk_ptx_dot4{signs}({operands})")


@instruction("vabsdiff4")
def _distances(op: Operation) -> None:
    """Of bytes without signs, all four; their sum onto the third operand with .add."""
    kinds = [op.type("u32") for _ in range(3)]
    added = op.one_of("add", default="")
    op.no_more(4)
    a, b, c = (op.read(index, kinds[0]) for index in (1, 2, 3))
    op.write(0, kinds[0], f"(__vsadu4({a}, {b}) + {c})" if added else f"__vabsdiffu4({a}, {b})")
