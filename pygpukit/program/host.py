"""The host's side of a text: kernels become stubs that launch, device functions lose their bodies, launches are C++."""

from __future__ import annotations

import re
from collections.abc import Callable

from pygpukit.program import overloads
from pygpukit.program.declarations import Declaration
from pygpukit.program.lambdas import host_edits
from pygpukit.program.launches import launches
from pygpukit.program.macros import in_macro
from pygpukit.program.parameters import parameter, split, template_arguments
from pygpukit.program.unit import Edit, Unit, blanks

KERNEL_SPACES = frozenset(["__global__", "__tile_global__"])
INCLUDE = re.compile(r'#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)')
_WORD = re.compile(r"[^\W\d]\w*")
_NAMESPACES = {
    "mma.h": "namespace nvcuda { namespace wmma { namespace experimental { } } }",
    "cuda/": "namespace cuda { namespace std { } }",
    "cub/": "namespace cub { }",
}
_NAMED = re.compile(r"[^\W\d]\w*\s*\(|&\s*[^\W\d]|[^\W\d]\w*\s*<")  # a call, an address, a template in an initialiser


def host_text(unit: Unit, has_header: Callable[[str], bool]) -> str:
    """The text for the host's compiler. Lines stay. has_header: true for the names of CUDA's headers for devices alone,
    which it does without."""
    named = _named_by_host(unit)
    edits: list[Edit] = []
    for one in unit.declarations:
        unseen = one.kind == "function" and _only_device(one) and one.name not in named
        edits += unit.erased(one.start, one.end) if unseen else _edits(unit, one)
    for start, end in unit.directives:
        include = INCLUDE.search(unit.text[start:end])
        if include and has_header(include[1] or include[2]):
            edits.append(Edit(start, end, _namespaces(include[1] or include[2])))
        edits += in_macro(unit, start, end, _edits_in_macro)
    return unit.edited([*edits, *overloads.host_edits(unit), *launches(unit)])


def _edits_in_macro(inside: Unit, one: Declaration) -> list[Edit]:
    tag = [overloads.tagged(one, "kernel")] if one.spaces & KERNEL_SPACES else []
    return [*tag, *_edits(inside, one)]


def _namespaces(header: str) -> str:
    """The namespaces of a header of device code, empty: the text may open them."""
    for beginning, text in _NAMESPACES.items():
        if header.startswith(beginning):
            return text
    return ""


def _only_device(one: Declaration) -> bool:
    return "__device__" in one.spaces and "__host__" not in one.spaces


def _named_by_host(unit: Unit) -> set[str]:
    """The words of all that the host sees: a device function that is among them keeps its declaration."""
    words: set[str] = set()
    for one in unit.declarations:
        if one.kind != "function" or not one.spaces & {"__device__", *KERNEL_SPACES} or "__host__" in one.spaces:
            words |= set(_WORD.findall(unit.code[one.start : one.end]))
    return words


def _edits(unit: Unit, one: Declaration) -> list[Edit]:
    if one.kind == "class":
        return [edit for member in one.members for edit in _edits(unit, member)]
    if one.kind == "function" and one.body is not None:
        start, end = one.body
        if one.spaces & KERNEL_SPACES:
            return [*_names(unit, one), Edit(start, end, _stub(unit, one))]
        if _only_device(one):
            return [Edit(start, end, "{ __builtin_trap(); }")]
        return host_edits(unit, one)
    if one.kind == "variable" and "__managed__" in one.spaces:
        return [Edit(one.end, one.end, _kept(one))]
    if one.kind == "variable" and "__device__" in one.spaces:
        return _without_value(unit, one)
    return []


def _names(unit: Unit, one: Declaration) -> list[Edit]:
    """Names for the parameters that have none."""
    start, end = one.parameters
    edits = []
    for number, (offset, text) in enumerate(split(unit.code[start:end])):
        read = parameter(text)
        if not read.name and text.strip() not in ("void", ""):
            at = start + offset + read.at
            edits.append(Edit(at, at, f" pk_parameter_{number}"))
    return edits


def _stub(unit: Unit, one: Declaration) -> str:
    start, end = one.parameters
    types, passed = [], []
    for number, (_, text) in enumerate(split(unit.code[start:end])):
        if text.strip() in ("void", ""):
            continue
        read = parameter(text)
        types.append(" ".join(read.type.split()))
        passed.append((read.name or f"pk_parameter_{number}") + ("..." if read.pack else ""))
    name = one.name + one.special
    if one.template and not one.special:
        arguments = template_arguments(unit.code[slice(*one.template)])
        name += f"<{', '.join(arguments)}>" if arguments else ""
    address = f"(const void *)(void (*)({', '.join(types)}))&{name}"
    return f"{{ pk_launch_stub({', '.join([address, *passed])}); }}"


def _kept(one: Declaration) -> str:
    """Text that has a compiler know that others reach the variable: one that nobody else can name is not theirs."""
    return "".join(
        f" static const void *const pk_address_of_{name} __attribute__((__used__)) = &{name};" for name in one.names
    )


def _without_value(unit: Unit, one: Declaration) -> list[Edit]:
    """A device variable's first value is the device's; one that names device functions cannot be the host's."""
    if {"const", "constexpr"} & one.words:
        return []
    code = unit.code[one.start : one.end]
    at = code.find("=")
    if at < 0 or not _NAMED.search(code[at:]) or re.search(r"\[\s*\]", code[:at]):
        return []
    return [Edit(one.start + at, one.end - 1, blanks(unit.text[one.start + at : one.end - 1]))]
