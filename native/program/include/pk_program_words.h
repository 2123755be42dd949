// pk_program_words.h: the words of CUDA C++ in a program's host text, and where a call stands in it.
#pragma once
#include <cstddef>

#define __global__
#define __host__
#define __device__
#define __constant__
#define __managed__
#define __shared__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
// Not as attributes: the C++ library writes __attribute__((__noinline__)).
#define __noinline__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __device_builtin__
#define __builtin_align__(n) __align__(n)
#define __cudart_builtin__
#define CUDARTAPI
#define CUDAAPI
#define CUDART_CB
#define CUDA_CB
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
#define __CUDART_API_VERSION CUDART_VERSION

// What the simulator's headers of types ask for.
#define PK_SIM_INLINE static inline

// Where a call stands in the program.
struct pk_place {
  const char *file;
  int line;
  int thread_streams;  // stream 0 is the thread's own
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  pk_place(const char *in = __builtin_FILE(), int at = __builtin_LINE()) : file(in), line(at), thread_streams(1) {}
#else
  pk_place(const char *in = __builtin_FILE(), int at = __builtin_LINE()) : file(in), line(at), thread_streams(0) {}
#endif
};
