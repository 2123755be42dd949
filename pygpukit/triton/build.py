"""Build: Triton's compiler, run ahead of the launch: a function and its specialisation to a cubin; needs no device."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from pygpukit.core.errors import GPUError
from pygpukit.triton.available import get_triton, triton_version
from pygpukit.triton.specialise import Specialisation

_COOPERATIVE, _CLUSTER, _OVERLAP = 1, 2, 4  # driver.h: PK_LAUNCH_*
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)", re.S)


@dataclass(frozen=True)
class Build:
    """A compiled kernel. symbol: its name in the cubin. warps: of a block. shared_bytes: dynamic shared memory.
    cluster: blocks of a cluster, which each block of the grid becomes. scratch: pointers that follow the parameters and
    are null. flags: PK_LAUNCH_*."""

    cubin: bytes
    ptx: str
    symbol: str
    warps: int
    shared_bytes: int
    cluster: int
    scratch: int
    flags: int


def build(function: Any, specialisation: Specialisation, sm: int) -> Build:
    """Compile a function of Triton for an architecture: sm=90 for SM 9.0. Triton keeps what it compiled on disk.

    Raises Triton's own CompilationError, and GPUError for a kernel that needs what is not here: tensor descriptors made
    on the host, scratch memory.
    """
    triton = get_triton()
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    attributes = {(at,): [["tt.divisibility", 16]] for at in specialisation.aligned}
    constants = {(at,): value for at, value in specialisation.constants}
    source = ASTSource(function, dict(specialisation.types), constants, attributes)
    options = dict(specialisation.options)
    if "TRITON_DEFAULT_FP_FUSION" not in os.environ:
        options.setdefault("enable_fp_fusion", True)  # its default so far, said so that it does not ask
    compiled = triton.compile(source, target=GPUTarget("cuda", sm, 32), options=options)
    data, ptx = compiled.metadata, compiled.asm["ptx"]
    entry = _ENTRY.search(ptx)
    if entry is None:
        raise GPUError(f"{function.__name__}: Triton {triton_version()} gave PTX without a kernel")
    wants = [
        name
        for name in ("global_scratch_size", "profile_scratch_size", "tmem_size_host", "tensordesc_meta")
        if getattr(data, name, 0)
    ]
    if wants:
        raise GPUError(
            f"{function.__name__} needs {' and '.join(wants)} of the launch, which is not there: make tensor "
            "descriptors from pointers of memory that you pass, or use plain loads and stores"
        )
    clusters = int(getattr(data, "num_ctas", 1))
    flags = _CLUSTER if clusters > 1 else 0
    flags |= _COOPERATIVE if getattr(data, "launch_cooperative_grid", False) else 0
    flags |= _OVERLAP if getattr(data, "launch_pdl", False) else 0
    count = entry[2].count(".param")
    return Build(
        bytes(compiled.asm["cubin"]),
        ptx,
        str(data.name),
        int(data.num_warps),
        int(data.shared),
        clusters,
        count - len(specialisation.passed),
        flags,
    )
