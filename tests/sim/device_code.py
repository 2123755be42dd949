"""Expressions of device code evaluated over arrays, on whatever backend is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import pygpukit as gp

TYPES = {
    "f2": "half", "f4": "float", "f8": "double", "i1": "signed char", "i2": "short", "i4": "int", "i8": "long long",
    "u1": "unsigned char", "u2": "unsigned short", "u4": "unsigned", "u8": "unsigned long long",
}  # fmt: skip


def evaluate(
    expressions: Sequence[str], *values: np.ndarray, result: str = "f4", head: str = "", options: Sequence[str] = ()
) -> np.ndarray:
    """Each expression over the elements a, b, c of the values, as a row of the result. `result` is a NumPy type."""
    names = "abc"[: len(values)]
    kinds = [TYPES[value.dtype.str[1:]] for value in values]
    target = TYPES[result]
    parameters = ", ".join(f"const {kind} *{name}s" for kind, name in zip(kinds, names, strict=True))
    loads = "".join(f"  {kind} {name} = {name}s[i];\n" for kind, name in zip(kinds, names, strict=True))
    stores = "".join(f"  o[{row} * n + i] = {text};\n" for row, text in enumerate(expressions))
    include = "#include <cuda_fp16.h>\n" if "half" in (*kinds, target) and "fp16" not in head else ""
    source = f"""{include}{head}
__global__ void evaluate({parameters}, {target} *o, long long n) {{
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
{loads}{stores}}}"""
    n = values[0].size
    out = gp.from_numpy(np.zeros((len(expressions), n), result))
    kernel = gp.jit(source, func="evaluate", options=options)
    kernel[-(-n // 256), 256](*(gp.from_numpy(value) for value in values), out, n)
    return out.to_numpy()


def check(cases: Mapping[str, np.ndarray], *values: np.ndarray, result: str = "f4", head: str = "") -> None:
    """Every expression gives exactly its expected values; any NaN equals any other."""
    got = evaluate(list(cases), *values, result=result, head=head)
    for expression, row, expected in zip(cases, got, cases.values(), strict=True):
        expected = np.broadcast_to(np.asarray(expected).astype(result), row.shape)
        equal_nan = expected.dtype.kind == "f"
        same = (row == expected) | (equal_nan & (row != row) & (expected != expected))
        if not same.all():
            at = int(np.argmin(same))
            inputs = ", ".join(repr(value.ravel()[at]) for value in values)
            raise AssertionError(
                f"{expression} of {inputs} gave {row[at]!r}, expected {expected[at]!r}; {(~same).sum()} differ"
            )


def check_close(cases: Mapping[str, np.ndarray], tolerance: float, *values: np.ndarray, result: str = "f4") -> None:
    """Every expression agrees within a tolerance relative to the larger of 1 and the value."""
    got = evaluate(list(cases), *values, result=result)
    for expression, row, expected in zip(cases, got, cases.values(), strict=True):
        wide = np.broadcast_to(np.asarray(expected, np.float64), row.shape)
        with np.errstate(invalid="ignore"):
            error = np.abs(row - wide) / np.maximum(1, np.abs(wide))
        bad = ~((error <= tolerance) | (row == wide) | (np.isnan(row) & np.isnan(wide)))
        if bad.any():
            at = int(np.argmax(bad))
            raise AssertionError(f"{expression} of {values[0].ravel()[at]!r} gave {row[at]!r}, expected {wide[at]!r}")
