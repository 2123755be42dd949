"""NumPy's sections of public functions: made of the signature and of what is said of each parameter in one place.

A function's own docstring says what it does and what is particular; what `out` or `axis` is, is the same everywhere.
"""

from __future__ import annotations

import inspect
import re
from types import FunctionType

from pygpukit.ops.sections.examples import EXAMPLES
from pygpukit.ops.sections.words import BY_FUNCTION, ERRORS, WORDS

HEADS = ("Parameters", "Returns", "Raises", "Examples")
_STARS: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
_PARAMETERS = re.compile(r"^ *Parameters\n *-+$", re.MULTILINE)
_ERROR = re.compile(r"\b[A-Z]\w+Error\b")
_REST = (
    "GPUError\n    Or a kind of it that says more, naming the argument, its value and the remedy; nothing changes then."
)


def add_to(function: object, name: str) -> None:
    """Give a function the sections that its docstring lacks."""
    if isinstance(function, FunctionType) and function.__doc__ and not _PARAMETERS.search(function.__doc__):
        function.__doc__ = documented(function, name)


def has_sections(text: str) -> bool:
    """True where a docstring has all of them."""
    return all(re.search(rf"^ *{head}\n *-+$", text, re.MULTILINE) for head in HEADS)


def documented(function: FunctionType, name: str) -> str:
    """The docstring with the sections."""
    text = inspect.cleandoc(function.__doc__ or "")
    signature = inspect.signature(function)
    parts = {
        "Parameters": "\n".join(_parameter(name, one, signature) for one in signature.parameters.values()) or "None",
        "Returns": _type(signature.return_annotation),
        "Raises": _raises(text),
        "Examples": EXAMPLES.get(name, ""),
    }
    sections = [f"{head}\n{'-' * len(head)}\n{body}" for head, body in parts.items() if body]
    return "\n\n".join([text, *sections]) + "\n"


def _parameter(function: str, parameter: inspect.Parameter, signature: inspect.Signature) -> str:
    stars = _STARS.get(parameter.kind, "")
    default = "" if parameter.default is inspect.Parameter.empty else f", default {_default(parameter.default)}"
    said = BY_FUNCTION.get((function, parameter.name)) or WORDS.get(parameter.name, "")
    if parameter.name == "a" and not signature.parameters.keys() & {"b", "v"}:
        said = WORDS["array"]
    head = f"{stars}{parameter.name} : {_type(parameter.annotation)}{default}"
    return f"{head}\n    {said}" if said else head


def _default(value: object) -> str:
    text = repr(value)
    return "none given" if text.startswith("<") else text


def _type(annotation: object) -> str:
    if annotation is inspect.Signature.empty:
        return "object"
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _raises(text: str) -> str:
    named = dict.fromkeys(_ERROR.findall(text))
    named.pop("GPUError", None)
    return "\n".join([*(f"{error}\n    {ERRORS.get(error, 'As said above.')}" for error in named), _REST])
