"""One case of the kernel suite: a kernel, its launch, fresh inputs, and a NumPy reference."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

KERNELS = Path(__file__).resolve().parent / "kernels"
Extent = int | tuple[int, ...]
Array = np.ndarray[Any, Any]
Values = dict[str, Any]

# Why a case has a tolerance.
ROUNDING = "float32 rounds after every operation; the reference is float64"
FUNCTIONS = "exp, tanh, sin and rsqrt of devices and hosts differ in their last bits; the reference is float64"


@dataclass(frozen=True)
class Case:
    """A kernel of the suite.

    kernel: its name or name expression; file: its source, by default the kernel's name. inputs(rng): the arguments in
    the kernel's order; arrays go to the device, blank() ones poisoned. reference(**arguments): what the output arrays
    hold afterwards; every other array must be unchanged. exact: all devices give the same bits (compiled without fused
    multiply-add where the source does not ask for it). tolerance: the relative norm of the difference from the
    reference that is allowed for floating-point outputs, and why; 0 means equal. normalise(**arrays): brings outputs
    whose order the device may choose into one order. bfloat16: arrays whose uint16 values are bits of bfloat16.
    variant: tells cases of the same kernel apart. textures, surfaces: arrays that the kernel is given as such, and the
    settings of gp.Texture or gp.Surface.
    """

    kernel: str
    grid: Extent
    block: Extent
    inputs: Callable[[np.random.Generator], Values]
    reference: Callable[..., dict[str, Any]]
    shared_bytes: int = 0
    cooperative: bool = False
    file: str = ""
    defines: Mapping[str, object] = field(default_factory=dict)
    exact: bool = True
    tolerance: float = 0.0
    reason: str = ""
    normalise: Callable[..., dict[str, Array]] | None = None
    bfloat16: tuple[str, ...] = ()
    variant: str = ""
    textures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    surfaces: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.tolerance > 0) != bool(self.reason):
            raise ValueError(f"{self.kernel}: a tolerance and its reason come together")
        if not self.exact and self.tolerance == 0:
            raise ValueError(f"{self.kernel}: a case that is not exact needs a tolerance")
        if not self.file:
            object.__setattr__(self, "file", f"{self.kernel.partition('<')[0].rpartition('::')[2]}.cu")

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.kernel.rpartition("::")[2], self.variant)))

    @property
    def source(self) -> str:
        return (KERNELS / self.file).read_text()

    @property
    def options(self) -> tuple[str, ...]:
        """Without contraction every operation is IEEE 754's, so that bits can be compared between devices."""
        return ("--fmad=false",) if self.exact else ()

    def arguments(self, seed: int) -> Values:
        """Fresh arguments, in the kernel's order. Each case draws its own numbers from the seed."""
        return self.inputs(np.random.default_rng([seed, zlib.crc32(self.name.encode())]))

    def expected(self, arguments: Values) -> dict[str, Array]:
        """Every array argument as it must be after the launch."""
        arrays = {name: value.copy() for name, value in arguments.items() if isinstance(value, np.ndarray)}
        for name, value in self.reference(**arguments).items():
            arrays[name] = np.asarray(value).reshape(arrays[name].shape)
        return arrays

    def run(self, arguments: Values, source: str | None = None, **jit_options: Any) -> dict[str, Array]:
        """Every array argument after a launch on the open backend; `source` stands in for the file's."""
        import pygpukit as gp

        kernel = gp.jit(
            source or self.source,
            func=self.kernel,
            options=self.options,
            defines=self.defines,
            name=self.file,
            **jit_options,
        )
        taken, kept = self.placed(arguments)
        launcher = kernel.launcher(self.grid, self.block, shared_bytes=self.shared_bytes, cooperative=self.cooperative)
        launcher(*taken.values())
        return {name: array.to_numpy() for name, array in kept.items()}

    def placed(self, arguments: Values) -> tuple[Values, Values]:
        """(what a launch takes: numbers, arrays on the device, textures and surfaces; what holds each array afterwards:
        for a texture the array that it was made of)."""
        import pygpukit as gp

        arrays = {n: self._to_device(n, value) for n, value in arguments.items() if isinstance(value, np.ndarray)}
        surfaces = {name: gp.Surface(arrays[name], **settings) for name, settings in self.surfaces.items()}
        textures = {name: self._texture(arrays[name], settings) for name, settings in self.textures.items()}
        return {**arguments, **arrays, **surfaces, **textures}, {**arrays, **surfaces}

    def _texture(self, array: Any, settings: Mapping[str, Any]) -> Any:
        import pygpukit as gp

        if "layout" in settings:
            aligned = gp.Texture.empty(array.shape, array.dtype)
            aligned[...] = array
            array = aligned
        return gp.Texture(array, **settings)

    def _to_device(self, name: str, value: Array) -> Any:
        import pygpukit as gp

        array = gp.from_numpy(value)
        return array.view("bfloat16") if name in self.bfloat16 else array

    def normalised(self, arrays: dict[str, Array]) -> dict[str, Array]:
        return {**arrays, **self.normalise(**arrays)} if self.normalise else arrays

    def difference(self, found: dict[str, Array], expected: dict[str, Array]) -> str:
        """What is wrong with `found`, in one line; "" when it agrees with the reference."""
        found, expected = self.normalised(found), self.normalised(expected)
        for name, want in expected.items():
            have = found[name]
            if have.dtype.kind in "fc" and self.tolerance > 0:
                with np.errstate(all="ignore"):  # wrong values may be anything
                    scale = float(np.linalg.norm(want.ravel().astype(np.complex128))) or 1.0
                    error = float(np.linalg.norm((have.astype(np.complex128) - want).ravel())) / scale
                if not error <= self.tolerance:
                    return f"{name}: relative error {error:.3g} exceeds {self.tolerance:.3g}"
            elif not np.array_equal(have, want.astype(have.dtype)):
                at = np.argwhere(have != want.astype(have.dtype))[0].tolist() if have.shape == want.shape else "shape"
                return f"{name}: differs first at {at}"
        return ""


def blank(shape: int | tuple[int, ...], dtype: str) -> Array:
    """An array for outputs: NaN, or bytes 0xA5, so that an element that is not written shows."""
    if np.dtype(dtype).kind in "fc":
        return np.full(shape, np.nan, dtype)
    out = np.empty(shape, dtype)
    out.reshape(-1).view(np.uint8)[:] = 0xA5
    return out


def floats(rng: np.random.Generator, *shape: int, dtype: str = "float32") -> Array:
    """Normally distributed values."""
    return rng.standard_normal(shape).astype(dtype)


def integers(rng: np.random.Generator, low: int, high: int, *shape: int, dtype: str = "int32") -> Array:
    """Values from low to high - 1."""
    return rng.integers(low, high, shape).astype(dtype)


def sorted_front(values: Array, count: Array) -> Array:
    """The first `count` values in their order, the rest as they are: for outputs that threads append to."""
    at = int(np.asarray(count).ravel()[0])
    return np.concatenate([np.sort(values[:at]), values[at:]])
