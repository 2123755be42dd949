"""Operations on arrays. Every name is fetched on first use: most programs use few of the families."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pygpukit import _HOMES
from pygpukit.ops.matmul.gemm import (
    matmul as matmul,  # also the sub-package's name; the function is what `ops.matmul` means
)

# Module: the names that are here and not in pygpukit itself, whose own operations are here, too.
_LOW_LEVEL = {
    "pygpukit.ops.copying": "copy_to",
    "pygpukit.ops.elementwise": "add_inplace mul_inplace",
    "pygpukit.ops.nn.attention": "sdpa_causal_fixed_cache sdpa_causal_fixed_cache_ptr",
    "pygpukit.ops.nn.embedding": "embedding_lookup embedding_lookup_batch embedding_lookup_ptr",
    "pygpukit.ops.nn.rope": "rope_inplace_f32table",
    "pygpukit.ops.nn.sampling": (
        "sample_greedy sample_multinomial sample_token_gpu sample_topk sample_topk_to_buf_ptr sample_topp"
    ),
    "pygpukit.ops.tensor": (
        "cast_bf16_to_f32 cast_f16_to_f32 cast_f32_to_bf16 cast_f32_to_f16 concat_axis0 repeat_interleave_axis1 "
        "reshape_copy transpose_3d_021 transpose_4d_0213"
    ),
}
_HOME_OF = {
    name: module
    for homes in (_HOMES, _LOW_LEVEL)
    for module, names in homes.items()
    for name in names.split()
    if module.startswith("pygpukit.ops.")
}

__all__ = [*_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'pygpukit.ops' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
