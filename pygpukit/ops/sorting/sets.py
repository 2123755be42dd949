"""Arrays as sets of values, as NumPy's functions of these names: by sorting, and by searching what is sorted.

Results that are sets are 1-D and sorted; those wait once or twice, for the number of values. A NaN is in no set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.array import factory, promotion
from pygpukit.core.dtypes import bool_
from pygpukit.ops import elementwise, shape, sorting
from pygpukit.ops.elementwise import logic
from pygpukit.ops.indexing import take
from pygpukit.ops.operands import check_array, check_devices
from pygpukit.ops.shape import joining
from pygpukit.ops.sorting import distinct

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["intersect1d", "isin", "setdiff1d", "setxor1d", "union1d"]


def isin(
    element: GPUArray,
    test_elements: GPUArray,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> GPUArray:
    """True where the elements are among test_elements; invert: where they are not.

    assume_unique and kind (None, "sort", "table") change nothing: test_elements are sorted, and searched. Raises
    ValueError for another kind, DTypeError and DeviceMismatchError.
    """
    if kind not in (None, "sort", "table"):
        raise ValueError(f"isin: kind is {kind!r}; it must be None, 'sort' or 'table'")
    element, among = check_array(element, "isin"), check_array(test_elements, "isin")
    check_devices("isin", element, among)
    if not among.size or not element.size:
        return factory.full(element.shape, invert, bool_)
    common = promotion.promote(element.dtype, among.dtype)
    elements, among = (elementwise.as_type(shape.ravel(x), common) for x in (element, among))
    among = sorting.sort(among)
    nearest = take(among, sorting.searchsorted(among, elements), mode="clip")
    compare = logic.not_equal if invert else logic.equal
    return shape.reshape(compare(elements, nearest), element.shape)


def intersect1d(
    ar1: GPUArray, ar2: GPUArray, assume_unique: bool = False, return_indices: bool = False
) -> GPUArray | tuple[GPUArray, GPUArray, GPUArray]:
    """The values of both arrays. assume_unique changes nothing. Errors as isin().

    return_indices: also where each occurs first in the one and the other, flattened.
    """
    ar1, ar2 = _promoted("intersect1d", ar1, ar2)
    if not return_indices:
        values = distinct.unique(ar1)
        return values[isin(values, ar2)]  # type: ignore[arg-type]
    (first, place1), (second, place2) = (distinct.unique(x, return_index=True) for x in (ar1, ar2))
    both = isin(first, second)
    return first[both], place1[both], place2[isin(second, first)]


def union1d(ar1: GPUArray, ar2: GPUArray) -> GPUArray:
    """The values of either array. Errors as isin()."""
    return distinct.unique(joining.concatenate(_promoted("union1d", ar1, ar2)))  # type: ignore[return-value]


def setdiff1d(ar1: GPUArray, ar2: GPUArray, assume_unique: bool = False) -> GPUArray:
    """The values of ar1 that are not in ar2; with assume_unique in the order of ar1. Errors as isin()."""
    ar1 = shape.ravel(check_array(ar1, "setdiff1d"))
    values = ar1 if assume_unique else distinct.unique(ar1)
    return values[isin(values, ar2, invert=True)]  # type: ignore[arg-type]


def setxor1d(ar1: GPUArray, ar2: GPUArray, assume_unique: bool = False) -> GPUArray:
    """The values of one of the arrays alone. assume_unique changes nothing. Errors as isin()."""
    ar1, ar2 = (distinct.unique(x) for x in _promoted("setxor1d", ar1, ar2))  # type: ignore[assignment]
    return sorting.sort(joining.concatenate([ar1[isin(ar1, ar2, invert=True)], ar2[isin(ar2, ar1, invert=True)]]))


def _promoted(what: str, ar1: GPUArray, ar2: GPUArray) -> list[GPUArray]:
    """Both arrays, flattened, in their common type."""
    ar1, ar2 = check_array(ar1, what), check_array(ar2, what)
    check_devices(what, ar1, ar2)
    common = promotion.promote(ar1.dtype, ar2.dtype)
    return [elementwise.as_type(shape.ravel(x), common) for x in (ar1, ar2)]
