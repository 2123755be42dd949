// pk_sim_cub.h: what CUB's collectives share: room in shared memory, function objects, the order of sums in a warp.
#pragma once
#pragma GCC system_header

#include "cooperative_groups.h"
#include "pk_sim_cuda_functions.h"

namespace cub {

using cooperative_groups::pk_sim_block_rank;
struct NullType {};

#define PK_SIM_FUNCTION(name, ...)                            \
  struct name {                                               \
    template <class A, class B>                               \
    constexpr auto operator()(const A &a, const B &b) const { \
      return __VA_ARGS__;                                     \
    }                                                         \
  };
PK_SIM_FUNCTION(Sum, a + b)
PK_SIM_FUNCTION(Max, a < b ? b : a)
PK_SIM_FUNCTION(Min, b < a ? b : a)
#undef PK_SIM_FUNCTION

// Elements in shared memory, where nothing is constructed.
template <class T, int Count>
struct pk_sim_cub_room {
  alignas(T) char bytes[Count * sizeof(T)];
  T &operator[](int i) { return reinterpret_cast<T *>(bytes)[i]; }
};

// A warp's reduction: neighbours first, then pairs of them. The first value becomes the result.
template <class T, class Op>
PK_SIM_INLINE void pk_sim_cub_reduce(T *values, int count, Op &op) {
  for (int apart = 1; apart < count; apart *= 2)
    for (int i = 0; i + apart < count; i += 2 * apart) values[i] = op(values[i], values[i + apart]);
}

// A warp's running results, each value with what stands 1, 2, 4 and so on before it.
template <class T, class Op>
PK_SIM_INLINE void pk_sim_cub_scan(T *values, int count, Op &op) {
  for (int apart = 1; apart < count; apart *= 2)
    for (int i = count - 1; i >= apart; --i) values[i] = op(values[i - apart], values[i]);
}

// ---- a thread's own items
template <int Items, class T, class Op>
PK_SIM_INLINE T ThreadReduce(const T (&items)[Items], Op op) {
  T all = items[0];
  for (int i = 1; i < Items; ++i) all = op(all, items[i]);
  return all;
}
template <int Items, class T, class Op>
PK_SIM_INLINE void pk_sim_cub_items_inclusive(const T (&in)[Items], T (&out)[Items], Op &op, const T &before,
                                              bool any) {
  T all = any ? op(before, in[0]) : in[0];
  out[0] = all;
  for (int i = 1; i < Items; ++i) out[i] = all = op(all, in[i]);
}
template <int Items, class T, class Op>
PK_SIM_INLINE void pk_sim_cub_items_exclusive(const T (&in)[Items], T (&out)[Items], Op &op, const T &before,
                                              bool any) {
  T all = any ? op(before, in[0]) : in[0];
  out[0] = before;
  for (int i = 1; i < Items; ++i) {
    const T next = op(all, in[i]);
    out[i] = all;
    all = next;
  }
}

}  // namespace cub
