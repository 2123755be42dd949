"""NumPy's functions on GPUArrays: __array_ufunc__ and __array_function__. They dispatch to ours or refuse and say why.

Nothing is copied between host and device on the way: an array of the host among the arguments is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import DTypeError

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

# NumPy's name -> ours, where they differ.
_RENAMED = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "concat": "concatenate",
    "conjugate": "conj",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
}
_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}
# Ours take numbers and are made on the host; every other function of NumPy's name is its counterpart.
_OF_NUMBERS = {"geomspace", "linspace", "logspace"}
# NumPy's names of arguments -> ours, where they differ and are given by keyword.
_KEYWORDS = {"a_max": "max", "a_min": "min", "correction": "ddof", "x": "a", "y": "b"}
# Answered here.
_ANSWERED: dict[str, Callable[..., Any]] = {
    "copy": lambda a: a.clone(),
    "iscomplexobj": lambda x: x.dtype.name.startswith("complex"),
    "isrealobj": lambda x: not x.dtype.name.startswith("complex"),
    "ndim": lambda a: a.ndim,
    "shape": lambda a: a.shape,
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
    "transpose": lambda a, axes=None: a.transpose(axes),
}
# NumPy's namespaces whose functions are in ours of the same name.
_NAMESPACES = {"numpy.fft": "pygpukit.fft", "numpy.linalg": "pygpukit.linalg"}
_UFUNC_DEFAULTS = {"casting": "same_kind", "dtype": None, "order": "K", "subok": True, "where": True}


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """GPUArray.__array_ufunc__: a call, .reduce, .accumulate or .outer of a ufunc.

    Raises DTypeError for arrays of the host and TypeError for ufuncs, methods and keywords without a counterpart.
    """
    name = ufunc.__name__
    what = f"np.{name}" + ("" if method == "__call__" else f".{method}")
    _refuse_host(what, (*inputs, kwargs))
    keywords = {key: value for key, value in kwargs.items() if _UFUNC_DEFAULTS.get(key, kwargs) is not value}
    out = keywords.pop("out", (None,))[0]
    ours = name
    if method == "reduce":
        ours, keywords["axis"] = _REDUCTIONS.get(name, ""), keywords.get("axis", 0)
    elif method == "accumulate":
        ours, keywords["axis"] = _ACCUMULATIONS.get(name, ""), keywords.get("axis", 0)
    elif method == "outer":
        first, second = inputs
        inputs = first[(...,) + (None,) * getattr(second, "ndim", 0)] if hasattr(first, "ndim") else first, second
    elif method != "__call__":
        ours = ""
    function = _counterpart(what, ours)
    _check_keywords(what, keywords, inspect.signature(function).parameters)
    if out is not None and "where" in keywords:  # out keeps its other elements
        return function(*inputs, out=out, **keywords)
    return _delivered(what, function(*inputs, **keywords), out)


def call_function(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """GPUArray.__array_function__. Errors as call_ufunc()."""
    name = func.__name__
    what = f"{func.__module__}.{name}".replace("numpy", "np", 1)
    _refuse_host(what, (args, kwargs))
    is_top_level = func.__module__ == "numpy"
    if is_top_level and name in _ANSWERED:
        return _ANSWERED[name](*args, **kwargs)
    namespace = _NAMESPACES.get(func.__module__)
    if namespace is not None and hasattr(module := import_module(namespace), name):
        function = getattr(module, name)
    else:
        function = _counterpart(what, name if is_top_level and name not in _OF_NUMBERS else "")
    theirs, ours = inspect.signature(func).parameters, inspect.signature(function).parameters
    arguments = inspect.signature(func).bind(*args, **kwargs).arguments
    arguments |= arguments.pop("kwargs", {})  # np.pad's constant_values and its like
    if any(p.kind is p.VAR_POSITIONAL for p in theirs.values()):
        return function(*args, **kwargs)
    out = arguments.pop("out", None)
    required = sum(1 for p in ours.values() if p.default is p.empty and p.kind is not p.KEYWORD_ONLY)
    positional = list(arguments.values())[:required]
    keywords = {
        key if key in ours else _KEYWORDS.get(key, key): value
        for key, value in list(arguments.items())[required:]
        if key not in theirs or value is not theirs[key].default
    }
    _check_keywords(what, keywords, ours)
    return _delivered(what, function(*positional, **keywords), out)


def _counterpart(what: str, name: str) -> Callable[..., Any]:
    """The operation of that name: NumPy's habits first, then the standard's. Raises TypeError when there is none."""
    import pygpukit

    name = _RENAMED.get(name, name)
    for home in (pygpukit, pygpukit.array_api):
        function = getattr(home, name, None)
        if callable(function):
            return function
    raise TypeError(
        f"{what} has no counterpart for GPUArrays, and nothing is copied to the host implicitly; "
        "pass .to_numpy() to compute on the host"
    )


def _check_keywords(what: str, keywords: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    unknown = [key for key in keywords if key not in parameters]
    if unknown:
        raise TypeError(f"{what}: {', '.join(unknown)}= cannot be given for GPUArrays")


def _delivered(what: str, result: Any, out: GPUArray | None) -> Any:
    return result if out is None else result._into(out, what)


def _refuse_host(what: str, arguments: Any) -> None:
    """Raises DTypeError for a NumPy array among the arguments, however deep in tuples, lists and dicts."""
    import numpy as np

    for value in _flattened(arguments):
        if isinstance(value, np.ndarray) and value.shape != ():
            raise DTypeError(
                f"{what}: a NumPy array of shape {value.shape} is on the host and nothing is copied to the device "
                "implicitly; use gp.from_numpy(...) for it, or .to_numpy() to compute on the host"
            )


def _flattened(arguments: Any) -> Iterator[Any]:
    if isinstance(arguments, dict):
        arguments = tuple(arguments.values())
    if isinstance(arguments, (list, tuple)):
        for item in arguments:
            yield from _flattened(item)
    else:
        yield arguments
