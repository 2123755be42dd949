// pk_sim_groups.h: what cooperative_groups/reduce.h, scan.h and memcpy_async.h add to cooperative_groups.h.
#pragma once
#pragma GCC system_header

#include "cooperative_groups.h"
#include "pk_sim_copy.h"

namespace cooperative_groups {

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

// Partners and their order are those of a device, so that sums of floats have the same bits there.
template <class Group, class T, class Operation>
PK_SIM_INLINE T inclusive_scan(const Group &group, T value, Operation operation, PK_SIM_HERE) {
  if constexpr (Group::pk_sim_wide) {
    T without;
    group.pk_sim_scan(value, without, operation, pk_sim_file, pk_sim_line);
    return value;
  } else {
    const unsigned rank = group.thread_rank();
    for (unsigned distance = 1; distance < group.size(); distance *= 2) {
      const T other = group.shfl_up(value, distance, pk_sim_file, pk_sim_line);
      if (distance <= rank) value = operation(value, other);
    }
    return value;
  }
}
template <class Group, class T>
PK_SIM_INLINE T inclusive_scan(const Group &group, T value, PK_SIM_HERE) {
  return inclusive_scan(group, value, plus<T>(), pk_sim_file, pk_sim_line);
}
template <class Group, class T, class Operation>
PK_SIM_INLINE T exclusive_scan(const Group &group, T value, Operation operation, PK_SIM_HERE) {
  if constexpr (Group::pk_sim_wide) {
    T without;
    group.pk_sim_scan(value, without, operation, pk_sim_file, pk_sim_line);
    return without;
  } else {
    const T whole = inclusive_scan(group, value, operation, pk_sim_file, pk_sim_line);
    const T before = group.shfl_up(whole, 1, pk_sim_file, pk_sim_line);
    return group.thread_rank() == 0 ? T{} : before;
  }
}
template <class Group, class T>
PK_SIM_INLINE T exclusive_scan(const Group &group, T value, PK_SIM_HERE) {
  return exclusive_scan(group, value, plus<T>(), pk_sim_file, pk_sim_line);
}
template <class Group, class T, class Operation>
PK_SIM_INLINE T reduce(const Group &group, T value, Operation operation, PK_SIM_HERE) {
  if constexpr (Group::pk_sim_wide) {
    return group.pk_sim_reduce(value, operation, pk_sim_file, pk_sim_line);
  } else {
    const unsigned size = group.size();
    if (size & (size - 1)) {
      const T whole = inclusive_scan(group, value, operation, pk_sim_file, pk_sim_line);
      return group.shfl(whole, size - 1, pk_sim_file, pk_sim_line);
    }
    for (unsigned partner = size / 2; partner; partner /= 2)
      value = operation(value, group.shfl_xor(value, partner, pk_sim_file, pk_sim_line));
    return value;
  }
}

// ---- with a cuda::atomic: what it held before an operation
template <class Atomic, class T, class Operation>
PK_SIM_INLINE T pk_sim_updated(Atomic &place, T value, Operation &operation, const char *file, int line) {
  constexpr auto relaxed = decltype(place.pk_sim_order())(0);
  T before = place.load(relaxed, file, line);
  while (!place.compare_exchange_weak(before, operation(before, value), relaxed, file, line)) {
  }
  return before;
}
template <class Group, class Atomic, class T, class Operation>
PK_SIM_INLINE void reduce_update_async(const Group &group, Atomic &place, T value, Operation operation, PK_SIM_HERE) {
  value = reduce(group, value, operation, pk_sim_file, pk_sim_line);
  if (group.thread_rank() == 0) pk_sim_updated(place, value, operation, pk_sim_file, pk_sim_line);
}
template <class Group, class Atomic, class T, class Operation>
PK_SIM_INLINE void reduce_store_async(const Group &group, Atomic &place, T value, Operation operation, PK_SIM_HERE) {
  value = reduce(group, value, operation, pk_sim_file, pk_sim_line);
  if (group.thread_rank() == 0) place.store(value, decltype(place.pk_sim_order())(0), pk_sim_file, pk_sim_line);
}
template <class Group, class Atomic, class T, class Operation>
PK_SIM_INLINE T inclusive_scan_update(const Group &group, Atomic &place, T value, Operation operation, PK_SIM_HERE) {
  const unsigned last = group.size() - 1;
  value = inclusive_scan(group, value, operation, pk_sim_file, pk_sim_line);
  T before = value;
  if (group.thread_rank() == last) before = pk_sim_updated(place, value, operation, pk_sim_file, pk_sim_line);
  return operation(group.shfl(before, last, pk_sim_file, pk_sim_line), value);
}
template <class Group, class Atomic, class T, class Operation>
PK_SIM_INLINE T exclusive_scan_update(const Group &group, Atomic &place, T value, Operation operation, PK_SIM_HERE) {
  const unsigned last = group.size() - 1;
  value = inclusive_scan(group, value, operation, pk_sim_file, pk_sim_line);
  T before = value;
  if (group.thread_rank() == last) before = pk_sim_updated(place, value, operation, pk_sim_file, pk_sim_line);
  before = group.shfl(before, last, pk_sim_file, pk_sim_line);
  value = group.shfl_up(value, 1, pk_sim_file, pk_sim_line);
  return group.thread_rank() ? operation(before, value) : before;
}

// ---- copies: done at once by the calling threads, each a part
template <class Group, class T, class Bytes>
PK_SIM_INLINE void memcpy_async(const Group &group, T *target, const T *source, const Bytes &bytes) {
  pk_sim_copy(target, source, (size_t)bytes, group.thread_rank(), group.num_threads());
}
template <class Group, class T, class TargetCount, class SourceCount>
PK_SIM_INLINE void memcpy_async(const Group &group, T *target, const TargetCount &target_count, const T *source,
                                const SourceCount &source_count) {
  const size_t a = (size_t)target_count, b = (size_t)source_count;
  pk_sim_copy(target, source, (a < b ? a : b) * sizeof(T), group.thread_rank(), group.num_threads());
}
template <class Group>
PK_SIM_INLINE void wait(const Group &group, PK_SIM_HERE) {
  group.sync(pk_sim_file, pk_sim_line);
}
template <unsigned Stages, class Group>
PK_SIM_INLINE void wait_prior(const Group &group, PK_SIM_HERE) {
  group.sync(pk_sim_file, pk_sim_line);
}

}  // namespace cooperative_groups
