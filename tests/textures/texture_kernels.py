"""Kernels that call each function on textures and surfaces once a thread, for a type of element."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import pygpukit as gp
from pygpukit.jit import JITKernel, jit

TYPES = {
    "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int", "uint32": "uint",
    "float32": "float",
}  # fmt: skip

_HEAD = """
template <class T> __device__ void put(T value, void *out, int i) { ((T *)out)[i] = value; }
extern "C" __global__ void %(name)s(cudaTextureObject_t t, const float *a, void *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float *p = a + 8 * i;
    typedef %(type)s T;
    %(body)s
}
"""


def spelled(dtype: str, channels: int) -> str:
    """float4, char2, or for one channel the vector type of one."""
    return f"{TYPES[dtype]}{channels}"


def kernel(call: str, type: str) -> JITKernel:
    """A kernel that puts a call's result, of the places p[0], p[1]..., or all that its body puts."""
    body = call if ";" in call else f"put(({call}), out, i);"
    return jit(_HEAD % {"name": "fetch", "type": type, "body": body}, "fetch")


def fetch(
    texture: object, call: str, places: NDArray[np.float32], dtype: str = "float32", channels: int = 1
) -> NDArray[np.generic]:
    """What the call gives at places, rows of up to eight numbers. The result is poisoned first."""
    rows = np.zeros((len(places), 8), np.float32)
    rows[:, : places.shape[1]] = places
    out = gp.from_numpy(np.full((len(places), channels), 77).astype(dtype))
    kernel(call, spelled(dtype, channels))[-(-len(places) // 64), 64](texture, gp.from_numpy(rows), out, len(places))
    return out.to_numpy()
