"""The package's own kernels: compiled from native/kernels on first use, one instantiation at a time, and launched.

The only place that turns a packaged source into a kernel. catalogue() lists every instantiation that operations can ask
for, so that all of them can be compiled ahead of time on a machine without a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module

from pygpukit._core import native
from pygpukit.core.errors import NvrtcError, NvrtcErrorCode
from pygpukit.jit import bundle
from pygpukit.jit.cache.image import Image
from pygpukit.jit.compile import nvrtc
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.launch import slicing

# (name, "pointer" or "struct", dtype code, bytes), as native.Kernel takes them.
Parameter = tuple[str, str, int, int]
Extent = tuple[int, int, int]

# Modules whose catalogue() yields (source key, name expressions) of every kernel that they launch.
_FAMILIES = (
    "pygpukit.ops.pointwise",
    "pygpukit.jit.measure.limits",
    "pygpukit.ops.matmul.gemm",
    "pygpukit.ops.nn.norm",
    "pygpukit.ops.nn.softmax",
    "pygpukit.ops.reducer",
    "pygpukit.ops.nn.attention",
    "pygpukit.ops.nn.bias",
    "pygpukit.ops.nn.conv",
    "pygpukit.ops.nn.embedding",
    "pygpukit.ops.nn.lstm",
    "pygpukit.ops.nn.rope",
    "pygpukit.ops.sampling",
    "pygpukit.random.fill",
    "pygpukit.ops.indexing",
    "pygpukit.ops.padding",
    "pygpukit.ops.transposing",
    "pygpukit.ops.scan",
    "pygpukit.ops.finding",
    "pygpukit.ops.sorting",
    "pygpukit.ops.selecting",
)

# Sources whose kernels give the same bits for every layout of their input: what a compiler contracts to a fused
# multiply-add differs between the forms of a kernel.
_OPTIONS = {f"kernels/{name}.cu": ("--fmad=false",) for name in ("norm", "reduce", "softmax")}

_ANY_TYPE = -1
_OVERLAP = 4  # driver.h: PK_LAUNCH_PDL
_kernels: dict[tuple[int, str], native.Kernel] = {}  # by device and name expression


def kernel(source_key: str, name_expression: str, params: Sequence[Parameter]) -> native.Kernel:
    """The kernel of a packaged source ("kernels/elementwise.cu") for the current device, compiled if needed.

    name_expression: the instantiation, "pk::unary_dense<float, float, pk::Negate>". Without NVRTC it comes from the
    bundle of pre-compiled kernels (jit/bundle.py). Raises as compile_source().
    """
    key = (native.current_device(), name_expression)
    found = _kernels.get(key)
    if found is None:
        image = _image(source_key, name_expression)
        symbol, name = image.symbol(name_expression), name_expression.replace("pk::", "")
        function = native.Module(image.image).function(symbol)
        found = _kernels[key] = native.Kernel(function, name, params)
        slicing.remember_image(function, name, image, symbol)
    return found


def _image(source_key: str, name_expression: str) -> Image:
    try:
        options = _OPTIONS.get(source_key, ())
        return compile_source(source(source_key), name=source_key, options=options, name_expressions=(name_expression,))
    except NvrtcError as error:
        if error.code != NvrtcErrorCode.NotLoaded or native.backend_name() != "cuda":
            raise
        why = f"nor was this kernel found pre-compiled in {bundle.file()}"
        try:
            bundled = bundle.find(nvrtc.device_arch(native.current_device()), catalogue(), name_expression)
        except (OSError, ValueError) as damage:
            bundled, why = None, str(damage)
        if bundled is None:
            raise NvrtcError(f"{error.args[0]}; {why}", NvrtcErrorCode.NotLoaded) from None
        return bundled


def launch(
    source_key: str,
    name_expression: str,
    grid: Extent,
    block: Extent,
    *args: native.ArrayBase | bytes,
    overlapping: bool = False,
) -> native.Kernel:
    """Launch a kernel of the package on the current stream: arrays become pointers, bytes by-value parameters.

    overlapping: begun while the launch before it on the stream ends, where the device can; the kernel waits itself for
    what it needs of that launch (overlap.cuh).
    """
    device = native.current_device()
    found = _kernels.get((device, name_expression))
    if found is None:
        found = kernel(source_key, name_expression, [parameter(i, arg) for i, arg in enumerate(args)])
    if overlapping and _overlaps(device):
        found.bind(grid, block, flags=_OVERLAP)(*args)
    else:
        found.bind(grid, block)(*args)
    return found


@cache
def _overlaps(device: int) -> bool:
    return native.backend_name() == "cuda" and int(native.device_info(device)["compute_major"]) >= 9


def source(source_key: str) -> str:
    """The text of a packaged source."""
    return native.sources()[source_key]


def catalogue() -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Every built-in kernel: (source key, name expressions, compiler options), in groups to compile together."""
    for name in _FAMILIES:
        for source_key, expressions in import_module(name).catalogue():
            yield source_key, expressions, _OPTIONS.get(source_key, ())


def parameter(position: int, arg: native.ArrayBase | bytes) -> Parameter:
    """How a kernel of the package takes an argument: arrays as pointers, bytes by value."""
    if isinstance(arg, bytes):
        return f"value{position}", "struct", 0, len(arg)
    return f"array{position}", "pointer", _ANY_TYPE, 8
