// pk_sim_cuda_atomic.h: cuda::atomic, cuda::atomic_ref and cuda::std::atomic. The host has one order and one scope for
// all, the strongest; a fence stands on both sides of an access, so that the checker sees it order others.
#pragma once
#pragma GCC system_header

#include "pk_sim_cuda_types.h"

namespace cuda {

enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread = 10 };

namespace std {
enum memory_order {
  memory_order_relaxed,
  memory_order_consume,
  memory_order_acquire,
  memory_order_release,
  memory_order_acq_rel,
  memory_order_seq_cst
};
PK_SIM_INLINE void atomic_thread_fence(memory_order, PK_SIM_HERE) { __threadfence(pk_sim_file, pk_sim_line); }
}  // namespace std
using std::memory_order;
using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_consume;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;
PK_SIM_INLINE void atomic_thread_fence(memory_order, thread_scope = thread_scope_system, PK_SIM_HERE) {
  __threadfence(pk_sim_file, pk_sim_line);
}

// Reads, changes and writes what lies at the address; returns what was there.
template <class T, class Change>
PK_SIM_INLINE T pk_sim_ordered_update(T *address, memory_order order, Change change, const char *file, int line,
                                      bool exchange = false) {
  if (order != memory_order_relaxed && order != memory_order_acquire) __threadfence(file, line);
  const T before = pk_sim_library::pk_sim_update(address, change, file, line, exchange);
  if (order != memory_order_relaxed && order != memory_order_release) __threadfence(file, line);
  return before;
}

#define PK_SIM_ORDER memory_order order = memory_order_seq_cst, PK_SIM_HERE
// What atomic and atomic_ref share; a class says where its value is by pk_sim_at().
template <class Self, class T>
struct pk_sim_atomic_operations {
  typedef T value_type;
  static constexpr bool is_always_lock_free = true;
  bool is_lock_free() const { return true; }
  static memory_order pk_sim_order();  // the type, for those who do not include this header
  T load(PK_SIM_ORDER) const {
    return pk_sim_ordered_update(
        at(), order, [](T old) -> T { return old; }, pk_sim_file, pk_sim_line);
  }
  void store(T value, PK_SIM_ORDER) const { exchange(value, order, pk_sim_file, pk_sim_line); }
  T exchange(T value, PK_SIM_ORDER) const {
    return pk_sim_ordered_update(
        at(), order, [value](T) -> T { return value; }, pk_sim_file, pk_sim_line, true);
  }
  bool compare_exchange_strong(T &expected, T value, PK_SIM_ORDER) const {
    bool equal = false;
    const T wanted = expected;
    expected = pk_sim_ordered_update(
        at(), order,
        [&](T old) -> T {
          equal = __builtin_memcmp(&old, &wanted, sizeof old) == 0;
          return equal ? value : old;
        },
        pk_sim_file, pk_sim_line);
    return equal;
  }
  bool compare_exchange_strong(T &expected, T value, memory_order success, memory_order, PK_SIM_HERE) const {
    return compare_exchange_strong(expected, value, success, pk_sim_file, pk_sim_line);
  }
  bool compare_exchange_weak(T &expected, T value, PK_SIM_ORDER) const {
    return compare_exchange_strong(expected, value, order, pk_sim_file, pk_sim_line);
  }
  bool compare_exchange_weak(T &expected, T value, memory_order success, memory_order, PK_SIM_HERE) const {
    return compare_exchange_strong(expected, value, success, pk_sim_file, pk_sim_line);
  }
  void wait(T old, PK_SIM_ORDER) const {
    while (load(order, pk_sim_file, pk_sim_line) == old) pk_sim_yield(pk_sim_file, pk_sim_line);
  }
  void notify_one() const {}
  void notify_all() const {}
#define PK_SIM_FETCH(name, ...)                                                              \
  template <class V = T>                                                                     \
  T fetch_##name(V given, PK_SIM_ORDER) const {                                              \
    const auto value = given;                                                                \
    return pk_sim_ordered_update(                                                            \
        at(), order, [value](T old) -> T { return __VA_ARGS__; }, pk_sim_file, pk_sim_line); \
  }
  PK_SIM_FETCH(add, old + value)
  PK_SIM_FETCH(sub, old - value)
  PK_SIM_FETCH(and, old &value)
  PK_SIM_FETCH(or, old | value)
  PK_SIM_FETCH(xor, old ^ value)
  PK_SIM_FETCH(min, value < old ? value : old)
  PK_SIM_FETCH(max, old < value ? value : old)
#undef PK_SIM_FETCH
  operator T() const { return load(); }
  T operator++() const { return fetch_add(1) + 1; }
  T operator--() const { return fetch_sub(1) - 1; }
  T operator++(int) const { return fetch_add(1); }
  T operator--(int) const { return fetch_sub(1); }
  T operator+=(T value) const { return fetch_add(value) + value; }
  T operator-=(T value) const { return fetch_sub(value) - value; }
  T operator&=(T value) const { return fetch_and(value) & value; }
  T operator|=(T value) const { return fetch_or(value) | value; }
  T operator^=(T value) const { return fetch_xor(value) ^ value; }

 private:
  T *at() const { return static_cast<const Self *>(this)->pk_sim_at(); }
};
#undef PK_SIM_ORDER

template <class T, thread_scope Scope = thread_scope_system>
struct atomic : pk_sim_atomic_operations<atomic<T, Scope>, T> {
  atomic() = default;
  constexpr atomic(T value) : pk_sim_value(value) {}
  atomic(const atomic &) = delete;
  atomic &operator=(const atomic &) = delete;
  T operator=(T value) {
    this->store(value);
    return value;
  }
  T *pk_sim_at() const { return const_cast<T *>(&pk_sim_value); }
  T pk_sim_value;
};
template <class T, thread_scope Scope = thread_scope_system>
struct atomic_ref : pk_sim_atomic_operations<atomic_ref<T, Scope>, T> {
  static constexpr size_t required_alignment = sizeof(T);
  explicit atomic_ref(T &value) : pk_sim_address(&value) {}
  T operator=(T value) const {
    this->store(value);
    return value;
  }
  T *pk_sim_at() const { return pk_sim_address; }
  T *pk_sim_address;
};

namespace std {
template <class T>
struct atomic : cuda::atomic<T> {
  atomic() = default;
  constexpr atomic(T value) : cuda::atomic<T>(value) {}
  using cuda::atomic<T>::operator=;
};
template <class T>
struct atomic_ref : cuda::atomic_ref<T> {
  explicit atomic_ref(T &value) : cuda::atomic_ref<T>(value) {}
  using cuda::atomic_ref<T>::operator=;
};
typedef atomic<int> atomic_int;
typedef atomic<unsigned> atomic_uint;
typedef atomic<bool> atomic_bool;
}  // namespace std
}  // namespace cuda
