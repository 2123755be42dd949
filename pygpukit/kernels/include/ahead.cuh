// ahead.cuh: copies to shared memory that no register waits for, in stages.
#pragma once

namespace pk {

// N elements, 4, 8 or 16 bytes, of which those from `count` on become 0 and are not read.
template <int N, class T>
__device__ __forceinline__ void copy_ahead(T *to, const T *from, int count) {
  const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(to));
  constexpr int kBytes = N * sizeof(T);
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(target), "l"(from),
                 "r"(count * static_cast<int>(sizeof(T))));
  else if constexpr (kBytes >= 4)
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(target), "l"(from), "n"(kBytes),
                 "r"(count * static_cast<int>(sizeof(T))));
  else
    *to = count ? *from : T{};
}
// N elements, 4, 8 or 16 bytes.
template <int N, class T>
__device__ __forceinline__ void copy_ahead(T *to, const T *from) {
  const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (N * sizeof(T) == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(target), "l"(from));
  else
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2;" ::"r"(target), "l"(from), "n"(N * sizeof(T)));
}
__device__ __forceinline__ void end_stage() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until all stages have arrived but the last `Later`.
template <int Later>
__device__ __forceinline__ void wait_for_stage() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Later) : "memory");
}

}  // namespace pk
