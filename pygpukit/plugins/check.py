"""check(): a replaced operation beside the built-in one, on random arrays, held to its numeric family."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pygpukit.core.errors import InvalidSpecError, PluginError
from pygpukit.ops import names
from pygpukit.plugins.calls import CALLS
from pygpukit.plugins.operation import Operation
from pygpukit.plugins.replace import Choice, active, resolved

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

_FRACTION_BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
_SMALLEST = {"float16": -24, "bfloat16": -133, "float32": -149, "float64": -1074}  # subnormal, as a power of two


@dataclass(frozen=True)
class Report:
    """The comparison of one operation. calls: that were compared; refused: by the plugin, with its words; worst: the
    largest difference, in the unit of its family; failures: calls whose results are outside of it."""

    operation: Operation
    calls: int
    worst: float
    refused: tuple[str, ...]
    failures: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True where something was compared and all of it is within the family."""
        return self.calls > 0 and not self.failures

    def __str__(self) -> str:
        unit = "relative" if isinstance(self.operation.numerics, float) else "ulp"
        lines = [
            f"{self.operation.replaces} by {self.operation}: {'ok' if self.ok else 'NOT WITHIN ITS FAMILY'}, "
            f"{self.calls} calls compared, worst difference {self.worst:g} {unit}"
        ]
        lines += [f"  differs: {one}" for one in self.failures]
        lines += [f"  refused: {one}" for one in self.refused]
        return "\n".join(lines)


def check(choice: Choice | Operation, seed: int | None = None) -> list[Report]:
    """Compare operations of plugins with the built-in ones, each on random arrays, by its numeric family.

    Parameters
    ----------
    choice : str, mapping or Operation
        As of `gp.plugins.replace()`, or one operation.
    seed : int, optional
        Of the random arrays; others each time by default.

    Returns
    -------
    list of Report
        One an operation: `ok`, `worst`, `calls`, `refused`, `failures`; printed as lines of text.

    Raises
    ------
    InvalidSpecError
        For an unknown plugin, and for an operation whose calls are not known: its `calls=` gives them.
    PluginError
        For a plugin that cannot be loaded.

    Examples
    --------
    >>> same = gp.plugins.Operation("softmax", lambda x, axis=-1, *, out=None: gp.softmax(x, axis, out=out), "exact")
    >>> [report.ok for report in gp.plugins.check(same)]
    [True]
    """
    operations = [choice] if isinstance(choice, Operation) else list(resolved(choice).values())
    return [_checked(operation, seed) for operation in operations]


def _checked(operation: Operation, seed: int | None) -> Report:
    import numpy as np

    name = operation.replaces
    calls, home = operation.calls or CALLS.get(name), names.every().get(name)
    if calls is None or home is None:
        raise InvalidSpecError(f"{operation.name}: no calls of {name!r} are known to compare on; give calls=", "calls")
    if name in active():
        raise InvalidSpecError(f"{name} is replaced now, by {active()[name]}; restore that first", "choice")
    built_in = getattr(import_module(home), name)
    compared, worst, refused, failures = 0, 0.0, [], []
    for args, kwargs in calls(np.random.default_rng(seed)):
        what = f"{name}({', '.join(map(_brief, args))})"
        expected = built_in(*args, **kwargs)
        try:
            result = operation(*args, **kwargs)
        except PluginError as error:
            refused.append(f"{what}: {error}")
            continue
        compared += 1
        if (result.shape, result.dtype) != (expected.shape, expected.dtype):
            failures.append(f"{what}: {_brief(result)} instead of {_brief(expected)}")
            continue
        apart = _apart(operation, result, expected)
        worst = max(worst, apart)
        limit = {"exact": 0.0, "rounded": 1.0}.get(str(operation.numerics), operation.numerics)
        if not apart <= float(limit):
            failures.append(f"{what}: {apart:g} apart")
    return Report(operation, compared, worst, tuple(refused), tuple(failures))


def _apart(operation: Operation, result: GPUArray, expected: GPUArray) -> float:
    """The largest difference: in units in the last place, or relative to the largest element for a bound."""
    import numpy as np

    ours, theirs = (_values(array) for array in (expected, result))
    both = np.isfinite(ours) & np.isfinite(theirs)
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    if operation.numerics == "exact":
        same &= np.signbit(ours) == np.signbit(theirs)
    if not (same | both).all():
        return math.inf
    if same.all():
        return 0.0
    far = np.abs(np.where(both, theirs, 0) - np.where(both, ours, 0))
    if isinstance(operation.numerics, float):
        largest = np.abs(ours[both]).max(initial=0.0)
        return float(far.max() / largest) if largest else math.inf
    units = far / _ulp(np.where(both, ours, 1.0), expected.dtype.name)
    if operation.numerics == "exact":
        units = np.where(same, 0.0, np.maximum(units, 1.0))  # zeros of another sign
    return float(units.max())


def _values(array: GPUArray) -> np.ndarray[Any, Any]:
    wide = array.astype("float32") if array.dtype.name == "bfloat16" else array
    return wide.to_numpy().astype("float64")


def _ulp(values: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """The distance to the next number of a type; 1 for whole numbers."""
    import numpy as np

    if dtype not in _FRACTION_BITS:
        return np.ones_like(values)
    exponents = np.frexp(values)[1] - 1 - _FRACTION_BITS[dtype]
    return np.ldexp(1.0, np.maximum(np.where(values == 0, _SMALLEST[dtype], exponents), _SMALLEST[dtype]))


def _brief(value: Any) -> str:
    return f"{value.dtype} {value.shape}" if hasattr(value, "dtype") else repr(value)
