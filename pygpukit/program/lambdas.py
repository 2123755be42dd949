"""Lambdas of device code in host functions: `[=] __device__ (int i) { ... }` becomes a class that both sides know.

The class has the captured values as members, and their types as template parameters: the host's compiler, which knows
these, tells them in the names of the kernels that it instantiates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pygpukit.program.declarations import Declaration, closed
from pygpukit.program.parameters import parameter, split, template_arguments
from pygpukit.program.unit import Edit, Unit, blanks

_LAMBDA = re.compile(r"\[(?P<captures>[^\[\]]*)\]\s*(?P<spaces>(?:[^\W\d]\w*\s*)+)(?=[({])")
_DECLARATION = re.compile(  # at the beginning of a statement or of a parameter: a type, then names
    r"(?:(?<=[;{}(,])|(?<=\n))\s*(?:(?:const|constexpr|static|volatile|unsigned|signed|long|short)\s+)*"
    r"(?!return\b|else\b|delete\b|throw\b|case\b|goto\b)[^\W\d][\w:]*(?:\s*<[^;{}()]*>)?(?:\s+|\s*[*&]+\s*)(?:const\s+)?"
    r"(?P<first>[^\W\d]\w*)\s*(?=[=;,({\[):])(?P<rest>[^;]*)"
)
_NEXT = re.compile(r",\s*[*&\s]*([^\W\d]\w*)\s*(?=[=,\[{(]|$)")
_USED = re.compile(r"(?<![\w.:>])(?<!->)([^\W\d]\w*)")
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Lambda:
    """start, end: of the expression. captures: member and what it is made of. body: where its braces are."""

    name: str
    start: int
    end: int
    body: tuple[int, int]
    captures: tuple[tuple[str, str], ...]
    call: str  # "(int i) const -> float"
    both: bool  # the host calls it, too
    template: tuple[str, tuple[str, ...]]  # parameters and arguments of the function around it

    @property
    def head(self) -> str:
        """The class up to the body of its call."""
        types = [f"class PkType{number}" for number in range(len(self.captures))]
        parameters = ", ".join([one for one in (self.template[0], *types) if one])
        members = "".join(f" PkType{number} {name};" for number, (name, _) in enumerate(self.captures))
        template = f"template <{parameters}> " if parameters else ""
        return f"{template}struct {self.name} {{{members} __host__ __device__ auto operator(){self.call} "

    @property
    def value(self) -> str:
        """The expression that makes one on the host."""
        types = [f"std::decay_t<decltype({value})>" for _, value in self.captures]
        arguments = ", ".join([*self.template[1], *types])
        values = ", ".join(value for _, value in self.captures)
        return f"{self.name}{f'<{arguments}>' if arguments else ''}{{{values}}}"


def lambdas(unit: Unit, function: Declaration) -> list[Lambda]:
    """Those of device code in a host function."""
    if function.kind != "function" or function.body is None:
        return []
    code, at = unit.code, function.body[0]
    result: list[Lambda] = []
    while match := _LAMBDA.search(code, at, function.body[1]):
        at = match.end()
        words = {word for one in match["spaces"].split() for word in (one, *unit.spaces.get(one, ()))}
        if "__device__" not in words:
            continue
        read = _read(unit, function, match, "__host__" in words, len(result))
        if read is not None:
            result.append(read)
            at = read.end
    return result


def _read(unit: Unit, function: Declaration, match: re.Match[str], both: bool, number: int) -> Lambda | None:
    code, at = unit.code, match.end()
    parameters = "()"
    if code[at] == "(":
        end = closed(code, at)
        parameters, at = code[at:end], end
    open_body = code.find("{", at)
    if open_body < 0:
        return None
    after = code[at:open_body]
    body = open_body, closed(code, open_body)
    captures = _captures(unit, function, match, parameters, body)
    if captures is None:
        return None
    constant = "" if "mutable" in after.split() else " const"
    returned = re.search(r"->\s*(.*)$", after, re.DOTALL)
    call = " ".join(parameters.split()) + constant + (f" -> {returned[1].strip()}" if returned else "")
    unit_name = re.sub(r"\W", "_", unit.name)
    name = f"pk_lambda_{unit_name}_{match.start()}"
    template: tuple[str, tuple[str, ...]] = ("", ())
    if function.template:
        text = " ".join(code[slice(*function.template)].split())
        template = (
            ", ".join(re.split(r"=(?!=)", one)[0].strip() for _, one in split(text)),
            tuple(template_arguments(text)),
        )
    return Lambda(name, match.start(), body[1], body, captures, call, both, template)


def _captures(
    unit: Unit, function: Declaration, match: re.Match[str], parameters: str, body: tuple[int, int]
) -> tuple[tuple[str, str], ...] | None:
    """Member and value of each; None where one cannot be told: by reference, or the object around it."""
    code = unit.code
    named: dict[str, str] = {}
    everything = False
    for _, one in split(match["captures"]):
        word = one.strip()
        if word == "=":
            everything = True
        elif word.startswith("&") or word.lstrip("*") == "this":
            return None
        elif word:
            name, _, value = word.partition("=")
            named[name.strip()] = value.strip() or name.strip()
    if everything:
        text = code[slice(*body)]
        own = {parameter(one).name for _, one in split(parameters[1:-1])} | _declared(text)
        around = _declared(code[function.body[0] : match.start()]) if function.body else set()
        around |= {parameter(one).name for _, one in split(code[slice(*function.parameters)])}
        for name in dict.fromkeys(_USED.findall(text)):
            if name in around and name not in own:
                named.setdefault(name, name)
    return tuple(named.items())


def _declared(text: str) -> set[str]:
    """The names that a function's text declares, and some that it only uses."""
    names: set[str] = set()
    at = 0
    while match := _DECLARATION.search(text, at):
        names |= {match["first"], *_NEXT.findall(match["rest"])}
        at = match.end("first")
    return names


def host_edits(unit: Unit, function: Declaration) -> list[Edit]:
    """The classes before the function, and their objects in place of the lambdas."""
    edits = []
    for one in lambdas(unit, function):
        body = "{ __builtin_trap(); }"
        if one.both:
            body = " ".join(_COMMENTS.sub(" ", unit.text[slice(*one.body)]).split())
        edits.append(Edit(function.start, function.start, f"{one.head}{body} }}; "))
        edits.append(Edit(one.start, one.end, one.value))
    return edits


def device_edits(unit: Unit, function: Declaration) -> list[Edit]:
    """Edits that leave of a host function the classes of its lambdas, each body where it stands."""
    edits, done = [], function.start
    for one in lambdas(unit, function):
        edits += unit.erased(done, one.start)
        edits.append(Edit(one.start, one.body[0], one.head + _gap(unit, one)))
        edits.append(Edit(one.end, one.end, " };"))
        done = one.end
    return [*edits, *unit.erased(done, function.end)]


def _gap(unit: Unit, one: Lambda) -> str:
    """A directive that puts the body back at its place: the class's head is longer than what stood there."""
    file, line = unit.place(one.body[0])
    column = one.body[0] - unit.text.rfind("\n", 0, one.body[0]) - 1
    return f'\n#line {line} "{file}"\n' + blanks(" " * column)
