// pk_sim_ptx_memory.h: accesses of inline PTX that other threads may make at the same time, and kinds of memory.
#pragma once
#pragma GCC system_header

template <class T>
PK_SIM_INLINE T pk_ptx_load(T *address, PK_SIM_HERE) {
  pk_sim_begin_atomic(address, sizeof(T), pk_sim_file, pk_sim_line);
  return __atomic_load_n(address, __ATOMIC_SEQ_CST);
}
template <class T>
PK_SIM_INLINE void pk_ptx_store(T *address, T value, PK_SIM_HERE) {
  pk_sim_begin_atomic(address, sizeof(T), pk_sim_file, pk_sim_line, true);
  __atomic_store_n(address, value, __ATOMIC_SEQ_CST);
}

// Where an address lies. Shared arrays are beside the anchor; the stack of a thread is its local memory.
PK_SIM_NOINLINE bool pk_ptx_is_shared(unsigned long long address) {
  constexpr unsigned long long reach = 1ull << 16;
  return address - (unsigned long long)pk_sim_dynamic_base < pk_sim_dynamic_bytes ||
         address - (unsigned long long)&pk_sim_anchor + reach < 2 * reach;
}
PK_SIM_NOINLINE bool pk_ptx_is_shared_of_cluster(unsigned long long address) {
  return pk_ptx_is_shared(address) || pk_sim_device->shared_rank(pk_sim_core, (const void *)address) != ~0u;
}
PK_SIM_NOINLINE bool pk_ptx_is_local(unsigned long long address) {
  const unsigned long long here = (unsigned long long)__builtin_frame_address(0);
  return address - here < 1ull << 16;
}
PK_SIM_NOINLINE bool pk_ptx_is_const(unsigned long long) { return false; }
PK_SIM_NOINLINE bool pk_ptx_is_global(unsigned long long address) {
  return !pk_ptx_is_shared_of_cluster(address) && !pk_ptx_is_local(address);
}

template <class T, class Change>
PK_SIM_INLINE T pk_ptx_update(T *address, Change change, PK_SIM_HERE) {
  return pk_sim_update(address, change, pk_sim_file, pk_sim_line);
}
