"""Function templates in CUDA C++ text: where their bodies are."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MARK = re.compile(r"[;{}()]|\btemplate\s*<")
_ANGLE = re.compile(r"[<>()]")
_SPACE = re.compile(r"\bnamespace\b[^()=]*$|\bextern\s*$")
_CLASS = re.compile(r"(?:^|[>:\s])(?:class|struct|union)\b(?!.*\)\s*(?:(?:const|volatile|noexcept|&)\s*)*$)", re.DOTALL)
_PARAMETERS = re.compile(r"\)[^()]*$|\)\s*(?:noexcept|requires|->|:)", re.DOTALL)

_GOES_ON = re.compile(r"\s*[,{]")  # what was in braces is a member's first value


@dataclass(frozen=True)
class Body:
    """code[start:end] is a body with its braces. constant: the function is constexpr."""

    start: int
    end: int
    constant: bool


def bodies(code: str) -> list[Body]:
    """The body of every function template, and of every function of a class template.

    code: CUDA C++ with comments, strings and preprocessor lines blank (pygpukit.jit.compile.sim_source.blank). Full
    specialisations are no templates, nor are the lambdas of a plain function.
    """
    of_templates: list[Body] = []
    scopes: list[bool] = []  # open namespaces and classes: whether what stands in them belongs to a template
    start, at, template = 0, 0, False  # of the declaration that is being read
    while mark := _MARK.search(code, at):
        at = mark.end()
        if mark.group() == "(":
            at = _closed(code, at, "(", ")")
        elif mark.group() in ";})":
            if mark.group() == "}" and scopes:
                scopes.pop()
            start, template = (start, template) if mark.group() == ")" else (at, False)
        elif mark.group() != "{":
            after = _closed_angle(code, at)
            template = template or bool(code[at : after - 1].strip())
            at = after
        else:
            head = code[start : mark.start()]
            of_template = template or (bool(scopes) and scopes[-1])
            if _SPACE.search(head) or _CLASS.search(_without_parameters(head)):
                scopes.append(of_template)
                start, template = at, False
                continue
            at = _closed(code, at, "{", "}")
            if _PARAMETERS.search(head) and not _GOES_ON.match(code, at):
                if of_template:
                    of_templates.append(Body(mark.start(), at, "constexpr" in head.split()))
                start, template = at, False
    return of_templates


def fault_where_used(message: str, place: str = "") -> str:
    """A statement that is a fault of the template it stands in once somebody instantiates that.

    place: what says where in the user's text the fault is, a #line directive and blanks.
    """
    escaped = message.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'static_assert(!{place}sizeof(__PRETTY_FUNCTION__), "{escaped}");'


def _without_parameters(head: str) -> str:
    """A declaration's head without the parameters of its templates, which may say class or struct."""
    pieces, done = [], 0
    for match in re.finditer(r"\btemplate\s*<", head):
        if match.start() >= done:
            pieces.append(head[done : match.start()])
            done = _closed_angle(head, match.end())
    return " ".join([*pieces, head[done:]]).strip()


def _closed(code: str, at: int, opening: str, closing: str) -> int:
    """Where the bracket that was opened before `at` has been closed, or the end of the text."""
    depth = 1
    for match in re.compile(f"[{re.escape(opening + closing)}]").finditer(code, at):
        depth += 1 if match.group() == opening else -1
        if not depth:
            return match.end()
    return len(code)


def _closed_angle(code: str, at: int) -> int:
    depth, brackets = 1, 0
    for match in _ANGLE.finditer(code, at):
        letter = match.group()
        if letter in "()":
            brackets += 1 if letter == "(" else -1
        elif not brackets:
            depth += 1 if letter == "<" else -1
            if not depth:
                return match.end()
    return len(code)
