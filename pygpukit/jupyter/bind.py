"""-i and -o: arrays and numbers of the notebook bound to a kernel's parameters, by name first, else in order."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from IPython.core.error import UsageError

from pygpukit._core import native
from pygpukit.array.array import GPUArray
from pygpukit.array.factory import zeros
from pygpukit.jit.source.parameters import Parameter
from pygpukit.jit.source.signature import KernelSignature
from pygpukit.jupyter.names import Names
from pygpukit.textures.opened import Opened


@dataclass(frozen=True)
class Item:
    """One argument of -i or -o as it is written. parameter: the name before "=", "" when there is none.

    name: the notebook's variable when the argument is one. shape: what stands in the brackets of an output `z[n]`.
    """

    text: str
    parameter: str
    name: str
    is_output: bool
    shape: tuple[str, ...] | None = None

    @property
    def hint(self) -> str:
        """The parameter that an argument without "=" suits by its name: x, or weight of model.weight."""
        return self.name or (self.text.rpartition(".")[2] if re.fullmatch(r"[\w.]+", self.text) else "")

    def __str__(self) -> str:
        return f"{'-o' if self.is_output else '-i'} {self.text}"


@dataclass(frozen=True)
class Arguments:
    """Values by parameter, in the signature's order.

    inputs: names of the -i parameters, in the order of -i. outputs: notebook name (else parameter) of every -o array,
    and its parameter. aliases: notebook names of parameters. created: new arrays, by the name they are to get.
    """

    values: Mapping[str, Any]
    inputs: tuple[str, ...]
    outputs: Mapping[str, str]
    aliases: Mapping[str, str]
    created: Mapping[str, GPUArray] = field(default_factory=dict)

    def arrays(self) -> dict[str, GPUArray]:
        """The -o arrays by name."""
        return {name: self.values[parameter] for name, parameter in self.outputs.items()}


def parse_items(texts: Sequence[str], is_output: bool) -> list[Item]:
    """The arguments that -i or -o lists, read as those of a call. Raises UsageError."""
    flag = "-o" if is_output else "-i"
    items: list[Item] = []
    for text in texts:
        refused = UsageError(f"%%cuda: {flag} {text}: write names and values as in a call: x,y,n=x.size")
        for part in _parts(text, refused):
            try:
                call = ast.parse(f"f({part}\n)", mode="eval").body
            except SyntaxError:
                raise refused from None
            if not isinstance(call, ast.Call) or len(call.args) + len(call.keywords) != 1:
                raise refused
            items += [_item(value, "", is_output) for value in call.args]
            if any(keyword.arg is None for keyword in call.keywords):
                raise UsageError(f"%%cuda: {flag} {part}: give the arguments one by one")
            items += [_item(keyword.value, str(keyword.arg), is_output) for keyword in call.keywords]
    return items


def _parts(text: str, refused: UsageError) -> list[str]:
    """A list cut at the commas outside brackets and strings."""
    cuts = [-1]
    depth = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
            if token.string == "," and depth == 0:
                cuts.append(token.start[1])
            if depth < 0:
                raise refused
    except (tokenize.TokenError, SyntaxError):
        raise refused from None
    cuts.append(len(text))
    return [text[start + 1 : end] for start, end in pairwise(cuts)]


def _item(value: ast.expr, parameter: str, is_output: bool) -> Item:
    text = ast.unparse(value)
    if isinstance(value, ast.Starred):
        raise UsageError(f"%%cuda: {text}: give the arguments one by one")
    if is_output and isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and _is_shape(value.slice):
        extents = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
        return Item(text, parameter, value.value.id, True, tuple(map(ast.unparse, extents)))
    return Item(text, parameter, value.id if isinstance(value, ast.Name) else "", is_output)


def _is_shape(index: ast.expr) -> bool:
    """z[n] and z[h, w] declare an array; z[1:] and z[..., 0] are views of one."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return not any(
        isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and not isinstance(part.value, int))
        for part in parts
    )


def bind(signature: KernelSignature, items: Sequence[Item], names: Names) -> Arguments:
    """The items' values as the kernel's arguments. Makes the outputs that are declared with a shape.

    Raises UsageError for a parameter without an argument, an argument without a parameter, an output that cannot be.
    """
    arguments = [item for item in items if not any(_same(item, other) for other in items)]
    scalars = [None if item.shape is not None else _value(item, names) for item in arguments]
    chosen = _assign(signature, arguments, scalars, [_written(item, items) for item in arguments])
    values = {parameter: scalars[at] for parameter, at in chosen.items() if arguments[at].shape is None}
    scope = names.over({name: value for name, value in values.items() if not isinstance(value, native.ArrayBase)})
    parameters = {one.name: one for one in signature.parameters}
    created: dict[str, GPUArray] = {}
    for parameter, at in chosen.items():
        if arguments[at].shape is not None:
            array, is_new = _declared(arguments[at], parameters[parameter], scope)
            values[parameter] = array
            if is_new:
                created[arguments[at].name] = array
    order = [(parameter, arguments[at]) for parameter, at in sorted(chosen.items(), key=lambda pair: pair[1])]
    written = [(parameter, item) for parameter, item in order if _written(item, items)]
    for parameter, item in written:
        _check_output(item, parameters[parameter], values[parameter])
    return Arguments(
        values={one.name: values[one.name] for one in signature.parameters},
        inputs=tuple(parameter for parameter, item in order if not item.is_output),
        outputs={item.name or parameter: parameter for parameter, item in written},
        aliases={item.name: parameter for parameter, item in order if item.name},
        created=created,
    )


def _same(output: Item, argument: Item) -> bool:
    """True where an output is an input too: `-i x -o x` and `-i image=x -o x` are one argument, which is written."""
    return (
        output.is_output
        and not argument.is_output
        and output.text == argument.text
        and output.parameter in ("", argument.parameter)
    )


def _written(item: Item, items: Sequence[Item]) -> bool:
    return item.is_output or any(_same(one, item) for one in items)


def _assign(
    signature: KernelSignature, items: Sequence[Item], values: Sequence[Any], written: Sequence[bool]
) -> dict[str, int]:
    """Which parameter takes which item: the one that is named, else the next one of the item's kind."""
    free = {one.name: one for one in signature.parameters}
    chosen: dict[str, int] = {}

    def take(parameter: str, at: int) -> None:
        chosen[parameter] = at
        del free[parameter]

    for at, item in enumerate(items):
        if item.parameter and item.parameter not in free:
            known = ", ".join(one.name for one in signature.parameters) or "none"
            why = "has its argument already" if item.parameter in chosen else f"is no parameter; there are: {known}"
            raise UsageError(f"%%cuda: {item}: {signature.short_name}: {item.parameter!r} {why}")
        if item.parameter:
            take(item.parameter, at)
    by_order = []
    for at, item in enumerate(items):
        if not item.parameter and item.hint in free:
            take(item.hint, at)
        elif not item.parameter:
            by_order.append(at)
    for at in by_order:
        is_array = items[at].shape is not None or isinstance(values[at], native.ArrayBase)
        suited = (one.name for one in free.values() if _suits(one, is_array, written[at], values[at]))
        parameter = next(suited, None)
        if parameter is None:
            kind = "an array to write" if written[at] else "an array" if is_array else "a value"
            left = ", ".join(map(str, free.values())) or "none"
            on_host = not is_array and not written[at] and hasattr(values[at], "__array__")
            remedy = f"; bring it to the device first: gp.from_numpy({items[at].text})" if on_host else ""
            raise UsageError(
                f"%%cuda: {items[at]}: {signature.short_name} has no parameter left that takes {kind}; left: {left}"
                f"{remedy}"
            )
        take(parameter, at)
    if free:
        one = next(iter(free.values()))
        raise UsageError(
            f"%%cuda: {signature.short_name}: parameter {one.name!r} ({one.type}) has no argument: "
            f"add {one.name}=... to -i"
        )
    return chosen


def _suits(parameter: Parameter, is_array: bool, is_written: bool, value: Any) -> bool:
    if parameter.kind == "any":
        return True
    if (parameter.kind == "pointer") is not is_array:
        return False
    if isinstance(value, Opened):
        return parameter.kind == value.kind or (parameter.kind, parameter.dtype) == ("scalar", "uint64")
    if parameter.kind in ("texture", "surface"):
        return False
    return not (is_written and _is_const(parameter))


def _is_const(parameter: Parameter) -> bool:
    """True where what the parameter points to cannot be written."""
    return "const" in parameter.type.rpartition("*")[0].split()


def _value(item: Item, names: Names) -> Any:
    if item.is_output and item.name and item.name not in names:
        raise UsageError(
            f"%%cuda: {item}: there is no array {item.name!r} and its shape cannot be told: make it first, or write "
            f"its shape: -o '{item.name}[n]'"
        )
    return names.evaluate(item.text, "-o" if item.is_output else "-i")


def _declared(item: Item, parameter: Parameter, names: Names) -> tuple[GPUArray, bool]:
    """The array of an output with a shape, zeroed, and whether it is new: one of that shape and type is used again."""
    if parameter.kind != "pointer" or not parameter.dtype:
        raise UsageError(
            f"%%cuda: {item}: the element type cannot be told from '{parameter}': make the array first, and write -o "
            f"{item.name}"
        )
    shape = tuple(names.integer(extent, f"-o {item.text}: the extent") for extent in item.shape or ())
    there = names.get(item.name)
    if (
        isinstance(there, GPUArray)
        and (there.shape, there.dtype.name) == (shape, parameter.dtype)
        and there.is_contiguous()
    ):
        if there.size:
            native.fill(there, bytes(there.itemsize))
        return there, False
    return zeros(shape, parameter.dtype), True


def _check_output(item: Item, parameter: Parameter, value: Any) -> None:
    if not isinstance(value, native.ArrayBase):
        raise UsageError(f"%%cuda: {item} is a {type(value).__name__}; an output is an array on the device")
    if _is_const(parameter):
        raise UsageError(
            f"%%cuda: {item} would be the parameter '{parameter}', which the kernel cannot write; name the one that it "
            f"writes: -o PARAMETER={item.text}"
        )
