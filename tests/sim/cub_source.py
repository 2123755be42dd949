"""Kernels with one of CUB's collectives: 96 threads of three items each."""

from __future__ import annotations

THREADS, ITEMS = 96, 3
KERNEL = """#include <cub/{header}>
#include <cuda/functional>
typedef {collective} Collective;
__global__ void k(const {type} *in, {type} *out, int n) {{
  __shared__ typename Collective::TempStorage room{rooms};
  const int t = threadIdx.x;
  {type} x = in[t], all = {{}}, many[3] = {{in[3 * t], in[3 * t + 1], in[3 * t + 2]}}, to[3];
  {code}
}}"""
EACH = "for (int i = 0; i < 3; ++i) out[3 * t + i] = to[i];"


def source(header: str, collective: str, code: str, kind: str = "int") -> str:
    rooms = "[12]" if "room[t" in code else ""
    return KERNEL.format(header=header, collective=collective, code=code, type=kind, rooms=rooms)
