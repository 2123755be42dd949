"""Errors about what a program gives an algorithm of the device and no kernel can have, at the line of the program."""

from __future__ import annotations

import re

from pygpukit.core.errors import CompileError
from pygpukit.jit.compile.diagnostics import compile_error
from pygpukit.program import library_headers
from pygpukit.program.declarations import Declaration
from pygpukit.program.unit import Unit

_OF_FUNCTION = re.compile(
    r"(?<![\w:])(?P<function>[^\W\d][\w:]*)(?:\([^()]*\))?(?: const)?::(?P<what>\{lambda\(|[^\W\d]\w*)"
)
_HOST_LAMBDA = re.compile(r"(?<![\w\])])\[[^\[\]]*\]\s*(?=[({])")


def refusal(unit: Unit, kernel: str) -> CompileError | None:
    """The error about a kernel of the host's side that is made for something that only the host knows; None for
    others. kernel: its name with template arguments."""
    functions = {one.qualified: one for one in unit.declarations if one.kind == "function" and one.body}
    for match in _OF_FUNCTION.finditer(kernel.partition("<")[2]):
        function = functions.get(match["function"])
        if function is not None:
            text, at = _message(unit, function, match["what"])
            file, line = unit.place(at)
            return compile_error(unit.name, f"{file}:{line}: error: {text}", unit.text)
    return None


def _message(unit: Unit, function: Declaration, what: str) -> tuple[str, int]:
    """Message and place in the text."""
    assert function.body is not None
    if what == "{lambda(":
        place = _HOST_LAMBDA.search(unit.code, *function.body)
        text = (
            "a lambda of the host is given to the device; write __device__ or __host__ __device__ between its [] and ()"
        )
    else:
        place = re.compile(rf"\b(?:struct|class)\s+{re.escape(what)}\b").search(unit.code, *function.body)
        text = (
            f"{what} is a class inside the function {function.name}(), which no kernel can name; move it out of the "
            "function"
        )
    return text, place.start() if place else function.start


def at_class(unit: Unit, error: CompileError) -> CompileError:
    """The error; one about the text of an algorithm that is made for a class of the program stands at that class."""
    wrong = [one for one in error.diagnostics if one.severity == "error"]
    if not wrong or unit.place(0)[0] == wrong[0].file or not _of_library(wrong[0].file):
        return error
    words = re.findall(r"[^\W\d]\w*", " ".join(one.message for one in wrong))
    own = {
        one.name: one
        for one in unit.declarations
        if one.kind == "class" and one.body and not _of_library(unit.place(one.start)[0])
    }
    used = next((own[word] for word in words if word in own), None)
    if used is None:
        return error
    file, line = unit.place(used.start)
    text = f"{used.name} is used on the device: {wrong[0].message}"
    for member in used.members:
        if member.name == "operator()" and "__device__" not in member.spaces:
            file, line = unit.place(member.start)
            text = f"{used.name} is called on the device; write __host__ __device__ before its operator()"
    return compile_error(unit.name, f"{file}:{line}: error: {text}", unit.text)


def _of_library(file: str) -> bool:
    return file in ("__nv_name_map", "<kernels>") or file.startswith(str(library_headers.FOLDER))
