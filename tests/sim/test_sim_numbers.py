"""Arithmetic on the simulated device: functions, intrinsics, half and bfloat16, against NumPy and exact integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from sim_table import Module, Table


@pytest.fixture(scope="module")
def table() -> Table:
    return Table()


KINDS = {"float": "f4", "double": "f8", "int": "i4", "unsigned": "u4", "half": "f2", "unsigned short": "u2"}


def evaluate(
    table: Table,
    expressions: Sequence[str],
    kind: str,
    *values: np.ndarray,
    result: str = "float",
    head: str = "",
    options: Sequence[str] = (),
) -> np.ndarray:
    """Each expression over the values a, b as a row of the result."""
    names = "ab"[: len(values)]
    parameters = ", ".join(f"const {kind} *{name}s" for name in names)
    loads = "".join(f"    {kind} {name} = {name}s[i];\n" for name in names)
    stores = "".join(f"    o[{row} * n + i] = {expression};\n" for row, expression in enumerate(expressions))
    source = f"""{head}
__global__ void k({parameters}, {result} *o, int n) {{
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) {{
{loads}{stores}  }}
}}"""
    n = values[0].size
    out = table.array(np.zeros((len(expressions), n), KINDS[result]))
    Module(table, source, options=options).run(
        "k", -(-n // 256), 256, *(table.array(value) for value in values), out, n
    )
    return out.read()


def test_mathematical_functions(table: Table) -> None:
    x = np.linspace(-3, 3, 1001, dtype=np.float32)
    wide = x.astype(np.float64)
    cases = {
        "sinf(a)": np.sin(wide), "cos(a)": np.cos(wide), "tanhf(a)": np.tanh(wide), "expf(a)": np.exp(wide),
        "exp10f(a)": 10.0**wide, "fabsf(a)": np.abs(wide), "floorf(a)": np.floor(wide), "rintf(a)": np.rint(wide),
        "sinpif(a)": np.sin(np.pi * wide), "fmaxf(a, 1.0f)": np.maximum(wide, 1), "max(a, 1.0f)": np.maximum(wide, 1),
        "__saturatef(a)": np.clip(wide, 0, 1), "copysignf(2.0f, a)": np.copysign(2, wide), "pow(a, 2)": wide**2,
        "fma(a, a, 1.0f)": wide * wide + 1, "normcdff(a) + normcdff(-a)": wide**0, "(float)isnan(a)": wide * 0,
        "erff(erfinvf(a / 3.01f)) * 3.01f": wide, "abs(a)": np.abs(wide), "ldexpf(a, 3)": wide * 8,
    }  # fmt: skip
    got = evaluate(table, list(cases), "float", x)
    for expression, row, expected in zip(cases, got, cases.values(), strict=True):
        assert np.allclose(row, expected, rtol=2e-6, atol=2e-6), expression
    positive = np.linspace(0.01, 9, 1001, dtype=np.float32)
    roots = {
        "sqrtf(a)": np.sqrt(positive), "rsqrtf(a)": 1 / np.sqrt(positive), "__logf(a)": np.log(positive),
        "__powf(a, 0.3f)": positive**0.3, "cbrtf(a)": np.cbrt(positive), "__fdividef(a, 3.0f)": positive / 3,
        "hypotf(a, 2.0f)": np.hypot(positive, 2), "__frcp_rn(a)": 1 / positive, "log2f(a)": np.log2(positive),
    }  # fmt: skip
    got = evaluate(table, list(roots), "float", positive)
    for expression, row, expected in zip(roots, got, roots.values(), strict=True):
        assert np.allclose(row, expected, rtol=2e-6, atol=2e-6), expression
    whole = np.arange(1, 20, dtype=np.int32)
    promoted = {
        "sqrt(a)": np.sqrt(whole),
        "max(a, 7u)": np.maximum(whole, 7),
        "pow(a, 2)": whole**2.0,
        "fmin(a, 3.5)": None,
    }
    got = evaluate(table, list(promoted), "int", whole, result="double")
    for expression, row, expected in zip(promoted, got, promoted.values(), strict=True):
        assert np.allclose(row, np.minimum(whole, 3.5) if expected is None else expected, rtol=1e-15), expression


def test_integer_intrinsics(table: Table) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-(2**31), 2**31, 500, dtype=np.int32) for _ in range(2))
    a[:2] = 0, -1
    u, v = ([int(x) for x in values.view(np.uint32)] for values in (a, b))
    pairs = list(zip(u, v, strict=True))
    signed = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    bytes_of = [[int(x) for x in values.view(np.int8)] for values in (a, b)]
    dots = [sum(bytes_of[0][4 * i + k] * bytes_of[1][4 * i + k] for k in range(4)) for i in range(500)]
    cases = {
        "__popc(a)": [f"{x:b}".count("1") for x in u],
        "__clz(a)": [32 - x.bit_length() for x in u],
        "__ffs(a)": [(x & -x).bit_length() for x in u],
        "(int)__brev(a)": [int(f"{x:032b}"[::-1], 2) for x in u],
        "__mulhi(a, b)": [x * y >> 32 for x, y in signed],
        "(int)__umulhi(a, b)": [x * y >> 32 for x, y in pairs],
        "(int)__funnelshift_l(a, b, 5)": [(y << 32 | x) << 5 >> 32 for x, y in pairs],
        "(int)__byte_perm(a, b, 0x5410)": [x & 0xFFFF | (y & 0xFFFF) << 16 for x, y in pairs],
        "(int)__sad(a, b, 1u)": [abs(x - y) + 1 for x, y in signed],
        "a + b": [x + y for x, y in signed],  # wraps
        "__dp4a(a, b, 3)": [3 + dot for dot in dots],
    }
    got = evaluate(table, list(cases), "int", a, b, result="int")
    for expression, row, expected in zip(cases, got, cases.values(), strict=True):
        assert row.tolist() == [(e + 2**31) % 2**32 - 2**31 for e in expected], expression


def test_conversions_saturate(table: Table) -> None:
    wild = np.array([1e20, -1e20, np.nan, 2.5, -2.5, 3.5], np.float32)
    rounded, truncated, bits = evaluate(
        table, ["__float2int_rn(a)", "__float2int_rz(a)", "__float_as_int(a)"], "float", wild, result="int"
    )
    assert rounded.tolist() == [2**31 - 1, -(2**31), 0, 2, -2, 4]
    assert truncated.tolist() == [2**31 - 1, -(2**31), 0, 2, -2, 3]
    assert bits.tolist() == wild.view(np.int32).tolist()


@pytest.mark.parametrize("options", [[], ["-U__F16C__"]], ids=["processor", "bits"])
def test_half_agrees_with_numpy_bit_for_bit(table: Table, options: list[str]) -> None:
    head = "#include <cuda_fp16.h>"
    every = np.arange(1 << 16, dtype=np.uint16)
    numbers = every.view(np.float16)
    widened = evaluate(
        table, ["__half2float(__ushort_as_half(a))"], "unsigned short", every, head=head, options=options
    )
    assert np.array_equal(widened[0], numbers.astype(np.float32), equal_nan=True)
    rng = np.random.default_rng(5)
    singles = (rng.standard_normal(1 << 18) * 10.0 ** rng.uniform(-9, 6, 1 << 18)).astype(np.float32)
    singles[:6] = np.inf, -np.inf, np.nan, 65519.99, 65520, 2.0**-25
    x, y = (rng.permutation(numbers) for _ in range(2))
    with np.errstate(all="ignore"):
        narrowed = evaluate(table, ["__float2half(a)"], "float", singles, result="half", head=head, options=options)
        assert np.array_equal(narrowed[0], singles.astype(np.float16), equal_nan=True)
        exact = x.astype(np.float64) * y.astype(np.float64) + x.astype(np.float64)
        cases = {
            "a + b": x + y,
            "a - b": x - y,
            "a * b": x * y,
            "a / b": x / y,
            "__hfma(a, b, a)": exact.astype(np.float16),
        }
        got = evaluate(table, list(cases), "half", x, y, result="half", head=head, options=options)
        for expression, row, expected in zip(cases, got, cases.values(), strict=True):
            assert np.array_equal(row, expected, equal_nan=True), expression
        finite = exact[np.isfinite(exact)]
        doubles = evaluate(table, ["half(a)"], "double", finite, result="half", head=head, options=options)
        assert np.array_equal(doubles[0], finite.astype(np.float16))


def test_bfloat16_rounds_to_nearest_even(table: Table) -> None:
    head = "#include <cuda_bf16.h>"
    rng = np.random.default_rng(6)
    singles = (rng.standard_normal(1 << 16) * 10.0 ** rng.uniform(-30, 30, 1 << 16)).astype(np.float32)
    bits = singles.view(np.uint32).astype(np.uint64)
    expected = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    expression = "__bfloat16_as_ushort(__float2bfloat16(a))"
    got = evaluate(table, [expression], "float", singles, result="unsigned short", head=head)
    assert np.array_equal(got[0], expected)
    pair = "__high2float(__hmul2(__floats2bfloat162_rn(1.0f, a), __bfloat162bfloat162(b)))"
    got = evaluate(table, [pair], "float", np.array([1.5, -3], np.float32), np.array([2, 0.5], np.float32), head=head)
    assert got[0].tolist() == [3, -1.5]


def test_fused_multiply_add_can_be_turned_off(table: Table) -> None:
    source = """
__global__ void k(const float *x, float *o) {
  o[0] = x[0] * x[0] - x[1];
  o[1] = __fmul_rn(x[0], x[0]) - x[1];
}"""
    x = np.array([1 + 2.0**-12, 0], np.float32)
    x[1] = x[0] * x[0]
    out = table.array(np.zeros(2, np.float32))
    Module(table, source, options=["--fmad=false"]).run("k", 1, 1, table.array(x), out)
    assert out.read().tolist() == [0, 0]
    Module(table, source).run("k", 1, 1, table.array(x), out)
    assert out.read()[1] == 0  # whatever the processor fuses, the intrinsic is not fused
