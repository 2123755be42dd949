"""atom and red, of every type, of pairs and of vectors."""

from __future__ import annotations

from pygpukit.jit.ptx.memory import ORDERS, SCOPES, SPACES, VECTORS, address, space_of
from pygpukit.jit.ptx.operation import Operation, instruction
from pygpukit.jit.ptx.parser import Sink
from pygpukit.jit.ptx.types import Type

# The new value of `old`, given a (and for cas b), and the types.
_INTEGERS = "u32 s32 u64 s64"
_CHANGES = {
    "add": ("old + a", "u32 s32 u64 f32 f64 f16 bf16 f16x2 bf16x2"),
    "min": ("a < old ? a : old", f"{_INTEGERS} f16 bf16 f16x2 bf16x2"),
    "max": ("old < a ? a : old", f"{_INTEGERS} f16 bf16 f16x2 bf16x2"),
    "and": ("old & a", "b32 b64"),
    "or": ("old | a", "b32 b64"),
    "xor": ("old ^ a", "b32 b64"),
    "inc": ("old >= a ? 0u : old + 1u", "u32"),
    "dec": ("old == 0u || old > a ? a : old - 1u", "u32"),
    "exch": ("a", "b32 b64"),
    "cas": ("old == a ? b : old", "b16 b32 b64"),
}


@instruction("atom", "red")
def _atomic(op: Operation) -> None:
    returns = op.name == "atom"
    op.arrange(ORDERS, SCOPES, SPACES, _CHANGES, ("noftz",), ("L2::cache_hint",), VECTORS)
    order = op.one_of("relaxed", "acquire", "release", "acq_rel", default="relaxed")
    if not returns and order in ("acquire", "acq_rel"):
        raise op.unknown()
    op.one_of(*SCOPES, default="gpu")
    space = space_of(op)
    if space in ("const", "param", "local"):
        raise op.unknown()
    how = op.one_of(*_CHANGES)
    if not returns and how in ("exch", "cas"):
        raise op.unknown()
    flushless = op.flag("noftz")
    policy = op.flag("L2::cache_hint")
    width = int(op.one_of(*VECTORS, default="v1")[1])
    change, types = _CHANGES[how]
    kind = op.type("f32 f16 bf16 f16x2 bf16x2" if width > 1 else types)
    small = kind.kind == "x"
    if flushless != (small and how == "add") or (width > 1 and how not in ("add", "min", "max")):
        raise op.unknown()
    first = 1 if returns else 0
    needed = first + 2 + (how == "cas")
    op.no_more((needed, needed + policy))
    op.need("memory")
    where = op.temporary("auto", address(op, op.operand(first), space))
    items, results = op.items(first + 1), op.items(0) if returns else ()
    if len(items) != width or (returns and len(results) != width):
        raise op.fault(f"takes {width} elements")
    if order in ("release", "acq_rel"):
        op.line("__threadfence();")
    held = kind.cpp
    for index, item in enumerate(items):
        a = op.temporary(held, op.read_term(item, kind))
        capture = f"a = {a}"
        if how == "cas":
            capture += f", b = {op.temporary(held, op.read(first + 2, kind))}"
        changed = _small(op, kind, how) if small else change
        function = f"[{capture}]({held} old) -> {held} {{ return {changed}; }}"
        old = op.temporary(held, f"pk_ptx_update(({held} *){where} + {index}, {function})")
        if returns and not isinstance(results[index], Sink):
            op.write_term(results[index], kind, old)
    if order in ("acquire", "acq_rel"):
        op.line("__threadfence();")


def _small(op: Operation, kind: Type, how: str) -> str:
    """The change of f16 and bf16, or of a pair."""
    op.need("small")
    name = f"pk_ptx_{kind.name.removesuffix('x2')}"
    x, y = f"pk_ptx_value<{name}>(x)", f"pk_ptx_value<{name}>(y)"
    value = f"{x} + {y}" if how == "add" else f"pk_ptx_extreme({x}, {y}, {str(how == 'min').lower()}, false)"
    one = f"[](unsigned short x, unsigned short y) -> unsigned short {{ return pk_ptx_nearest<{name}>({value}); }}"
    return f"pk_ptx_{'both' if kind.name.endswith('x2') else 'one'}({one}, old, a)"
