"""Types that the interpreter gives to results, and what it refuses, beside cuTile's compiler, which needs no device."""

from __future__ import annotations

import io
import linecache
import re
from itertools import count, product
from types import FunctionType
from typing import Any

import pytest

from pygpukit.core.errors import GPUError
from pygpukit.cutile import Kernel, cutile_available

if not cutile_available():
    pytest.skip("needs the extra cutile", allow_module_level=True)

import cuda.tile as cutile
from cuda.tile.compilation import CallingConvention, KernelSignature, export_kernel

TYPES = ["bool_", "int8", "int32", "int64", "uint8", "uint32", "float16", "bfloat16", "float32", "float64", "tfloat32"]
TYPES += ["float8_e4m3fn"]
# Not `**` of integers, which the compiler gives a type, but has no code for.
BINARY = ["x + y", "x / y", "x // y", "x % y", "x & y", "x << y", "x < y", "ct.minimum(x, y)", "ct.where(x == x, x, y)"]
NUMBERS = ["2", "True", "1.5", "300", "-1", "2**40"]
UNARY = [
    "ct.isnan(x)", "ct.sum(x)", "ct.sum(x, (0, 1), keepdims=True)", "ct.max(x, 0, keepdims=True)", "ct.argmax(x, -1)",
    "ct.cumsum(x, 1)", "ct.matmul(x, x)", "ct.mma(x, x, ct.zeros((4, 4), ct.float32))", "ct.bitcast(x, ct.int8)",
    "ct.mma(x, x, ct.zeros((4, 4), ct.float16))", "ct.mma(x, x, ct.zeros((4, 4), ct.int32))",
    "ct.bitcast(x, ct.uint32)",
    "ct.pack_to_bytes(x)", "x.reshape((2, -1))", "x.reshape((3, 5))", "ct.cat((x, x), 1)", "ct.cat((x, x[None]), 0)",
    "x[None, :, None]", "ct.broadcast_to(x, (2, 4, 4))", "ct.extract(x, (1, 0), (2, 2))", "ct.expand_dims(x, -1)",
    "ct.insert(x, (1, 0), ct.full((2, 2), 1, ct.float32))", "x.item()", "ct.where(x, 1.5, 2)", "x + True", "min(x, 2)",
    "divmod(x, x)[0]", "ct.reduce(x, 1, lambda a, b: a, 0)", "ct.scan(x, 0, lambda a, b: a, 0)", "ct.cdiv(x, x)",
    "ct.full((2,), 300, x.dtype)", "ct.arange(4, dtype=x.dtype)", "float(ct.sum(x))", "ct.bid(0) + x",
    "ct.astile(((1, 2), (3, 4)), dtype=x.dtype)", "x.astype(ct.float8_e5m2)",
]  # fmt: skip
_numbers = count()


def defined(lines: list[str], **names: Any) -> Any:
    """A kernel of cuTile's with these lines."""
    text = "@ct.kernel\ndef kernel():\n" + "".join(f"    {line}\n" for line in lines)
    file = f"<types {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"ct": cutile, **names}
    exec(compile(text, file, "exec"), scope)
    return scope["kernel"]


def compiled(lines: list[str]) -> tuple[str, str] | None:
    """(type, shape) of r, None where the compiler refuses the lines."""
    kernel = defined([*lines, "ct.static_assert(False, (r.dtype, r.shape))"])
    signature = KernelSignature([], CallingConvention.cutile_python_v2(), symbol="kernel")
    options = {"gpu_code": "sm_100", "output_format": "tileir_bytecode", "bytecode_version": "13.4"}
    with pytest.raises(Exception) as caught:
        export_kernel(kernel, [signature], io.BytesIO(), **options)
    known = re.search(r"\(<DType '(\w+)'>, (\(.*?\))\)", str(caught.value))
    return (known[1], known[2]) if known else None


def interpreted(lines: list[str]) -> tuple[str, str] | None:
    """The same by the interpreter."""
    results: list[Any] = []
    kernel = defined([*lines, "keep(r)"], keep=results.append)
    assert isinstance(kernel._pyfunc, FunctionType)
    try:
        Kernel(kernel).check(1)
    except GPUError:
        return None
    return str(results[0].dtype), str(results[0].shape)


def assert_same(lines: list[str]) -> None:
    assert interpreted(lines) == compiled(lines), lines


@pytest.mark.parametrize("left", TYPES)
@pytest.mark.parametrize("right", TYPES)
def test_two_operands(left: str, right: str) -> None:
    for operation in BINARY[TYPES.index(right) % 3 :: 3]:
        assert_same([f"x = ct.full((4,), 1, ct.{left})", f"y = ct.full((4, 1), 1, ct.{right})", f"r = {operation}"])


@pytest.mark.parametrize("left", TYPES)
def test_an_operand_and_a_number(left: str) -> None:
    for at, (number, operation) in enumerate(product(NUMBERS, BINARY)):
        if at % 3 == TYPES.index(left) % 3:
            assert_same([f"x = ct.full((4,), 1, ct.{left})", f"y = {number}", f"r = {operation}"])


@pytest.mark.parametrize("dtype", TYPES)
def test_one_operand(dtype: str) -> None:
    for operation in UNARY:
        assert_same([f"x = ct.full((4, 4), 1, ct.{dtype})", f"r = {operation}"])
