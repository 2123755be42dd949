"""Build: cuTile's compiler makes Tile IR of a kernel and the set of tools in use its image; no device is needed."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

from pygpukit.core.errors import GPUError
from pygpukit.cutile.available import cutile_version, get_cutile
from pygpukit.cutile.signature import ArrayFacts, Constant, Fact, Scalar
from pygpukit.jit import toolchain
from pygpukit.jit.cache.image import Image
from pygpukit.jit.cache.lookup import find, store
from pygpukit.jit.cache.store import key_of
from pygpukit.jit.compile import tile

_VERSIONS = ("13.4", "13.3", "13.2", "13.1")  # of Tile IR that are no preview


def tile_ir(kernel: Any, symbol: str, facts: tuple[Fact, ...], arch: str) -> bytes:
    """The Tile IR of a kernel of cuTile for an architecture ("sm_90"). Raises cuTile's own errors, with their lines."""
    cutile = get_cutile()
    from cuda.tile.compilation import CallingConvention, KernelSignature, export_kernel

    signature = KernelSignature(
        [_constraint(cutile, one) for one in facts], CallingConvention.cutile_python_v2(), symbol=symbol
    )
    out = io.BytesIO()
    export_kernel(
        kernel, [signature], out, gpu_code=arch, output_format="tileir_bytecode", bytecode_version=_ir_version()
    )
    return out.getvalue()


def build(kernel: Any, symbol: str, facts: tuple[Fact, ...], arch: str) -> Image:
    """The image of a kernel, from the cache where it is there.

    Raises NvrtcError that says what to install, CompileError with the assembler's words.
    """
    tile.require()
    code = tile_ir(kernel, symbol, facts, arch)
    parts = {
        "kind": b"cutile",
        "arch": arch.encode(),
        "tile ir": code,
        "compiler": f"cutile {cutile_version()}".encode() + tile.identity(),
    }
    key, short = key_of(parts)
    image = find(key, short)
    if image is None:
        cubin, remarks = tile.assemble(code, arch, symbol)
        image = store(key, Image("nvrtc", arch, cubin, "", remarks, {symbol: symbol}, parts=short))
    return image


def _ir_version() -> str:
    """The newest Tile IR that the assembler in use reads. Raises GPUError for one that is too old."""
    used = toolchain.taken()
    version = (0, 0) if used is None else used.version
    for one in _VERSIONS:
        major, minor = one.split(".")
        if (int(major), int(minor)) <= version:
            return one
    raise GPUError("the assembler of tile kernels is older than 13.1; cuTile's kernels need a newer one")


def _constraint(cutile: ModuleType, fact: Fact) -> Any:
    from cuda.tile.compilation import ArrayConstraint, ConstantConstraint, ScalarConstraint, TupleConstraint

    if isinstance(fact, ArrayFacts):
        return ArrayConstraint(
            getattr(cutile, fact.dtype),
            fact.ndim,
            index_dtype=getattr(cutile, fact.index),
            stride_lower_bound_incl=0,
            alias_groups=fact.groups,
            may_alias_internally=fact.repeats,
            stride_constant=fact.fixed_strides,
            shape_constant=fact.fixed_extents,
            stride_divisible_by=_divisors(fact.fixed_strides, fact.stride_divisors),
            shape_divisible_by=_divisors(fact.fixed_extents, fact.extent_divisors),
            base_addr_divisible_by=fact.base_divisor,
        )
    if isinstance(fact, Scalar):
        return ScalarConstraint(getattr(cutile, fact.dtype))
    if isinstance(fact, Constant):
        return ConstantConstraint(fact.value) if not isinstance(fact.value, tuple) else fact.value
    return TupleConstraint([_constraint(cutile, one) for one in fact])


def _divisors(fixed: tuple[int | None, ...], divisors: tuple[int, ...]) -> list[int]:
    """The divisors of the numbers that are not built in, 1 for the others."""
    return [by if one is None else 1 for one, by in zip(fixed, divisors, strict=True)]
