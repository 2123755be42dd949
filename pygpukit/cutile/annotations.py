"""Marks of a kernel's parameters: what cuTile's annotations say of each, cuTile's own and the stand-in's alike."""

from __future__ import annotations

import typing
from types import FunctionType
from typing import Annotated, Any

from pygpukit.core.errors import KernelArgumentError

Marks = tuple[Any, ...]


def marks_of(function: FunctionType) -> dict[str, Marks]:
    """The marks of each parameter that has any. Raises KernelArgumentError for an annotation that means nothing."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise KernelArgumentError(f"{function.__name__}: an annotation names nothing: {error}", "") from None
    return {name: typing.get_args(hint)[1:] for name, hint in hints.items() if typing.get_origin(hint) is Annotated}


def mark(marks: Marks, kind: str) -> Any:
    """The mark of a kind, None where there is none: "ConstantAnnotation"."""
    return next((one for one in marks if type(one).__name__ == kind), None)


def is_constant(marks: Marks) -> bool:
    """True for a parameter that is known when the kernel is compiled."""
    return mark(marks, "ConstantAnnotation") is not None


def has_64_bits(marks: Marks) -> bool:
    """True for integers, or extents and strides of an array, of 64 bits."""
    one = mark(marks, "ScalarAnnotation") or mark(marks, "ArrayAnnotation")
    return one is not None and getattr(getattr(one, "dtype", None) or one.index_dtype, "name", "") == "int64"
