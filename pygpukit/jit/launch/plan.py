"""From a signature to what the core launches by: the parameter plan, the size parameter, and the help text."""

from __future__ import annotations

from collections.abc import Sequence

from pygpukit._core import native
from pygpukit.core.dtypes import DTYPES
from pygpukit.core.errors import GPUError
from pygpukit.jit.source.parameters import Parameter
from pygpukit.jit.source.signature import KernelSignature

SIZE_NAMES = ("n", "size", "count", "length", "numel", "N")
_DTYPE_CODES = {dtype.name: code for code, dtype in enumerate(DTYPES)}
_CONVERTIBLE = frozenset(_DTYPE_CODES) - {"float8_e4m3", "float8_e5m2", "int4", "float4_e2m1"}


def size_parameter(parameters: Sequence[Parameter]) -> int | None:
    """Position of the parameter that says how many elements there are."""
    integers = {p.name: at for at, p in enumerate(parameters) if p.kind == "scalar" and "int" in p.dtype}
    return next((integers[name] for name in SIZE_NAMES if name in integers), None)


def parameter_plan(signature: KernelSignature, function: native.Function) -> list[tuple[str, str, int, int]]:
    """The parameters as native.Kernel wants them. The driver's sizes fill in what the source does not tell, and must
    agree with it where it does."""
    sizes = function.param_sizes()
    parameters = signature.parameters
    if sizes is not None and len(sizes) != len(parameters):
        raise GPUError(
            f"{signature.name}: the compiled kernel has {len(sizes)} parameters and the source shows "
            f"{len(parameters)}; spell the parameter list out, without macros"
        )
    plan = []
    for at, one in enumerate(parameters):
        nbytes = one.nbytes or (sizes[at] if sizes is not None else 0)
        if nbytes == 0:
            raise GPUError(
                f"{signature.name}: this driver does not tell the size of '{one.name}' ({one.type}); pass a pointer"
            )
        if sizes is not None and sizes[at] != nbytes:
            raise GPUError(
                f"{signature.name}: '{one.name}' ({one.type}) has {sizes[at]} bytes in the compiled kernel and "
                f"{nbytes} by the source; spell its type out, without macros"
            )
        scalar = one.kind != "scalar" or one.dtype in _CONVERTIBLE
        plan.append((one.name, one.kind if scalar else "struct", _DTYPE_CODES.get(one.dtype, -1), nbytes))
    return plan


def document(signature: KernelSignature, usage: str = "") -> str:
    """The text that help() and `kernel?` show; `usage` says what the kernel takes of a multiprocessor."""
    name = signature.short_name
    lines = [f"CUDA kernel {signature}", ""]
    for one in signature.parameters:
        meaning = {
            "pointer": f"array of {one.dtype}" if one.dtype else "any array",
            "scalar": f"converted to {one.dtype}",
            "texture": "a gp.Texture",
            "surface": "a gp.Surface",
            "struct": f"bytes-like of {one.nbytes} bytes" if one.nbytes else "bytes-like of the struct's size",
        }[one.kind]
        lines.append(f"{one.name}: {one.type} - {meaning}")
    grid = f"{name}[grid, block{', shared_bytes' * signature.dynamic_shared}](...)"
    inferable = signature.dimensions == 1 and not signature.dynamic_shared
    lines += [
        "",
        f"Launch: {name}(...) over an inferred 1-D grid, or {grid}." if inferable else f"Launch: {grid}.",
    ]
    if signature.launch_bounds:
        lines.append(f"Launch bounds: at most {signature.launch_bounds[0]} threads a block.")
    if usage:
        lines.append(f"Uses: {usage}.")
    return "\n".join(lines)
