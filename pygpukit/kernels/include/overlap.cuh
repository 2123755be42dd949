// overlap.cuh: a launch that begins while the one before it ends (programmatic dependent launch, from SM 9.0 on).
//
// Only a launch that asks for it (builtin.launch_overlapping) is begun early. It must wait before it reads what the
// launch before it wrote, and before it writes anything. Elsewhere both functions do nothing.
#pragma once

namespace pk {

// From here on the next launch may begin, once all blocks have come here.
__device__ __forceinline__ void let_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// What the launch before this one wrote can be read from here on.
__device__ __forceinline__ void await_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace pk
