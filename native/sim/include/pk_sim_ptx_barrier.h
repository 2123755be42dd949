// pk_sim_ptx_barrier.h: barriers of inline PTX: those of a block by number, and mbarriers, which count arrivals and
// bytes.
#pragma once
#pragma GCC system_header

#include "pk_sim_ptx_memory.h"

// A barrier of some threads of a block alone is not there.
PK_SIM_NOINLINE void pk_ptx_whole_block(unsigned number, unsigned threads, PK_SIM_HERE) {
  if (number >= 16) pk_sim_fail(PK_SIM_FAIL_TRAP, "bar: a barrier's number is 0 to 15;", "", pk_sim_file, pk_sim_line);
  if (threads != 0 && threads != blockDim.x * blockDim.y * blockDim.z)
    pk_sim_fail(PK_SIM_FAIL_TRAP, "bar: the simulated device has no barrier of a part of the block;", "", pk_sim_file,
                pk_sim_line);
}

// An mbarrier: the parity of its phase, arrivals that the phase misses, arrivals of a phase, bytes that it misses.
struct pk_ptx_phase {
  unsigned parity : 1, missing : 15, arrivals : 16;
  int bytes;
};
// That the barrier was made, and in an order that every thread knows. In checked mode its first half is what making it
// writes and using it reads, the second half what arrivals and waits change: they hide nothing of what made it.
PK_SIM_INLINE void pk_ptx_barrier_made([[maybe_unused]] void *barrier, [[maybe_unused]] const char *file,
                                       [[maybe_unused]] int line) {
#if PK_SIM_CHECK == 1
  if ((size_t)barrier % 8) pk_sim_checker.misaligned(barrier, 8, "mbarrier", file, line);
  pk_sim_check_access(barrier, 4, PK_SIM_READ, file, line);
#endif
}
PK_SIM_INLINE void pk_ptx_barrier_begin(void *barrier, const char *file, int line) {
#if PK_SIM_CHECK == 1
  pk_sim_begin_atomic((char *)barrier + 4, 4, file, line);
#else
  pk_sim_begin_atomic(barrier, 8, file, line);
#endif
}
// Changes the barrier, and ends the phase where nothing is missing; gives back what was before.
template <class Change>
PK_SIM_INLINE unsigned long long pk_ptx_barrier_change(void *barrier, Change change, const char *file, int line) {
  __threadfence(file, line);
  pk_ptx_barrier_begin(barrier, file, line);
  unsigned long long *const word = (unsigned long long *)barrier;
  unsigned long long before = __atomic_load_n(word, __ATOMIC_RELAXED), after;
  do {
    pk_ptx_phase phase;
    __builtin_memcpy(&phase, &before, sizeof phase);
    change(phase);
    if (phase.missing == 0 && phase.bytes == 0) {
      phase.parity ^= 1u;
      phase.missing = phase.arrivals;
    }
    __builtin_memcpy(&after, &phase, sizeof after);
  } while (!__atomic_compare_exchange_n(word, &before, after, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  return before;
}
// Makes the barrier, or takes it away.
PK_SIM_INLINE void pk_ptx_barrier_write(void *barrier, unsigned long long state, const char *file, int line) {
  pk_sim_spin(file, line);
#ifdef PK_SIM_CHECK
  pk_sim_check_access(barrier, sizeof state, PK_SIM_WRITE, file, line);
#endif
  __atomic_store_n((unsigned long long *)barrier, state, __ATOMIC_SEQ_CST);
}
PK_SIM_INLINE void pk_ptx_barrier_init(void *barrier, unsigned arrivals, PK_SIM_HERE) {
  const pk_ptx_phase phase = {0u, arrivals & 0x7fffu, arrivals & 0xffffu, 0};
  unsigned long long state;
  __builtin_memcpy(&state, &phase, sizeof state);
  pk_ptx_barrier_write(barrier, state, pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE void pk_ptx_barrier_inval(void *barrier, PK_SIM_HERE) {
  pk_ptx_barrier_made(barrier, pk_sim_file, pk_sim_line);
  pk_ptx_barrier_write(barrier, 0, pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE void pk_ptx_barrier_expect_tx(void *barrier, unsigned bytes, PK_SIM_HERE) {
  pk_ptx_barrier_made(barrier, pk_sim_file, pk_sim_line);
  pk_ptx_barrier_change(
      barrier, [bytes](pk_ptx_phase &phase) { phase.bytes += (int)bytes; }, pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE void pk_ptx_barrier_complete_tx(void *barrier, unsigned bytes, PK_SIM_HERE) {
  pk_ptx_barrier_made(barrier, pk_sim_file, pk_sim_line);
  pk_ptx_barrier_change(
      barrier, [bytes](pk_ptx_phase &phase) { phase.bytes -= (int)bytes; }, pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE unsigned long long pk_ptx_barrier_arrive(void *barrier, unsigned count, unsigned bytes, bool dropped,
                                                       PK_SIM_HERE) {
  pk_ptx_barrier_made(barrier, pk_sim_file, pk_sim_line);
  return pk_ptx_barrier_change(
      barrier,
      [count, bytes, dropped](pk_ptx_phase &phase) {
        phase.missing -= count;
        phase.arrivals -= dropped ? count : 0u;
        phase.bytes += (int)bytes;
      },
      pk_sim_file, pk_sim_line);
}
// Whether the phase of that parity is over. A thread that must wait lets others run.
PK_SIM_INLINE bool pk_ptx_phase_over(void *barrier, unsigned parity, const char *file, int line) {
  pk_ptx_barrier_begin(barrier, file, line);
  const bool over = (__atomic_load_n((unsigned long long *)barrier, __ATOMIC_SEQ_CST) & 1u) != parity;
  if (!over) __nanosleep(0, file, line);
  __threadfence(file, line);
  return over;
}
PK_SIM_INLINE bool pk_ptx_barrier_over(void *barrier, unsigned parity, PK_SIM_HERE) {
  pk_ptx_barrier_made(barrier, pk_sim_file, pk_sim_line);
  return pk_ptx_phase_over(barrier, parity, pk_sim_file, pk_sim_line);
}
PK_SIM_INLINE unsigned pk_ptx_pending(unsigned long long state) { return (unsigned)state >> 1 & 0x7fffu; }
