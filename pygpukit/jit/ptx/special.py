"""Special registers as expressions."""

from __future__ import annotations

from pygpukit.jit.ptx.fault import PtxFault

_DIMENSIONS = {
    "%tid": "threadIdx", "%ntid": "blockDim", "%ctaid": "blockIdx", "%nctaid": "gridDim",
    "%clusterid": "__clusterIdx()", "%nclusterid": "__clusterGridDimInClusters()",
    "%cluster_ctaid": "__clusterRelativeBlockIdx()", "%cluster_nctaid": "__clusterDim()",
}  # fmt: skip
_OTHERS = {
    "%laneid": ("pk_ptx_lane()", "u32"),
    "%warpid": ("(pk_ptx_thread() / 32u)", "u32"),
    "%nwarpid": ("((blockDim.x * blockDim.y * blockDim.z + 31u) / 32u)", "u32"),
    "%smid": ("pk_sim_smid()", "u32"),
    "%cluster_ctarank": ("__clusterRelativeBlockRank()", "u32"),
    "%cluster_nctarank": ("__clusterSizeInBlocks()", "u32"),
    "%is_explicit_cluster": ("(__clusterSizeInBlocks() > 1u)", "pred"),
    "%lanemask_eq": ("(1u << pk_ptx_lane())", "u32"),
    "%lanemask_lt": ("((1u << pk_ptx_lane()) - 1u)", "u32"),
    "%lanemask_le": ("((2u << pk_ptx_lane()) - 1u)", "u32"),
    "%lanemask_gt": ("~((2u << pk_ptx_lane()) - 1u)", "u32"),
    "%lanemask_ge": ("~((1u << pk_ptx_lane()) - 1u)", "u32"),
    "%clock": ("((unsigned)clock64())", "u32"),
    "%clock_hi": ("((unsigned)((unsigned long long)clock64() >> 32))", "u32"),
    "%clock64": ("((unsigned long long)clock64())", "u64"),
    "%globaltimer": ("__globaltimer()", "u64"),
    "%globaltimer_lo": ("((unsigned)__globaltimer())", "u32"),
    "%globaltimer_hi": ("((unsigned)(__globaltimer() >> 32))", "u32"),
    "%dynamic_smem_size": ("pk_sim_dynamic_bytes", "u32"),
    "WARP_SZ": ("32u", "u32"),
}


def special(name: str, at: int) -> tuple[str, str]:
    """(expression, type) of a special register. Raises PtxFault for any other name."""
    if name in _OTHERS:
        return _OTHERS[name]
    register, _, axis = name.rpartition(".")
    if register in _DIMENSIONS and axis in ("x", "y", "z"):
        return f"{_DIMENSIONS[register]}.{axis}", "u32"
    if name.startswith("%") and name[1:2].isalpha():
        raise PtxFault(f"{name} is no register of this statement, and no special register of the simulated device", at)
    raise PtxFault(f"{name} is declared nowhere in the asm statement", at)
