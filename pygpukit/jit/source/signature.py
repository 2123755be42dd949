"""The kernels and variables of a CUDA source: names, namespaces, templates, launch bounds and types, from its tokens.

No compiler is asked, so this also works where none is installed. Kernels that only a macro's expansion shows are not
seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain

from pygpukit.jit.source.lexer import Token, Unit, lex, words_of
from pygpukit.jit.source.parameters import Parameter, parse_parameter, spell, split_list
from pygpukit.jit.source.variables import SPACES, Variable, read_variables

_ATTRIBUTES = frozenset(
    ["__launch_bounds__", "__maxnreg__", "__cluster_dims__", "__attribute__", "__align__", "__declspec"]
    + ["alignas", "decltype"]
)
_INDICES = frozenset(["threadIdx", "blockIdx", "blockDim", "gridDim"])
_KERNEL_WORDS = frozenset(["__global__", "__tile_global__"])
_ASSUMPTIONS = {"assume_aligned": "aligned", "assume_divisible": "divisible"}
_AMBIGUOUS = "ambiguous"  # no type
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class KernelSignature:
    """One `__global__` or `__tile_global__` definition. line counts from 1.

    name: as it is qualified ("ns::scale"). template: names of its template parameters, None when it is no template.
    launch_bounds: what __launch_bounds__ gives, 0 for what is not a plain number. cluster_dims: the expressions in
    __cluster_dims__. dimensions: highest axis its own body
    reads from the built-in indices. dynamic_shared: it, or the file outside functions, declares `extern __shared__`.
    """

    name: str
    line: int
    parameters: tuple[Parameter, ...]
    extern_c: bool = False
    template: tuple[str, ...] | None = None
    launch_bounds: tuple[int, ...] = ()
    cluster_dims: tuple[str, ...] = ()
    dimensions: int = 1
    dynamic_shared: bool = False
    tile: bool = False
    assumptions: tuple[tuple[str, str, int], ...] = ()
    declarations: tuple[tuple[str, ...], ...] = field(default=(), repr=False)  # the parameters' tokens
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def short_name(self) -> str:
        """The name without namespaces."""
        head, bracket, rest = self.name.partition("<")
        return head.rpartition("::")[2] + bracket + rest

    @property
    def expression(self) -> str | None:
        """The name expression that the compiler needs to tell the kernel's symbol; None for extern "C"."""
        return None if self.extern_c else self.name

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def instantiate(self, expression: str) -> KernelSignature:
        """The signature of a template with the arguments of `expression` ("ns::softmax<float, 16>") put in."""
        words = words_of(expression)
        arguments = split_list(words[words.index("<") + 1 : -1]) if "<" in words else []
        types = dict(zip(self.template or (), arguments, strict=False))
        declarations = tuple(
            tuple(chain.from_iterable(types.get(word, (word,)) for word in declaration))
            for declaration in self.declarations
        )
        parameters = _parameters(declarations, self.aliases)
        return replace(self, name=expression, template=None, declarations=declarations, parameters=parameters)


@lru_cache(maxsize=64)
def _scan(
    source: str, defines: tuple[tuple[str, str], ...]
) -> tuple[Unit, tuple[KernelSignature, ...], tuple[Variable, ...]]:
    unit = lex(source, dict(defines))
    scanner = _Scanner(unit)
    return unit, tuple(scanner.kernels()), tuple({one.name: one for one in scanner.variables}.values())


def scan(source: str, defines: Mapping[str, str] | None = None) -> tuple[KernelSignature, ...]:
    """Every kernel that `source` defines, in order. `defines` are the macros given as -D options.

    Raises ValueError when one name is defined twice with different parameters: only a preprocessor could tell which.
    """
    kernels = _scan(source, tuple(sorted((defines or {}).items())))[1]
    seen: dict[str, KernelSignature] = {}
    for kernel in kernels:
        other = seen.setdefault(kernel.name, kernel)
        if other.parameters != kernel.parameters:
            raise ValueError(
                f"kernel {kernel.name!r} is defined twice with different parameters, in lines {other.line} and "
                f"{kernel.line}; rename one, or choose with a macro that the source or `defines` sets"
            )
    return tuple(seen.values())


def scan_variables(source: str, defines: Mapping[str, str] | None = None) -> tuple[Variable, ...]:
    """Every __device__ and __constant__ variable outside functions and classes, in order.

    Left out: templates, constexpr, declarations with `extern`, and what stands under a condition that only a compiler
    can decide.
    """
    return _scan(source, tuple(sorted((defines or {}).items())))[2]


def includes(source: str, defines: Mapping[str, str] | None = None) -> tuple[list[str], list[str]]:
    """Names in #include "..." and in #include <...>."""
    unit = _scan(source, tuple(sorted((defines or {}).items())))[0]
    return unit.quoted_includes, unit.angled_includes


def macro_names(source: str, defines: Mapping[str, str] | None = None) -> dict[str, bool]:
    """The macros that the source or `defines` define, and whether one may stand for more than a plain type: it takes
    arguments, or has a comma or a bracket in it."""
    unit = _scan(source, tuple(sorted((defines or {}).items())))[0]
    plain = {name: not {",", "(", "["}.isdisjoint(words) for name, words in unit.macros.items()}
    return plain | dict.fromkeys(unit.functions, True)


def _parameters(declarations: Sequence[Sequence[str]], aliases: Mapping[str, Sequence[str]]) -> tuple[Parameter, ...]:
    return tuple(parse_parameter(words, index, aliases) for index, words in enumerate(declarations))


class _Scanner:
    """One pass over the tokens with a stack of open braces: a namespace's name, or None for anything else."""

    def __init__(self, unit: Unit) -> None:
        self._tokens = unit.tokens
        self._words = [token.text for token in unit.tokens]
        self._scopes: list[str | None] = []
        self._extern_c: list[bool] = []
        self._start = 0  # first token of the current declaration
        self._template: tuple[str, ...] | None = None
        self._aliases: dict[str, Sequence[str]] = {k: v for k, v in unit.macros.items() if v}
        self._file_shared = False
        self._constants: dict[str, Sequence[str]] = {}  # integer constants, for the extents of arrays
        self.variables: list[Variable] = []

    def kernels(self) -> list[KernelSignature]:
        signatures: list[KernelSignature] = []
        at = 0
        while at < len(self._words):
            word = self._words[at]
            handler = getattr(self, f"_on_{word}", None) if word.isidentifier() else None
            if word in _KERNEL_WORDS:
                kernel, at = self._kernel(at)
                if kernel is not None:
                    signatures.append(kernel)
                    self._begin(at)
                continue
            if handler is not None:
                at = handler(at)
                continue
            if word in SPACES and self._at_file_scope():
                at = self._variables(at)
                continue
            if word == "{":
                self._open(None, False)
                self._begin(at + 1)
            elif word == "}":
                if self._scopes:
                    self._scopes.pop()
                    self._extern_c.pop()
                self._begin(at + 1)
            elif word == ";":
                self._begin(at + 1)
            at += 1
        if self._file_shared:
            signatures = [replace(kernel, dynamic_shared=True) for kernel in signatures]
        return signatures

    def _begin(self, at: int) -> None:
        self._start, self._template = at, None

    def _open(self, scope: str | None, extern_c: bool) -> None:
        self._scopes.append(scope)
        self._extern_c.append(extern_c)

    def _at_file_scope(self) -> bool:
        return None not in self._scopes

    def _find(self, at: int, *stops: str) -> int:
        """Index of the first of `stops` from `at` on, or the end."""
        while at < len(self._words) and self._words[at] not in stops:
            at += 1
        return at

    def _close(self, at: int, opening: str, closing: str) -> int:
        """Index just after the bracket that closes the one at `at`."""
        depth = 0
        while at < len(self._words):
            word = self._words[at]
            depth += (word == opening) - (word == closing)
            at += 1
            if depth == 0:
                break
        return at

    def _on_namespace(self, at: int) -> int:
        end = self._find(at, "{", ";", "=")
        if end < len(self._words) and self._words[end] == "{":
            name = [word for word in self._words[at + 1 : end] if word not in ("inline", "[", "]")]
            self._open("".join(name), False)
            end += 1
        self._begin(end)
        return end

    def _on_extern(self, at: int) -> int:
        following = self._words[at + 1 : at + 3]
        if following == ['"C"', "{"] or following == ['"C++"', "{"]:
            self._open("", following[0] == '"C"')
            self._begin(at + 3)
            return at + 3
        if "__shared__" in following and self._at_file_scope():
            self._file_shared |= "[" in self._words[at : self._find(at, ";")]
        return at + 1

    def _on_template(self, at: int) -> int:
        if self._words[at + 1 : at + 2] != ["<"]:
            return at + 1
        end = self._close(at + 1, "<", ">")
        names = []
        for words in split_list(self._words[at + 2 : end - 1]):
            head = words[: words.index("=")] if "=" in words else words
            names.append(head[-1] if head else "")
        self._template = tuple(names)
        self._start = end
        return end

    def _on_typedef(self, at: int) -> int:
        end = self._find(at, ";", "{", "(")
        if end < len(self._words) and self._words[end] == ";" and self._at_file_scope():
            words = self._words[at + 1 : end]
            if len(words) > 1 and "[" not in words:
                self._alias(words[-1], words[:-1])
        return end

    def _on_using(self, at: int) -> int:
        end = self._find(at, ";", "{")
        words = self._words[at + 1 : end]
        if words[1:2] == ["="] and self._template is None and self._at_file_scope():
            self._alias(words[0], words[2:])
        return end

    def _alias(self, name: str, words: Sequence[str]) -> None:
        """One that is defined twice, in two namespaces or branches, is known to the compiler only."""
        before = self._aliases.get(name)
        if before is not None and list(before) != list(words):
            words = [_AMBIGUOUS]
        self._aliases[name] = words

    def _on_enum(self, at: int) -> int:
        end = self._find(at, "{", ";", ")", ",")
        words = [word for word in self._words[at + 1 : end] if word not in ("class", "struct")]
        if words and end < len(self._words) and self._words[end] == "{" and self._at_file_scope():
            self._aliases[words[0]] = words[2:] if words[1:2] == [":"] else ["int"]
        return end

    def _on_const(self, at: int) -> int:
        """Notes `const int N = 16;`. Goes on after the word: what follows may be anything."""
        if not self._at_file_scope() or self._template is not None:
            return at + 1
        end = self._find(at, ";", "{", "(")
        words = self._words[at:end]
        if "=" in words and self._words[end : end + 1] == [";"]:
            self._constants[words[words.index("=") - 1]] = words[words.index("=") + 1 :]
        return at + 1

    _on_constexpr = _on_const

    def _variables(self, at: int) -> int:
        """Reads the declaration around the __device__ or __constant__ at `at`, unless it is a function's."""
        open_list = at + 1
        while True:
            open_list = self._find(open_list, "(", "[", "{", ";", "=", "}", *_KERNEL_WORDS)
            if self._words[open_list : open_list + 1] == ["["]:
                open_list = self._close(open_list, "[", "]")
            elif self._words[open_list : open_list + 1] == ["("] and self._words[open_list - 1] in _ATTRIBUTES:
                open_list = self._close(open_list, "(", ")")
            else:
                break
        head = self._words[self._start : open_list]
        is_variable = self._words[open_list : open_list + 1] in (["{"], [";"], ["="]) and "operator" not in head
        if not is_variable or self._template is not None:
            return at + 1
        end = open_list
        while end < len(self._words) and self._words[end] != ";":
            end = self._close(end, "{", "}") if self._words[end] == "{" else end + 1
        if all(token.certain for token in self._tokens[self._start : end]):
            scope = "::".join(scope for scope in self._scopes if scope)
            words = self._words[self._start : end]
            self.variables += read_variables(words, self._line(at), scope, self._aliases, self._constants)
        self._begin(end)
        return end

    def _kernel(self, at: int) -> tuple[KernelSignature | None, int]:
        """The definition around the kernel word at `at`, if it is one with a body, and where to go on."""
        prefix = self._words[self._start : at]
        bounds = self._bounds(self._start, at)
        open_list = at + 1
        while True:
            open_list = self._find(open_list, "(", "{", ";", "}")
            if open_list >= len(self._words) or self._words[open_list] != "(":
                return None, max(open_list, at + 1)
            if self._words[open_list - 1] not in _ATTRIBUTES:
                break
            open_list = self._close(open_list, "(", ")")
        bounds = bounds or self._bounds(at, open_list)
        close_list = self._close(open_list, "(", ")")
        body = self._find(close_list, "{", ";")
        if body >= len(self._words) or self._words[body] == ";":
            return None, body
        bounds = bounds or self._bounds(close_list, body)
        end = self._close(body, "{", "}")
        name = self._name(open_list)
        if not name or name == "void":
            return None, end
        declarations = split_list(self._words[open_list + 1 : close_list - 1])
        if declarations == [["void"]]:
            declarations = []
        specialised = name.endswith(">")
        kernel = KernelSignature(
            name="::".join([scope for scope in self._scopes if scope] + [name]),
            line=self._line(at),
            parameters=_parameters(declarations, self._aliases),
            extern_c=any(self._extern_c) or '"C"' in prefix,
            template=None if specialised else self._template,
            launch_bounds=bounds,
            cluster_dims=tuple(" ".join(words) for words in self._attribute("__cluster_dims__", self._start, body)),
            dimensions=self._dimensions(body, end),
            dynamic_shared=self._extern_shared(body, end),
            tile=self._words[at] == "__tile_global__",
            assumptions=self._assumptions(body, end),
            declarations=tuple(map(tuple, declarations)),
            aliases=dict(self._aliases),
        )
        return kernel, end

    def _line(self, at: int) -> int:
        token: Token = self._tokens[at]
        return token.line

    def _name(self, open_list: int) -> str:
        """The declared name before the parameter list; with its arguments for an explicit specialisation."""
        last = open_list - 1
        if self._words[last] != ">":
            return self._words[last] if _WORD.fullmatch(self._words[last]) else ""
        depth = 0
        for at in range(last, self._start, -1):
            depth += (self._words[at] == ">") - (self._words[at] == "<")
            if depth == 0:
                return spell(self._words[at - 1 : open_list])
        return ""

    def _bounds(self, start: int, end: int) -> tuple[int, ...]:
        """The numbers of the first __launch_bounds__ in the range; a macro's number counts."""
        numbers = []
        for words in self._attribute("__launch_bounds__", start, end):
            for _ in range(8):
                if len(words) == 1 and words[0] in self._aliases:
                    words = list(self._aliases[words[0]])
            text = words[0].rstrip("uUlL") if len(words) == 1 else ""
            numbers.append(int(text) if text.isdigit() else 0)
        return tuple(numbers)

    def _attribute(self, name: str, start: int, end: int) -> list[list[str]]:
        """The tokens of each argument of the first attribute of this name in the range."""
        at = self._find(start, name)
        if at >= end or self._words[at + 1 : at + 2] != ["("]:
            return []
        return split_list(self._words[at + 2 : self._close(at + 1, "(", ")") - 1])

    def _dimensions(self, start: int, end: int) -> int:
        axes = [
            "xyz".find(self._words[at + 2])
            for at in range(start, end - 2)
            if self._words[at] in _INDICES and self._words[at + 1] == "."
        ]
        return max(axes, default=0) + 1

    def _assumptions(self, start: int, end: int) -> tuple[tuple[str, str, int], ...]:
        assumptions = []
        for at in range(start, end):
            kind = _ASSUMPTIONS.get(self._words[at])
            if kind is None:
                continue
            match self._words[at + 1 : at + 7]:
                case ["<", number, ">", "(", parameter, ")"] if number.rstrip("uUlL").isdigit():
                    assumptions.append((parameter, kind, int(number.rstrip("uUlL"))))
        return tuple(assumptions)

    def _extern_shared(self, start: int, end: int) -> bool:
        return any(
            self._words[at] == "extern" and "__shared__" in self._words[at + 1 : at + 4] for at in range(start, end)
        )
