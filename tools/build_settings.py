"""Settings that the older project's build knows: what each does in this one, told before anything is built."""

from __future__ import annotations

from collections.abc import Mapping

_WITHOUT_EFFECT = {
    "CMAKE_CUDA_ARCHITECTURES": "no kernel is compiled by the build; NVRTC compiles each for the device it runs on",
    "PYGPUKIT_DISABLE_CUTLASS": "CUTLASS is no part of the build; NVRTC compiles its kernels when they are called",
    "PYGPUKIT_MODULE_SUFFIX": "there is one module for every version of CUDA",
}


def notices(environment: Mapping[str, str]) -> list[str]:
    """A line for each setting that has no effect here. Raises SystemExit for one that cannot be followed."""
    if environment.get("PYGPUKIT_SKIP_NATIVE_BUILD", "0") not in ("", "0"):
        raise SystemExit(
            "pygpukit cannot be built: PYGPUKIT_SKIP_NATIVE_BUILD is set, and without its core there is no device "
            "and no simulation. Unset it; to use a core that was built before, install its wheel."
        )
    return [f"{name} has no effect: {why}" for name, why in _WITHOUT_EFFECT.items() if environment.get(name)]
