"""--verify: the kernel's outputs against a Python reference that gets host copies of the same inputs."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from IPython.core.error import UsageError

from pygpukit._core import native
from pygpukit.array.array import GPUArray
from pygpukit.jupyter.bind import Arguments
from pygpukit.jupyter.errors import VerificationError
from pygpukit.jupyter.names import Names

# (rtol, atol): a few hundred roundings of each type, as a sum in another order has. Types that are not here are exact.
TOLERANCES = {
    "float16": (5e-3, 1e-4),
    "bfloat16": (2e-2, 1e-3),
    "float32": (1e-5, 1e-6),
    "float64": (1e-12, 1e-14),
    "complex64": (1e-5, 1e-6),
    "complex128": (1e-12, 1e-14),
}


@dataclass(frozen=True)
class Verification:
    """One output against its reference. An element passes when |value - expected| <= atol + rtol * |expected|; nan
    passes where nan is expected, an infinity where the same one is. first_bad: index of the first that does not.
    max_rel_error is over the elements whose reference is not 0."""

    name: str
    passed: bool
    rtol: float
    atol: float
    max_abs_error: float
    max_rel_error: float
    bad: int
    first_bad: tuple[int, ...] | None
    message: str


class Reference:
    """The expression of --verify with host copies of a launch's inputs, taken when this is made: before the launch."""

    def __init__(self, text: str, arguments: Arguments, names: Names, rtol: float | None, atol: float | None) -> None:
        self._text, self._rtol, self._atol = text, rtol, atol
        self._arguments = arguments
        self._names = names
        arrays = {
            name: host_copy(value) for name, value in arguments.values.items() if isinstance(value, native.ArrayBase)
        }
        self._host = {**arguments.values, **arrays}

    def compare(self) -> tuple[Verification, ...]:
        """One Verification an output, as they are now. Raises VerificationError when one does not pass."""
        outputs = self._arguments.arrays()
        verifications = tuple(
            compare(name, host_copy(outputs[name]), expected, outputs[name].dtype.name, self._rtol, self._atol)
            for name, expected in self._expected(list(outputs)).items()
        )
        if not all(one.passed for one in verifications):
            raise VerificationError("\n".join(one.message for one in verifications if not one.passed), verifications)
        return verifications

    def _expected(self, outputs: Sequence[str]) -> Mapping[str, Any]:
        """The values that the reference gives, by output."""
        notebook = {name: self._host[parameter] for name, parameter in self._arguments.aliases.items()}
        value = self._names.over(notebook).over(self._host).evaluate(self._text, "--verify")
        if callable(value):
            value = self._called(value)
        if isinstance(value, Mapping):
            if set(value) != set(outputs):
                raise self._unsuitable(f"gives {', '.join(map(str, value))}; the outputs are {', '.join(outputs)}")
            return {name: value[name] for name in outputs}
        if len(outputs) == 1:
            value = (value,)
        if not isinstance(value, (tuple, list)) or len(value) != len(outputs):
            raise self._unsuitable(f"gives one value; the outputs are {', '.join(outputs)}: give a tuple or a mapping")
        return dict(zip(outputs, value, strict=True))

    def _called(self, reference: Callable[..., Any]) -> Any:
        """The results of a function of the inputs: of all, or of the arrays among them where it takes as many."""
        every = self._arguments.inputs
        arrays = [name for name in every if isinstance(self._host[name], np.ndarray)]
        accepted = next((names for names in (every, arrays) if _takes(reference, len(names))), None)
        if accepted is None:
            raise self._unsuitable(
                f"is a function that does not take {len(every)} arguments; the inputs are {', '.join(every)}: "
                "write the expression instead, with what it is to get"
            )
        try:
            return reference(*(_own(self._host[name]) for name in accepted))
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f" (line {place.lineno} of {place.name})" if place.filename != __file__ else ""
            raise self._unsuitable(f"of {', '.join(accepted)}: {type(error).__name__}: {error}{where}") from error

    def _unsuitable(self, why: str) -> UsageError:
        return UsageError(f"%%cuda: --verify {self._text} {why}")


def _takes(reference: Callable[..., Any], count: int) -> bool:
    """True where a function can be called with so many arguments, and where that cannot be known."""
    if isinstance(reference, np.ufunc):
        return count == reference.nin
    try:
        inspect.signature(reference).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a builtin that tells nothing of itself
        return True
    return True


def host_copy(array: Any) -> np.ndarray[Any, Any]:
    """A copy on the host; bfloat16 as float32, other types that NumPy lacks as their bits."""
    return (array.astype("float32") if array.dtype == "bfloat16" else array).to_numpy()


def _own(value: Any) -> Any:
    """A reference may write to its arguments without changing the next comparison's."""
    return value.copy() if isinstance(value, np.ndarray) else value


def compare(
    name: str, got: np.ndarray[Any, Any], reference: Any, dtype: str, rtol: float | None, atol: float | None
) -> Verification:
    """`got`, of the element type `dtype` on the device, against `reference`, which broadcasts to its shape.

    Raises UsageError for a reference that is no array of numbers, or of another shape.
    """
    if isinstance(reference, GPUArray):
        reference = host_copy(reference)
    expected = np.asarray(reference)
    if expected.dtype.kind not in "biufc":
        raise UsageError(f"%%cuda: --verify: the reference for {name} is {reference!r:.80}; it must be numbers")
    try:
        expected = np.broadcast_to(expected, got.shape)
    except ValueError:
        raise UsageError(
            f"%%cuda: --verify: the reference for {name} has shape {expected.shape}, and {name} has {got.shape}"
        ) from None
    default = TOLERANCES.get(dtype, (0.0, 0.0))
    rtol, atol = default[0] if rtol is None else rtol, default[1] if atol is None else atol
    absolute, relative, passes = _errors(got, expected, rtol, atol)
    bad = int(got.size - np.count_nonzero(passes))
    first = tuple(int(i) for i in np.unravel_index(int(np.argmin(passes)), got.shape)) if bad else None
    worst = float(absolute.max(initial=0)), float(relative.max(initial=0))
    message = ""
    if first is not None:
        message = (
            f"{name}: {bad} of {got.size} elements differ from the reference ({dtype}, rtol {rtol:g}, atol {atol:g})\n"
            f"  first at {name}[{', '.join(map(str, first))}]: {got[first]}, expected {expected[first]}\n"
            f"  max absolute error {worst[0]:.6g}, max relative error {worst[1]:.6g}"
        )
    return Verification(name, bad == 0, rtol, atol, *worst, bad, first, message)


def _errors(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], rtol: float, atol: float) -> tuple[Any, ...]:
    """(absolute errors, relative errors, which elements pass). An error that is not a number counts as infinite."""
    same = (got == expected) | ((got != got) & (expected != expected))
    wide = np.complex128 if "c" in (got.dtype.kind, expected.dtype.kind) else np.float64
    with np.errstate(all="ignore"):
        magnitude = np.abs(expected.astype(wide))
        absolute = np.where(same, 0.0, np.abs(got.astype(wide) - expected.astype(wide)))
        absolute = np.where(np.isnan(absolute), np.inf, absolute)
        relative = np.where((absolute == 0) | (magnitude == 0), 0.0, absolute / magnitude)
        relative = np.where(np.isnan(relative), np.inf, relative)
        within = (absolute <= atol + rtol * magnitude) & np.isfinite(absolute) & ((rtol > 0) | (atol > 0))
    return absolute, relative, same | within
