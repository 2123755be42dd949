"""Kernels that share a name: on the device's side each has a name of its own, on the host's a tag that tells it.

A call of the host's side stays what C++ makes of it; the tag is part of the symbol: `put[abi:overload_2](float*)`. A
template's symbol has none, so that it gets one more argument, std::integral_constant<signed char, 2>.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pygpukit.program.declarations import Declaration
from pygpukit.program.parameters import parameter, split
from pygpukit.program.unit import Edit, Unit

_KERNEL = frozenset(["__global__", "__tile_global__"])
_Signature = tuple[tuple[str, ...] | None, tuple[str, ...]]


def overloads(unit: Unit) -> dict[Declaration, str]:
    """The end of its name on the device for each definition and prototype of a kernel that shares its name."""
    by_name: dict[str, dict[_Signature, list[Declaration]]] = {}
    for one in unit.declarations:
        if one.kind == "function" and one.spaces & _KERNEL and not one.special:
            by_name.setdefault(one.qualified, {}).setdefault(_signature(unit, one), []).append(one)
    shared = {name: variants for name, variants in by_name.items() if len(variants) > 1}
    result = {
        one: f"overload_{number}"
        for variants in shared.values()
        for number, same in enumerate(variants.values(), start=1)
        for one in same
    }
    for one in unit.declarations:  # a specialisation goes with the template that takes as many parameters
        if one.kind == "function" and one.spaces & _KERNEL and one.special and one.qualified in shared:
            count = len(_signature(unit, one)[1])
            general = [same[0] for key, same in shared[one.qualified].items() if key[0] and len(key[1]) == count]
            if general:
                result[one] = result[general[0]]
    return result


def host_edits(unit: Unit) -> Iterator[Edit]:
    """Tags; a specialisation has that of its template."""
    defaulted: set[tuple[str, str]] = set()
    for one, tag in overloads(unit).items():
        if not one.special:
            first = (one.qualified, tag) not in defaulted  # a default is given once
            defaulted.add((one.qualified, tag))
            yield tagged(one, tag, first)


def tagged(kernel: Declaration, tag: str, default: bool = True) -> Edit:
    """The edit that makes a tag part of a kernel's symbol. tag: `kernel`, or `overload_2`."""
    if kernel.template is None:
        return Edit(kernel.start, kernel.start, f'__attribute__((abi_tag("{tag}"))) ')
    number = tag.removeprefix("overload_").replace("kernel", "0")
    value = f" = std::integral_constant<signed char, {number}>" if default else ""
    return Edit(kernel.template[1], kernel.template[1], f", class pk_overload{value}")


def device_edits(unit: Unit) -> Iterator[Edit]:
    """Names of their own."""
    for one, tag in overloads(unit).items():
        head = unit.code[one.start : one.parameters[0] - 1].rstrip()
        at = one.start + len(head.removesuffix(one.special.rstrip()).rstrip())
        yield Edit(at, at, f"_{tag}")


def _signature(unit: Unit, one: Declaration) -> _Signature:
    """Kinds of the template's parameters, and types of the kernel's."""
    types = tuple(_words(parameter(text).type) for _, text in split(unit.code[slice(*one.parameters)]))
    if one.template is None:
        return None, types
    kinds = tuple(
        _words(re.split(r"=(?!=)", text)[0]).partition(" ")[0].replace("class", "typename")
        for _, text in split(unit.code[slice(*one.template)])
    )
    return kinds, tuple(one for one in types if one != "void")


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+|[^\w\s]", text))
