"""The subscripts of einsum: the labels of every operand's axes and of the result's, and the extent of each label.

Axes that an ellipsis stands for have labels of their own, counted from the last: no letter of a subscript is like them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import ShapeError
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

Labels = tuple[str, ...]
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # of the integers of a list, in NumPy's order
_DOTS = "..."


@dataclass(frozen=True)
class Product:
    """One call: operands with the labels of their axes, those of the result, extents by label."""

    operands: tuple[GPUArray, ...]
    terms: tuple[Labels, ...]
    result: Labels
    extents: dict[str, int]

    @property
    def text(self) -> str:
        """The subscripts as a string; axes of an ellipsis by their numbers."""
        return f"{','.join(map(''.join, self.terms))}->{''.join(self.result)}"


def parse(arguments: Sequence[Any], what: str) -> Product:
    """The arguments of einsum(): a string and arrays, or arrays and lists of labels in turn.

    Raises ValueError for subscripts that cannot be read, ShapeError for those that do not fit the arrays, DTypeError.
    """
    if not arguments:
        raise ValueError(f"{what}: give subscripts such as 'ij,jk->ik', and an array for each term")
    if not isinstance(arguments[0], str):
        check_array(arguments[0], what)
    written, result, operands = (
        _of_text(arguments, what) if isinstance(arguments[0], str) else _of_lists(arguments, what)
    )
    arrays = tuple(check_array(operand, what) for operand in operands)
    check_devices(what, *arrays)
    if len(written) != len(arrays):
        raise ValueError(f"{what}: the subscripts have {len(written)} terms, for {len(arrays)} operands")
    terms = tuple(
        _expanded(term, array.ndim, k, what) for k, (term, array) in enumerate(zip(written, arrays, strict=True))
    )
    hidden = max(sum(label.isdigit() for label in term) for term in terms)
    dots = tuple(str(k) for k in reversed(range(hidden)))
    if result is None:
        counts = Counter(label for term in written for label in term if label != _DOTS)
        labels = (*dots, *sorted(label for label, count in counts.items() if count == 1))
    else:
        labels = _result(result, dots, terms, what)
    return Product(arrays, terms, labels, _extents(arrays, terms, what))


def _of_text(arguments: Sequence[Any], what: str) -> tuple[list[Labels], Labels | None, Sequence[Any]]:
    text = arguments[0].replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = [_labels(term, what) for term in left.split(",")]
    return terms, _labels(right, what) if arrow else None, arguments[1:]


def _labels(term: str, what: str) -> Labels:
    before, dots, after = term.partition(_DOTS)
    for letter in before + after:
        if letter not in _LETTERS:
            raise ValueError(f"{what}: {letter!r} in the term {term!r} is no letter; an ellipsis is '...', once a term")
    return (*before, *([dots] if dots else []), *after)


def _of_lists(arguments: Sequence[Any], what: str) -> tuple[list[Labels], Labels | None, Sequence[Any]]:
    result = _from_list(arguments[-1], what) if len(arguments) % 2 else None
    pairs = len(arguments) // 2
    return (
        [_from_list(arguments[2 * k + 1], what) for k in range(pairs)],
        result,
        [arguments[2 * k] for k in range(pairs)],
    )


def _from_list(labels: Any, what: str) -> Labels:
    labels = labels.tolist() if getattr(labels, "ndim", 0) == 1 else labels
    if not isinstance(labels, (list, tuple)):
        raise TypeError(f"{what}: behind each array comes a list of its labels, not a {type(labels).__name__}")
    letters = []
    for label in labels:
        if label is not Ellipsis and not (hasattr(label, "__index__") and 0 <= int(label) < len(_LETTERS)):
            raise ValueError(f"{what}: the label {label!r} is neither an integer from 0 to 51 nor Ellipsis")
        letters.append(_DOTS if label is Ellipsis else _LETTERS[int(label)])
    if letters.count(_DOTS) > 1:
        raise ValueError(f"{what}: the labels {list(labels)} have more than one Ellipsis")
    return tuple(letters)


def _expanded(term: Labels, ndim: int, position: int, what: str) -> Labels:
    """The labels of each axis, those of the ellipsis put in."""
    named = len(term) - term.count(_DOTS)
    if named > ndim or (named < ndim and _DOTS not in term):
        raise ShapeError(
            f"{what}: the term {''.join(term)!r} names {named} axes, operand {position} has {ndim}; "
            "use '...' for axes without a name"
        )
    if _DOTS not in term:
        return term
    at = term.index(_DOTS)
    return (*term[:at], *(str(k) for k in reversed(range(ndim - named))), *term[at + 1 :])


def _result(term: Labels, dots: Labels, terms: Sequence[Labels], what: str) -> Labels:
    known = {label for each in terms for label in each}
    named = [label for label in term if label != _DOTS]
    for label in named:
        if named.count(label) > 1:
            raise ValueError(f"{what}: the result has the label {label!r} twice; it may have each once")
        if label not in known:
            raise ValueError(f"{what}: the result's label {label!r} is in no operand's term")
    if dots and _DOTS not in term:
        raise ValueError(f"{what}: the result {''.join(term)!r} needs '...' for the {len(dots)} axes that have no name")
    at = term.index(_DOTS) if _DOTS in term else 0
    return (*term[:at], *dots, *term[at + (_DOTS in term) :])


def _extents(arrays: Sequence[GPUArray], terms: Sequence[Labels], what: str) -> dict[str, int]:
    extents: dict[str, int] = {}
    for position, (array, term) in enumerate(zip(arrays, terms, strict=True)):
        own: dict[str, int] = {}
        for label, extent in zip(term, array.shape, strict=True):
            if own.setdefault(label, extent) != extent:
                raise ShapeError(
                    f"{what}: label {label!r} is on axes of {own[label]} and {extent} elements of operand {position}, "
                    f"of shape {array.shape}; they must be equal"
                )
            before = extents.get(label, 1)
            if 1 not in (before, extent) and before != extent:
                raise ShapeError(
                    f"{what}: label {label!r} has {before} elements, in operand {position} of shape {array.shape} "
                    f"{extent}; they must be equal or 1"
                )
            extents[label] = extent if before == 1 else before
    return extents
