"""--sweep: the axes of a sweep and every configuration that they make."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from IPython.core.error import UsageError

from pygpukit.jupyter.names import Names

LAUNCH_AXES = ("grid", "block", "shared")  # every other axis is a macro


def configurations(texts: Sequence[str], names: Names, limit: int) -> list[dict[str, Any]]:
    """Every combination of the axes' values, the last axis first to change. `texts` are "AXIS=VALUES".

    VALUES are Python: "64,128", "(8,8),(16,16)" or anything that lists them, such as range(1, 5). Raises UsageError for
    an axis that is no name or is given twice, for values that cannot be macros, and for more than `limit` combinations.
    """
    axes: dict[str, list[Any]] = {}
    for text in texts:
        axis, equals, expression = text.partition("=")
        if not (equals and axis.isascii() and axis.isidentifier()):
            raise UsageError(f"%%cuda: --sweep {text}: write AXIS=VALUES, such as block=64,128")
        if axis in axes:
            raise UsageError(f"%%cuda: --sweep {text}: the axis {axis!r} is given twice")
        axes[axis] = _values(axis, expression, names)
    count = math.prod(len(values) for values in axes.values())
    if count > limit:
        raise UsageError(f"%%cuda: --sweep has {count} configurations; at most {limit} (CudaMagics.max_sweep)")
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def _values(axis: str, expression: str, names: Names) -> list[Any]:
    option = f"--sweep {axis}="
    value = names.evaluate(expression, option)
    values = list(value) if isinstance(value, (tuple, list, range)) else [value]
    if not values:
        raise UsageError(f"%%cuda: {option}{expression} has no values")
    for one in values:
        if axis not in LAUNCH_AXES and not isinstance(one, (int, float, str)):
            raise UsageError(f"%%cuda: {option}{expression}: a macro cannot be {one!r}; give numbers or text")
    return values


def macros(settings: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a configuration that are macros, as -D takes them."""
    return {axis: str(int(v) if isinstance(v, bool) else v) for axis, v in settings.items() if axis not in LAUNCH_AXES}
