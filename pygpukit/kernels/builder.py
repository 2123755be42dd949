"""From a KernelSpec to a kernel that can be launched: compiled by its front end, or found pre-compiled."""

from __future__ import annotations

from collections.abc import Sequence

from pygpukit._core import native
from pygpukit.core import pretended
from pygpukit.core.backend import is_sim
from pygpukit.core.errors import NvrtcError, NvrtcErrorCode
from pygpukit.jit.cache.image import Image
from pygpukit.jit.compile import nvrtc, tile
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.launch import slicing
from pygpukit.kernels import bundle, lost, registry, sources
from pygpukit.kernels.spec import KernelSpec, Parameter

_ANY_TYPE = -1


def kernel(spec: KernelSpec, args: Sequence[native.ArrayBase | bytes]) -> native.Kernel:
    """The kernel for the current device, compiled if needed. Without NVRTC it comes from the bundle of pre-compiled
    kernels. args: what it is first launched with. Raises as compile_source()."""
    if pretended.current is not None:
        if pretended.current.compiles:
            image(spec)
        pretended.current.asked[spec] = None
        return pretended.Nothing()  # type: ignore[return-value]
    compiled = image(spec)
    symbol, name = compiled.symbol(spec.expression), spec.expression.replace("pk::", "")
    function = native.Module(compiled.image).function(symbol)
    params = spec.parameters or [parameter(i, arg) for i, arg in enumerate(args)]
    slicing.remember_image(function, name, compiled, symbol)
    return native.Kernel(function, name, params)


def image(spec: KernelSpec) -> Image:
    """The compiled kernel for the current device. Raises as compile_source(), KernelLostError where another kernel
    computes the same."""
    try:
        return compile_unit(registry.Unit(spec, (spec.expression,)), _pretended_arch())
    except NvrtcError as error:
        if is_sim():
            raise
        why = f"nor was this kernel found pre-compiled in {bundle.file()}"
        try:
            bundled = bundle.find(nvrtc.device_arch(native.current_device()), spec)
        except (OSError, ValueError) as damage:
            bundled, why = None, str(damage)
        if bundled is not None:
            return bundled
        if spec.instead:
            raise lost.lose(spec, error) from error
        if error.code != NvrtcErrorCode.NotLoaded:
            raise
        raise NvrtcError(f"{error.args[0]}; {why}", NvrtcErrorCode.NotLoaded) from None


def compile_unit(unit: registry.Unit, arch: str | None = None, check: bool | str | None = None) -> Image:
    """Kernels of one source in one image, for an architecture (None: the current device's). Raises as
    compile_source()."""
    spec = unit.spec
    text = sources.text(spec.source)
    if ("__tile_global__" in text) != (spec.front_end == "tile"):
        raise ValueError(f"{spec.source}: its spec says front_end={spec.front_end!r}, its kernels are the other kind")
    return compile_source(
        text,
        name=spec.source,
        options=spec.options,
        headers=spec.headers,
        arch=arch,
        name_expressions=unit.expressions,
        check=check,
    )


def missing(spec: KernelSpec) -> str:
    """Why a kernel is not to be had on the current device, as far as is known, "" where it is: it wants its compiler,
    or to be found pre-compiled; the simulated device wants neither."""
    if is_sim():
        return ""
    if why := lost.why(spec):
        return why
    why = tile.missing() if spec.front_end == "tile" else nvrtc.missing()
    return why if why and not is_bundled(spec) else ""


def _pretended_arch() -> str | None:
    return None if pretended.current is None else pretended.current.arch


def is_bundled(spec: KernelSpec) -> bool:
    """A kernel is found pre-compiled for the current device."""
    try:
        return bundle.find(nvrtc.device_arch(native.current_device()), spec) is not None
    except (OSError, ValueError):
        return False


def parameter(position: int, arg: native.ArrayBase | bytes) -> Parameter:
    """The parameter of a kernel of the package for an argument: arrays as pointers, bytes by value."""
    if isinstance(arg, bytes):
        return f"value{position}", "struct", 0, len(arg)
    return f"array{position}", "pointer", _ANY_TYPE, 8
