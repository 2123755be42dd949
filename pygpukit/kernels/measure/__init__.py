"""Kernels that measure the device: copies, reads and arithmetic without end, and a pause."""

from __future__ import annotations

from pygpukit.kernels.spec import KernelSpec

COPY_WORDS, FMA_CHAINS, READ_WORDS, PAUSE = (
    KernelSpec(__file__, "measure.cu", f"pk::{name}") for name in ("copy_words", "fma_chains", "read_words", "pause")
)
