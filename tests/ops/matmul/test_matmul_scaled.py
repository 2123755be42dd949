"""alpha, beta and the permission for tf32 of gp.matmul, against float64, on both backends."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from rounded import agree, normal, to_float64

import pygpukit as gp
from pygpukit.core.unused import warn_of_unused
from pygpukit.ops.matmul import precision

pytestmark = pytest.mark.usefixtures("operation_backend")

FLOATS = ("float16", "bfloat16", "float32", "float64")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 9, 11), (65, 129, 33), (40, 64, 0)], ids=str)
def test_alpha_and_beta(shape: tuple[int, int, int], dtype: str) -> None:
    m, n, k = shape
    (a, x), (b, y), (c, z) = normal(dtype, m, k), normal(dtype, n, k), normal(dtype, m, 2 * n)
    agree(gp.matmul(a, b.T, alpha=0.5), 0.5 * (x @ y.T), 4)
    out = c[:, ::2]
    assert gp.matmul(a, b.T, alpha=-2, beta=3, out=out) is out
    agree(out, -2 * (x @ y.T) + 3 * z[:, ::2], 4)
    np.testing.assert_array_equal(to_float64(c)[:, 1::2], z[:, 1::2])
    poisoned = gp.full((m, n), float("nan"), dtype=dtype)
    gp.matmul(a, b.T, alpha=2, out=poisoned)  # beta is 0: not read
    agree(poisoned, 2 * (x @ y.T), 4)


def test_vectors_stacks_and_outputs_that_are_operands() -> None:
    (a, x), (b, y), (v, w) = normal("float32", 3, 5, 6), normal("float32", 6, 6), normal("float32", 6)
    agree(gp.matmul(a, v, alpha=2, beta=1, out=gp.ones((3, 5))), 2 * (x @ w) + 1, 4)
    agree(gp.matmul(v, v, alpha=2, beta=-1, out=gp.ones(())), 2 * (w @ w) - 1, 4)
    agree(gp.matmul(v, b, alpha=2, beta=1, out=gp.ones(6)), 2 * (w @ y) + 1, 4)
    agree(gp.matmul(a, b, beta=1, out=a), x @ y + x, 4)
    agree(gp.matmul(b, b.T, alpha=2, beta=1, out=b), 2 * (y @ y.T) + y, 4)
    assert gp.matmul(a[:0], b, alpha=2, beta=1, out=gp.ones((0, 5, 6))).shape == (0, 5, 6)


def test_without_alpha_and_beta_no_bit_changes() -> None:
    a, b = normal("float32", 33, 65)[0], normal("float32", 65, 17)[0]
    assert gp.matmul(a, b, alpha=1.0, beta=0.0).to_numpy().tobytes() == (a @ b).to_numpy().tobytes()


def test_contradictions_are_refused() -> None:
    a, integers = gp.ones((3, 3)), gp.ones((3, 3), "int32")
    with pytest.raises(ValueError, match=r"beta=0.5 without out="):
        gp.matmul(a, a, beta=0.5)
    with pytest.raises(gp.DTypeError, match="only floats are scaled"):
        gp.matmul(integers, integers, alpha=2)
    with pytest.raises(gp.DTypeError, match="alpha is a GPUArray"):
        gp.matmul(a, a, alpha=gp.ones(()))  # type: ignore[arg-type]
    with pytest.raises(gp.DTypeError, match="out is float64, the result float32"):
        gp.matmul(a, a, beta=1, out=gp.ones((3, 3), "float64"))
    with pytest.raises(ValueError, match="tf32=True and use_tf32=False contradict"):
        gp.matmul(a, a, tf32=True, use_tf32=False)
    with pytest.raises(RuntimeError, match="float32"):
        gp.matmul(integers, integers, use_tf32=True)
    flags: Any = ("no", "False", float("nan"), 0, 1)
    image, kernel = gp.ones((1, 1, 4, 4)), gp.ones((1, 1, 3, 3))
    for flag in flags:
        for call in (
            lambda tf32: gp.matmul(a, a, tf32=tf32),
            lambda tf32: gp.matmul_plan(a, a, tf32=tf32),
            lambda tf32: gp.conv2d(image, kernel, tf32=tf32),
            lambda tf32: gp.conv_transpose2d(image, kernel, tf32=tf32),
        ):
            with pytest.raises(TypeError, match=f": tf32={flag!r}; it is True, False or None"):
                call(flag)
        with pytest.raises(TypeError, match=f"matmul: use_tf32={flag!r}; it is True, False or None"):
            gp.matmul(a, a, use_tf32=flag)
        with pytest.raises(TypeError, match=f"matmul: invariant={flag!r}; it is True, False or None"):
            gp.matmul(a, a, invariant=flag)


def test_alpha_and_beta_are_numbers_of_the_type() -> None:
    a, out = normal("float32", 3, 3)[0], gp.ones((3, 3))
    doubles = a.astype("float64")
    for operand, target, numbers in (
        (a, out, (1e300, 10**400, float("nan"), -float("inf"))),
        (doubles, doubles.clone(), (10**400, float("nan"), -float("inf"))),
    ):
        for number in numbers:
            said = re.escape(f"={number}; give a finite number that {operand.dtype} has")
            with pytest.raises(gp.InvalidSpecError, match=f"matmul: alpha{said}"):
                gp.matmul(operand, operand, alpha=number)
            with pytest.raises(gp.InvalidSpecError, match=f"matmul: beta{said}"):
                gp.matmul(operand, operand, beta=number, out=target)
    wrong: Any = ("2", [1.0], 1j, None, np.ones(1))
    for one in wrong:
        with pytest.raises(gp.DTypeError, match=r"matmul: alpha is a .*; it must be a real number"):
            gp.matmul(a, a, alpha=one)
    assert (out.to_numpy() == 1).all(), "nothing was written"
    agree(gp.matmul(doubles, doubles, alpha=1e300), 1e300 * (to_float64(doubles) @ to_float64(doubles)), 4)
    wanted = gp.matmul(a, a, alpha=2.0).to_numpy().tobytes()
    twos: Any = (2, np.float32(2), np.int64(2), np.array(2.0))
    assert all(gp.matmul(a, a, alpha=two).to_numpy().tobytes() == wanted for two in twos)


def test_tf32_is_a_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    a = normal("float32", 9, 9)[0]
    exact = (a @ a).to_numpy().tobytes()
    for said in (None, False):
        assert gp.matmul(a, a, tf32=said).to_numpy().tobytes() == exact
    try:
        for name, said, reason in [
            (None, None, "true float32$"),
            (None, True, "tf32=True allows tf32$"),
            (None, False, "as tf32=False asks"),
            ("PYGPUKIT_ALLOW_TF32", None, "PYGPUKIT_ALLOW_TF32 allows tf32$"),
            ("PYGPUKIT_ALLOW_TF32", False, "as tf32=False asks"),
            ("PYGPUKIT_NO_TF32", True, "PYGPUKIT_NO_TF32 forbids it"),
        ]:
            with monkeypatch.context() as patch:
                precision.environment.cache_clear()
                if name:
                    patch.setenv(name, "1")
                assert re.search(reason, gp.matmul_plan(a, a, use_tf32=said).reason)
        for name in ("PYGPUKIT_TF32_V2", "PYGPUKIT_ALLOW_FP16_TC", "PYGPUKIT_CUBLASLT_SM120"):
            with monkeypatch.context() as patch:
                warn_of_unused.cache_clear()
                patch.setenv(name, "1")
                with pytest.warns(UserWarning, match=f"{name} has no effect: "):
                    gp.matmul_plan(gp.ones((2, 2), "float64"), gp.ones((2, 2), "float64"))
        for name in ("PYGPUKIT_ALLOW_TF32", "PYGPUKIT_NO_TF32"):
            for value in ("false", "no", "off", "2", "", "0"):
                with monkeypatch.context() as patch:
                    precision.environment.cache_clear()
                    patch.setenv(name, value)
                    if value in ("", "0"):
                        assert gp.matmul_plan(a, a).reason.endswith("true float32")
                    else:
                        with pytest.raises(ValueError, match=f"{name}={value}; it is 1, or 0 or unset"):
                            gp.matmul_plan(a, a)
        precision.environment.cache_clear()
        monkeypatch.setenv("PYGPUKIT_NO_TF32", "1")
        monkeypatch.setenv("PYGPUKIT_ALLOW_TF32", "1")
        with pytest.raises(ValueError, match="PYGPUKIT_ALLOW_TF32 and PYGPUKIT_NO_TF32"):
            gp.matmul_plan(a, a)
    finally:
        precision.environment.cache_clear()
        warn_of_unused.cache_clear()
    assert "tf32" not in gp.matmul_plan(gp.ones((2, 2), "float64"), gp.ones((2, 2), "float64")).reason
