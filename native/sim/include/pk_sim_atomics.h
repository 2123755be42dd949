// pk_sim_atomics.h: atomic functions for the types CUDA has them for. Each counts as a spin, so that locks make
// progress.
#pragma once
#pragma GCC system_header

namespace pk_sim_library {

// Every atomic begins so.
PK_SIM_INLINE void pk_sim_begin_atomic([[maybe_unused]] const void *address, [[maybe_unused]] size_t bytes,
                                       const char *file, int line, [[maybe_unused]] bool exchange = false) {
  pk_sim_spin(file, line);  // first: who waits for a value must learn of its writer when it comes
#ifdef PK_SIM_CHECK
  pk_sim_check_access(address, bytes, exchange ? PK_SIM_ATOMIC_EXCHANGE : PK_SIM_ATOMIC, file, line);
#endif
}

// How an update of 2, 4 or 8 bytes is computed: load, change, compare and exchange.
template <unsigned long Bytes>
struct pk_sim_word;
template <>
struct pk_sim_word<1> {
  typedef unsigned char type;
};
template <>
struct pk_sim_word<2> {
  typedef unsigned short type;
};
template <>
struct pk_sim_word<4> {
  typedef unsigned type;
};
template <>
struct pk_sim_word<8> {
  typedef unsigned long long type;
};
// exchange: what was there does not matter to the change.
template <class T, class Change>
PK_SIM_INLINE T pk_sim_update(T *address, Change change, const char *file, int line, bool exchange = false) {
  typedef typename pk_sim_word<sizeof(T)>::type Word;
  pk_sim_begin_atomic(address, sizeof(T), file, line, exchange);
  Word *word = (Word *)address;
  Word before = __atomic_load_n(word, __ATOMIC_RELAXED), after;
  T value;
  do {
    __builtin_memcpy(&value, &before, sizeof value);
    const T changed = change(value);
    __builtin_memcpy(&after, &changed, sizeof after);
  } while (!__atomic_compare_exchange_n(word, &before, after, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  return value;
}

#define PK_SIM_ATOMIC(T, name, ...)                                    \
  PK_SIM_INLINE T name(T *address, T value, PK_SIM_HERE) {             \
    pk_sim_begin_atomic(address, sizeof(T), pk_sim_file, pk_sim_line); \
    return __VA_ARGS__;                                                \
  }
#define PK_SIM_ATOMIC_CHANGE(T, name, ...)                                               \
  PK_SIM_INLINE T name(T *address, T value, PK_SIM_HERE) {                               \
    return pk_sim_update(                                                                \
        address, [value](T old) -> T { return __VA_ARGS__; }, pk_sim_file, pk_sim_line); \
  }
#define PK_SIM_ATOMIC_ADD(T) PK_SIM_ATOMIC(T, atomicAdd, __atomic_fetch_add(address, value, __ATOMIC_RELAXED))
#define PK_SIM_ATOMIC_SUB(T) PK_SIM_ATOMIC(T, atomicSub, __atomic_fetch_sub(address, value, __ATOMIC_RELAXED))
#define PK_SIM_ATOMIC_BITS(T)                                                       \
  PK_SIM_ATOMIC(T, atomicAnd, __atomic_fetch_and(address, value, __ATOMIC_RELAXED)) \
  PK_SIM_ATOMIC(T, atomicOr, __atomic_fetch_or(address, value, __ATOMIC_RELAXED))   \
  PK_SIM_ATOMIC(T, atomicXor, __atomic_fetch_xor(address, value, __ATOMIC_RELAXED))
#define PK_SIM_ATOMIC_EXCH(T)                                                \
  PK_SIM_INLINE T atomicExch(T *address, T value, PK_SIM_HERE) {             \
    pk_sim_begin_atomic(address, sizeof(T), pk_sim_file, pk_sim_line, true); \
    return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);            \
  }
#define PK_SIM_ATOMIC_MINMAX(T)                                 \
  PK_SIM_ATOMIC_CHANGE(T, atomicMin, value < old ? value : old) \
  PK_SIM_ATOMIC_CHANGE(T, atomicMax, old < value ? value : old)
#define PK_SIM_ATOMIC_CAS(T)                                                                           \
  PK_SIM_INLINE T atomicCAS(T *address, T expected, T value, PK_SIM_HERE) {                            \
    pk_sim_begin_atomic(address, sizeof(T), pk_sim_file, pk_sim_line);                                 \
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    return expected;                                                                                   \
  }

PK_SIM_ATOMIC_ADD(int)
PK_SIM_ATOMIC_ADD(unsigned)
PK_SIM_ATOMIC_ADD(unsigned long long)
PK_SIM_ATOMIC_CHANGE(float, atomicAdd, old + value)
PK_SIM_ATOMIC_CHANGE(double, atomicAdd, old + value)
PK_SIM_ATOMIC_SUB(int)
PK_SIM_ATOMIC_SUB(unsigned)
PK_SIM_ATOMIC_BITS(int)
PK_SIM_ATOMIC_BITS(unsigned)
PK_SIM_ATOMIC_BITS(unsigned long long)
PK_SIM_ATOMIC_EXCH(int)
PK_SIM_ATOMIC_EXCH(unsigned)
PK_SIM_ATOMIC_EXCH(unsigned long long)
PK_SIM_INLINE float atomicExch(float *address, float value, PK_SIM_HERE) {
  int bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  bits = atomicExch((int *)address, bits, pk_sim_file, pk_sim_line);
  __builtin_memcpy(&value, &bits, sizeof bits);
  return value;
}
PK_SIM_ATOMIC_MINMAX(int)
PK_SIM_ATOMIC_MINMAX(unsigned)
PK_SIM_ATOMIC_MINMAX(long long)
PK_SIM_ATOMIC_MINMAX(unsigned long long)
PK_SIM_ATOMIC_CAS(int)
PK_SIM_ATOMIC_CAS(unsigned)
PK_SIM_ATOMIC_CAS(unsigned long long)
PK_SIM_ATOMIC_CAS(unsigned short)
PK_SIM_ATOMIC_CHANGE(unsigned, atomicInc, old >= value ? 0u : old + 1u)
PK_SIM_ATOMIC_CHANGE(unsigned, atomicDec, old == 0u || old > value ? value : old - 1u)
// Pairs and fours of floats, each element by itself.
PK_SIM_INLINE float2 atomicAdd(float2 *address, float2 value, PK_SIM_HERE) {
  const float x = atomicAdd(&address->x, value.x, pk_sim_file, pk_sim_line);
  return {x, atomicAdd(&address->y, value.y, pk_sim_file, pk_sim_line)};
}
PK_SIM_INLINE float4 atomicAdd(float4 *address, float4 value, PK_SIM_HERE) {
  const float2 low = atomicAdd((float2 *)&address->x, make_float2(value.x, value.y), pk_sim_file, pk_sim_line);
  const float2 high = atomicAdd((float2 *)&address->z, make_float2(value.z, value.w), pk_sim_file, pk_sim_line);
  return {low.x, low.y, high.x, high.y};
}
#undef PK_SIM_ATOMIC
#undef PK_SIM_ATOMIC_CHANGE
#undef PK_SIM_ATOMIC_ADD
#undef PK_SIM_ATOMIC_SUB
#undef PK_SIM_ATOMIC_BITS
#undef PK_SIM_ATOMIC_EXCH
#undef PK_SIM_ATOMIC_MINMAX
#undef PK_SIM_ATOMIC_CAS

}  // namespace pk_sim_library
using namespace pk_sim_library;

// The narrower and the wider scope: the host has one scope for all.
#define atomicAdd_block atomicAdd
#define atomicAdd_system atomicAdd
#define atomicSub_block atomicSub
#define atomicSub_system atomicSub
#define atomicExch_block atomicExch
#define atomicExch_system atomicExch
#define atomicMin_block atomicMin
#define atomicMin_system atomicMin
#define atomicMax_block atomicMax
#define atomicMax_system atomicMax
#define atomicInc_block atomicInc
#define atomicInc_system atomicInc
#define atomicDec_block atomicDec
#define atomicDec_system atomicDec
#define atomicCAS_block atomicCAS
#define atomicCAS_system atomicCAS
#define atomicAnd_block atomicAnd
#define atomicAnd_system atomicAnd
#define atomicOr_block atomicOr
#define atomicOr_system atomicOr
#define atomicXor_block atomicXor
#define atomicXor_system atomicXor
