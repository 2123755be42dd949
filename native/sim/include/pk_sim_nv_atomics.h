// pk_sim_nv_atomics.h: __nv_atomic_ functions, whose order and scope are arguments. The host has one order for all, the
// strongest.
#pragma once
#pragma GCC system_header

#define __NV_ATOMIC_RELAXED 0
#define __NV_ATOMIC_CONSUME 1
#define __NV_ATOMIC_ACQUIRE 2
#define __NV_ATOMIC_RELEASE 3
#define __NV_ATOMIC_ACQ_REL 4
#define __NV_ATOMIC_SEQ_CST 5
enum {
  __NV_THREAD_SCOPE_THREAD,
  __NV_THREAD_SCOPE_BLOCK,
  __NV_THREAD_SCOPE_CLUSTER,
  __NV_THREAD_SCOPE_DEVICE,
  __NV_THREAD_SCOPE_SYSTEM
};
#define PK_SIM_ORDERED int = 0, int = __NV_THREAD_SCOPE_SYSTEM, PK_SIM_HERE

// A parameter that the argument before it gives its type.
template <class T>
struct pk_sim_same {
  typedef T type;
};

template <class T>
PK_SIM_INLINE T __nv_atomic_load_n(T *address, PK_SIM_ORDERED) {
  return pk_sim_update(
      address, [](T old) -> T { return old; }, pk_sim_file, pk_sim_line);
}
template <class T>
PK_SIM_INLINE void __nv_atomic_load(T *address, T *result, PK_SIM_ORDERED) {
  *result = pk_sim_update(
      address, [](T old) -> T { return old; }, pk_sim_file, pk_sim_line);
}
template <class T>
PK_SIM_INLINE void __nv_atomic_store_n(T *address, typename pk_sim_same<T>::type value, PK_SIM_ORDERED) {
  pk_sim_update(
      address, [value](T) -> T { return value; }, pk_sim_file, pk_sim_line, true);
}
template <class T>
PK_SIM_INLINE void __nv_atomic_store(T *address, T *value, PK_SIM_ORDERED) {
  const T stored = *value;
  pk_sim_update(
      address, [stored](T) -> T { return stored; }, pk_sim_file, pk_sim_line, true);
}
template <class T>
PK_SIM_INLINE T __nv_atomic_exchange_n(T *address, typename pk_sim_same<T>::type value, PK_SIM_ORDERED) {
  return pk_sim_update(
      address, [value](T) -> T { return value; }, pk_sim_file, pk_sim_line, true);
}
template <class T>
PK_SIM_INLINE void __nv_atomic_exchange(T *address, T *value, T *result, PK_SIM_ORDERED) {
  const T stored = *value;
  *result = pk_sim_update(
      address, [stored](T) -> T { return stored; }, pk_sim_file, pk_sim_line, true);
}
template <class T>
PK_SIM_INLINE bool __nv_atomic_compare_exchange_n(T *address, T *expected, typename pk_sim_same<T>::type value,
                                                  bool = false, int = 0, int = 0, int = __NV_THREAD_SCOPE_SYSTEM,
                                                  PK_SIM_HERE) {
  typedef typename pk_sim_word<sizeof(T)>::type Word;
  Word wanted, found;
  __builtin_memcpy(&wanted, expected, sizeof wanted);
  const T before = pk_sim_update(
      address,
      [&](T old) -> T {
        __builtin_memcpy(&found, &old, sizeof found);
        return found == wanted ? value : old;
      },
      pk_sim_file, pk_sim_line);
  if (found != wanted) *expected = before;
  return found == wanted;
}
template <class T>
PK_SIM_INLINE bool __nv_atomic_compare_exchange(T *address, T *expected, T *value, bool weak = false, int success = 0,
                                                int failure = 0, int scope = __NV_THREAD_SCOPE_SYSTEM, PK_SIM_HERE) {
  return __nv_atomic_compare_exchange_n(address, expected, *value, weak, success, failure, scope, pk_sim_file,
                                        pk_sim_line);
}
#define PK_SIM_NV_FETCH(name, ...)                                                                            \
  template <class T>                                                                                          \
  PK_SIM_INLINE T __nv_atomic_fetch_##name(T *address, typename pk_sim_same<T>::type value, PK_SIM_ORDERED) { \
    return pk_sim_update(                                                                                     \
        address, [value](T old) -> T { return __VA_ARGS__; }, pk_sim_file, pk_sim_line);                      \
  }                                                                                                           \
  template <class T>                                                                                          \
  PK_SIM_INLINE void __nv_atomic_##name(T *address, typename pk_sim_same<T>::type value, PK_SIM_ORDERED) {    \
    pk_sim_update(                                                                                            \
        address, [value](T old) -> T { return __VA_ARGS__; }, pk_sim_file, pk_sim_line);                      \
  }
PK_SIM_NV_FETCH(add, old + value)
PK_SIM_NV_FETCH(sub, old - value)
PK_SIM_NV_FETCH(and, old &value)
PK_SIM_NV_FETCH(or, old | value)
PK_SIM_NV_FETCH(xor, old ^ value)
PK_SIM_NV_FETCH(min, value < old ? value : old)
PK_SIM_NV_FETCH(max, old < value ? value : old)
#undef PK_SIM_NV_FETCH
#undef PK_SIM_ORDERED
PK_SIM_INLINE void __nv_atomic_thread_fence(int, int = __NV_THREAD_SCOPE_SYSTEM, PK_SIM_HERE) {
  __threadfence(pk_sim_file, pk_sim_line);
}
