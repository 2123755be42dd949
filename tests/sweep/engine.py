"""Running one group of built-in kernels: compiled together, launched in checked mode, compared with a reference."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core import sharing
from pygpukit.core.errors import GPUError
from pygpukit.jit.cache.image import Image
from pygpukit.jit.compile import simulator
from pygpukit.kernels import KernelSpec, builder, launcher, registry
from pygpukit.ops import host
from pygpukit.ops.elementwise import pointwise

Kernel = tuple[str, str]  # source key, name expression
# Largest error that a result may have, by its type, relative to the largest magnitude of the reference: for float16 and
# bfloat16 a rounding of the result or two, for the others what sums and functions of some thousand elements gather.
TOLERANCES = {
    "float16": 1.5e-3,
    "bfloat16": 8e-3,
    "float32": 2e-6,
    "float64": 1e-13,
    "complex64": 2e-6,
    "complex128": 1e-13,
}
_WIDE = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}
_FIRST_TYPE = re.compile(r"<((?:pk::\w+<\w+>)|[^<>,]+)")
_MOST_SHAPES = 4  # that an outcome names


@dataclass(frozen=True)
class Call:
    """An operation that launches some of the kernels: function(*inputs) gives an array or several.

    reference: the same of NumPy arrays in float64. Without one NumPy on the simulated device computes the function
    itself, of inputs in float64 if `widened`; else of the very inputs.
    """

    function: Callable[..., Any]
    inputs: tuple[gp.GPUArray, ...]
    reference: Callable[..., Any] | None = None
    widened: bool = True


@dataclass(frozen=True)
class Family:
    """Kernels of some sources. variant: of a name expression; calls: what launches all of a variant."""

    name: str
    sources: tuple[str, ...]
    variant: Callable[[str], str]
    calls: Callable[[str], Iterator[Call]]


@dataclass
class Outcome:
    """What was seen of one kernel. error: the largest of its calls, as TOLERANCES counts it; failure: the first."""

    shapes: dict[str, None] = field(default_factory=dict)
    error: float = 0.0
    failure: str = ""


@dataclass(frozen=True)
class Group:
    """A family's kernels of one variant, as the catalogue lists them."""

    family: Family
    variant: str
    kernels: tuple[Kernel, ...]

    @property
    def name(self) -> str:
        """Its name in tests and reports."""
        return f"{self.family.name}-{self.variant}".replace("pk::", "").replace(" ", "_")


def groups(families: Sequence[Family], front_end: str = "simt") -> list[Group]:
    """The kernels of the catalogue whose source a family has, in groups, in the catalogue's order."""
    owner = {source: family for family in families for source in family.sources}
    found: dict[tuple[str, str], list[Kernel]] = defaultdict(list)
    for source, expression in catalogued(front_end):
        if source in owner:
            found[owner[source].name, owner[source].variant(expression)].append((source, expression))
    by_name = {family.name: family for family in families}
    return [Group(by_name[name], variant, tuple(kernels)) for (name, variant), kernels in found.items()]


def catalogued(front_end: str = "simt") -> list[Kernel]:
    """Every built-in kernel for the given front end but those that include CUTLASS, which is fetched."""
    units = [unit for unit in registry.catalogue() if unit.spec.front_end == front_end and unit.spec.wants is None]
    return [(unit.source, expression) for unit in units for expression in unit.expressions]


def without_family(families: Sequence[Family]) -> list[str]:
    """Sources of built-in kernels that no family has."""
    return sorted({source for source, _ in catalogued()} - {source for one in families for source in one.sources})


def run(group: Group) -> dict[Kernel, Outcome]:
    """What every kernel of the group did; those that no call launched, or that failed, say so."""
    calls = list(group.family.calls(group.variant))  # NumPy makes the inputs
    outcomes = {kernel: Outcome() for kernel in group.kernels}
    with pytest.MonkeyPatch.context() as patch:
        launched: set[Kernel] = set()
        launch = kernels.launch

        def noted(spec: KernelSpec, *rest: Any) -> Any:
            launched.add((spec.source, spec.expression))
            return launch(spec, *rest)

        for module in [one for name, one in sys.modules.items() if name.startswith("pygpukit.")]:
            if vars(module).get("launch") is launch:
                patch.setattr(module, "launch", noted)
        patch.setattr(launcher, "_kernels", {})
        patch.setattr(builder, "kernel", _loader(group.kernels))
        patch.setattr(pointwise, "_learn", lambda *_: None)  # it would launch behind launch()'s back
        patch.setattr(sharing, "_divided", False)  # whatever the process divided before: no cluster would be launched
        for call in calls:
            launched.clear()
            error, failure = _outcome(call)
            shapes = " ".join(str(x.shape).replace(" ", "") for x in call.inputs)
            for kernel in launched & outcomes.keys():
                seen = outcomes[kernel]
                if len(seen.shapes) < _MOST_SHAPES:
                    seen.shapes[shapes] = None
                seen.error = max(seen.error, error)
                seen.failure = seen.failure or failure
    for outcome in outcomes.values():
        outcome.failure = outcome.failure or ("" if outcome.shapes else "no call of the sweep launches it")
    return outcomes


def first_type(expression: str) -> str:
    """The first type in a name expression: "float" of "pk::gemm<float>", "" where there is none."""
    found = _FIRST_TYPE.search(expression)
    return found[1] if found else ""


def numbers(dtype: str, *shape: int, low: float = -1.0, high: float = 1.0) -> gp.GPUArray:
    """Uniform numbers; integers from -5 to 5, of unsigned types from 0; bool as often false as true."""
    rng = np.random.default_rng()
    kind = "f" if dtype == "bfloat16" else np.dtype(dtype).kind
    if kind in "fc":
        values: np.ndarray[Any, Any] = rng.uniform(low, high, shape)
        values = values + 1j * rng.uniform(low, high, shape) if kind == "c" else values
    else:
        values = rng.integers(-5 if kind == "i" else 0, 2 if kind == "b" else 6, shape)
    return gp.from_numpy(values.astype("float32" if dtype == "bfloat16" else dtype)).astype(dtype)


def _loader(wanted: Sequence[Kernel]) -> Callable[..., native.Kernel]:
    """builder.kernel() for these kernels, each source's in one unit; and for others, which calls need beside them."""
    units: dict[str, tuple[str, ...]] = {}
    for source, expression in wanted:
        units[source] = (*units.get(source, ()), expression)

    def kernel(spec: KernelSpec, args: Sequence[native.ArrayBase | bytes]) -> native.Kernel:
        expression, together = spec.expression, units.get(spec.source, ())
        image, module = _compiled(spec, together if expression in together else (expression,))
        params = [builder.parameter(i, arg) for i, arg in enumerate(args)]
        return native.Kernel(module.function(image.symbol(expression)), expression.replace("pk::", ""), params)

    return kernel


_images: dict[Any, tuple[Image, native.Module]] = {}


def _compiled(spec: KernelSpec, expressions: tuple[str, ...]) -> tuple[Image, native.Module]:
    """Without optimisation, which takes the least time."""
    key = (spec.source, expressions)
    if key in _images:
        return _images[key]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulator, "_FLAGS", tuple(flag if flag != "-O2" else "-O0" for flag in simulator._FLAGS))
        image = builder.compile_unit(registry.Unit(spec, expressions), check=True)
    return _images.setdefault(key, (image, native.Module(image.image)))


def _outcome(call: Call) -> tuple[float, str]:
    """(error, what went wrong or "") of one call through the kernels."""
    wanted = _reference(call)
    try:
        with host.built_in_kernels():
            found = _listed(call.function(*call.inputs))
            gp.synchronize()
        errors = [_error(one, other) for one, other in zip(found, wanted, strict=True)]
    except (GPUError, AssertionError) as problem:
        return 0.0, f"{type(problem).__name__}: {problem}"
    for one, error in zip(found, errors, strict=True):
        if error > TOLERANCES.get(one.dtype.name, 0.0):
            return max(errors), f"{one.dtype} result of shape {one.shape} is off by {error:.1e} of its largest number"
    return max(errors, default=0.0), ""


def _reference(call: Call) -> list[Any]:
    if call.reference is not None:
        wanted = call.reference(*(_wide_values(x) for x in call.inputs))
        return list(wanted) if isinstance(wanted, tuple) else [wanted]
    inputs = [x.astype(_WIDE.get(x.dtype.name, x.dtype.name)) if call.widened else x for x in call.inputs]
    return [_wide_values(x) for x in _listed(call.function(*inputs))]


def _listed(result: Any) -> list[gp.GPUArray]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _wide_values(x: gp.GPUArray) -> Any:
    """The elements in float64 or complex128; integers, and the codes of storage types, as they are."""
    return (x if x.dtype.name not in _WIDE else x.astype(_WIDE[x.dtype.name])).to_numpy()


def _error(found: gp.GPUArray, wanted: Any) -> float:
    """The largest distance over the largest magnitude of the reference; infinite where not both are finite or equal."""
    assert found.shape == wanted.shape, f"the result has shape {found.shape}, the reference {wanted.shape}"
    values = _wide_values(found)
    if values.dtype.kind not in "fc":
        return 0.0 if np.array_equal(values, wanted) else float("inf")
    finite = np.isfinite(wanted)
    if not np.array_equal(values[~finite], wanted[~finite], equal_nan=True) or not np.isfinite(values[finite]).all():
        return float("inf")
    largest = np.abs(wanted[finite]).max(initial=0.0)
    return float(np.abs(values - wanted, where=finite, out=np.zeros(wanted.shape)).max(initial=0.0) / (largest or 1.0))
