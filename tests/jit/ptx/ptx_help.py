"""asm statements run on the simulated device over arrays of operands, and given to NVRTC, which knows what PTX is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import pygpukit as gp
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.toolchain import nvrtc_candidates

TYPES = {"h": "unsigned short", "r": "unsigned", "l": "unsigned long long", "f": "float", "d": "double"}
DTYPES = {"h": "uint16", "r": "uint32", "l": "uint64", "f": "float32", "d": "float64"}


def run(
    letters: str,
    texts: Sequence[str],
    *values: np.ndarray,
    arch: str = "sm_90a",
    head: str = "",
    check: bool = False,
    threads: int = 128,
) -> list[np.ndarray]:
    """Each text as one asm statement for every element. letters: constraints of results and values, as in "f:ff"; %0
    is the first result. One array a text, of shape (results, elements) where there are several results.

    The kernel is compiled by NVRTC, too, where that is installed, so that only what a device takes is tested. arch: ""
    for what its assembler does not take.
    """
    results, _, inputs = letters.partition(":")
    assert len(inputs) == len(values)
    n = values[0].size
    parameters = [f"const {TYPES[one]} *in{index}" for index, one in enumerate(inputs)]
    parameters += [f"{TYPES[one]} *out{index}" for index, one in enumerate(results)]
    body = []
    for row, text in enumerate(texts):
        declared = " ".join(f"{TYPES[one]} to{index} = 0;" for index, one in enumerate(results))
        outputs = ", ".join(f'"+{one}"(to{index})' for index, one in enumerate(results))
        given = ", ".join(f'"{one}"(in{index}[i])' for index, one in enumerate(inputs))
        stores = " ".join(f"out{index}[{row} * n + i] = to{index};" for index in range(len(results)))
        escaped = text.replace("\n", "\\n")
        body.append(f'  {{ {declared} asm volatile("{escaped}" : {outputs} : {given} : "memory"); {stores} }}')
    source = f"""{head}
extern "C" __global__ void k({", ".join(parameters)}, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
{chr(10).join(body)}
}}"""
    if arch and any(Path(path).is_file() for path in nvrtc_candidates()):
        compile_source(source, arch=arch)
    kernel = gp.jit(source, func="k", check=check)
    out = [gp.from_numpy(np.full((len(texts), n), 0xA5, DTYPES[one])) for one in results]
    given_arrays = [gp.from_numpy(np.ascontiguousarray(value)) for value in values]
    kernel[-(-n // threads), threads](*given_arrays, *out, n)
    found = [one.to_numpy() for one in out]
    return [found[0][row] if len(found) == 1 else np.stack([one[row] for one in found]) for row in range(len(texts))]
