"""Loads, stores and prefetches, in every kind of memory."""

from __future__ import annotations

from pygpukit.jit.ptx.operation import Operation, instruction
from pygpukit.jit.ptx.parser import Address, Number, Term
from pygpukit.jit.ptx.types import TYPES, Type

SPACES = {"global": "global", "const": "const", "local": "local", "param": "param", "shared": "shared",
           "shared::cta": "shared", "shared::cluster": "cluster"}  # fmt: skip
_LOAD_HINTS = ("ca", "cg", "cs", "lu", "cv", "wb", "wt")
_EVICTIONS = tuple(f"L1::{word}" for word in ("evict_normal", "evict_unchanged", "evict_first", "evict_last",
                                             "no_allocate")) + tuple(
    f"L2::{word}" for word in ("evict_normal", "evict_first", "evict_last", "cache_hint", "64B", "128B", "256B")
)  # fmt: skip
SCOPES = ("cta", "cluster", "gpu", "sys")
ORDERS = ("weak", "volatile", "mmio", "relaxed", "acquire", "release", "acq_rel")
VECTORS = ("v2", "v4", "v8")


def space_of(op: Operation) -> str:
    """Takes a kind of memory; "" for any."""
    return SPACES[op.one_of(*SPACES)] if op.peek() in SPACES else ""


def address(op: Operation, term: Term, space: str) -> str:
    """The host's address of an operand in brackets, as an expression of void *."""
    if not isinstance(term, Address):
        raise op.fault("takes an address in brackets", term.at)
    base = term.base
    if isinstance(base, Number):
        raise op.fault("an address begins with a register", base.at)
    have = op.block.variable(base).type
    bits = have.bits if have else 64
    if bits != 64 and not (bits == 32 and space in ("shared", "cluster")):
        raise op.fault(f"an address of {space or 'any'} memory has 64 bits, the operand has {bits}", base.at)
    kind = TYPES[f"u{bits}"]
    value = op.read_term(base, kind)
    if term.offset is not None:
        value = f"({value} + {op.read_term(term.offset, kind)})"
    if space in ("shared", "cluster"):
        return f"pk_ptx_shared{'_of_cluster' if space == 'cluster' else ''}({value})"
    return f"((void *){value})"


def _hints(op: Operation) -> bool:
    """Takes what is said about caches; whether a policy is among the operands."""
    policy = False
    while op.peek() in _LOAD_HINTS or op.peek() in _EVICTIONS:
        policy = op.one_of(*_LOAD_HINTS, *_EVICTIONS) == "L2::cache_hint" or policy
    return policy


@instruction("ld", "ldu", "st")
def _access(op: Operation) -> None:
    load = op.name != "st"
    op.arrange(ORDERS, SCOPES, SPACES, ("nc",), (*_LOAD_HINTS, *_EVICTIONS), VECTORS)
    order = op.one_of("weak", "volatile", "relaxed", "acquire" if load else "release", "mmio", default="")
    if order in ("relaxed", "acquire", "release", "mmio"):
        op.flag("relaxed") if order == "mmio" else None
        op.one_of(*SCOPES)
    space = space_of(op)
    uncached = load and op.flag("nc")
    policy = _hints(op)
    width = int(op.one_of(*VECTORS, default="v1")[1])
    kind = op.type()
    op.no_more((2, 3) if policy else 2)
    if kind.kind in "px" or (kind.bits == 128 and width > 1) or (uncached and order not in ("", "weak")):
        raise op.unknown()
    if not load and space in ("const", "param"):
        raise op.fault(f"{space} memory cannot be written")
    at = 1 if load else 0
    where = op.temporary("auto", address(op, op.operand(at), space))
    items = op.items(1 - at)
    if len(items) != width:
        raise op.fault(f"takes {width} elements, {len(items)} are given")
    if order in ("relaxed", "acquire", "release", "mmio"):
        _strong(op, load, order, kind, where, items)
    elif width == 1 or order == "volatile":
        qualifier = ("volatile " if order == "volatile" else "") + ("const " if load else "")
        for index, item in enumerate(items):
            place = f"(({qualifier}{kind.cpp} *){where})[{index}]"
            if load:
                op.write_term(item, kind, place, True)
            else:
                op.line(f"{place} = {op.read_term(item, kind, True)};")
    else:
        vector = f"pk_ptx_vector<{kind.cpp}, {width}>"
        if load:
            held = op.temporary(vector, f"*(const {vector} *){where}")
            for index, item in enumerate(items):
                op.write_term(item, kind, f"{held}.at[{index}]", True)
        else:
            values = ", ".join(op.read_term(item, kind, True) for item in items)
            op.line(f"*({vector} *){where} = {vector}{{{{{values}}}}};")


def _strong(op: Operation, load: bool, order: str, kind: Type, where: str, items: tuple[Term, ...]) -> None:
    """Accesses that other threads may make at the same time."""
    op.need("memory")
    plain = TYPES[f"b{kind.bits}"]
    if kind.bits == 128:
        raise op.unknown()
    if order == "release":
        op.line("__threadfence();")
    for index, item in enumerate(items):
        place = f"({plain.cpp} *){where} + {index}"
        if load:
            held = op.temporary(plain.cpp, f"pk_ptx_load({place})")
            op.write_term(item, kind, f"pk_ptx_bits<{kind.cpp}>({held})", True)
        else:
            op.line(f"pk_ptx_store({place}, pk_ptx_bits<{plain.cpp}>({op.read_term(item, kind, True)}));")
    if order == "acquire":
        op.line("__threadfence();")


@instruction("prefetch", "prefetchu", "applypriority", "discard")
def _prefetch(op: Operation) -> None:
    """Nothing to do, but for a look at the operands."""
    space = op.one_of("global", "local", "const", "param", "tensormap", default="")
    if space not in ("const", "param", "tensormap") or op.peek():
        op.one_of("L1", "L2", "L2::evict_last", "L2::evict_normal", "tensormap")
    op.no_more(1 if op.name.startswith("prefetch") else 2)
    op.line(f"(void){address(op, op.operand(0), '')};")


@instruction("createpolicy")
def _policy(op: Operation) -> None:
    """A policy of the cache: a number without meaning here."""
    op.one_of("fractional", "range", "cvt")
    while op.peek() not in ("b64", ""):
        op.one_of("L2", *_EVICTIONS, "L2::evict_unchanged", "global")
    kind = op.type("b64")
    op.no_more((1, 4))
    op.write(0, kind, "0ull")
