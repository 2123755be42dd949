"""The device's side of a text: kernels, device functions and what these reach; the rest is blank. Lines and columns
stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from pygpukit.program import overloads
from pygpukit.program.declarations import Declaration
from pygpukit.program.host import INCLUDE
from pygpukit.program.lambdas import device_edits, lambdas
from pygpukit.program.macros import in_macro
from pygpukit.program.unit import DEVICE, Edit, Unit, blanks

_WORD = re.compile(r"[^\W\d]\w*")
_OF_STD = re.compile(r"(?<!:)\bstd\b")  # `std` and what is in it, but not cuda::std
_MEMORY = frozenset(["__device__", "__constant__", "__managed__"])


def device_text(unit: Unit, has_header: Callable[[str], bool], kernels: Iterable[str] = ()) -> str:
    """The text for the device's compiler. has_header: true for the names of headers that it knows. kernels: those that
    are asked for by name, whose template arguments it needs, too."""
    kept, words = _reached(unit, kernels)
    edits = list(overloads.device_edits(unit))
    for one in unit.declarations:
        edits += _without_host_members(unit, one) if one in kept else device_edits(unit, one)
    for start, end in unit.directives:
        edits += in_macro(unit, start, end, _edits_in_macro)
        include = INCLUDE.search(unit.text[start:end])
        name = (include[1] or include[2]) if include else ""
        unused = name.startswith("cub/") and "cub" not in words  # a program may use its calls of the host alone
        if include and (unused or not has_header(name)):
            edits.append(Edit(start, end, blanks(unit.text[start:end])))
    return unit.edited(edits)


def _edits_in_macro(inside: Unit, one: Declaration) -> list[Edit]:
    if one.kind == "function" and not one.spaces & DEVICE and "constexpr" not in one.words:
        return [Edit(one.start, one.end)]
    return _without_host_members(inside, one)


def _is_device(one: Declaration) -> bool:
    """True for what is the device's whoever uses it."""
    if one.kind == "function":
        return bool(one.spaces & DEVICE)
    return one.kind == "variable" and (bool(one.spaces & _MEMORY) or "__shared__" in one.words)


def _reached(unit: Unit, kernels: Iterable[str]) -> tuple[set[Declaration], set[str]]:
    """The device's own declarations, and the types, aliases, constants and constexpr functions that these name, and
    so on; and all names in them."""
    always = [
        one for one in unit.declarations if _is_device(one) or _opens(unit, one) or _has_device_members(unit, one)
    ]
    kept = set(always)
    by_name: dict[str, list[Declaration]] = {}
    for one in unit.declarations:
        if one not in kept and _may_be_reached(one):
            for name in one.names or (one.name,):
                by_name.setdefault(name, []).append(one)
    macros = {name: [word for body in bodies for word in _WORD.findall(body)] for name, bodies in unit.macros.items()}
    seen: set[str] = set()
    waiting = [word for one in always for word in _words(unit, one)]
    waiting += [word for kernel in kernels for word in _WORD.findall(kernel)]
    for one in unit.declarations:
        if one not in kept:
            waiting += [word for inner in lambdas(unit, one) for word in _WORD.findall(unit.code[slice(*inner.body)])]
    while waiting:
        word = waiting.pop()
        if word in seen:
            continue
        seen.add(word)
        waiting += macros.get(word, ())
        for one in by_name.get(word, ()):
            if one not in kept:
                kept.add(one)
                waiting += _words(unit, one)
    return kept, seen


def _has_device_members(unit: Unit, one: Declaration) -> bool:
    return one.kind == "class" and any(
        _is_device(member) or _has_device_members(unit, member) or _opens(unit, member) for member in one.members
    )


def _opens(unit: Unit, one: Declaration) -> bool:
    """True for `using namespace x;`, `namespace a = b;` and what a macro that makes device code stands for."""
    text = unit.code[one.start : one.end].strip()
    return (text.startswith(("using namespace", "namespace ")) and not _OF_STD.search(text)) or any(
        word in unit.code_makers for word in _WORD.findall(text[:200])[:1]
    )


def _may_be_reached(one: Declaration) -> bool:
    if one.kind == "function":
        return "constexpr" in one.words
    if one.kind == "variable":
        return bool({"const", "constexpr"} & one.words) and "extern" not in one.words
    return one.kind in ("class", "alias")


def _words(unit: Unit, one: Declaration) -> Iterable[str]:
    """The names in a declaration that the device sees of it."""
    edits = _without_host_members(unit, one)
    if not edits:
        text = unit.code[one.start : one.end]
    else:
        pieces, done = [], one.start
        for edit in sorted(edits, key=lambda edit: edit.start):
            if edit.start >= done:
                pieces.append(unit.code[done : edit.start])
                done = edit.end
        text = "".join([*pieces, unit.code[done : one.end]])
    inside = [unit.with_directives[a:b] for a, b in unit.directives if one.start < a < one.end]
    return _WORD.findall(" ".join([text, *inside]))


def _without_host_members(unit: Unit, one: Declaration) -> list[Edit]:
    """Edits that take a class's host functions away; of those that make what the class is the declarations stay."""
    if one.kind != "class":
        return []
    edits: list[Edit] = []
    for member in one.members:
        if member.kind == "class":
            edits += _without_host_members(unit, member)
        elif (
            member.kind == "function"
            and not member.spaces & DEVICE
            and "constexpr" not in member.words
            and not _opens(unit, member)
        ):
            special = (
                member.name.strip("~") == one.name or "virtual" in member.words or member.name.startswith("operator=")
            )
            if not special:
                edits.append(Edit(member.start, member.end, blanks(unit.text[member.start : member.end])))
            elif member.body:
                edits.append(Edit(member.begin, member.end, ";" + blanks(unit.text[member.begin + 1 : member.end])))
    return edits
