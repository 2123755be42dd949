"""Compiles what operations and models need in environments as people have them. Needs no GPU.

    python tools/toolchain_matrix.py FOLDER [ENVIRONMENT ...]

FOLDER keeps the toolkits, laid out from wheels, for the next time. In each environment the plans for SM 9.0 and 8.0 are
made on a device that is pretended, and each kernel that they name is compiled: products, attention, convolution, a part
of what models launch, another at each commit, and from NVRTC 13.0 on a cell that includes CuTe and a product by
CUTLASS. With the oldest NVRTC a part of the kernels on mma.sync is compiled, too, and looked at for registers that it
spills. It fails where an operation is lost, where tensor cores that the environment can compile for are not taken,
where such a kernel spills more than a few registers, or where parts of two versions meet.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
import turn

# Wheels of a folder. No dependencies: what a folder lacks is what is tested.
FOLDERS = {
    "12.4": ("nvidia-cuda-nvrtc-cu12==12.4.127",),
    "12.9": ("nvidia-cuda-nvrtc-cu12==12.9.86", "nvidia-cuda-runtime-cu12==12.9.79"),
    "13.0": ("nvidia-cuda-nvrtc==13.0.88",),
    "13.3": ("nvidia-cuda-nvrtc==13.3.33",),
    "newest": ("nvidia-cuda-nvrtc<14", "nvidia-cuda-tileiras<14", "nvidia-cuda-nvcc<14", "nvidia-nvvm<14"),
    "newest alone": ("nvidia-cuda-nvrtc<14",),
    "kit 13.0": (
        *("nvidia-cuda-nvrtc==13.0.88", "nvidia-cuda-nvcc==13.0.88", "nvidia-nvvm==13.0.88"),
        *("nvidia-cuda-runtime==13.0.96", "nvidia-cuda-cccl==13.0.85", "nvidia-cuda-crt==13.0.88"),
    ),
}
_SHARE = 12  # of the models' kernels one part a commit
_TILE_KERNEL = """#include <cuda_tile.h>
namespace ct = cuda::tiles;
extern "C" __tile_global__ void twice(const float* x, float* y, int n) {
  auto from = ct::partition_view{ct::tensor_span{x, ct::extents{n}}, ct::shape<64>{}};
  auto to = ct::partition_view{ct::tensor_span{y, ct::extents{n}}, ct::shape<64>{}};
  to.store_masked(from.load_masked(ct::bid().x) + from.load_masked(ct::bid().x), ct::bid().x);
}
"""
_CUTE_CELL = """#include <cute/tensor.hpp>
using namespace cute;
extern "C" __global__ void turn(const float *x, float *y, int m, int n) {
  auto from = make_tensor(make_gmem_ptr(x), make_shape(m, n), make_stride(n, _1{}));
  auto to = make_tensor(make_gmem_ptr(y), make_shape(n, m), make_stride(m, _1{}));
  for (int i = threadIdx.x; i < m * n; i += blockDim.x) to(i / m, i % m) = from(i % m, i / m);
}
"""
# Kernels on mma.sync: compiled by any NVRTC from 12.4 on, for any tensor cores.
_MMA = (
    *("ops/matmul/mma/aligned.cu", "ops/matmul/mma/unaligned.cu", "ops/matmul/mma/fp8.cu", "ops/nn/conv/mma.cu"),
    *("ops/nn/attention/mma.cu", "ops/nn/attention/decode_mma.cu", "ops/nn/attention/decode.cu"),
    *("nn/linear/tensor_rows.cu", "nn/linear/in_blocks.cu"),
)
_MMA_ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90a")
_MMA_SHARE = 24  # one part a commit, for one architecture
_MAX_SPILLED = 48  # bytes of a thread: 12 registers, of which loops touch few
_CUTE_SINCE, _BUNDLED_SINCE = (13, 0), (13, 3)  # the latter brings the headers that CuTe needs


class Environment(NamedTuple):
    """wheels: folders that pip would have installed into. variables: to folders. tiles: it makes tile kernels. taken:
    version of the NVRTC, as far as it is fixed."""

    wheels: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    tiles: bool = False
    taken: str = ""
    bundled: bool = False


_OLDEST = "nvrtc-12.4"
ENVIRONMENTS = {
    "newest": Environment(("newest",), tiles=True),
    _OLDEST: Environment(("12.4",), taken="12.4"),
    "nvrtc-12.9": Environment(("12.9",), taken="12.9"),
    "nvrtc-13.0": Environment(("13.0",), taken="13.0"),
    "nvrtc-13.3": Environment(("13.3",), taken="13.3"),
    "no-tileiras": Environment(("newest alone",)),
    "tileiras-of-another-version": Environment(("13.3",), (("CUDA_HOME", "newest"),), tiles=True),
    "cuda-home": Environment(("newest",), (("CUDA_HOME", "kit 13.0"), ("CUDA_ROOT", "kit 13.0")), tiles=True),
    "cuda-path": Environment(("newest",), (("CUDA_PATH", "kit 13.0"),), tiles=True),
    "path": Environment(("newest",), (("PATH", "kit 13.0"),), tiles=True),
    "ld-library-path": Environment(("newest",), (("LD_LIBRARY_PATH", "kit 13.0"),), tiles=True),
    "toolkit-alone": Environment((), (("CUDA_HOME", "kit 13.0"),), taken="13.0"),
    "two-at-once": Environment(("13.0", "12.9"), (("CUDA_PATH", "newest"), ("CUDA_HOME", "kit 13.0")), tiles=True),
    "bundle-without-nvrtc": Environment(bundled=True),
}


def installed(folder: Path, name: str) -> Path:
    """Wheels laid out in a folder, once."""
    target = folder / name.replace(" ", "-")
    if not (target / "done").is_file():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(target)]
        subprocess.run([*command, *FOLDERS[name]], check=True)
        (target / "done").touch()
    return target


def root_of(site: Path) -> Path:
    """The folder that CUDA_HOME would name in a folder of wheels of CUDA 13."""
    return site / "nvidia" / "cu13"


def variables(folder: Path, one: Environment) -> dict[str, str]:
    """The environment of the process that compiles."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    kept |= {"PYGPUKIT_BACKEND": "sim", "PYGPUKIT_CACHE_DIR": str(folder / "kernels")}
    kept["PYGPUKIT_BUNDLE"] = str(folder / ("kernels.bundle" if one.bundled else "none"))
    for name, kit in one.variables:
        root = root_of(installed(folder, kit))
        part = {"PATH": root / "bin", "LD_LIBRARY_PATH": root / "lib"}.get(name, root)
        old = f"{os.pathsep}{kept[name]}" if name in ("PATH", "LD_LIBRARY_PATH") and kept.get(name) else ""
        kept[name] = f"{part}{old}"
    return kept


def check(folder: Path, name: str) -> None:
    """In a process of its own: see that nothing is lost in one environment. Raises AssertionError."""
    from pygpukit.jit.toolchain import places

    one = ENVIRONMENTS[name]
    # Wheels of this machine's own Python are not part of the environment.
    places.sys = SimpleNamespace(path=[str(installed(folder, wheels)) for wheels in one.wheels])  # type: ignore[assignment, attr-defined]
    import pygpukit as gp
    from pygpukit.jit import toolchain
    from pygpukit.jit.compile.compiler import compile_source
    from pygpukit.kernels import bundle, needed, registry, sources
    from pygpukit.kernels.builder import compile_unit
    from pygpukit.kernels.planning import planning

    gp.ones(1)
    used = toolchain.taken()
    print(f"{name}: {used}", flush=True)
    if one.bundled:
        toolchain.find._NAMES = ()  # the loader finds none either
        assert used is None, used
    else:
        assert used is not None and used.makes_tile_kernels == one.tiles, (used, used and used.lacks)
        assert one.taken in ("", "{}.{}".format(*used.version)), used
        home = Path(used.place.removeprefix("pip, ")) if used.place.startswith("pip, ") else used.root
        assert used.version >= _BUNDLED_SINCE or all(one.is_relative_to(home) for one in used.headers), used.headers
    warnings.simplefilter("ignore", RuntimeWarning)
    kernels = 0
    for arch in ("sm_90a",) if one.bundled else ("sm_90a", "sm_80"):
        with planning(arch, compiles=True) as asked:
            backends = operations()
        kernels += len(asked)
        tiles = one.tiles or one.bundled
        expected = {"tile", "hopper"} if tiles else {"hopper"} if arch == "sm_90a" else {"mma"}
        assert backends["half"] in expected, (arch, backends)
        if arch == "sm_90a":
            assert backends["tf32"] in expected and backends["fp8"] in expected and backends["conv"] == "tile", backends
        print(f"  {arch}: {backends}", flush=True)
        if name == "newest" and arch == "sm_90a":
            every = [(spec, list(registry.units(spec.source))) for spec in asked]
            units = {unit: None for spec, own in every for unit in own if spec.expression in unit.expressions}
            units |= {own[0]: None for _, own in every if own}  # whose kernel says that a family is there
            bundle.write(folder / "kernels.bundle", ((arch, unit, compile_unit(unit, arch)) for unit in units))
        if not one.bundled:
            listed = [kernel for model in needed.listed() for kernel in needed.of(model, arch)]
            for source, expression, options in listed[turn.of_commit() % _SHARE :: _SHARE]:
                compile_source(
                    sources.text(source), name=source, options=options, arch=arch, name_expressions=[expression]
                )
                kernels += 1
    if name == _OLDEST:
        kernels += check_mma()
    if one.tiles:  # never from the cache: the assembler finds its helpers in this environment
        compile_source(f"{_TILE_KERNEL}// {time.time_ns()}", name="twice", arch="sm_90a")
    if used is not None and used.version >= _CUTE_SINCE and (used.headers or used.version >= _BUNDLED_SINCE):
        compile_cutlass()
    print(f"  {kernels} kernels", flush=True)


def check_mma() -> int:
    """Compile a part of the kernels on mma.sync; how many. Raises AssertionError where one spills registers."""
    from pygpukit.jit.inspect.cubin import read_cubin
    from pygpukit.kernels import registry
    from pygpukit.kernels.builder import compile_unit

    number = turn.of_commit()
    arch = _MMA_ARCHITECTURES[number // _MMA_SHARE % len(_MMA_ARCHITECTURES)]
    every = [unit for unit in registry.catalogue() if unit.source in _MMA and unit.is_ahead(arch)]
    assert {unit.source for unit in every} >= set(_MMA) - {"ops/matmul/mma/fp8.cu"}, "a source is elsewhere"
    kernels = 0
    for unit in every[number % _MMA_SHARE :: _MMA_SHARE]:
        image = compile_unit(unit, arch)
        kernels_of_image = read_cubin(image.image).kernels
        for expression in unit.expressions:
            spilled = kernels_of_image[image.symbol(expression)].local_bytes
            assert spilled <= _MAX_SPILLED, f"{expression} for {arch} spills {spilled} bytes of registers"
        kernels += len(unit.expressions)
    print(f"  {arch}: {kernels} kernels on mma.sync, which spill at most {_MAX_SPILLED} bytes", flush=True)
    return kernels


def compile_cutlass() -> None:
    """A cell that includes CuTe and a product by CUTLASS, where their headers are here or can be fetched."""
    from pygpukit.core.errors import ModelNotFoundError
    from pygpukit.jit.compile.compiler import compile_source
    from pygpukit.kernels import registry
    from pygpukit.kernels.builder import compile_unit
    from pygpukit.models import cutlass
    from pygpukit.ops.matmul.cutlass import product, room

    try:
        cutlass.get()
    except ModelNotFoundError as error:
        print(f"  nothing of CUTLASS: {error}", flush=True)
        return
    assert compile_source(_CUTE_CELL, name="turn", arch="sm_90a").image
    if reason := room.lacking():
        print(f"  no product by CUTLASS: {reason}", flush=True)
    else:
        assert compile_unit(next(registry.units(product.SOURCE.source)), "sm_90a").image


def operations() -> dict[str, str]:
    """Call what has more than one kernel; the backends of some of them."""
    import pygpukit as gp

    x, i, f = (gp.zeros((256, 256), dtype) for dtype in ("float16", "int8", "float32"))
    e, q, image = (
        gp.zeros((256, 256), "float8_e4m3"),
        gp.zeros((4, 64, 64), "float16"),
        gp.zeros((1, 64, 16, 16), "float16"),
    )
    weight = gp.zeros((64, 64, 3, 3), "float16")
    gp.matmul(x, x), gp.matmul(x[1:, 3:], x[3:, 1:]), gp.matmul(x[:1], x), gp.matmul(f, f), gp.matmul(f, f, tf32=True)
    gp.matmul(i, i, dtype="int32"), gp.matmul_fp8(e, e), gp.matmul_fp8(x, e), gp.linear(x, x, act="gelu")
    gp.grouped_matmul(x, gp.zeros((2, 256, 8), "float16"), gp.zeros(2, "int32"))
    gp.sdpa_causal(q, q, q), gp.conv2d(image, weight, padding=1), gp.conv2d(image, weight, act="silu")
    gp.conv_transpose1d(image[:, :, 0], weight[..., 0])
    return {
        "half": gp.matmul_plan(x, x).backend,
        "int8": gp.matmul_plan(i, i, dtype="int32").backend,
        "tf32": gp.matmul_plan(f, f, tf32=True).backend,
        "fp8": gp.ops.matmul_fp8_plan(e, e).backend,
        "conv": gp.conv_plan(image, weight, padding=1).backend,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile in environments as people have them.")
    parser.add_argument("folder", type=Path, help="keeps toolkits and kernels")
    parser.add_argument("environments", nargs="*", metavar="ENVIRONMENT", help=f"some of {', '.join(ENVIRONMENTS)}")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if unknown := [name for name in arguments.environments if name not in ENVIRONMENTS]:
        parser.error(f"there is no environment {', '.join(unknown)}")
    if arguments.here:
        check(folder, *arguments.environments)
        return 0
    failed = []
    for name in arguments.environments or ENVIRONMENTS:
        begin = time.monotonic()
        for wheels in ENVIRONMENTS[name].wheels:
            installed(folder, wheels)
        command = [sys.executable, __file__, str(folder), name, "--here"]
        if subprocess.run(command, env=variables(folder, ENVIRONMENTS[name]), check=False).returncode:
            failed.append(name)
        print(f"  {time.monotonic() - begin:.0f} s", flush=True)
    print(f"failed: {', '.join(failed)}" if failed else "every environment computes everything")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
