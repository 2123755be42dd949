"""gp.triton where Triton is not needed: arrays as it sees them, what is missing, arguments that are refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.triton import TritonArray, from_gpuarray, from_numpy, kernels
from pygpukit.triton.array import DTYPES
from pygpukit.triton.specialise import specialise


class Param:
    """A parameter as Triton describes it."""

    def __init__(self, name: str, **more: bool) -> None:
        self.name = name
        self.is_constexpr = more.get("is_constexpr", False)
        self.is_const = more.get("is_const", False)
        self.do_not_specialize = more.get("do_not_specialize", False)
        self.do_not_specialize_on_alignment = more.get("do_not_specialize_on_alignment", False)


def test_an_array_has_what_triton_looks_for() -> None:
    x = gp.zeros((3, 4, 5), "float16")
    wrapped = from_gpuarray(x)
    assert (wrapped.dtype, wrapped.shape, wrapped.ndim, wrapped.numel) == ("fp16", (3, 4, 5), 3, 60)
    assert wrapped.data_ptr() == x.device_ptr and wrapped.array is x
    assert wrapped.stride() == (20, 5, 1) and wrapped.stride(0) == 20 and wrapped.stride(-1) == 1
    view = from_gpuarray(x[1:, :, ::2])
    assert view.stride() == (20, 5, 2) and view.data_ptr() == x.device_ptr + 40
    assert isinstance(from_numpy(np.zeros(3, np.int64)), TritonArray)


@pytest.mark.parametrize("dtype", ["complex64", "float4_e2m1"])
def test_a_type_that_triton_does_not_have_is_refused(dtype: str) -> None:
    with pytest.raises(gp.DTypeError, match=f"Triton has no {dtype}"):
        from_gpuarray(gp.zeros(2, dtype))
    with pytest.raises(TypeError, match="TritonArray"):
        from_gpuarray(np.zeros(2))  # type: ignore[arg-type]


def test_every_documented_name_is_there() -> None:
    names = "TritonArray from_gpuarray from_numpy kernels triton_available triton_version use_triton_backend"
    names += " get_triton get_triton_device"
    assert set(names.split()) <= set(dir(gp.triton)) and all(hasattr(gp.triton, name) for name in names.split())
    assert all(hasattr(kernels, name) for name in ("layernorm", "rmsnorm", "rotary", "softmax"))
    with pytest.raises(AttributeError, match="no attribute 'kernel_of'"):
        _ = gp.triton.kernel_of


def test_without_triton_everything_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    kernels._kernel.cache_clear()
    x = gp.ones((2, 4))
    for call in (
        gp.triton.triton_version,
        lambda: gp.triton.Kernel(print),
        lambda: kernels.softmax(x, x),
        lambda: kernels.rmsnorm(from_gpuarray(x), gp.ones(4), x),
    ):
        with pytest.raises(ModuleNotFoundError, match=r"a Triton kernel needs triton.compiler: .*triton"):
            call()
    assert x.to_numpy().tolist() == [[1.0] * 4] * 2


def test_the_backend_without_triton_is_refused_before_anything_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pygpukit.triton.backend.triton_available", lambda: False)
    assert "triton" in [one.name for one in gp.plugins.list("pygpukit.backends")]
    with pytest.raises(gp.PluginError, match=r"'triton'.*Triton is not installed: .*pip install"):
        gp.plugins.replace("triton")
    assert gp.softmax(gp.ones(2)).to_numpy().tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("value", "answer"), [(None, False), ("0", False), ("1", True)])
def test_the_variable_opts_in(monkeypatch: pytest.MonkeyPatch, value: str | None, answer: bool) -> None:
    monkeypatch.setattr("pygpukit.triton.available.triton_available", lambda: True)
    monkeypatch.delenv("PYGPUKIT_USE_TRITON", raising=False)
    if value is not None:
        monkeypatch.setenv("PYGPUKIT_USE_TRITON", value)
    assert gp.triton.use_triton_backend() is answer


def test_kernels_refuse_what_does_not_fit_before_anything_is_launched() -> None:
    x, weight = gp.ones((2, 4)), gp.ones(4)
    wrong = [
        (lambda: kernels.rmsnorm(x, gp.ones(3), x), gp.ShapeError, r"rmsnorm: weight has shape \(3,\), must be \(4,\)"),
        (lambda: kernels.rmsnorm(x, weight, gp.ones((2, 5))), gp.ShapeError, "must be alike"),
        (lambda: kernels.layernorm(x, weight, x, gp.ones(5)), gp.ShapeError, "layernorm: bias has shape"),
        (lambda: kernels.softmax(x, gp.ones((2, 4), "float16")), gp.ShapeError, "must be alike"),
        (lambda: kernels.softmax(gp.ones(2, "int32"), x), gp.DTypeError, "softmax: x is int32"),
        (lambda: kernels.softmax(x.T, x.T), gp.ShapeError, "a view with gaps"),
        (lambda: kernels.softmax(gp.ones((1, 65537)), gp.ones((1, 65537))), gp.ShapeError, "at most 65536"),
        (lambda: kernels.rotary(gp.ones((2, 1, 4)), gp.ones((3, 2)), gp.ones((3, 2)), gp.ones((2, 1, 4))),
         gp.ShapeError, "rotary: x has shape"),
        (lambda: kernels.rotary(x, weight, weight, x), gp.ShapeError, "must be .*positions, heads"),
    ]  # fmt: skip
    for call, error, message in wrong:
        with pytest.raises(error, match=message):
            call()


def test_a_specialisation_says_types_constants_and_alignment() -> None:
    x = gp.ones(64)
    shifted = gp.ones(65)[1:]
    params = [Param("x"), Param("y", is_const=True), Param("n"), Param("one"), Param("f"), Param("nothing"),
              Param("flag"), Param("BLOCK", is_constexpr=True)]  # fmt: skip
    arguments = {"x": x, "y": shifted, "n": 48, "one": 1, "f": 0.5, "nothing": None, "flag": True, "BLOCK": 64}
    made = specialise("k", params, arguments, {"num_warps": 8})
    kinds = ["*fp32", "*kfp32", "i32", "constexpr", "fp32", "constexpr", "u1", "constexpr"]
    assert [kind for _, kind in made.types] == kinds
    assert made.constants == ((3, 1), (5, None), (7, 64)) and made.aligned == (0, 2)
    assert made.options == (("num_warps", 8),) and hash(made) == hash(
        specialise("k", params, arguments, {"num_warps": 8})
    )
    assert [(name, kind, size) for name, kind, _, size in made.plan] == [
        ("x", "pointer", 8), ("y", "pointer", 8), ("n", "scalar", 4), ("f", "scalar", 4), ("flag", "scalar", 1),
    ]  # fmt: skip


def test_numbers_that_are_equal_and_of_other_types_are_other_constants() -> None:
    made = {specialise("k", [Param("C", is_constexpr=True)], {"C": value}, {}) for value in (1, True, 1.0)}
    assert len(made) == 3


@pytest.mark.parametrize(("value", "kind"), [(2**31 - 1, "i32"), (-(2**31), "i32"), (2**31, "i64"), (2**63, "u64")])
def test_an_integer_has_the_least_type_that_holds_it(value: int, kind: str) -> None:
    assert specialise("k", [Param("n", do_not_specialize=True)], {"n": value}, {}).types == (("n", kind),)


def test_do_not_specialize_is_kept() -> None:
    made = specialise("k", [Param("n", do_not_specialize=True)], {"n": 1}, {})
    assert made.types == (("n", "i32"),) and made.constants == ()
    assert specialise("k", [Param("n", do_not_specialize_on_alignment=True)], {"n": 16}, {}).aligned == ()


@pytest.mark.parametrize("value", [2**64, "text", [1], 1j])
def test_what_is_no_argument_is_refused_by_name(value: object) -> None:
    with pytest.raises(gp.KernelArgumentError, match=r"k\(\): parameter 'n'"):
        specialise("k", [Param("n")], {"n": value}, {})


def test_every_type_has_a_name_of_its_own() -> None:
    assert len(set(DTYPES.values())) == len(DTYPES)
