"""Launches of cuTile's kernels on a GPU, as far as they can be seen without one: what is built in, what is passed."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import cutile_samples as samples
import numpy as np
import pytest
from mock_cuda import build, run

import pygpukit as gp
from pygpukit.cutile import Kernel, ct, cutile_available
from pygpukit.cutile.signature import ArrayFacts, Constant, Scalar, facts_of, passed
from pygpukit.jit.compile import tile

compiles = pytest.mark.skipif(
    not cutile_available() or bool(tile.missing()), reason="needs the extras cutile and tile, and NVRTC"
)


def facts(kernel: Kernel, *arguments: Any) -> tuple[Any, ...]:
    return facts_of(kernel.function, kernel._arguments.bind(arguments, {}))


@ct.kernel
def every_kind(x, flag, real, whole, wide: ct.ScalarInt64, pair, big: ct.IndexedWithInt64, N: ct.Constant[int]):
    tile = ct.load(x, (0, 0), (1, N)).reshape((N,))
    if flag:
        tile = tile + real
    first, second = pair
    ct.store(first, (0,), tile * whole + ct.load(second, (0,), (N,)) + wide + ct.load(big, (0,), (N,)))


def arguments() -> tuple[Any, ...]:
    x = gp.zeros((40, 6))
    return x, True, 1.5, 3, 2**40, (gp.zeros(16), x[3]), gp.zeros(16), 16


def test_what_is_known_of_arguments_is_the_key_of_a_kernel() -> None:
    x, flag, real, whole, wide, (first, second), big, constant = facts(every_kind, *arguments())
    assert (x.dtype, x.ndim, x.index, x.fixed_strides) == ("float32", 2, "int32", (None, 1))
    assert (x.stride_divisors, x.extent_divisors, x.base_divisor) == ((1, 1), (4, 1), 16)
    assert x.groups and x.groups == second.groups and first.groups == () and not x.repeats
    assert [flag, real, whole, wide] == [Scalar(one) for one in ("bool_", "float32", "int32", "int64")]
    assert big.index == "int64" and second.base_divisor == 1, "72 bytes behind an allocation"
    assert constant == Constant(16, "<class 'int'>")
    one, two = (facts(samples.add, gp.zeros(8), gp.zeros(8), gp.zeros(8), value) for value in (1, True))
    assert one != two and one == facts(samples.add, gp.zeros(8), gp.zeros(8), gp.zeros(8), 1)
    repeated = gp.broadcast_to(gp.zeros(4), (3, 4))
    assert isinstance(facts(samples.softmax, repeated, gp.zeros((3, 4)), 4)[0], ArrayFacts)
    assert facts(samples.softmax, repeated, gp.zeros((3, 4)), 4)[0].repeats


def test_a_launch_passes_addresses_extents_and_strides() -> None:
    values = arguments()
    bound = every_kind._arguments.bind(values, {})
    plan, operands = passed(facts_of(every_kind.function, bound), bound)
    assert [size for _, _, _, size in plan] == [8, 4, 4, 4, 4, 1, 4, 4, 8, 8, 4, 4, 8, 4, 4, 8, 8, 8]
    assert [name for name, *_ in plan][:5] == ["x", "x.shape[0]", "x.shape[1]", "x.strides[0]", "x.strides[1]"]
    assert operands[1:9] == [40, 6, 6, 1, True, 1.5, 3, 2**40]
    assert operands[12].device_ptr == values[0].device_ptr + 72 and operands[13:15] == [6, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: "text"}, "parameter 'x': 'text' is neither an array nor a number; annotate constants as ct.Constant"),
        ({5: [gp.float32]}, "parameter 'pair': .* is neither an array nor a number; pass its arrays in a tuple"),
        ({3: 2**40}, r"parameter 'whole': 1099511627776 does not fit int32; annotate it as ct\.ScalarInt64"),
        ({4: 2**70}, "parameter 'wide': .* does not fit int64"),
        ({6: "reversed"}, "parameter 'big' is a view whose first element is not its first in memory; copy it"),
        ({6: "complex"}, "parameter 'big': tiles have no complex64"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_name(change: dict[int, Any], message: str) -> None:
    values = list(arguments())
    made = {"reversed": lambda: gp.zeros(16)[::-1], "complex": lambda: gp.zeros(16, "complex64")}
    for at, value in change.items():
        values[at] = made[value]() if isinstance(value, str) and value in made else value
    with pytest.raises((gp.KernelArgumentError, gp.DTypeError), match=message):
        facts(every_kind, *values)


def calls() -> list[tuple[Kernel, tuple[Any, ...]]]:
    x, half, single = gp.zeros(1000), gp.zeros((64, 64), "float16"), gp.zeros((64, 64))
    heads = tuple(gp.zeros((2, 64, 16), "bfloat16") for _ in range(4))
    return [
        (samples.add, (x, x, gp.zeros(1000), 16)),
        (samples.add_by_places, (x, x, x, 16)),
        (samples.transpose, (half, gp.zeros((64, 64), "float16"), 16, 8)),
        (samples.transpose_by_order, (half, gp.zeros((64, 64), "float16"), 16, 8)),
        (samples.softmax, (half, single, 64)),
        (samples.matmul, (half, half, single, 16, 16, 16)),
        (samples.matmul, (single, single, single, 16, 16, 16)),
        (samples.split_matmul, (single, single, single, 16)),
        (samples.locked_sum, (x, gp.zeros(1), gp.zeros(1, "int32"), 16)),
        (samples.layer_norm, (half, gp.zeros(64), gp.zeros(64), single, 1e-5, 32)),
        (samples.attention, (*heads, 0.25, 16, 16, 16, True)),
        (samples.histogram, (gp.zeros(64, "int32"), gp.zeros(9, "int32"), 16)),
        (every_kind, arguments()),
    ]


@compiles
def test_cutiles_compiler_takes_what_the_interpreter_takes_and_the_parameters_are_those_of_the_launch() -> None:
    for kernel, values in calls():
        image = kernel.build("sm_90", *values)
        assert list(image.symbols) == [kernel.name]
        bound = kernel._arguments.bind(values, {})
        plan, _ = passed(facts_of(kernel.function, bound), bound)
        assert parameters(image.image) == [size for *_, size in plan], kernel


def parameters(cubin: bytes) -> list[int]:
    """Bytes of each parameter, as the image has them: the records KPARAM_INFO, in either of their two forms."""
    sizes = {}
    for match in re.finditer(rb"\x04(\x17|\x45)\x0c\x00\0\0\0\0", cubin):
        ordinal, _, flags = struct.unpack_from("<HHI", cubin, match.end())
        sizes[ordinal] = flags >> 18 if match[1] == b"\x17" else flags & 0xFFFF
    return [sizes[at] for at in sorted(sizes)]


@compiles
def test_an_image_is_compiled_once(tmp_path: Path) -> None:
    values = calls()[0][1]
    origins = [samples.add.build(arch, *values).origin for arch in ("sm_89", "sm_89", "sm_80")]
    assert origins[1] == "memory"


@compiles
def test_a_launch_hands_to_the_driver_what_the_kernel_takes(tmp_path: Path) -> None:
    """Over a libcuda with host memory: grid, one thread, and the bytes of every parameter."""
    log = tmp_path / "log"
    settings = {"MOCK_CUDA_LOG": str(log), "PYGPUKIT_CACHE_DIR": str(tmp_path / "cache")}
    source = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n" + LAUNCHES
    written = run(source, build() / "mock", **settings).split()
    launches = [line for line in log.read_text().splitlines() if "cuLaunchKernel" in line and "add" in line]
    assert written[0] == "cuda" and len(launches) == 4, log.read_text()
    x, *others, another = [int(one).to_bytes(8, "little").hex() + ",64000000,01000000" for one in written[1:5]]
    for line, first in zip(launches, (x, x, another, x), strict=True):
        assert "grid 7,1,1 block 1,1,1" in line and f"params {','.join([first, *others])}" in line


LAUNCHES = """
from pygpukit._core import native
import cutile_samples as samples
x, y, z = gp.empty(100), gp.empty(100), gp.empty(100)
print(gp.backend(), x.device_ptr, y.device_ptr, z.device_ptr)
samples.add[7](x, y, z, 16)
gp.cutile.launch(gp.Stream(), (7,), samples.add, (x, y, z, 16))
gp.synchronize()
assert len(samples.add._kernels) == 1
used = native.prepared_calls()["used"]
another = gp.empty(100)
print(another.device_ptr)
for one in (another, x):
    samples.add[7](one, y, z, 16)
gp.synchronize()
assert native.prepared_calls()["used"] == used + 2 and len(samples.add._kernels) == 1
"""


@compiles
def test_cutiles_own_kernels_are_interpreted_and_compiled() -> None:
    path = Path(__file__).with_name("cutile_samples.py")
    text = path.read_text("utf-8").replace("from pygpukit.cutile import ct\n", "import cuda.tile as ct\n")
    import importlib.util
    import sys
    import tempfile

    with tempfile.TemporaryDirectory() as folder:  # cuTile reads kernels from files
        copy = Path(folder, "own_cutile_samples.py")
        copy.write_text(text, "utf-8")
        spec = importlib.util.spec_from_file_location("own_cutile_samples", copy)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        try:
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
            own = Kernel(module.matmul)
            a, b = (np.random.default_rng().standard_normal((32, 32)).astype(np.float16) for _ in range(2))
            c = np.zeros((32, 32), np.float32)
            own.check(4, a, b, c, 16, 16, 16)
            np.testing.assert_allclose(c, a.astype(np.float64) @ b, atol=1e-3)
            half = gp.zeros((64, 64), "float16")
            assert own.build("sm_90", half, half, gp.zeros((64, 64)), 16, 16, 16).symbols == {"matmul": "matmul"}
        finally:
            sys.modules.pop(spec.name, None)


def test_without_cutile_a_gpu_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "cuda.tile", None)
    assert not cutile_available()
    for call in (gp.cutile.get_cutile, gp.cutile.cutile_version, lambda: samples.add.build("sm_90", *calls()[0][1])):
        with pytest.raises(
            ModuleNotFoundError, match=r"a cuTile kernel on a GPU needs cuda\.tile: .*(cutile|cuda-tile)"
        ):
            call()
