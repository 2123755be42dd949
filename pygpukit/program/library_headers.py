"""The headers of Thrust and CUB for programs: which file of `include` stands for which of their names.

They are texts of both sides, as a program's own headers are: pygpukit.program.flat puts them in at their #include.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "include"

_NAMES = {
    "thrust/errors.h": ("system_error", "system/system_error", "system/cuda/error", "error"),
    "thrust/core.h": (
        "version", "execution_policy", "advance", "distance", "system/cuda/execution_policy",
        "system/omp/execution_policy", "iterator/iterator_traits", "detail/config",
    ),
    "thrust/tuple.h": ("tuple", "pair"),
    "thrust/functional.h": ("functional", "zip_function"),
    "thrust/pointers.h": (
        "device_ptr", "device_reference", "device_malloc", "device_free", "memory", "device_delete", "device_new",
    ),
    "thrust/iterators.h": (
        "iterator/counting_iterator", "iterator/constant_iterator", "iterator/discard_iterator",
        "iterator/transform_iterator", "iterator/permutation_iterator", "iterator/reverse_iterator",
        "iterator/zip_iterator",
    ),
    "thrust/copies.h": (
        "adjacent_difference", "copy", "fill", "for_each", "gather", "generate", "replace", "reverse", "scatter",
        "sequence", "swap", "tabulate", "transform", "uninitialized_copy", "uninitialized_fill",
    ),
    "thrust/vectors.h": ("device_vector", "host_vector"),
    "thrust/folds.h": (
        "count", "equal", "extrema", "find", "inner_product", "logical", "mismatch", "reduce", "transform_reduce",
    ),
    "thrust/scans.h": ("partition", "remove", "scan", "transform_scan", "unique"),
    "thrust/sorts.h": ("binary_search", "merge", "set_operations", "sort"),
    "thrust/random.h": (
        "random", "random/linear_congruential_engine", "random/normal_distribution", "random/uniform_int_distribution",
        "random/uniform_real_distribution",
    ),
}  # fmt: skip
_CUB = (
    "cub", "device/device_histogram", "device/device_merge_sort", "device/device_partition", "device/device_radix_sort",
    "device/device_reduce", "device/device_run_length_encode", "device/device_scan", "device/device_select",
    "util_allocator",
)  # fmt: skip


@cache
def names() -> dict[str, Path]:
    """The file of each name that programs include."""
    thrust = {f"thrust/{name}.h": FOLDER / file for file, names in _NAMES.items() for name in names}
    return thrust | {f"cub/{name}.cuh": FOLDER / "cub" / "device.h" for name in _CUB}
