// pk_cuda_sim.h: CUDA C++ device code as host C++, force-included before a kernel source. Includes no system header, so
// that a cell compiles in tens of milliseconds and sees the names that NVRTC would give it, and few others.
#ifndef PK_CUDA_SIM_H
#define PK_CUDA_SIM_H
#pragma GCC system_header

#include "pk_sim_abi.h"
#ifdef PK_SIM_CHECK
#include "pk_sim_check_abi.h"
#endif

#include "pk_sim_std.h"

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define __CUDACC_VER_BUILD__ 0
#define CUDART_VERSION 12080
#define __CUDA_ARCH_LIST__ 900
#define CUDARTAPI
#define __CUDA_ARCH__ 900
#define PYGPUKIT_SIM 1

#ifndef PK_SIM_CHECK
#define __global__
#define PK_SIM_UNCHECKED
#else
// A thread's indices are constants to its kernel. The entry that sets them must not see that.
#ifdef __clang__
#define __global__ __attribute__((noinline))
#else
#define __global__ __attribute__((__noipa__))
#endif
// The simulator's own code: its accesses are no business of the checker.
#ifdef __clang__  // for which no_sanitize("thread") leaves atomic operations in
#define PK_SIM_UNCHECKED \
  __attribute__((__disable_sanitizer_instrumentation__, __no_sanitize__("thread", "undefined", "coverage")))
#elif defined(PK_SIM_STEP_LIMIT)
#define PK_SIM_UNCHECKED __attribute__((__no_sanitize__("thread", "undefined"), __no_sanitize_coverage__))
#else
#define PK_SIM_UNCHECKED __attribute__((__no_sanitize__("thread", "undefined")))
#endif
#endif
#define __tile_global__ __global__
#define __tile__
#define __host__
#define __device__
// Kept by "used": a compiler may otherwise treat a static constant that no kernel writes as its initial value for ever.
#define __constant__ __attribute__((__used__))
#define __managed__
// One copy per operating-system thread is one copy per running block: a block never leaves its thread.
#ifndef PK_SIM_CHECK
#define __shared__ thread_local
#else
// Kept by "used": what nobody reads, or nobody writes, is looked at all the same.
#define __shared__ __attribute__((__used__)) thread_local
#endif
#define __forceinline__ inline __attribute__((__always_inline__))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((__aligned__(n)))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __grid_constant__
// What an empty asm statement is for.
#define __pk_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define __restrict__ __restrict

#define PK_SIM_INLINE static inline __attribute__((__always_inline__))
#define PK_SIM_NOINLINE static __attribute__((noinline, __unused__)) PK_SIM_UNCHECKED
// Calls that other threads wait for: those of two branches must stay two calls.
#ifdef __clang__
#define PK_SIM_COLLECTIVE PK_SIM_NOINLINE __attribute__((__convergent__, __nomerge__))
#else
#define PK_SIM_COLLECTIVE PK_SIM_NOINLINE
#endif

// Each header needs those before it.
// clang-format off
#include "pk_sim_vectors.h"
#include "pk_sim_block.h"
#include "pk_sim_warp.h"
#include "pk_sim_atomics.h"
#include "pk_sim_nv_atomics.h"
#include "pk_sim_math.h"
#include "pk_sim_special.h"
#include "pk_sim_intrinsics.h"
#include "pk_sim_simd.h"
#include "pk_sim_rounding.h"
#include "pk_sim_entry.h"
#ifdef PK_SIM_CHECK
#include "pk_sim_check.h"
#endif
// clang-format on

#endif
