// pk_sim_warp.h: warp collectives. Every one is a call to the device, which computes all lanes when the last one
// arrives.
#pragma once
#pragma GCC system_header

PK_SIM_COLLECTIVE pk_sim_u64 pk_sim_warp(pk_sim_warp_op op, unsigned mask, pk_sim_u64 value, int lane, int width,
                                         const char *file, int line) {
  const unsigned x = PK_SIM_OWN(threadIdx).x, y = PK_SIM_OWN(threadIdx).y, z = PK_SIM_OWN(threadIdx).z;
  pk_sim_count_started();
  const pk_sim_self self = {pk_sim_core, pk_sim_thread, pk_sim_started, file, line};
  const pk_sim_warp_call call = {op, mask, value, lane, width, __builtin_return_address(0)};
  pk_sim_suspended = true;
  const pk_sim_u64 result = pk_sim_device->warp(&self, &call);
  PK_SIM_OWN(threadIdx).x = x, PK_SIM_OWN(threadIdx).y = y, PK_SIM_OWN(threadIdx).z = z;
  pk_sim_thread = self.thread;
  return result;
}

template <class T>
PK_SIM_INLINE pk_sim_u64 pk_sim_bits(T value) {
  static_assert(sizeof(T) <= 8, "warp functions take values of at most 8 bytes");
  pk_sim_u64 bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
PK_SIM_INLINE T pk_sim_shuffle(pk_sim_warp_op op, unsigned mask, T value, int lane, int width, const char *file,
                               int line) {
  const pk_sim_u64 bits = pk_sim_warp(op, mask, pk_sim_bits(value), lane, width, file, line);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

PK_SIM_INLINE void __syncwarp(unsigned mask = 0xffffffffu, PK_SIM_HERE) {
  pk_sim_warp(PK_SIM_SYNCWARP, mask, 0, 0, 32, pk_sim_file, pk_sim_line);
}
template <class T>
PK_SIM_INLINE T __shfl_sync(unsigned mask, T value, int lane, int width = 32, PK_SIM_HERE) {
  return pk_sim_shuffle(PK_SIM_SHFL, mask, value, lane, width, pk_sim_file, pk_sim_line);
}
template <class T>
PK_SIM_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, PK_SIM_HERE) {
  return pk_sim_shuffle(PK_SIM_SHFL_UP, mask, value, (int)delta, width, pk_sim_file, pk_sim_line);
}
template <class T>
PK_SIM_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, PK_SIM_HERE) {
  return pk_sim_shuffle(PK_SIM_SHFL_DOWN, mask, value, (int)delta, width, pk_sim_file, pk_sim_line);
}
template <class T>
PK_SIM_INLINE T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, PK_SIM_HERE) {
  return pk_sim_shuffle(PK_SIM_SHFL_XOR, mask, value, lane_mask, width, pk_sim_file, pk_sim_line);
}

PK_SIM_INLINE unsigned __ballot_sync(unsigned mask, int predicate, PK_SIM_HERE) {
  return (unsigned)pk_sim_warp(PK_SIM_BALLOT, mask, predicate != 0, 0, 32, pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE int __any_sync(unsigned mask, int predicate, PK_SIM_HERE) {
  return (int)pk_sim_warp(PK_SIM_ANY, mask, predicate != 0, 0, 32, pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE int __all_sync(unsigned mask, int predicate, PK_SIM_HERE) {
  return (int)pk_sim_warp(PK_SIM_ALL, mask, predicate != 0, 0, 32, pk_sim_file, pk_sim_line);
}
// Out of line, so that the return address tells one call from another on the same line.
PK_SIM_INLINE unsigned __activemask(PK_SIM_HERE) {
  return (unsigned)pk_sim_warp(PK_SIM_ACTIVEMASK, 0xffffffffu, 0, 0, 32, pk_sim_file, pk_sim_line);
}
template <class T>
PK_SIM_INLINE unsigned __match_any_sync(unsigned mask, T value, PK_SIM_HERE) {
  return (unsigned)pk_sim_warp(PK_SIM_MATCH_ANY, mask, pk_sim_bits(value), 0, 32, pk_sim_file, pk_sim_line);
}
template <class T>
PK_SIM_INLINE unsigned __match_all_sync(unsigned mask, T value, int *predicate, PK_SIM_HERE) {
  const unsigned lanes =
      (unsigned)pk_sim_warp(PK_SIM_MATCH_ALL, mask, pk_sim_bits(value), 0, 32, pk_sim_file, pk_sim_line);
  *predicate = lanes != 0;
  return lanes;
}

#define PK_SIM_REDUCE(name, T, OP)                                                        \
  PK_SIM_INLINE T name(unsigned mask, T value, PK_SIM_HERE) {                             \
    return (T)pk_sim_warp(OP, mask, pk_sim_bits(value), 0, 32, pk_sim_file, pk_sim_line); \
  }
PK_SIM_REDUCE(__reduce_add_sync, int, PK_SIM_REDUCE_ADD)
PK_SIM_REDUCE(__reduce_add_sync, unsigned, PK_SIM_REDUCE_ADD)
PK_SIM_REDUCE(__reduce_min_sync, int, PK_SIM_REDUCE_MIN_SIGNED)
PK_SIM_REDUCE(__reduce_min_sync, unsigned, PK_SIM_REDUCE_MIN)
PK_SIM_REDUCE(__reduce_max_sync, int, PK_SIM_REDUCE_MAX_SIGNED)
PK_SIM_REDUCE(__reduce_max_sync, unsigned, PK_SIM_REDUCE_MAX)
PK_SIM_REDUCE(__reduce_and_sync, unsigned, PK_SIM_REDUCE_AND)
PK_SIM_REDUCE(__reduce_or_sync, unsigned, PK_SIM_REDUCE_OR)
PK_SIM_REDUCE(__reduce_xor_sync, unsigned, PK_SIM_REDUCE_XOR)
#undef PK_SIM_REDUCE
