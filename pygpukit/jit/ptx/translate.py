"""A source whose asm statements are C++: each in its place, on the user's line."""

from __future__ import annotations

from collections.abc import Callable

# The families of instructions say themselves what they write.
from pygpukit.jit.ptx import (  # noqa: F401
    atomics,
    barriers,
    compare,
    control,
    convert,
    copies,
    floats,
    group,
    matrix,
    memory,
    move,
    warp,
)  # fmt: skip
from pygpukit.jit.ptx.block import Block
from pygpukit.jit.ptx.fault import MacroInStatement, PtxFault
from pygpukit.jit.ptx.operation import WRITERS, Operation
from pygpukit.jit.ptx.parser import Instruction, Item, Label, Not, Registers, Scope, parse
from pygpukit.jit.ptx.statement import Statement, statements
from pygpukit.jit.ptx.types import TYPES
from pygpukit.jit.source.templates import Body, bodies, fault_where_used


def translate(
    source: str, code: str, active: Callable[[int], bool], back: Callable[[int, int], str]
) -> tuple[str, tuple[str, ...]]:
    """The source with its asm statements as C++, and the headers that it needs.

    code: the source with comments, strings and preprocessor lines blank. active(offset): whether a statement there is
    compiled. back(start, end): what puts the text after a replaced part back at its line and column.

    A fault in a function template is told by the compiler, where somebody instantiates it.

    Raises PtxFault with the place in the source, and MacroInStatement where a statement has macros for strings.
    """
    pieces: list[str] = []
    headers: set[str] = set()
    done = 0
    templates: list[Body] | None = None
    for statement in statements(source, code, active):
        if statement.expand:
            raise MacroInStatement(statement.start)
        try:
            block = _block(statement)
        except MacroInStatement:
            raise
        except PtxFault as fault:
            templates = bodies(code) if templates is None else templates
            if not any(body.start < statement.start < body.end for body in templates):
                raise
            text = fault_where_used(fault.text, back(statement.start, fault.offset))
        else:
            text = " ".join(block.lines)
            headers |= block.headers
        pieces += [source[done : statement.start], text, back(statement.start, statement.end)]
        done = statement.end
    pieces.append(source[done:])
    needed = (name if name.startswith("mma") else f"ptx_{name}" for name in sorted(headers))
    order = ("pk_sim_ptx.h", *(f"pk_sim_{name}.h" for name in needed))
    return "".join(pieces), order if done else ()


def _block(statement: Statement) -> Block:
    block = Block(statement.operands)
    try:
        scope = parse(statement.template)
        fence = ["__pk_fence();"] if statement.memory else []
        block.lines += ["do {", *fence]
        block.begin()
        _scope(block, scope)
        block.end()
        block.lines += [*fence, "} while (0)"]
    except PtxFault as fault:
        places = statement.places
        at = places[min(fault.offset, len(places) - 1)] if places else statement.start
        raise PtxFault(f"inline PTX: {fault.text}", at) from None
    return block


def _scope(block: Block, scope: Scope) -> None:
    labels = {item.name: block.fresh(item.name) for item in scope.items if isinstance(item, Label)}
    block.open(labels)
    if labels:
        block.lines.append(f"{{ __label__ {', '.join(labels.values())};")
    else:
        block.lines.append("{")
    for item in scope.items:  # first, so that no branch leads past a declaration
        if isinstance(item, Registers):
            _declare(block, item)
    for item in scope.items:
        _item(block, item)
    block.lines.append("}")
    block.close()


def _declare(block: Block, item: Registers) -> None:
    kind = TYPES.get(item.type)
    if kind is None or (kind.kind == "x" and kind.name not in ("f16", "bf16", "f16x2", "bf16x2")):
        raise PtxFault(f"registers of type .{item.type} are not supported", item.at)
    for name in item.names:
        block.declare(name, kind, item.width, item.at)


def _item(block: Block, item: Item) -> None:
    if isinstance(item, Scope):
        _scope(block, item)
    elif isinstance(item, Label):
        block.lines.append(f"{block.label(item.name, item.at)}:;")
    elif isinstance(item, Instruction):
        operation = Operation(block, item)
        writer = WRITERS.get(operation.name)
        if writer is None:
            raise operation.unknown()
        condition = ""
        if item.predicate is not None:
            term = item.predicate.operand if isinstance(item.predicate, Not) else item.predicate
            value = operation.read_term(term, TYPES["pred"])
            condition = f"if ({'!' if isinstance(item.predicate, Not) else ''}{value}) "
        block.lines.append(f"{condition}{{")
        writer(operation)
        block.lines.append("}")
