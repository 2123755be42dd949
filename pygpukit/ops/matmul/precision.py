"""Permission to compute float32 products in tf32: 10 bits of mantissa instead of 23, on tensor cores."""

from __future__ import annotations

import os
from functools import cache

from pygpukit.core.dtypes import DataType, float32
from pygpukit.core.errors import DTypeError
from pygpukit.core.unused import warn_of_unused

_ALLOW, _FORBID = "PYGPUKIT_ALLOW_TF32", "PYGPUKIT_NO_TF32"


def check(what: str, dtype: DataType, tf32: bool | None, use_tf32: bool | None) -> bool | None:
    """The tf32 argument of a call: True, False, or None where it says nothing. use_tf32 is another name of tf32.

    Raises TypeError for other values, ValueError where the two differ, DTypeError where tf32 is allowed for another
    type than float32.
    """
    warn_of_unused()
    for name, value in (("tf32", tf32), ("use_tf32", use_tf32)):
        if value is not None and not isinstance(value, bool):
            raise TypeError(f"{what}: {name}={value!r}; it is True, False or None")
    if tf32 is not None and use_tf32 is not None and tf32 != use_tf32:
        raise ValueError(f"{what}: tf32={tf32} and use_tf32={use_tf32} contradict each other; give tf32 alone")
    said = use_tf32 if tf32 is None else tf32
    if dtype is float32:
        environment()
    elif said and dtype != float32:
        raise DTypeError(f"{what}: tf32=True is for float32 operands, these give {dtype}; drop it")
    return said


def allowed(said: bool | None) -> bool:
    """True if a float32 product may be computed in tf32. Raises as environment()."""
    setting = environment()
    return setting is not False and bool(setting if said is None else said)


def reason(said: bool | None) -> str:
    """Why a float32 product is true float32 or not, for a plan. Raises as environment()."""
    setting = environment()
    if said is False:
        return "true float32, as tf32=False asks"
    if setting is False and said:
        return f"true float32: tf32=True allows less, but {_FORBID} forbids it"
    if said or setting:
        return f"{'tf32=True' if said else _ALLOW} allows tf32"
    return "true float32"


@cache
def environment() -> bool | None:
    """True where PYGPUKIT_ALLOW_TF32=1, False where PYGPUKIT_NO_TF32=1, else None. Read once.

    Raises ValueError where both are, or one is neither 0 nor 1.
    """
    allow, forbid = switched_on(_ALLOW), switched_on(_FORBID)
    if allow and forbid:
        raise ValueError(f"{_ALLOW} and {_FORBID} are both set and contradict each other; unset one")
    return True if allow else False if forbid else None


def switched_on(name: str) -> bool:
    """True if a variable of the environment is 1. Raises ValueError for other values than 1, 0 and nothing."""
    value = os.environ.get(name) or "0"
    if value not in ("0", "1"):
        raise ValueError(f"{name}={value}; it is 1, or 0 or unset for no")
    return value == "1"
