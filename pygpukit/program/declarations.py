"""The declarations of a CUDA C++ text by their places: functions with their spaces, classes, variables and the rest.

No compiler is asked: the text is read as it stands, both branches of every condition.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, field

SPACES = ("__global__", "__device__", "__host__", "__constant__", "__managed__", "__tile_global__")
_MARK = re.compile(r"[;{}(\[]")
_OPENING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_SPACE = re.compile(r"(?:^|\s)(?:inline\s+)?namespace\b(?P<name>[^()=;]*)$|(?:^|\s)extern\s*$")
_CLASS = re.compile(
    r"^(?:typedef\b|static\b|const\b|constexpr\b|extern\b|volatile\b|__device__|__constant__|__managed__|\s)*"
    r"(?P<kind>class|struct|union|enum)\b(?:\s+(?:class|struct)\b)?(?P<rest>[^=]*)$",
    re.DOTALL,
)
_CALLED = re.compile(r"([^\W\d]\w*)\s*\(")
_USING = re.compile(
    r"\busing\s+(?:([^\W\d]\w*)\s*=|(?!::|std\b|namespace\b|typename\b)\w[\w:\s]*::\s*([^\W\d]\w*)\s*;)"
)
_FORWARD = re.compile(r"\s*(?:class|struct|union|enum(?:\s+class)?)\s+([^\W\d]\w*)\s*(?:<[^;{}]*>\s*)?;")
_ATTRIBUTES = re.compile(
    r"(?:__launch_bounds__|__attribute__|__maxnreg__|__cluster_dims__|__block_size__|__align__|alignas|noexcept"
    r"|explicit|decltype|__declspec|requires|\bthrow)\s*$"
)
_ALIGNED = re.compile(r"\b(?:__align__|alignas|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)")
_TEMPLATE = re.compile(r"\btemplate\s*<")
_LABEL = re.compile(r"(?:\s|(?:public|private|protected)\s*:)*")
_WORD = re.compile(r"[^\W\d]\w*")
_NAME = re.compile(
    r"(?P<name>(?:::\s*)?(?:[^\W\d]\w*\s*(?:<[^;{}()]*>\s*)?::\s*)*(?:~\s*)?[^\W\d]\w*)\s*(?P<special><[^;{}]*>)?\s*$"
)
_OPERATOR = re.compile(r"\boperator\b[^;{}]*$")
_DECLARED = re.compile(r"([^\W\d]\w*)\s*(?=[=\[{;,(]|$)")
_INITIALISERS = re.compile(r"\s*(?:noexcept(?:\s*\([^()]*\))?\s*)?(?P<colon>:)(?!:)")
_AFTER_PARAMETERS = re.compile(
    r"\s*(?:const|volatile|noexcept|override|final|&|\s|=\s*(?:default|delete|0)|->[^;]*)*;?\s*"
)


@dataclass(frozen=True)
class Declaration:
    """code[start:end], without comments. kind: "function", "class", "variable", "alias" or "other".

    scope: the namespaces around it. spaces: the words of SPACES in its head. words: all words of its head. special: a
    specialisation's arguments. parameters: where a function's parameter list is, without its parentheses. body: where
    the braces are, None for none. begin: where the body begins, or a constructor's list before it. template: where its
    parameter list is. names: what it declares. members: of a class.
    """

    kind: str
    start: int
    end: int
    scope: tuple[str, ...]
    spaces: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    name: str = ""
    special: str = ""
    parameters: tuple[int, int] = (0, 0)
    body: tuple[int, int] | None = None
    begin: int = 0
    template: tuple[int, int] | None = None
    names: tuple[str, ...] = ()
    members: tuple[Declaration, ...] = field(default=(), repr=False)

    @property
    def qualified(self) -> str:
        """The name with its namespaces."""
        return "::".join([one for one in self.scope if one] + [self.name])


def closed(code: str, at: int, end: int | None = None) -> int:
    """Just after the bracket that closes the one at `at`; the end where none does."""
    opening = code[at]
    closing = _OPENING[opening]
    depth, last = 0, len(code) if end is None else end
    for match in re.compile(f"[{re.escape(opening + closing)}]").finditer(code, at, last):
        depth += 1 if match.group() == opening else -1
        if not depth:
            return match.end()
    return last


def closed_angle(code: str, at: int) -> int:
    """Just after the `>` that closes the `<` at `at`; what is in other brackets is passed over."""
    depth, index = 0, at
    while index < len(code):
        letter = code[index]
        if letter in "([{":
            index = closed(code, index)
            continue
        if letter == "<":
            depth += 1
        elif letter == ">" and code[index - 1] != "-":
            depth -= 1
            if not depth:
                return index + 1
        elif letter == ";":
            return index
        index += 1
    return len(code)


def declarations(code: str, macros: Mapping[str, frozenset[str]], makers: Collection[str] = ()) -> list[Declaration]:
    """Those outside functions, in order. code: the text with comments, strings and directives blank. macros: of each
    macro that stands for words of SPACES, which. makers: those that stand for whole declarations."""
    return list(_Reader(code, macros, makers).scope(0, len(code), ()))


_Declarations = Generator[Declaration, None, None]


@dataclass
class _Begun:
    """A declaration while it is read. head: where it begins after `template <...>`. groups: its parentheses so far."""

    start: int
    head: int
    scope: tuple[str, ...]
    template: tuple[int, int] | None
    groups: list[tuple[int, int]] = field(default_factory=list)
    class_body: tuple[int, int] | None = None


class _Reader:
    def __init__(self, code: str, macros: Mapping[str, frozenset[str]], makers: Collection[str]) -> None:
        self._code, self._macros, self._makers = code, macros, makers

    def scope(self, at: int, end: int, names: tuple[str, ...]) -> _Declarations:
        """The declarations between two places of a namespace or a class."""
        while True:
            at = self._past_blanks(at, end)
            if at >= end:
                return
            if self._code[at] in ";}":
                at += 1
            elif (call := _CALLED.match(self._code, at, end)) and call[1] in self._makers:
                start, at = at, closed(self._code, call.end() - 1, end)
                yield Declaration("other", start, at, names, words=frozenset([call[1]]))
            else:
                at = yield from self._one(self._begin(at, end, names), end)

    def _past_blanks(self, at: int, end: int) -> int:
        label = _LABEL.match(self._code, at, end)
        return label.end() if label else at

    def _begin(self, start: int, end: int, names: tuple[str, ...]) -> _Begun:
        at, template = start, None
        while opening := _TEMPLATE.match(self._code, at, end):
            after = closed_angle(self._code, opening.end() - 1)
            if template is None or self._code[opening.end() : after - 1].strip():
                template = (opening.end(), after - 1)
            at = self._past_blanks(after, end)
        return _Begun(start, at, names, template)

    def _one(self, begun: _Begun, end: int) -> Generator[Declaration, None, int]:
        """Yields what begins there, and returns where it ends."""
        at = begun.head
        while mark := _MARK.search(self._code, at, end):
            letter, place = mark.group(), mark.start()
            if letter in "([":
                at = closed(self._code, place, end)
                if letter == "(":
                    begun.groups.append((place, at))
                continue
            if letter in ";}":
                yield self._ended(begun, mark.end() if letter == ";" else place)
                return mark.end()
            head, after = self._code[begun.head : place], closed(self._code, place, end)
            if not begun.groups and (space := _SPACE.search(head)):
                name = (space["name"] or "").strip()
                inside = (*begun.scope, *name.split("::")) if name else begun.scope
                yield from self.scope(mark.end(), after - 1, inside)
                return after
            if begun.class_body is None and self._is_class(begun, place):
                begun.class_body = (place, after)
            elif begun.class_body is None and self._is_body(begun, place, after):
                yield self._function(begun, after, (place, after))
                return after
            at = after
        yield self._ended(begun, end)
        return end

    def _is_class(self, begun: _Begun, place: int) -> bool:
        if any(not _ATTRIBUTES.search(self._code, 0, start) for start, _ in begun.groups):
            return False
        return _CLASS.match(_ALIGNED.sub(" ", self._code[begun.head : place])) is not None

    def _is_body(self, begun: _Begun, place: int, after: int) -> bool:
        """True where the braces are a function's body, and no value."""
        parameters = self._parameters(begun)
        if parameters is None or self._assigned(begun.head, parameters[0]):
            return False
        between = self._code[parameters[1] : place]
        member = _INITIALISERS.match(between) and _WORD.search(between[-1:])
        return not (member and re.match(r"\s*[,{]", self._code[after : after + 100]))

    def _assigned(self, start: int, end: int) -> bool:
        head = self._code[start:end]
        return "=" in head and _OPERATOR.search(head) is None

    def _parameters(self, begun: _Begun) -> tuple[int, int] | None:
        """The parentheses of the parameter list, if there are any."""
        for at, (start, end) in enumerate(begun.groups):
            before = self._code[begun.head : start]
            if _ATTRIBUTES.search(before):
                continue
            if re.search(r"\boperator\s*$", before) and at + 1 < len(begun.groups):  # operator()(...)
                return begun.groups[at + 1]
            return start, end
        return None

    def _words(self, start: int, end: int) -> tuple[frozenset[str], frozenset[str]]:
        """The words of SPACES, and all words, between two places."""
        words = frozenset(_WORD.findall(self._code[start:end]))
        named = [self._macros[word] for word in words if word in self._macros]
        return frozenset(word for word in words if word in SPACES).union(*named), words

    def _ended(self, begun: _Begun, end: int) -> Declaration:
        """A declaration that ends with a semicolon."""
        if begun.class_body is not None:
            return self._class(begun, end, begun.class_body)
        parameters = self._parameters(begun)
        spaces, words = self._words(begun.head, parameters[0] if parameters else end)
        text = self._code[begun.head : end]
        if "using" in words or "typedef" in words:
            first = _USING.search(text)
            names = (
                ([first[1] or first[2]] if first else [])
                if "using" in words
                else _DECLARED.findall(text.rstrip("; \n"))[-1:]
            )
            return Declaration(
                "alias", begun.start, end, begun.scope, spaces, words, names=tuple(names), template=begun.template
            )
        if parameters and not self._assigned(begun.head, parameters[0]) and self._is_prototype(parameters, end, spaces):
            return self._function(begun, end, None)
        if forward := _FORWARD.fullmatch(text):
            return Declaration(
                "class", begun.start, end, begun.scope, spaces, words, forward[1], template=begun.template,
                names=(forward[1],),
            )  # fmt: skip
        names = _DECLARED.findall(re.sub(r"=[^,;]*", "=", text))
        first = _NAME.search(re.split(r"[=\[{;(]", _ALIGNED.sub(" ", text), maxsplit=1)[0])
        kind = "variable" if names and (len(words) > 1 or spaces) else "other"
        return Declaration(
            kind, begun.start, end, begun.scope, spaces, words, first["name"] if first else "",
            template=begun.template, names=tuple(names),
        )  # fmt: skip

    def _is_prototype(self, parameters: tuple[int, int], end: int, spaces: frozenset[str]) -> bool:
        """True where the parentheses are a parameter list, and no values."""
        if spaces & {"__global__", "__tile_global__"}:
            return True
        if spaces & {"__constant__", "__managed__"} or not _AFTER_PARAMETERS.fullmatch(self._code, parameters[1], end):
            return False
        inside = self._code[parameters[0] + 1 : parameters[1] - 1].strip()
        values = re.fullmatch(r"[\d.,\s\w+\-*/]*", inside) and not re.search(r"[^\W\d]\w*\s+[^\W\d]\w*", inside)
        return not inside or not values or _WORD.fullmatch(inside) is not None

    def _function(self, begun: _Begun, end: int, body: tuple[int, int] | None) -> Declaration:
        parameters = self._parameters(begun)
        assert parameters is not None
        spaces, words = self._words(begun.head, parameters[0])
        head = self._code[begun.head : parameters[0]]
        begin = body[0] if body else end
        if body and (initialisers := _INITIALISERS.match(self._code[parameters[1] : body[0]])):
            begin = parameters[1] + initialisers.start("colon")
        name, special = "", ""
        if operator := _OPERATOR.search(head):
            name = operator.group().strip()
        elif named := _NAME.search(head):
            name, special = "".join(named["name"].split()), named["special"] or ""
        return Declaration(
            "function", begun.start, end, begun.scope, spaces, words, name, special,
            (parameters[0] + 1, parameters[1] - 1), body, begin, begun.template, (name.rpartition("::")[2],),
        )  # fmt: skip

    def _class(self, begun: _Begun, end: int, body: tuple[int, int]) -> Declaration:
        spaces, words = self._words(begun.head, body[0])
        match = _CLASS.match(_ALIGNED.sub(" ", self._code[begun.head : body[0]]))
        assert match is not None
        rest = re.split(r"(?<!:):(?!:)", match["rest"])[0]
        name = next(iter(_WORD.findall(re.sub(r"\b(?:final|class|struct)\b", " ", rest))), "")
        names = [name, *_WORD.findall(self._code[body[1] : end])]
        inside = body[0] + 1, body[1] - 1
        members: tuple[Declaration, ...] = ()
        if match["kind"] == "enum":
            names += _WORD.findall(re.sub(r"=[^,]*", "", self._code[slice(*inside)]))
        else:
            members = tuple(self.scope(*inside, (*begun.scope, name)))
        return Declaration(
            "class", begun.start, end, begun.scope, spaces, words, name, body=body, template=begun.template,
            names=tuple(names), members=members,
        )  # fmt: skip
