"""Cases of suite `accuracy`: each operation as an expression for this package, PyTorch and NumPy in float64.

The expressions see `x`, `y`: normal numbers; `p`: positive ones; `u`: from -1 to 1; `s`: small ones around 0; `m`: a
matrix of COLUMNS columns, whose rows are normal numbers around a mean of their own; `w`, `b`: a vector for each row;
`long`: many numbers for one sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

DTYPES = ("float32", "float16", "bfloat16")
EPSILON = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}  # rounding unit
COUNT = 1 << 16
COLUMNS = 1024
LONG = 1 << 22
LONG_SIM = 1 << 18


@dataclass(frozen=True)
class Case:
    """An operation and its reference. An empty torch: PyTorch has no such function."""

    name: str
    gp: str
    torch: str
    reference: str


CASES = (
    Case("add", "gp.add(x, y)", "x + y", "x + y"),
    Case("sub", "gp.sub(x, y)", "x - y", "x - y"),
    Case("mul", "gp.mul(x, y)", "x * y", "x * y"),
    Case("div", "gp.div(x, p)", "x / p", "x / p"),
    Case("neg", "gp.neg(x)", "-x", "-x"),
    Case("abs", "gp.abs(x)", "x.abs()", "np.abs(x)"),
    Case("exp", "gp.exp(x)", "x.exp()", "np.exp(x)"),
    Case("expm1", "gp.expm1(s)", "s.expm1()", "np.expm1(s)"),
    Case("log", "gp.log(p)", "p.log()", "np.log(p)"),
    Case("log1p", "gp.log1p(s)", "s.log1p()", "np.log1p(s)"),
    Case("log2", "gp.log2(p)", "p.log2()", "np.log2(p)"),
    Case("log10", "gp.log10(p)", "p.log10()", "np.log10(p)"),
    Case("sqrt", "gp.sqrt(p)", "p.sqrt()", "np.sqrt(p)"),
    Case("rsqrt", "gp.rsqrt(p)", "p.rsqrt()", "1 / np.sqrt(p)"),
    Case("pow", "gp.pow(p, y)", "p ** y", "p ** y"),
    Case("sin", "gp.sin(x)", "x.sin()", "np.sin(x)"),
    Case("cos", "gp.cos(x)", "x.cos()", "np.cos(x)"),
    Case("tan", "gp.tan(u)", "u.tan()", "np.tan(u)"),
    Case("asin", "gp.asin(u)", "u.asin()", "np.arcsin(u)"),
    Case("acos", "gp.acos(u)", "u.acos()", "np.arccos(u)"),
    Case("atan", "gp.atan(x)", "x.atan()", "np.arctan(x)"),
    Case("atan2", "gp.atan2(x, y)", "torch.atan2(x, y)", "np.arctan2(x, y)"),
    Case("sinh", "gp.sinh(x)", "x.sinh()", "np.sinh(x)"),
    Case("cosh", "gp.cosh(x)", "x.cosh()", "np.cosh(x)"),
    Case("tanh", "gp.tanh(x)", "x.tanh()", "np.tanh(x)"),
    Case("erf", "gp.erf(x)", "x.erf()", "erf(x)"),
    Case("sigmoid", "gp.sigmoid(x)", "x.sigmoid()", "1 / (1 + np.exp(-x))"),
    Case("relu", "gp.relu(x)", "x.relu()", "np.maximum(x, 0)"),
    Case("gelu", "gp.gelu(x)", "F.gelu(x)", "x / 2 * (1 + erf(x / np.sqrt(2)))"),
    Case("gelu, tanh", "gp.gelu(x, approximate='tanh')", "F.gelu(x, approximate='tanh')", "gelu_tanh(x)"),
    Case("silu", "gp.silu(x)", "F.silu(x)", "x / (1 + np.exp(-x))"),
    Case("swiglu", "gp.swiglu(x, y)", "F.silu(x) * y", "x / (1 + np.exp(-x)) * y"),
    Case("sum", "gp.sum(long)", "long.sum()", "long.sum()"),
    Case("sum, axis 0", "gp.sum(m, axis=0)", "m.sum(0)", "m.sum(0)"),
    Case("sum, axis 1", "gp.sum(m, axis=1)", "m.sum(1)", "m.sum(1)"),
    Case("mean", "gp.mean(m, axis=1)", "m.mean(1)", "m.mean(1)"),
    Case("var", "gp.var(m, axis=1)", "m.var(1, correction=0)", "m.var(1)"),
    Case("std", "gp.std(m, axis=1)", "m.std(1, correction=0)", "m.std(1)"),
    Case("cumsum", "gp.cumsum(m, axis=1)", "m.cumsum(1)", "m.cumsum(1)"),
    Case("softmax", "gp.softmax(m)", "m.softmax(-1)", "softmax(m)"),
    Case("log_softmax", "gp.log_softmax(m)", "m.log_softmax(-1)", "np.log(softmax(m))"),
    Case("rmsnorm", "gp.rmsnorm(m, w)", "F.rms_norm(m, w.shape, w, 1e-5)", "rmsnorm(m) * w"),
    Case("layernorm", "gp.layernorm(m, w, b)", "F.layer_norm(m, w.shape, w, b, 1e-5)", "layernorm(m) * w + b"),
    Case("matmul", "gp.matmul(m.T[:64], m)", "m.T[:64] @ m", "m.T[:64] @ m"),
)


def hosts(dtype: str, long: int) -> dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """By name (elements as the device takes them, bfloat16 as uint16 bits; the very same values in float64)."""
    import numpy as np

    rng = np.random.default_rng(6)
    matrix = rng.standard_normal((COUNT // COLUMNS, COLUMNS)) + rng.uniform(-8, 8, (COUNT // COLUMNS, 1))
    hosts_of_case = {
        "x": np.clip(rng.standard_normal(COUNT) * 3, -8, 8),  # float16 holds exp(8)
        "y": np.clip(rng.standard_normal(COUNT), -2, 2),
        "p": rng.exponential(1.0, COUNT) + 0.01,
        "u": rng.uniform(-1, 1, COUNT),
        "s": rng.standard_normal(COUNT) * 0.01,
        "m": matrix,
        "w": rng.uniform(0.5, 1.5, COLUMNS),
        "b": rng.standard_normal(COLUMNS),
        "long": rng.uniform(0.0, 1.0 / 256, long),
    }
    return {name: _rounded(values, dtype) for name, values in hosts_of_case.items()}


def _rounded(values: np.ndarray[Any, Any], dtype: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    import numpy as np

    if dtype != "bfloat16":
        stored = values.astype(dtype)
        return stored, stored.astype(np.float64)
    bits = (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)  # any bfloat16 will do
    return bits, (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def references(values: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    """The arrays that the reference expressions see, in float64."""
    import numpy as np

    def softmax(m: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        power = np.exp(m - m.max(-1, keepdims=True))
        return power / power.sum(-1, keepdims=True)

    def layernorm(m: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return (m - m.mean(-1, keepdims=True)) / np.sqrt(m.var(-1, keepdims=True) + 1e-5)

    def rmsnorm(m: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return m / np.sqrt((m * m).mean(-1, keepdims=True) + 1e-5)

    def gelu_tanh(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    erf: Callable[[Any], Any] = np.vectorize(math.erf)
    return {"np": np, "erf": erf, **{f.__name__: f for f in (softmax, layernorm, rmsnorm, gelu_tanh)}, **values}


def error(result: np.ndarray[Any, Any], reference: Any) -> float:
    """The distance to the reference over the reference's length; infinite where the finite became NaN or infinite."""
    import numpy as np

    expected = np.asarray(reference, np.float64)
    if result.shape != expected.shape:
        raise ValueError(f"the result has shape {result.shape}, the reference {expected.shape}")
    distance = float(np.linalg.norm((result - expected).ravel()) / np.linalg.norm(expected.ravel()))
    return distance if math.isfinite(distance) else math.inf
