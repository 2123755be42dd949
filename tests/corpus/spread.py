"""Cases of the suite whose blocks are spread over waves: long launches of many blocks, which a gate can cut.

Each block of the case is followed by blocks that only take time, until the wave is full. The kernel's own text is kept:
it asks functions for its place and its grid, which tell it those of the case. With a launch go so many bytes of shared
memory that a multiprocessor has room for one block, so that waves are small.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import pygpukit as gp
from corpus.case import Case, Values
from pygpukit.jit.launch.kernel import JITKernel

PLACES = """
__device__ __forceinline__ uint3 spread_block() {
  const unsigned n = blockIdx.x / SPREAD_WAVE;
  return make_uint3(n % SPREAD_X, n / SPREAD_X % SPREAD_Y, n / (SPREAD_X * SPREAD_Y));
}
__device__ __forceinline__ dim3 spread_grid() { return dim3(SPREAD_X, SPREAD_Y, SPREAD_Z); }
__device__ __forceinline__ bool spread_only_takes_time() {
  if (blockIdx.x % SPREAD_WAVE == 0) return blockIdx.x / SPREAD_WAVE >= SPREAD_X * SPREAD_Y * SPREAD_Z;
  if (threadIdx.x + threadIdx.y + threadIdx.z == 0) {
    const long long from = clock64();
    while (clock64() - from < SPREAD_CLOCKS) {}
  }
  return true;
}
"""


def spread_source(case: Case) -> str:
    """The case's source, for the macros SPREAD_WAVE, SPREAD_X, SPREAD_Y, SPREAD_Z and SPREAD_CLOCKS."""
    text = re.sub(r"\bblockIdx\b", "spread_block()", re.sub(r"\bgridDim\b", "spread_grid()", case.source))
    return PLACES + re.sub(r"(__global__[^{;]*\{)", r"\1 if (spread_only_takes_time()) return;", text)


class Spread:
    """A case so spread. case_blocks: of its own grid; waves: of the launch, one for each of these, and at least two."""

    def __init__(self, case: Case) -> None:
        self.case = case
        x, y, z = (*(case.grid if isinstance(case.grid, tuple) else (case.grid,)), 1, 1)[:3]
        device = gp.get_device_info()
        wave = device.multiprocessor_count
        shared_bytes = device.max_shared_memory_per_block // 2 + 4096  # more than half of a multiprocessor's
        self.case_blocks = x * y * z
        self.waves = max(self.case_blocks, 2)
        clocks = 20_000 if gp.backend() == "sim" else 400_000  # 20 us of the simulator, 200 us of a device
        numbers = {"WAVE": f"{wave}u", "X": f"{x}u", "Y": f"{y}u", "Z": f"{z}u", "CLOCKS": clocks}
        defines = {**case.defines, **{f"SPREAD_{name}": number for name, number in numbers.items()}}
        self.kernel: JITKernel = gp.jit(
            spread_source(case), func=case.kernel, options=case.options, defines=defines, name=case.file
        )
        self._launch = self.kernel.launcher(
            self.waves * wave, case.block, shared_bytes=case.shared_bytes + shared_bytes
        )

    def launch(self, taken: Values) -> None:
        self._launch(*taken.values())

    def found(self, kept: Values) -> dict[str, np.ndarray[Any, Any]]:
        """Every array, in the case's one order."""
        return self.case.normalised({name: array.to_numpy() for name, array in kept.items()})
