"""rmsnorm, layernorm, softmax and rotary in Triton: each writes `out`, in float32 arithmetic, rounded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, ParamSpec

from pygpukit._core import native
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops.operands import check_array, check_devices
from pygpukit.triton.array import TritonArray, plain
from pygpukit.triton.available import get_triton
from pygpukit.triton.kernel import Kernel

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

    Operand = GPUArray | TritonArray

_Call = ParamSpec("_Call")

__all__ = ["layernorm", "rmsnorm", "rotary", "softmax"]

_TYPES = ("float32", "float16", "bfloat16")
_MAX_COLUMNS = 65536  # a row is in the registers of one block


def _prepared(function: Callable[_Call, None]) -> Callable[_Call, None]:
    """Decorator: the arrays of TritonArrays are taken, and a call is worked out once for their layouts."""
    call = native.Prepared(function)

    @wraps(function)
    def run(*args: _Call.args, **kwargs: _Call.kwargs) -> None:
        call(*[plain(one) for one in args], **{name: plain(one) for name, one in kwargs.items()})

    return run


@_prepared
def rmsnorm(x: Operand, weight: Operand, out: Operand, eps: float = 1e-6) -> None:
    """out = x / sqrt(mean(x * x) + eps) * weight along the last axis.

    Parameters
    ----------
    x, out : TritonArray or GPUArray
        (..., n), contiguous, float32, float16 or bfloat16; out may be x.
    weight : TritonArray or GPUArray
        (n,)
    eps : float

    Raises
    ------
    ShapeError, DTypeError, DeviceMismatchError
        Before anything is launched.
    ModuleNotFoundError
        Where Triton is missing, with the command that installs it.

    Examples
    --------
    >>> gp.triton.kernels.rmsnorm(x, weight, out, eps=1e-5)  # doctest: +SKIP
    """
    x, out, n = _rows("rmsnorm", x, out)
    weight = _vector("rmsnorm: weight", weight, n)
    if x.size:
        _kernel("rmsnorm")[x.size // n](x, weight, out, n, float(eps), **_settings(n))


@_prepared
def layernorm(x: Operand, weight: Operand, out: Operand, bias: Operand | None = None, eps: float = 1e-5) -> None:
    """out = (x - mean) / sqrt(variance + eps) * weight + bias along the last axis. Parameters, errors: as rmsnorm()."""
    x, out, n = _rows("layernorm", x, out)
    weight = _vector("layernorm: weight", weight, n)
    shift = None if bias is None else _vector("layernorm: bias", bias, n)
    if x.size:
        settings = {"SHIFTS": shift is not None, **_settings(n)}
        _kernel("layernorm")[x.size // n](x, weight, shift, out, n, float(eps), **settings)


@_prepared
def softmax(x: Operand, out: Operand) -> None:
    """out = exp(x - max) / sum(exp(x - max)) along the last axis. Parameters, errors: as rmsnorm()."""
    x, out, n = _rows("softmax", x, out)
    if x.size:
        _kernel("softmax")[x.size // n](x, out, n, **_settings(n))


@_prepared
def rotary(x: Operand, cos: Operand, sin: Operand, out: Operand) -> None:
    """out = x with the halves of each head rotated by its position's angles.

    x, out: (..., positions, heads, dim). cos, sin: (positions, dim / 2), or (positions, dim) of which the first half is
    read. Errors: as rmsnorm().
    """
    x, out, dim = _rows("rotary", x, out)
    cos, sin = (_checked(f"rotary: {name}", one) for name, one in (("cos", cos), ("sin", sin)))
    tables = () if x.ndim < 3 else ((x.shape[-3], dim // 2), (x.shape[-3], dim))
    if dim % 2 or cos.shape not in tables or sin.shape != cos.shape:
        raise ShapeError(
            f"rotary: x has shape {x.shape}, cos {cos.shape} and sin {sin.shape}; x must be (..., positions, heads, "
            "dim) with an even dim, the tables (positions, dim / 2) or (positions, dim)"
        )
    if x.size:
        half = dim // 2
        extents = x.shape[-2], x.shape[-3], half, cos.shape[1]
        _kernel("rotary")[x.size // dim](x, cos, sin, out, *extents, **_settings(half))


@cache
def _kernel(name: str) -> Kernel:
    get_triton()
    return Kernel(getattr(import_module("pygpukit.triton.sources"), name))


def _settings(n: int) -> dict[str, Any]:
    block = 1 << (n - 1).bit_length()
    return {"BLOCK": block, "num_warps": min(16, max(1, block // 256))}


def _rows(what: str, x: Operand, out: Operand) -> tuple[GPUArray, GPUArray, int]:
    source, target = _checked(f"{what}: x", x), _checked(f"{what}: out", out)
    check_devices(what, source, target)
    if source.shape != target.shape or source.dtype != target.dtype:
        raise ShapeError(
            f"{what}: x is {source.dtype} {source.shape} and out {target.dtype} {target.shape}; must be alike"
        )
    n = source.shape[-1] if source.ndim else 0
    if not 1 <= n <= _MAX_COLUMNS and source.size:
        raise ShapeError(f"{what}: the last axis has {n} elements, of shape {source.shape}; at most {_MAX_COLUMNS}")
    return source, target, n


def _vector(what: str, weight: Operand, n: int) -> GPUArray:
    array = _checked(what, weight)
    if array.shape != (n,):
        raise ShapeError(f"{what} has shape {array.shape}, must be ({n},)")
    return array


def _checked(what: str, value: Operand) -> GPUArray:
    array = check_array(value, what)
    if array.dtype.name not in _TYPES:
        raise DTypeError(f"{what} is {array.dtype}, must be {', '.join(_TYPES)}")
    if not array.is_contiguous():
        raise ShapeError(f"{what} is a view with gaps; copy it")
    return array
