// pk_sim_entry.h: the table that makes a compiled source loadable. The device finds it through pk_sim_image_v1.
#pragma once
#pragma GCC system_header

#include "pk_sim_types.h"

template <int... I>
struct pk_sim_indices {};
#ifdef __clang__
template <class, int... I>
struct pk_sim_sequence {
  typedef pk_sim_indices<I...> type;
};
template <int N>
using pk_sim_make_indices = typename __make_integer_seq<pk_sim_sequence, int, N>::type;
#else
template <int N>
using pk_sim_make_indices = pk_sim_indices<__integer_pack(N)...>;
#endif

#ifdef PK_SIM_CHECK
#define PK_SIM_BEGIN_THREAD(thread) pk_sim_checker.begin_thread(thread)
#define PK_SIM_BEGIN_BLOCK(block) pk_sim_checker.begin_block(block)
#else
#define PK_SIM_BEGIN_THREAD(thread)
#define PK_SIM_BEGIN_BLOCK(block)
#endif

// Linear index of the current row's first thread.
PK_SIM_INLINE unsigned pk_sim_row_begin() {
  return (pk_sim_row_z * PK_SIM_OWN(blockDim).y + pk_sim_row_y) * PK_SIM_OWN(blockDim).x;
}
PK_SIM_INLINE bool pk_sim_row_has_more() { return pk_sim_started - pk_sim_row_begin() < PK_SIM_OWN(blockDim).x; }

// Starts threads of the current row of the current block, one after the other. A thread that blocks leaves this loop
// standing on its stack; the block then goes on in the same loop elsewhere, so whoever has been suspended looks up the
// place anew. In a kernel that never blocks this is an ordinary loop over x.
#define PK_SIM_FOR_EACH_THREAD_OF_ROW(...)                                             \
  volatile unsigned *pk_sim_now = &pk_sim_thread;                                      \
  asm("" : "+r"(pk_sim_now));                                                          \
  while (pk_sim_row_has_more()) {                                                      \
    const unsigned pk_sim_begin = pk_sim_row_begin();                                  \
    PK_SIM_OWN(threadIdx).x = pk_sim_started - pk_sim_begin;                           \
    PK_SIM_OWN(threadIdx).y = pk_sim_row_y;                                            \
    PK_SIM_OWN(threadIdx).z = pk_sim_row_z;                                            \
    do {                                                                               \
      *pk_sim_now = pk_sim_begin + PK_SIM_OWN(threadIdx).x;                            \
      PK_SIM_BEGIN_THREAD(*pk_sim_now);                                                \
      __VA_ARGS__;                                                                     \
    } while (!pk_sim_suspended && ++PK_SIM_OWN(threadIdx).x < PK_SIM_OWN(blockDim).x); \
    pk_sim_count_started();                                                            \
  }

// Goes to the next row of the block, whose threads have all been started; false, and no change, in the last one.
PK_SIM_INLINE bool pk_sim_next_row() {
  if (pk_sim_row_y + 1 < PK_SIM_OWN(blockDim).y) {
    ++pk_sim_row_y;
  } else if (pk_sim_row_z + 1 < PK_SIM_OWN(blockDim).z) {
    pk_sim_row_y = 0;
    ++pk_sim_row_z;
  } else {
    return false;
  }
  return true;
}

// Points the namespace-scope `extern __shared__` names at this core's dynamic shared memory; written by simulator.py.
static void pk_sim_bind_dynamic();

// A kernel's parameters side by side, as a launch has them. Those whose address is theirs (__grid_constant__) are
// references to these; others are copies, and nothing is put side by side for them alone.
template <class... A>
struct pk_sim_parameters {
  static constexpr unsigned pk_sim_bytes[sizeof...(A) + 1] = {(unsigned)sizeof(typename pk_sim_parameter<A>::held)...,
                                                              0};
  static constexpr unsigned pk_sim_align[sizeof...(A) + 1] = {(unsigned)alignof(typename pk_sim_parameter<A>::held)...,
                                                              0};
  static constexpr bool beside = (__is_same(A, typename pk_sim_parameter<A>::held &&) || ...);
  static constexpr unsigned at(int index) {
    unsigned offset = 0;
    for (int i = 0; i <= index; ++i) {
      const unsigned to = pk_sim_align[i] ? pk_sim_align[i] : 1;
      offset = (offset + to - 1) / to * to + (i < index ? pk_sim_bytes[i] : 0);
    }
    return offset;
  }
};

template <auto Kernel>
struct pk_sim_entry;
template <class... A, void (*Kernel)(A...)>
struct pk_sim_entry<Kernel> {
  PK_SIM_UNCHECKED PK_SIM_INLINE void loop(A... arguments) {
    PK_SIM_FOR_EACH_THREAD_OF_ROW(Kernel((typename pk_sim_parameter<A>::given)arguments...))
  }
  template <int... I>
  PK_SIM_UNCHECKED PK_SIM_INLINE void unpack(void *const *arguments, pk_sim_indices<I...>) {
    if constexpr (!pk_sim_parameters<A...>::beside) {
      loop(pk_sim_parameter<A>::in(arguments[I])...);
    } else {
      alignas(64) char all[pk_sim_parameters<A...>::at(sizeof...(A))];
      (__builtin_memcpy(all + pk_sim_parameters<A...>::at(I), arguments[I], pk_sim_parameters<A...>::pk_sim_bytes[I]),
       ...);
      loop(pk_sim_parameter<A>::in(all + pk_sim_parameters<A...>::at(I))...);
    }
  }
  PK_SIM_NOINLINE void row(void *const *arguments) { unpack(arguments, pk_sim_make_indices<(int)sizeof...(A)>{}); }
  PK_SIM_UNCHECKED static void pk_sim_resume(void *const *arguments) {
    do row(arguments);
    while (pk_sim_next_row());
  }
  PK_SIM_UNCHECKED static pk_sim_u64 pk_sim_run(void *const *arguments, const pk_sim_grid *grid, pk_sim_u64 first,
                                                pk_sim_u64 last) {
    PK_SIM_OWN(blockDim) = uint3{grid->block.x, grid->block.y, grid->block.z};
    PK_SIM_OWN(gridDim) = uint3{grid->grid.x, grid->grid.y, grid->grid.z};
    pk_sim_core = grid->core;
    pk_sim_dynamic_base = grid->dynamic_shared;
    pk_sim_dynamic_bytes = grid->dynamic_shared_bytes;
    pk_sim_cooperative = grid->cooperative;
    pk_sim_cluster = dim3(grid->cluster.x, grid->cluster.y, grid->cluster.z);
    pk_sim_bind_dynamic();
    const pk_sim_u64 row = first / grid->grid.x;
    uint3 block = {(unsigned)(first % grid->grid.x), (unsigned)(row % grid->grid.y), (unsigned)(row / grid->grid.y)};
    while (first < last) {
      PK_SIM_OWN(blockIdx) = block;
      pk_sim_block = first;
      pk_sim_row_y = pk_sim_row_z = 0;
      pk_sim_started = 0;
      ++pk_sim_blocks_begun;
      pk_sim_suspended = false;
      PK_SIM_BEGIN_BLOCK(first);
      pk_sim_resume(arguments);
      ++first;
      if (pk_sim_suspended) break;
      if (++block.x == grid->grid.x) {
        block.x = 0;
        if (++block.y == grid->grid.y) {
          block.y = 0;
          ++block.z;
        }
      }
    }
    return first;
  }
  typedef pk_sim_parameters<A...> pk_sim_laid;
  template <unsigned long N>
  static constexpr pk_sim_told<sizeof...(A), N> pk_sim_tell(const char (&name)[N]) {
    pk_sim_told<sizeof...(A), N> told = {'\1', {}, {pk_sim_type_name<A>::value..., {}}};
    for (unsigned long i = 0; i < N; ++i) told.name[i] = name[i];
    return told;
  }
};

PK_SIM_NOINLINE void pk_sim_bind(const pk_sim_api *device) { pk_sim_device = device; }
// The device knows this variable by its name, and so where the others lie.
static thread_local unsigned pk_sim_anchor;
PK_SIM_NOINLINE void *pk_sim_anchor_of_thread() { return &pk_sim_anchor; }
PK_SIM_NOINLINE void pk_sim_position_of(pk_sim_position *out) {
  out->block = pk_sim_block;
  out->thread = pk_sim_thread;
}

#define PK_SIM_CLUSTER(x, y, z) \
  { x, y, z }
#define PK_SIM_KERNEL(index, text, max_threads, cluster, ...)                                         \
  typedef pk_sim_entry<&::__VA_ARGS__> pk_sim_entry_##index;                                          \
  __attribute__((__used__, __section__("pk_sim_types"))) static constexpr auto pk_sim_types_##index = \
      pk_sim_entry_##index::pk_sim_tell(text);                                                        \
  static const pk_sim_kernel pk_sim_kernel_##index = {                                                \
      text,                                                                                           \
      (void (*)())(&::__VA_ARGS__),                                                                   \
      pk_sim_entry_##index::pk_sim_run,                                                               \
      pk_sim_entry_##index::pk_sim_resume,                                                            \
      sizeof pk_sim_entry_##index::pk_sim_laid::pk_sim_bytes / sizeof(unsigned) - 1,                  \
      max_threads,                                                                                    \
      pk_sim_entry_##index::pk_sim_laid::pk_sim_bytes,                                                \
      pk_sim_entry_##index::pk_sim_laid::pk_sim_align,                                                \
      PK_SIM_CLUSTER cluster};

#define PK_SIM_IMAGE(count, ...)                                                                            \
  static const pk_sim_kernel *const pk_sim_kernels[count + 1] = {__VA_ARGS__};                              \
  extern "C" __attribute__((__visibility__("default"), __used__)) const pk_sim_image pk_sim_image_v1 = {    \
      PK_SIM_ABI,        sizeof(pk_sim_image), count, pk_sim_kernels, pk_sim_bind, pk_sim_anchor_of_thread, \
      pk_sim_position_of};
