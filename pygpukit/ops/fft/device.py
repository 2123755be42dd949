"""Transforms on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.core.errors import BackendUnavailableError

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


def transform(name: str, a: GPUArray, n: int, axis: int, factor: float, out: GPUArray) -> None:
    """Raises BackendUnavailableError: the kernels are not written yet."""
    raise BackendUnavailableError(
        f"{name}: transforms have no CUDA kernels yet; compute on the host with np.fft on .to_numpy()"
    )
