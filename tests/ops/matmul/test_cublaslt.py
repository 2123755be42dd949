"""What cuBLASLt is asked for: its functions are a library of this test, NumPy's on the memory of the simulated device.

Their arguments are as NVIDIA's documentation lists them. That cuBLASLt itself does with them what it should is not seen
here. And who asks for it: calls with invariant=False, and no model.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.extras import install_command
from pygpukit.jit.toolchain import libraries
from pygpukit.ops.matmul import choose, gemm
from pygpukit.ops.matmul.cublaslt import launch as cublaslt
from pygpukit.ops.matmul.cublaslt import library

Host = np.ndarray[Any, Any]
PACKAGE = Path(gp.__file__).parent
EXAMPLES = PACKAGE / "ops/sections/examples.py"  # texts of docstrings
# cudaDataType_t: what NumPy reads, and how it is computed with.
NUMPY = {0: "float32", 1: "float64", 2: "float16", 3: "int8", 10: "int32", 14: "uint16"}
COMPUTE = {68: "float32", 70: "float64", 72: "int32", 77: "float32"}
WORKSPACE = 4096


def number(value: Any) -> int:
    return int(value.value or 0)


class Library:
    """The functions that blas.py calls. calls: their names, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.objects: dict[int, dict[Any, Any]] = {}
        self.made = 0
        self.has_algorithm = True

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name.startswith("__"):
            raise AttributeError(name)

        def function(*arguments: Any) -> int:
            self.calls.append(name)
            assert all(isinstance(one, ctypes._SimpleCData) or type(one).__name__ == "CArgObject" for one in arguments)
            return self._answer(name.removeprefix("cublasLt"), arguments)

        return function

    def _answer(self, name: str, arguments: tuple[Any, ...]) -> int:
        if name.endswith("Create"):
            self.made += 1
            arguments[0]._obj.value = self.made
            self.objects[self.made] = {"kind": name, "arguments": [one.value for one in arguments[1:]]}
        elif name.endswith("SetAttribute"):
            made, attribute, value, size = arguments
            assert ctypes.sizeof(value._obj) == size.value
            self.objects[number(made)][attribute.value] = value._obj.value
        elif name.endswith("Destroy"):
            del self.objects[number(arguments[0])]
        elif name == "MatmulAlgoGetHeuristic":
            return self._heuristic(*arguments)
        else:
            assert name == "Matmul"
            return self._matmul(*arguments)
        return 0

    def _heuristic(self, handle: Any, descriptor: Any, a: Any, b: Any, c: Any, d: Any, wishes: Any, asked: Any,
                   found: Any, count: Any) -> int:  # fmt: skip
        wish = self.objects[number(wishes)]
        assert wish["kind"] == "MatmulPreferenceCreate" and (wish[1], wish[3]) == (32 << 20, 2)
        assert all(wish[attribute] in (1, 2, 4, 8, 16) for attribute in (5, 6, 7, 8))
        assert asked.value == 1 and number(c) == number(d) and self.objects[number(handle)]["kind"] == "Create"
        if not self.has_algorithm:
            return 15
        found._obj.algorithm[3], found._obj.workspace, count._obj.value = 77, WORKSPACE, 1
        return 0

    def _stack(self, layout: Any, address: Any) -> Host:
        """A view of a stack of matrices in column order."""
        made = self.objects[number(layout)]
        kind, rows, columns, lead = made["arguments"]
        count, step = made.get(5, 1), made.get(6, 0)
        assert made["kind"] == "MatrixLayoutCreate" and lead >= rows
        item = np.dtype(NUMPY[kind]).itemsize
        span = (count - 1) * step + (columns - 1) * lead + rows
        raw = (ctypes.c_char * (item * span)).from_address(number(address))
        steps = (step * item, item, lead * item)
        return np.lib.stride_tricks.as_strided(np.frombuffer(raw, NUMPY[kind]), (count, rows, columns), steps)

    def _matmul(self, handle: Any, descriptor: Any, alpha: Any, a: Any, at: Any, b: Any, bt: Any, beta: Any, c: Any,
                ct: Any, d: Any, dt: Any, algorithm: Any, space: Any, size: Any, stream: Any) -> int:  # fmt: skip
        gp.synchronize()
        assert algorithm._obj[3] == 77 and number(space) and size.value == WORKSPACE
        assert number(stream) == gp.current_stream().handle and number(c) == number(d) and number(ct) == number(dt)
        made = self.objects[number(descriptor)]
        compute = made["arguments"][0]
        scale = np.dtype(COMPUTE[compute])
        assert (alpha._obj.value, beta._obj.value) == (1, 0)
        assert ctypes.sizeof(alpha._obj) == ctypes.sizeof(beta._obj) == scale.itemsize
        left, right, result = self._stack(at, a), self._stack(bt, b), self._stack(dt, d)
        bits = self.objects[number(at)]["arguments"][0] == 14
        x, y = (wide(one, bits).astype(scale) for one in (left, right))
        x, y = (one.swapaxes(1, 2) if made[flag] else one for one, flag in ((x, 3), (y, 4)))
        product = x @ y
        result[...] = ((product.view(np.uint32) + 0x8000) >> 16) if bits else product
        return 0


def wide(values: Host, bits: bool) -> Host:
    return (values.astype(np.uint32) << 16).view(np.float32) if bits else values


def forget() -> None:
    """All calls that were made, which hold objects of the library."""
    library.call.cache_clear()
    cublaslt.call_of.cache_clear()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    made = Library()
    monkeypatch.setattr(library, "opened", lambda: (made, ""))
    monkeypatch.setattr(choose, "host_memory", SimpleNamespace(computes=lambda: False))
    forget()
    yield made
    forget()
    assert not [one for one in made.objects.values() if one["kind"] != "Create"]  # all given back


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> gp.GPUArray:
    values = np.random.default_rng(seed).standard_normal(shape) * (30 if dtype == "int8" else 1)
    return gp.from_numpy(values).astype(dtype)


def check(library: Library, a: gp.GPUArray, b: gp.GPUArray, **settings: Any) -> None:
    before = library.calls.count("cublasLtMatmul")
    got = gp.matmul(a, b, invariant=False, **settings)
    assert library.calls.count("cublasLtMatmul") == before + 1
    left, right = (one.astype("float64").to_numpy() for one in (a, b))
    tolerance = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-3, "int32": 0}.get(str(got.dtype), 8e-3)
    want = left @ right
    assert got.shape == want.shape
    error = np.abs(got.astype("float64").to_numpy() - want)
    assert np.all(error <= tolerance * (1 + np.abs(left) @ np.abs(right)))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "tf32", "float64", "int8"])
def test_every_layout_of_every_type(fake: Library, dtype: str) -> None:
    settings: dict[str, Any] = {"int8": {"dtype": "int32"}, "tf32": {"tf32": True}}.get(dtype, {})
    dtype = "float32" if dtype == "tf32" else dtype
    m, n, k = 5, 7, 9
    for a in (random((m, k), dtype), random((k, m), dtype).T, random((m + 2, k + 3), dtype)[1:-1, 2:-1]):
        for b in (random((k, n), dtype, 1), random((n, k), dtype, 1).T, random((k, 2 * n), dtype, 1)[:, ::2]):
            check(fake, a, b, **settings)
    check(fake, random((1, k), dtype), random((n, k), dtype).T, **settings)
    check(fake, random((k,), dtype), random((k, n), dtype), **settings)
    check(fake, random((m, 1), dtype), random((1, n), dtype), **settings)
    check(fake, random((3, m, k), dtype), random((3, n, k), dtype).mT, **settings)
    check(fake, random((2, 3, m, k), dtype)[:, 1], random((k, n), dtype), **settings)  # one matrix for all


def test_results_go_where_they_are_asked_for(fake: Library) -> None:
    a, b = random((6, 4), "float32"), random((4, 5), "float32", 1)
    want = a.to_numpy() @ b.to_numpy()
    out = gp.zeros((6, 10))
    assert gp.matmul(a, b, out=out[:, ::2], invariant=False).to_numpy() == pytest.approx(want, abs=1e-5)
    assert not out.to_numpy()[:, 1::2].any()
    off = gp.zeros(31)[1:].reshape(6, 5)  # at 4 bytes
    assert gp.matmul(a, b, out=off, invariant=False).to_numpy() == pytest.approx(want, abs=1e-5)
    square = random((4, 4), "float32")
    values = square.to_numpy()
    gp.matmul(square, square, out=square, invariant=False)
    assert square.to_numpy() == pytest.approx(values @ values, abs=1e-5)


def test_an_algorithm_is_chosen_once_for_a_signature(fake: Library) -> None:
    a, b = random((8, 16), "float16"), random((16, 8), "float16")
    for _ in range(3):
        gp.matmul(a, b, invariant=False)
    with gp.Stream():
        gp.matmul(a, b, invariant=False)
    assert fake.calls.count("cublasLtMatmulAlgoGetHeuristic") == 1 and fake.calls.count("cublasLtMatmul") == 4
    gp.matmul(a, b[:, :7], invariant=False)
    assert fake.calls.count("cublasLtMatmulAlgoGetHeuristic") == 2


def test_the_plan_says_who_makes_a_product(fake: Library) -> None:
    a, b = random((8, 16), "bfloat16"), random((16, 8), "bfloat16")
    assert gp.matmul_plan(a, b, invariant=False).backend == "cublaslt"
    assert "bits may depend" in gp.matmul_plan(a, b, invariant=False).reason
    assert "rounded to tf32" in gp.matmul_plan(gp.ones((4, 4)), gp.ones((4, 4)), tf32=True, invariant=False).reason
    for plan in (gp.matmul_plan(a, b), gp.matmul_plan(a, b, invariant=True)):
        assert plan.backend == "numpy" and "cuBLASLt" not in plan.reason
    whole = gp.ones((4, 4), dtype="int64")
    assert "no products of int64" in gp.matmul_plan(whole, whole, invariant=False).reason
    stream = gp.Stream()
    with stream.capture():
        assert "cannot be captured" in gp.matmul_plan(a, b, invariant=False).reason
        before = len(fake.calls)
        gp.matmul(a, b, invariant=False)
        assert len(fake.calls) == before
    fake.has_algorithm = False
    other = random((16, 9), "bfloat16")
    assert "no algorithm" in gp.matmul_plan(a, other, invariant=False).reason
    assert gp.matmul(a, other, invariant=False).shape == (8, 9)
    assert "cublasLtMatmul" not in fake.calls


def test_the_context_asks_for_this_thread_and_calls_can_say_otherwise(fake: Library) -> None:
    a, b = random((8, 16), "float32"), random((16, 8), "float32")
    with gp.fastest_products():
        assert gp.matmul_plan(a, b).backend == "cublaslt"
        a @ b
        gp.matmul(a, b, invariant=True)
        gp.linear(a, b.T)
        gp.dot(a, b)
        gp.einsum("ij,jk->ik", a, b)
    assert fake.calls.count("cublasLtMatmul") == 1
    assert gp.matmul_plan(a, b).backend == "numpy"
    for wrong in (1, 0, "no"):
        with pytest.raises(TypeError, match=f"matmul: invariant={wrong!r}; it is True"):
            gp.matmul(a, b, invariant=wrong)  # type: ignore[arg-type]


def test_models_are_invariant_in_any_context(fake: Library) -> None:
    from pygpukit.nn.linear.layer import Linear

    weight, x = random((8, 16), "float32"), random((4, 16), "float32")
    with gp.fastest_products():
        Linear(weight)(x)
    assert not fake.calls
    # What the package's own code multiplies with is gemm.matmul, which no context reaches.
    public = re.compile(r"(gp|ops)\.(linalg\.)?matmul\(|from pygpukit\.ops\.matmul import .*\bmatmul\b")
    users = [path for path in PACKAGE.rglob("*.py") if path != EXAMPLES and public.search(_code(path))]
    names = {str(path.relative_to(PACKAGE)) for path in users if path.parts[-2] != "benchmark"}
    # What programs call cuBLAS for is the user's own product, as a cell's is.
    assert names == {"linalg.py", "array_api/linalg.py", "ops/methods/bind.py", "program/libraries.py"}
    for part in ("asr", "llm", "nn", "tts", "pipeline"):
        for path in (PACKAGE / part).rglob("*.py"):
            assert "fastest" not in _code(path), path


def _code(path: Path) -> str:
    """Without what is said about it; "" of files that have no products."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r'"""[\s\S]*?"""|#.*', "", text) if "matmul" in text or "fastest" in text else ""


def test_a_status_of_the_library_is_an_error(fake: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake, "_matmul", lambda *_: 13)
    with pytest.raises(gp.GPUError, match=r"cublasLtMatmul: .* status 13"):
        gp.matmul(gp.ones((4, 4)), gp.ones((4, 4)), invariant=False)


def test_a_missing_library_is_named_and_the_next_plan_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "cublaslt_candidates", lambda: ["/nowhere/libcublasLt.so.13"])
    monkeypatch.setattr(choose, "host_memory", SimpleNamespace(computes=lambda: False))
    library.opened.cache_clear()
    plan = gp.matmul_plan(gp.ones((4, 4)), gp.ones((4, 4)), invariant=False)
    assert plan.backend == "numpy" and f"cuBLASLt was not found: {install_command('cublas')}, or" in plan.reason
    assert gp.matmul(gp.ones((4, 4)), gp.ones((4, 4)), invariant=False).to_numpy()[0, 0] == 4
    library.opened.cache_clear()


def test_the_library_can_be_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "host_memory", SimpleNamespace(computes=lambda: False))
    monkeypatch.setenv("PYGPUKIT_NO_CUBLASLT", "1")
    library.opened.cache_clear()
    plan = gp.matmul_plan(gp.ones((4, 4)), gp.ones((4, 4)), invariant=False)
    assert plan.backend != "cublaslt" and "PYGPUKIT_NO_CUBLASLT=1 forbids cuBLASLt" in plan.reason
    monkeypatch.setenv("PYGPUKIT_NO_CUBLASLT", "yes")
    library.opened.cache_clear()
    with pytest.raises(ValueError, match="PYGPUKIT_NO_CUBLASLT=yes; it is 1, or 0 or unset"):
        gp.matmul(gp.ones((4, 4)), gp.ones((4, 4)), invariant=False)
    library.opened.cache_clear()


def test_a_library_that_does_not_start_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def cublasLtCreate(self, handle: Any) -> int:
            return 1

    monkeypatch.setattr(libraries, "cublaslt_candidates", lambda: ["libcublasLt.so.13"])
    monkeypatch.setattr(ctypes, "CDLL", lambda path: Refusing())
    library.opened.cache_clear()
    assert re.search(r"libcublasLt.so.13 does not start .*status 1.*CUDA version", library.missing())
    library.opened.cache_clear()


def test_the_simulated_device_computes_as_ever() -> None:
    a = random((5, 6), "bfloat16")
    plans = [gp.matmul_plan(a, a.T, invariant=said) for said in (None, True, False)]
    assert len({str(plan) for plan in plans}) == 1
    assert (gp.matmul(a, a.T, invariant=False).to_numpy() == gp.matmul(a, a.T).to_numpy()).all()
    assert gemm.matmul(a, a.T, invariant=False).shape == (5, 5)
