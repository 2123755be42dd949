// pk_sim_ptx.h: what the C++ of inline PTX is made of: operands, bits, threads, and addresses of shared memory.
// Included before sources that have asm statements.
#pragma once
#pragma GCC system_header

typedef unsigned __int128 pk_ptx_u128;

// ---- types of operands

template <class T>
struct pk_ptx_bare {
  typedef T type;
};
template <class T>
struct pk_ptx_bare<T &> : pk_ptx_bare<T> {};
template <class T>
struct pk_ptx_bare<T &&> : pk_ptx_bare<T> {};
template <class T>
struct pk_ptx_bare<const T> : pk_ptx_bare<T> {};
template <class T>
struct pk_ptx_bare<volatile T> : pk_ptx_bare<T> {};
template <class T>
struct pk_ptx_bare<const volatile T> : pk_ptx_bare<T> {};
template <class T>
using pk_ptx_plain = typename pk_ptx_bare<T>::type;

// The same bits as another type.
template <class To, class From>
PK_SIM_INLINE To pk_ptx_bits(From value) {
  static_assert(sizeof(To) == sizeof(From), "inline PTX: an operand has as many bits as its constraint says");
  To result;
  __builtin_memcpy(&result, &value, sizeof result);
  return result;
}

// Whether a conversion to T is one between integers: floats keep their bits.
template <class T>
struct pk_ptx_floats {
  static constexpr bool value = false;
};
template <>
struct pk_ptx_floats<float> {
  static constexpr bool value = true;
};
template <>
struct pk_ptx_floats<double> {
  static constexpr bool value = true;
};

// An operand as what its constraint says. Integers become wider or narrower, as everywhere in C++.
template <class To, class T>
PK_SIM_INLINE To pk_ptx_in(const T &value) {
  if constexpr (__is_class(T)) {
    return pk_ptx_bits<To>(value);
  } else if constexpr (pk_ptx_floats<To>::value != pk_ptx_floats<T>::value && sizeof(To) == sizeof(T)) {
    return pk_ptx_bits<To>(value);
  } else {
    static_assert(pk_ptx_floats<To>::value == pk_ptx_floats<T>::value,
                  "inline PTX: the type of an operand does not fit its constraint");
    return (To)value;
  }
}
template <class To>
PK_SIM_INLINE To pk_ptx_in(const volatile void *value) {
  static_assert(sizeof(To) == 8, "inline PTX: an address is an operand of 64 bits (\"l\")");
  return (To)(size_t)value;
}
template <class To, class T>
PK_SIM_INLINE To pk_ptx_in(T *value) {
  return pk_ptx_in<To>((const volatile void *)value);
}
template <class T, class From>
PK_SIM_INLINE T pk_ptx_out(From value) {
  if constexpr (__is_class(T) || pk_ptx_floats<T>::value != pk_ptx_floats<From>::value) {
    return pk_ptx_bits<T>(value);
  } else {
    return (T)value;
  }
}
template <class T>
constexpr T pk_ptx_constant(T value) {
  return value;
}
template <class T>
constexpr unsigned long long pk_ptx_constant(T *value) = delete;

// ---- threads

PK_SIM_INLINE unsigned pk_ptx_thread() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
PK_SIM_INLINE unsigned pk_ptx_lane() { return pk_ptx_thread() & 31u; }

// ---- numbers

// Numbers too small for a full significand count as zero, and so do such results.
PK_SIM_INLINE float pk_ptx_flushed(float x) {
  return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x;
}

// ---- shared memory: its 32-bit addresses are the lower halves of the host's

// How far an address is from where some shared memory of a block begins.
PK_SIM_INLINE unsigned pk_ptx_distance(unsigned address, const void *begin) {
  return address - (unsigned)(size_t)begin;
}
PK_SIM_NOINLINE void *pk_ptx_window(unsigned address) {
  const unsigned far = pk_ptx_distance(address, pk_sim_dynamic_base);
  const int near = (int)pk_ptx_distance(address, &pk_sim_anchor);
  // In the dynamic part, or nearer to it than to the arrays beside the anchor.
  const bool dynamic = far < pk_sim_dynamic_bytes;
  const unsigned after = far - pk_sim_dynamic_bytes, before = 0u - far;
  const unsigned aside = near < 0 ? 0u - (unsigned)near : (unsigned)near;
  if (pk_sim_dynamic_bytes && (dynamic || (after < before ? after : before) < aside))
    return (char *)pk_sim_dynamic_base + (far < 0x80000000u ? (long)far : (long)(int)far);
  return (char *)&pk_sim_anchor + near;
}
// A 64-bit address that a kernel got by __cvta_generic_to_shared() is the whole one.
PK_SIM_INLINE void *pk_ptx_shared(unsigned address) { return pk_ptx_window(address); }
PK_SIM_INLINE void *pk_ptx_shared(unsigned long long address) {
  return address >> 32 ? (void *)address : pk_ptx_window((unsigned)address);
}
// In the shared memory of any block of the cluster.
PK_SIM_NOINLINE void *pk_ptx_window_of_cluster(unsigned address, const char *file, int line) {
  const unsigned own = __clusterRelativeBlockRank();
  constexpr unsigned reach = 1u << 17;  // of arrays beside the anchor
  for (unsigned i = 0, blocks = __clusterSizeInBlocks(); i < blocks && blocks > 1; ++i) {
    const unsigned rank = (own + i) % blocks;
    char *const dynamic = (char *)pk_sim_map_shared(pk_sim_dynamic_base, rank, file, line);
    const unsigned far = pk_ptx_distance(address, dynamic);
    if (far < pk_sim_dynamic_bytes) return dynamic + far;
    char *const anchor = (char *)pk_sim_map_shared(&pk_sim_anchor, rank, file, line);
    const int near = (int)pk_ptx_distance(address, anchor);
    if ((unsigned)near + reach < 2 * reach) return anchor + near;
  }
  return pk_ptx_window(address);
}
PK_SIM_INLINE void *pk_ptx_shared_of_cluster(unsigned address, PK_SIM_HERE) {
  return pk_ptx_window_of_cluster(address, pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE void *pk_ptx_shared_of_cluster(unsigned long long address, PK_SIM_HERE) {
  return address >> 32 ? (void *)address : pk_ptx_window_of_cluster((unsigned)address, pk_sim_file, pk_sim_line);
}

// Elements that are read and written together, from a multiple of their size on.
template <class T, int N>
struct alignas(sizeof(T) * N) pk_ptx_vector {
  T at[N];
};
