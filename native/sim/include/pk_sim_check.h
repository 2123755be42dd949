// pk_sim_check.h: checked images. The compiler's sanitizers put a call before every access; the functions they call are
// these, and hand on to the device. The sanitizers' own libraries are not linked.
#pragma once
#pragma GCC system_header

#define PK_SIM_FROM __builtin_return_address(0)
#define PK_SIM_HOOK extern "C" PK_SIM_UNCHECKED __attribute__((__used__)) void

#define PK_SIM_HOOKS(bytes, index)                                                                 \
  PK_SIM_HOOK __tsan_read##bytes(void *p) { pk_sim_checker.read[index](p, PK_SIM_FROM); }          \
  PK_SIM_HOOK __tsan_write##bytes(void *p) { pk_sim_checker.write[index](p, PK_SIM_FROM); }        \
  PK_SIM_HOOK __tsan_unaligned_read##bytes(void *p) {                                              \
    pk_sim_checker.access(p, bytes, PK_SIM_READ, PK_SIM_FROM, nullptr, 0);                         \
  }                                                                                                \
  PK_SIM_HOOK __tsan_unaligned_write##bytes(void *p) {                                             \
    pk_sim_checker.access(p, bytes, PK_SIM_WRITE, PK_SIM_FROM, nullptr, 0);                        \
  }                                                                                                \
  PK_SIM_HOOK __tsan_volatile_read##bytes(void *p) {                                               \
    pk_sim_spin("", 0);                                                                            \
    pk_sim_checker.access(p, bytes, PK_SIM_STRONG_READ, PK_SIM_FROM, nullptr, 0);                  \
  }                                                                                                \
  PK_SIM_HOOK __tsan_volatile_write##bytes(void *p) {                                              \
    pk_sim_checker.access(p, bytes, PK_SIM_STRONG_WRITE, PK_SIM_FROM, nullptr, 0);                 \
  }                                                                                                \
  PK_SIM_HOOK __tsan_unaligned_volatile_read##bytes(void *p) { __tsan_volatile_read##bytes(p); }   \
  PK_SIM_HOOK __tsan_unaligned_volatile_write##bytes(void *p) { __tsan_volatile_write##bytes(p); } \
  PK_SIM_HOOK __tsan_read_write##bytes(void *p) {                                                  \
    pk_sim_checker.read[index](p, PK_SIM_FROM);                                                    \
    pk_sim_checker.write[index](p, PK_SIM_FROM);                                                   \
  }                                                                                                \
  PK_SIM_HOOK __tsan_unaligned_read_write##bytes(void *p) {                                        \
    pk_sim_checker.access(p, bytes, PK_SIM_READ, PK_SIM_FROM, nullptr, 0);                         \
    pk_sim_checker.access(p, bytes, PK_SIM_WRITE, PK_SIM_FROM, nullptr, 0);                        \
  }
PK_SIM_HOOKS(1, 0)
PK_SIM_HOOKS(2, 1)
PK_SIM_HOOKS(4, 2)
PK_SIM_HOOKS(8, 3)
PK_SIM_HOOKS(16, 4)
#undef PK_SIM_HOOKS
PK_SIM_HOOK __tsan_read_range(void *p, unsigned long n) {
  pk_sim_checker.access(p, n, PK_SIM_READ, PK_SIM_FROM, nullptr, 0);
}
PK_SIM_HOOK __tsan_write_range(void *p, unsigned long n) {
  pk_sim_checker.access(p, n, PK_SIM_WRITE, PK_SIM_FROM, nullptr, 0);
}
PK_SIM_HOOK __tsan_func_entry(void *) {}
PK_SIM_HOOK __tsan_func_exit() {}
PK_SIM_HOOK __tsan_init() {}
PK_SIM_HOOK __tsan_vptr_update(void **, void *) {}
PK_SIM_HOOK __tsan_vptr_read(void **) {}
PK_SIM_HOOK __tsan_atomic_thread_fence(int) {}
PK_SIM_HOOK __tsan_atomic_signal_fence(int) {}

// What memory functions do to memory: the calls themselves are not seen.
extern "C" PK_SIM_UNCHECKED __attribute__((__used__)) void *__tsan_memcpy(void *to, const void *from, size_t n) {
  pk_sim_checker.access(from, n, PK_SIM_READ, PK_SIM_FROM, nullptr, 0);
  pk_sim_checker.access(to, n, PK_SIM_WRITE, PK_SIM_FROM, nullptr, 0);
  return __builtin_memcpy(to, from, n);
}
extern "C" PK_SIM_UNCHECKED __attribute__((__used__)) void *__tsan_memmove(void *to, const void *from, size_t n) {
  pk_sim_checker.access(from, n, PK_SIM_READ, PK_SIM_FROM, nullptr, 0);
  pk_sim_checker.access(to, n, PK_SIM_WRITE, PK_SIM_FROM, nullptr, 0);
  return __builtin_memmove(to, from, n);
}
extern "C" PK_SIM_UNCHECKED __attribute__((__used__)) void *__tsan_memset(void *to, int value, size_t n) {
  pk_sim_checker.access(to, n, PK_SIM_WRITE, PK_SIM_FROM, nullptr, 0);
  return __builtin_memset(to, value, n);
}

// Atomic operations themselves: pk_sim_atomics.h has told the checker of them, with the user's line.
#define PK_SIM_TSAN(T, bits, operation) \
  extern "C" PK_SIM_UNCHECKED __attribute__((__used__)) T __tsan_atomic##bits##_##operation
#define PK_SIM_UPDATE(T, bits, operation, builtin) \
  PK_SIM_TSAN(T, bits, operation)(volatile T * p, T v, int) { return builtin(p, v, __ATOMIC_SEQ_CST); }
#define PK_SIM_EXCHANGE(bits, T, strength)                                                            \
  PK_SIM_TSAN(bool, bits, compare_exchange_##strength)(volatile T * p, T * expected, T v, int, int) { \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);    \
  }
#define PK_SIM_ATOMICS(bits, T)                                                                          \
  PK_SIM_TSAN(T, bits, load)(const volatile T *p, int) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }  \
  PK_SIM_TSAN(void, bits, store)(volatile T * p, T v, int) { __atomic_store_n(p, v, __ATOMIC_SEQ_CST); } \
  PK_SIM_UPDATE(T, bits, exchange, __atomic_exchange_n)                                                  \
  PK_SIM_UPDATE(T, bits, fetch_add, __atomic_fetch_add)                                                  \
  PK_SIM_UPDATE(T, bits, fetch_sub, __atomic_fetch_sub)                                                  \
  PK_SIM_UPDATE(T, bits, fetch_and, __atomic_fetch_and)                                                  \
  PK_SIM_UPDATE(T, bits, fetch_or, __atomic_fetch_or)                                                    \
  PK_SIM_UPDATE(T, bits, fetch_xor, __atomic_fetch_xor)                                                  \
  PK_SIM_EXCHANGE(bits, T, strong)                                                                       \
  PK_SIM_EXCHANGE(bits, T, weak)                                                                         \
  PK_SIM_TSAN(T, bits, compare_exchange_val)(volatile T * p, T expected, T v, int, int) {                \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);             \
    return expected;                                                                                     \
  }
PK_SIM_ATOMICS(8, unsigned char)
PK_SIM_ATOMICS(16, unsigned short)
PK_SIM_ATOMICS(32, unsigned)
PK_SIM_ATOMICS(64, unsigned long)
#undef PK_SIM_ATOMICS
#undef PK_SIM_EXCHANGE
#undef PK_SIM_UPDATE
#undef PK_SIM_TSAN

// ---- the undefined-behaviour sanitizer: its records hold line and column
struct pk_sim_place {
  const char *file;
  unsigned line, column;
};
struct pk_sim_type {
  unsigned short kind, info;
  char name[1];
};
struct pk_sim_index_record {
  pk_sim_place place;
  const pk_sim_type *array, *index;
};
struct pk_sim_type_record {
  pk_sim_place place;
  const pk_sim_type *type;
  unsigned char alignment_log2, kind;
};
PK_SIM_HOOK __ubsan_handle_out_of_bounds_abort(void *data, unsigned long index) {
  const pk_sim_index_record *record = (const pk_sim_index_record *)data;
  const unsigned bits = 1u << (record->index->info >> 1);
  long long value = (long long)index;
  if (bits < 64) value = record->index->info & 1 ? value << (64 - bits) >> (64 - bits) : value & ((1ll << bits) - 1);
  pk_sim_checker.index(record->array->name, value, record->place.file, (int)record->place.line,
                       (int)record->place.column);
}
PK_SIM_HOOK __ubsan_handle_type_mismatch_v1_abort(void *data, unsigned long address) {
  const pk_sim_type_record *record = (const pk_sim_type_record *)data;
  pk_sim_checker.misaligned((const void *)address, 1u << record->alignment_log2, record->type->name, record->place.file,
                            (int)record->place.line);
}
PK_SIM_HOOK __ubsan_handle_divrem_overflow_abort(void *data, unsigned long, unsigned long) {
  const pk_sim_place *place = (const pk_sim_place *)data;
  pk_sim_checker.divided_by_zero(place->file, (int)place->line);
}

PK_SIM_NOINLINE void pk_sim_bind_checker(const pk_sim_check_api *api) { pk_sim_checker = *api; }

#if PK_SIM_CHECK == 3
// simulator.py puts an addition to this before every floating-point instruction.
extern "C" __attribute__((__visibility__("hidden"), __used__)) pk_sim_u64 pk_sim_flops;
pk_sim_u64 pk_sim_flops;
#define PK_SIM_FLOPS &pk_sim_flops
#else
#define PK_SIM_FLOPS nullptr
#endif

#ifdef PK_SIM_STEP_LIMIT
// The compiler puts a call before every basic block, so that no loop runs without one.
extern "C" __attribute__((__visibility__("hidden"), __used__)) pk_sim_u64 pk_sim_steps;
pk_sim_u64 pk_sim_steps = ~0ull;  // outside launches there is no limit
PK_SIM_HOOK __sanitizer_cov_trace_pc() {
  if (__builtin_expect(pk_sim_steps-- == 0, 0)) pk_sim_checker.out_of_steps(PK_SIM_FROM);
}
#define PK_SIM_STEPS &pk_sim_steps, PK_SIM_STEP_LIMIT
#else
#define PK_SIM_STEPS nullptr, 0
#endif

// Made by the linker.
extern "C" __attribute__((__visibility__("hidden"))) char __start_pk_sim_own[], __stop_pk_sim_own[];

#define PK_SIM_CHECKED_IMAGE(text, file)                                       \
  extern "C" __attribute__((__visibility__("default"), __used__))              \
  const pk_sim_check_image pk_sim_check_v1 = {sizeof(pk_sim_check_image),      \
                                              (pk_sim_check_mode)PK_SIM_CHECK, \
                                              pk_sim_bind_checker,             \
                                              text,                            \
                                              file,                            \
                                              PK_SIM_FLOPS,                    \
                                              __start_pk_sim_own,              \
                                              __stop_pk_sim_own,               \
                                              PK_SIM_STEPS};
