// pk_sim_atomics.h: atomic functions for the types CUDA has them for. Each counts as a spin, so that locks make progress.
#pragma once
#pragma GCC system_header

// How an update of 2, 4 or 8 bytes is computed: load, change, compare and exchange.
template <unsigned long Bytes>
struct pk_sim_word;
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
template <class T, class Change>
PK_SIM_INLINE T pk_sim_update(T *address, Change change, const char *file, int line) {
  typedef typename pk_sim_word<sizeof(T)>::type Word;
  pk_sim_spin(file, line);
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

#define PK_SIM_ATOMIC(suffix, T, name, ...)                                   \
  PK_SIM_INLINE T name##suffix(T *address, T value, PK_SIM_HERE) {            \
    pk_sim_spin(pk_sim_file, pk_sim_line);                                    \
    return __VA_ARGS__;                                                       \
  }
#define PK_SIM_ATOMIC_CHANGE(suffix, T, name, ...)                                                        \
  PK_SIM_INLINE T name##suffix(T *address, T value, PK_SIM_HERE) {                                        \
    return pk_sim_update(address, [value](T old) -> T { return __VA_ARGS__; }, pk_sim_file, pk_sim_line); \
  }
#define PK_SIM_ATOMIC_ADD(s, T) PK_SIM_ATOMIC(s, T, atomicAdd, __atomic_fetch_add(address, value, __ATOMIC_RELAXED))
#define PK_SIM_ATOMIC_SUB(s, T) PK_SIM_ATOMIC(s, T, atomicSub, __atomic_fetch_sub(address, value, __ATOMIC_RELAXED))
#define PK_SIM_ATOMIC_BITS(s, T)                                                            \
  PK_SIM_ATOMIC(s, T, atomicAnd, __atomic_fetch_and(address, value, __ATOMIC_RELAXED))      \
  PK_SIM_ATOMIC(s, T, atomicOr, __atomic_fetch_or(address, value, __ATOMIC_RELAXED))        \
  PK_SIM_ATOMIC(s, T, atomicXor, __atomic_fetch_xor(address, value, __ATOMIC_RELAXED))
#define PK_SIM_ATOMIC_EXCH(s, T) PK_SIM_ATOMIC(s, T, atomicExch, __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST))
#define PK_SIM_ATOMIC_MINMAX(s, T)                                     \
  PK_SIM_ATOMIC_CHANGE(s, T, atomicMin, value < old ? value : old)     \
  PK_SIM_ATOMIC_CHANGE(s, T, atomicMax, old < value ? value : old)
#define PK_SIM_ATOMIC_CAS(s, T)                                                                                     \
  PK_SIM_INLINE T atomicCAS##s(T *address, T expected, T value, PK_SIM_HERE) {                                      \
    pk_sim_spin(pk_sim_file, pk_sim_line);                                                                          \
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
    return expected;                                                                                                \
  }

#define PK_SIM_ATOMICS(s)                                                                            \
  PK_SIM_ATOMIC_ADD(s, int)                                                                          \
  PK_SIM_ATOMIC_ADD(s, unsigned)                                                                     \
  PK_SIM_ATOMIC_ADD(s, unsigned long long)                                                           \
  PK_SIM_ATOMIC_CHANGE(s, float, atomicAdd, old + value)                                             \
  PK_SIM_ATOMIC_CHANGE(s, double, atomicAdd, old + value)                                            \
  PK_SIM_ATOMIC_SUB(s, int)                                                                          \
  PK_SIM_ATOMIC_SUB(s, unsigned)                                                                     \
  PK_SIM_ATOMIC_BITS(s, int)                                                                         \
  PK_SIM_ATOMIC_BITS(s, unsigned)                                                                    \
  PK_SIM_ATOMIC_BITS(s, unsigned long long)                                                          \
  PK_SIM_ATOMIC_EXCH(s, int)                                                                         \
  PK_SIM_ATOMIC_EXCH(s, unsigned)                                                                    \
  PK_SIM_ATOMIC_EXCH(s, unsigned long long)                                                          \
  PK_SIM_ATOMIC_CHANGE(s, float, atomicExch, ((void)old, value))                                     \
  PK_SIM_ATOMIC_MINMAX(s, int)                                                                       \
  PK_SIM_ATOMIC_MINMAX(s, unsigned)                                                                  \
  PK_SIM_ATOMIC_MINMAX(s, long long)                                                                 \
  PK_SIM_ATOMIC_MINMAX(s, unsigned long long)                                                        \
  PK_SIM_ATOMIC_CAS(s, int)                                                                          \
  PK_SIM_ATOMIC_CAS(s, unsigned)                                                                     \
  PK_SIM_ATOMIC_CAS(s, unsigned long long)                                                           \
  PK_SIM_ATOMIC_CAS(s, unsigned short)                                                               \
  PK_SIM_ATOMIC_CHANGE(s, unsigned, atomicInc, old >= value ? 0u : old + 1u)                         \
  PK_SIM_ATOMIC_CHANGE(s, unsigned, atomicDec, old == 0u || old > value ? value : old - 1u)
PK_SIM_ATOMICS()
PK_SIM_ATOMICS(_block)
PK_SIM_ATOMICS(_system)
