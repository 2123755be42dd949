"""Which argument of a launch is of the wrong kind: looked for when the grid cannot be inferred from what was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pygpukit._core import native
from pygpukit.core.errors import KernelArgumentError
from pygpukit.jit.source.parameters import Parameter


def misfit(
    kernel: str, parameters: Sequence[Parameter], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> KernelArgumentError | None:
    """The error of the first parameter that got a number instead of an array, or no number where one is wanted."""
    arguments = {parameter.name: value for parameter, value in zip(parameters, args, strict=False)} | dict(kwargs)
    order = ", ".join(map(str, parameters))
    for parameter in parameters:
        value = arguments.get(parameter.name)
        is_array = isinstance(value, native.ArrayBase)
        if value is None or parameter.kind == "struct" or (is_array and parameter.kind == "pointer"):
            continue
        if parameter.kind != "pointer" and not is_array and not hasattr(value, "__len__"):
            continue  # some number or texture, which the launcher looks at
        pointer, number = parameter.kind == "pointer", parameter.kind == "scalar"
        expected = f"a GPUArray of {parameter.dtype}" if pointer else "a number" if number else f"a {parameter.kind}"
        expected += "" if pointer else f" ({parameter.type})"
        remedy = "; use gp.from_numpy() to bring host data to the device" if hasattr(value, "dtype") else ""
        return KernelArgumentError(
            f"{kernel}(): parameter '{parameter.name}': expected {expected}, got {_described(value)}"
            f"{'' if is_array else remedy}; the order is {kernel}({order})",
            parameter.name,
        )
    return None


def _described(value: Any) -> str:
    if isinstance(value, (int, float, complex, str)):
        return f"{value!r:.40}"
    shape = getattr(value, "shape", None)
    return type(value).__name__ + (f" of shape {shape}" if shape is not None else "")
